"""Input taken exactly as it is, or refused: JSON types, names, sizes, encodings, cursors, query parameters."""

import json
import time

import pytest

from accounts.errors import ValidationFailed
from accounts.http.parsing import parse_json
from accounts.models import Subject
from accounts.tenancy import scope
from tests.world import Rest

DEEP = "[" * 40 + "]" * 40
MIB = 1024 * 1024


def code(answer):
    return answer.status_code, answer.json()["code"]


@pytest.fixture
def mia(mia):
    return mia.consents()


def send(person, raw, path="memories"):
    """The bytes exactly as given, as JSON."""
    return person.world.admin.post(f"{person.path}/{path}", raw)


# --- bodies -----------------------------------------------------------------------------------------------------------

BAD_BODIES = {
    "empty": b"",
    "cut off": b'{"text": "x"',
    "two values": b'{"text": "x"}{"text": "y"}',
    "trailing comma": b'{"text": "x",}',
    "single quotes": b"{'text': 'x'}",
    "comment": b'{"text": "x"} // why not',
    "array": b'[{"text": "x"}]',
    "string": b'"text"',
    "number": b"5",
    "null": b"null",
    "latin-1": '{"text": "é"}'.encode("latin-1"),
    "utf-16": '{"text": "x"}'.encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + b'{"text": "x"}',
    "overlong utf-8": b'{"text": "\xc0\xaf"}',
    "surrogate as utf-8": b'{"text": "\xed\xa0\x80"}',
    "lone high surrogate": b'{"text": "\\ud800"}',
    "lone low surrogate": b'{"text": "a\\udc00b"}',
    "surrogate in a name": b'{"text": "x", "metadata": {"\\ud800": 1}}',
    "duplicate name": b'{"text": "x", "text": "y"}',
    "duplicate name inside": b'{"text": "x", "metadata": {"a": 1, "a": 2}}',
    "duplicate name, escaped": b'{"text": "x", "t\\u0065xt": "y"}',
    "NaN": b'{"text": "x", "importance": NaN}',
    "Infinity": b'{"text": "x", "importance": -Infinity}',
    "beyond a float": b'{"text": "x", "metadata": {"n": 1e999}}',
    "beyond a float as importance": b'{"text": "x", "importance": 1e999}',
    "number of 400 digits": b'{"text": "x", "importance": 1' + b"0" * 400 + b"}",
    "number of 5000 digits": b'{"text": "x", "importance": 1' + b"0" * 5000 + b"}",
    "control character": b'{"text": "a\nb"}',
    "deep": f'{{"text": "x", "metadata": {{"a": {DEEP}}}}}'.encode(),
    "very deep": b"[" * 200_000,
    "unbalanced": b"]" * 1000 + b"[" * 1000,
    "quotes": b'"' * 10_001,
}


@pytest.mark.parametrize("raw", BAD_BODIES.values(), ids=BAD_BODIES)
def test_body_that_is_not_strict_json_is_refused(mia, raw):
    answer = send(mia, raw)

    assert code(answer) == (400, "validation_failed")
    assert mia.listed() == []


GOOD_BODIES = {
    "white space": b' \r\n\t{"text" : "x"} \n',
    "surrogate pair": b'{"text": "\\ud83c\\udf3c"}',
    "escaped NUL": b'{"text": "a\\u0000b"}',
    "brackets in a string": json.dumps({"text": "[" * 100 + '\\"]'}).encode(),
    "as deep as allowed": json.dumps({"text": "x", "metadata": {"a": json.loads("[" * 29 + "]" * 29)}}).encode(),
    "big integer": b'{"text": "x", "metadata": {"n": 123456789012345678901234567890}}',
}


@pytest.mark.parametrize("raw", GOOD_BODIES.values(), ids=GOOD_BODIES)
def test_strict_json_is_taken(mia, raw):
    answer = send(mia, raw)

    assert answer.status_code == 201
    kept = mia.world.agent.get(f"{mia.path}/memories/{answer.json()['memories'][0]['id']}").json()
    sent = json.loads(raw)
    assert kept["text"] == sent["text"]
    assert kept["metadata"] == sent.get("metadata", {})


def test_body_of_a_mebibyte_is_taken_and_one_byte_more_is_not(acme):
    def body(size):
        return b'{"name": "n", "text": "x"' + b" " * (size - 26) + b"}"

    assert len(body(MIB)) == MIB
    assert acme.admin.post("/v1/knowledge/documents", body(MIB)).status_code == 202
    assert code(acme.admin.post("/v1/knowledge/documents", body(MIB + 1))) == (413, "payload_too_large")
    assert code(acme.admin.post("/v1/knowledge/documents", body(3 * MIB))) == (413, "payload_too_large")


