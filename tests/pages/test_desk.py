"""The compliance desk and the console as a browser without JavaScript sees them, and who may not see them."""

from html import unescape

import pytest
from django.test import Client

from accounts.credentials import id_text


def text_of(answer):
    return unescape(answer.content.decode())


def desk(world):
    return f"/desk/{id_text(world.id)}/"


def console(world):
    return f"/console/{id_text(world.id)}/"


@pytest.fixture
def olga(acme):
    return acme.browser("olga")


@pytest.mark.parametrize(("name", "status"), [("olga", 200), ("ben", 200), ("ada", 403), ("dan", 403)])
def test_the_desk_is_the_officers_and_the_auditors(acme, name, status):
    assert acme.browser(name).get(desk(acme)).status_code == status


@pytest.mark.parametrize("address", [desk, console], ids=["desk", "console"])
def test_a_stranger_finds_nothing_and_the_signed_out_sign_in(acme, zenith, address):
    assert zenith.browser("ben").get(address(acme)).status_code == 404
    assert zenith.browser("ben").get(f"/{address.__name__}/{'0' * 22}/").status_code == 404
    answer = Client().get(address(acme))
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/?next=/")


def test_a_refused_member_is_in_the_log(acme):
    acme.browser("dan").get(desk(acme))
    event = acme.admin.get("/v1/audit/events?action=accounts.request.refused").json()["items"][0]
    assert (event["actor"], event["reason"]) == (
        {"kind": "user", "id": str(acme.members["dan"].id), "on_behalf_of": ""},
        "role_forbidden",
    )


def test_the_log_is_shown_with_names_of_keys_and_without_any_text(acme, mia, olga):
    mia.consents()
    mia.remembers("Mia keeps bees.")
    shown = text_of(olga.get(desk(acme)))
    assert "memory.memory.stored" in shown
    assert f"agent (…{acme.keys['agent'][-4:]})" in shown
    assert "bees" not in shown


def test_reading_the_log_is_in_it(acme, olga):
    olga.get(desk(acme))
    assert acme.members["olga"].email in text_of(olga.get(f"{desk(acme)}?q=action:consent.log.read"))


def test_a_search_for_one_person(acme, mia, olga):
    acme.person("noa").consents()
    mia.consents()
    mia.remembers("Mia keeps bees.")
    shown = text_of(olga.get(f"{desk(acme)}?q=subject:mia+outcome:ok"))
    assert shown.count("consent.statement.recorded") == 1
    assert "memory.memory.stored" in shown


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("bees", "Use actor:"),
        ("subject:nobody", "nobody of this tenant has this id"),
        ("subject:a/b", "nobody of this tenant has this id"),
        ("outcome:maybe", "Use ok, refused, failed"),
        ("subject:\x00", "no control characters"),
        ("action:\x00", "no control characters"),
    ],
)
def test_what_is_not_understood_is_said_and_nothing_is_shown(acme, mia, olga, line, said):
    mia.consents()
    answer = olga.get(desk(acme), {"q": line})
    assert answer.status_code == 200
    assert said in text_of(answer)
    assert "consent.statement.recorded" not in text_of(answer)


def test_a_search_line_is_shown_as_text(acme, olga):
    answer = olga.get(desk(acme), {"q": '"><script>alert(1)</script>'})
    assert b"<script>alert" not in answer.content


def test_pages_go_on_to_the_oldest(acme, olga):
    for number in range(51):
        acme.person(f"person-{number}")
    first = text_of(olga.get(f"{desk(acme)}?q=action:accounts.subject.created"))
    older = first.partition("?q=action%3Aaccounts.subject.created&cursor=")[2].partition('"')[0]
    second = text_of(olga.get(f"{desk(acme)}?q=action:accounts.subject.created&cursor={older}"))
    assert first.count("accounts.subject.created</a>") == 50
    assert second.count("accounts.subject.created</a>") == 1


def test_one_event(acme, zenith, mia, olga):
    mia.consents()
    event = acme.admin.get("/v1/audit/events?action=consent.statement.recorded").json()["items"][0]
    shown = text_of(olga.get(f"{desk(acme)}events/{event['id']}/"))
    assert event["subject_pseudonym"] in shown
    assert "What a person said about purposes was entered in the ledger" in shown
    assert zenith.browser("olga").get(f"{desk(zenith)}events/{event['id']}/").status_code == 404


def test_the_console_counts(acme, mia):
    mia.consents()
    mia.remembers("Mia keeps bees.")
    acme.person("noa")
    assert acme.person("kai").tries("Kai keeps cats.").status_code == 403
    shown = text_of(acme.browser("ben").get(console(acme)))
    assert "<b>3</b>" in shown
    assert "consent_required" in shown
    assert "agent" in shown
    assert acme.keys["agent"][-4:] in shown
    assert acme.keys["agent"] not in shown
    assert "bees" not in shown


def test_the_empty_console_says_what_will_be_there(zenith):
    shown = text_of(zenith.browser("ben").get(console(zenith)))
    assert "Overview" in shown
    assert "Nobody yet" not in shown


def test_mode_and_place_are_always_said(acme, olga):
    for address in (console(acme), desk(acme)):
        shown = text_of(olga.get(address)).lower()
        assert "sandbox" in shown
        assert "acme" in shown
