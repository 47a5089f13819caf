"""Every registered place can be asked, emptied and read back; and what stays can no longer be tied to the person."""

import pytest

from accounts.errors import KeyDestroyed
from accounts.keys import subject_pseudonym
from accounts.models import Subject
from accounts.selectors import subject_by_id
from accounts.services.jobs import queue_job
from accounts.tenancy import narrow, scope
from consent.holdings import holders


@pytest.fixture
def filled(acme):
    """A person with something in every place that can hold a person's data."""
    mia = acme.person("mia", email="mia@example.com", name="Mia", locale="de")
    mia.consents("memory.store", "memory.personalise", "memory.sensitive")
    acme.admin.put("/v1/profile-keys/preferences.language", {"schema": {}})
    acme.admin.put(f"{mia.path}/profile/preferences.language", {"value": "de"}, Idempotency_Key="one")
    first = mia.remembers("Mia lives in Leeds.", session="chat")
    mia.remembers("Mia lives in Lyon.", supersedes=[first])
    with scope(acme.id), narrow(mia.id):
        queue_job("test", "tests.nothing", project_id=None)
    mia.link()
    return mia


def located(person):
    with scope(person.world.id), narrow(person.id):
        subject = subject_by_id(person.id)
        return {label: count for holder in holders() for label, count in holder.locate(subject).items()}


def test_every_place_says_what_it_holds(filled):
    assert located(filled) == {
        "memory.indexsegment": 2,
        "memory.lineage": 1,
        "memory.memory": 2,
        "memory.profileentry": 1,
        "memory.session": 1,
        "consent.consentstate": 3,
        "accounts.job": 1,
        "accounts.outboxentry": 1,
        "accounts.idempotencyrecord": 1,
        "accounts.portalpass": 1,
        "accounts.subject": 1,
        "accounts.wrappedkey": 2,
    }


def test_every_place_can_be_emptied_and_reads_back_absent(filled, zenith):
    with scope(filled.world.id), narrow(filled.id):
        subject = subject_by_id(filled.id)
        Subject.objects.filter(id=filled.id).update(state="erased", key_epoch=2)
        for holder in holders():
            holder.erase(subject)
        absent = {holder.name: holder.verify_absent(subject) for holder in holders()}
        again = [holder.erase(subject) for holder in holders()]

    assert set(absent.values()) == {True}
    assert [sum(each.values()) for each in again] == [0] * len(again)
    assert zenith.agent.get("/v1/subjects/mia/memories").json()["items"] != []


def test_no_event_names_the_person_beside_the_pseudonym(filled, connect_as):
    filled.world.admin.get(filled.path)
    filled.says("withdrawn")
    filled.world.agent.get(f"{filled.path}/memories")

    with connect_as("postgres") as superuser:
        both = superuser.execute(
            "SELECT action FROM audit_event WHERE subject_pseudonym <> '' AND %s = ANY(resource_ids)", [filled.id]
        ).fetchall()
        pseudonymous = superuser.execute(
            "SELECT count(*) FROM audit_event WHERE subject_pseudonym <> '' AND tenant_id = %s", [filled.world.id]
        ).fetchone()

    assert both == []
    assert pseudonymous[0] >= 8


def test_the_pseudonym_cannot_be_made_again_once_the_keys_are_gone(filled):
    with scope(filled.world.id), narrow(filled.id):
        subject = subject_by_id(filled.id)
        Subject.objects.filter(id=filled.id).update(key_epoch=2)
        (keys,) = [holder for holder in holders() if holder.name == "keys"]
        keys.erase(subject)
        fenced = subject_by_id(filled.id)

    with pytest.raises(KeyDestroyed):
        subject_pseudonym(filled.world.tenant.key_epoch, fenced)