def test_large_body_is_refused_before_the_key_is_looked_at(acme):
    assert Rest("nonsense").post("/v1/subjects/mia/recall", "x" * (MIB + 1)).status_code == 413


def seconds_of(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def refused(body):
    with pytest.raises(ValidationFailed):
        parse_json(body)


@pytest.mark.parametrize("unit", [b'\\"', b"\\\\", b"\\", b'"\\', b"x", b'"', b"\xc3\xa9"], ids=repr)
def test_string_that_never_ends_costs_no_more_than_one_that_does(unit):
    """An earlier depth check looked for the end of every string in it again: 1 MiB took hours."""
    endless = b'"' + unit * ((MIB - 1) // len(unit) - 1) + b"\\"
    valid = json.dumps({"text": "a\u0000" * (MIB // 8)}).encode()

    def best(work):
        return min(seconds_of(work) for _ in range(5))

    assert best(lambda: refused(endless)) < 50 * best(lambda: json.loads(valid))


def test_charset_other_than_utf8_is_not_believed(mia):
    answer = mia.world.agent.client.generic(
        "POST",
        f"{mia.path}/memories",
        '{"text": "é"}'.encode("latin-1"),
        "application/json; charset=latin-1",
        headers={"Authorization": f"Bearer {mia.world.keys['agent']}"},
    )

    assert code(answer) in ((400, "validation_failed"), (415, "unsupported_media_type"))


# --- types ------------------------------------------------------------------------------------------------------------

UUID = "cfb6c05d-e8c4-4033-a23f-84258ff602cd"
WRONG_TYPES = [
    ("memories", {"text": 5}),
    ("memories", {"text": True}),
    ("memories", {"text": ["x"]}),
    ("memories", {"text": {"x": "y"}}),
    ("memories", {"text": "x", "importance": "0.5"}),
    ("memories", {"text": "x", "importance": True}),
    ("memories", {"text": "x", "importance": None}),
    ("memories", {"text": "x", "infer": 1}),
    ("memories", {"text": "x", "infer": "false"}),
    ("memories", {"text": "x", "kind": 1}),
    ("memories", {"text": "x", "kind": None}),
    ("memories", {"text": "x", "agent": 7}),
    ("memories", {"text": "x", "session": 7}),
    ("memories", {"text": "x", "categories": "food"}),
    ("memories", {"text": "x", "categories": {"food": 1}}),
    ("memories", {"text": "x", "categories": [None]}),
    ("memories", {"text": "x", "metadata": "{}"}),
    ("memories", {"text": "x", "metadata": None}),
    ("memories", {"text": "x", "occurred_at": 1714746000}),
    ("memories", {"text": "x", "supersedes": UUID}),
    ("memories", {"text": "x", "supersedes": [5]}),
    ("memories", {"text": "x", "supersedes": [True]}),
    ("memories", {"text": "x", "derived_from": [1.5]}),
    ("memories", {"text": "x", "project": 5}),
    ("memories", {"text": "x", "project": True}),
    ("memories", {"text": "x", "project": None}),
    ("memories", {"items": {"text": "x"}}),
    ("memories", {"items": ["x"]}),
    ("memories", {"items": None}),
    ("recall", {"query": "x", "project": 5}),
    ("recall", {"query": "x", "categories": [5]}),
    ("recall", {"query": "x", "limit": True}),
    ("recall", {"query": "x", "limit": None}),
    ("recall", {"query": "x", "scoring": "decay"}),
    ("recall", {"query": "x", "explain": "yes"}),
    ("consents", {"event": "given", "purposes": "memory.store", "evidence": "m"}),
    ("consents", {"event": True, "purposes": ["memory.store"], "evidence": "m"}),
    ("consents", {"event": "given", "purposes": [1], "evidence": "m"}),
    ("consents", {"event": "given", "purposes": ["memory.store"], "evidence": 1}),
    ("consents", {"event": "given", "purposes": ["memory.store"], "evidence": "m", "language": 5}),
]


@pytest.mark.parametrize(("path", "body"), WRONG_TYPES, ids=str)
def test_value_of_another_type_is_refused(mia, path, body):
    assert code(send(mia, body, path)) == (400, "validation_failed")


@pytest.mark.parametrize(
    "body", [{"name": 5}, {"email": 5}, {"locale": 5}, {"age_band": 1}, {"time_zone": False}], ids=str
)
def test_account_of_another_type_is_refused(mia, body):
    assert code(mia.world.admin.put(mia.path, body)) == (400, "validation_failed")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("memories", {"text": "x", "colour": 1}),
        ("memories", {"Text": "x"}),
        ("memories", {"items": [{"text": "x", "colour": 1}]}),
        ("memories", {"items": [{"text": "x"}], "text": "y"}),
        ("recall", {"query": "x", "top_k": 3}),
        ("consents", {"event": "given", "purposes": ["memory.store"], "evidence": "m", "notice": "x"}),
    ],
    ids=str,
)
def test_unknown_name_is_refused(mia, path, body):
    assert code(send(mia, body, path)) == (400, "validation_failed")


def test_names_with_slashes_are_pointed_at_properly(mia):
    """RFC 6901: `~` and `/` inside a name are written ~0 and ~1."""
    answer = send(mia, {"text": "x", "a/b~c": 1})

    assert [error["pointer"] for error in answer.json()["errors"]] == ["/a~1b~0c"]


LONG = 30_000


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("memories", {"items": [{}] * LONG}, "/items"),
        ("memories", {"text": "x", "categories": [5] * LONG}, "/categories"),
        ("memories", {"text": "x", "supersedes": ["x"] * LONG}, "/supersedes"),
        ("memories", {"text": "x", "derived_from": ["x"] * LONG}, "/derived_from"),
        ("recall", {"query": "x", "kinds": ["x"] * LONG}, "/kinds"),
        ("recall", {"query": "x", "categories": ["X"] * LONG}, "/categories"),
        ("consents", {"event": "given", "purposes": ["x"] * LONG, "evidence": "m"}, "/purposes"),
        (
            "consents",
            {"event": "given", "purposes": ["memory.store"], "evidence": "m", "notice_digests": ["x"] * LONG},
            "/notice_digests",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_list_that_is_too_long_is_refused_before_its_elements_are_looked_at(mia, path, body, pointer):
    answer = send(mia, body, path)

    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


@pytest.mark.parametrize("path", ["knowledge/documents", "knowledge/search"])
def test_list_of_tags_that_is_too_long_is_refused_before_its_elements_are_looked_at(acme, path):
    body = {"name": "n", "text": "x"} if path.endswith("documents") else {"query": "x"}

    answer = acme.admin.post(f"/v1/{path}", body | {"tags": ["!"] * LONG})

    assert [error["pointer"] for error in answer.json()["errors"]] == ["/tags"]


def test_answer_names_twenty_errors_at_most_and_how_many_more_there_are(mia):
    twenty = send(mia, {"items": [{}] * 20}).json()["errors"]
    hundred = send(mia, {"items": [{}] * 100}).json()["errors"]
    unknown = send(mia, {f"name{n}": 1 for n in range(1000)}).json()["errors"]

    assert [error["pointer"] for error in twenty] == [f"/items/{n}/text" for n in range(20)]
    assert [error["pointer"] for error in hundred] == [*(f"/items/{n}/text" for n in range(19)), ""]
    assert hundred[-1]["detail"] == "And 81 more."
    assert (len(unknown), unknown[-1]["detail"]) == (20, "And 981 more.")


@pytest.mark.parametrize(
    ("scoring", "said"),
    [
        ({"name": "peanut"}, "decay, evidence, recency, weighted"),
        ({"name": "decay", "peanut": 1}, "access_boost, access_cap, confirmation_factor, rate_per_day"),
        ({"name": "decay", "rate_per_day": "peanut"}, "rate_per_day is a number from 0 to 10"),
        ({"name": "decay", "rate_per_day": ["peanut"]}, "rate_per_day is a number from 0 to 10"),
        ({"name": "decay", "rate_per_day": 10**300}, "rate_per_day is a number from 0 to 10"),
    ],
    ids=str,
)
def test_refused_scoring_says_what_may_be_given_and_not_what_was(mia, scoring, said):
    answer = send(mia, {"query": "x", "scoring": scoring}, "recall")

    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["pointer"]) == (400, "/scoring")
    assert said in error["detail"]
    assert "peanut" not in error["detail"]
    assert "000" not in error["detail"]


@pytest.mark.parametrize(
    ("value", "status"), [("\x00", 400), ("\\\x00", 400), ("\\u0000", 201), ("\\\\u0000", 201), ("x", 201)], ids=repr
)
def test_nul_in_metadata_is_told_from_the_text_of_its_escape(mia, value, status):
    assert send(mia, {"text": "x", "metadata": {"a": value}}).status_code == status


def test_value_refused_is_not_repeated(mia):
    answer = send(
        mia, {"text": "x", "kind": "peanut allergy", "importance": "peanut allergy", "categories": ["Peanut"]}
    )

    assert answer.status_code == 400
    assert "eanut" not in answer.content.decode()


# --- query parameters -------------------------------------------------------------------------------------------------

LISTS = ["subjects", "projects", "profile-keys", "knowledge/documents", "subjects/mia/memories", "audit/events"]
GETS = [*LISTS, "subjects/mia", "purposes", "subjects/mia/consents", "subjects/mia/profile"]


@pytest.mark.parametrize("path", GETS)
def test_unknown_parameter_is_refused(mia, path):
    """A misspelt filter must not widen what is answered."""
    assert mia.world.admin.get(f"/v1/{path}").status_code == 200

    assert code(mia.world.admin.get(f"/v1/{path}?porject=5")) == (400, "validation_failed")


def test_unknown_parameter_is_refused_beside_an_id(acme):
    stored = acme.stores("handbook", "Bees live on the roof.")

    for path in (f"jobs/{stored['job']['id']}", f"knowledge/documents/{stored['id']}"):
        assert acme.admin.get(f"/v1/{path}").status_code == 200
        assert code(acme.admin.get(f"/v1/{path}?porject=5")) == (400, "validation_failed")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("subjects/mia/memories", {"text": "x"}),
        ("subjects/mia/recall", {"query": "x"}),
        ("subjects/mia/consents", {"event": "refused", "purposes": ["improve"]}),
        ("knowledge/documents", {"name": "n", "text": "t"}),
        ("knowledge/search", {"query": "x"}),
        ("projects", {"name": "n"}),
    ],
    ids=str,
)
def test_parameter_on_a_write_is_refused(mia, path, body):
    """`?project=` on a write would otherwise be dropped, and the memory stored for every project."""
    answer = mia.world.admin.post(f"/v1/{path}?project={mia.world.project('alpha')}", body)

    assert code(answer) == (400, "validation_failed")


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "query", ["limit=0", "limit=201", "limit=-1", "limit=1.5", "limit=ten", "limit=", "limit=1&limit=2"]
)
def test_limit_is_1_to_200(mia, path, query):
    assert mia.world.admin.get(f"/v1/{path}?limit=200").status_code == 200

    assert code(mia.world.admin.get(f"/v1/{path}?{query}")) == (400, "validation_failed")


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("cursor", ["x", "5", "AAAA", "A" * 23, "A" * 65, "%C3%A9", "AAAAAAAAAAAAAAAAAAAAA!", "%00"])
def test_cursor_that_is_none_is_refused(mia, path, cursor):
    assert code(mia.world.admin.get(f"/v1/{path}?cursor={cursor}")) == (400, "validation_failed")


@pytest.mark.parametrize("path", ["subjects/mia/memories", "subjects/mia/profile"])
@pytest.mark.parametrize("project", ["5", "", "alpha", f"{UUID}x"])
def test_project_parameter_is_an_id(mia, path, project):
    assert code(mia.world.admin.get(f"/v1/{path}?project={project}")) == (400, "validation_failed")


def test_cursor_of_another_tenant_shows_nothing_of_it(acme, zenith):
    for external_id in ("a", "b", "c"):
        zenith.person(external_id)
        acme.person(external_id)
    cursor = zenith.admin.get("/v1/subjects?limit=2").json()["next_cursor"]

    items = acme.admin.get(f"/v1/subjects?cursor={cursor}").json()["items"]

    with scope(acme.id):
        own = {str(each) for each in Subject.objects.values_list("id", flat=True)}
    assert {item["id"] for item in items} <= own


@pytest.mark.parametrize("name", ["", "x" * 101, "nul\x00", 5, None])
def test_project_name_is_checked(acme, name):
    answer = acme.admin.post("/v1/projects", {"name": name})

    assert code(answer) == (400, "validation_failed")


def test_scoring_of_a_project_may_not_hold_nul(acme):
    answer = acme.admin.post("/v1/projects", {"name": "p", "scoring": {"name": "a\x00"}})

    assert code(answer) == (400, "validation_failed")


def test_project_made_by_many_at_once_is_made_once(acme):
    answers = acme.at_once(*[lambda: acme.admin.post("/v1/projects", {"name": "alpha"})] * 6)

    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409, 409]
