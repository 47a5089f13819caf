"""Whoever writes to the database cannot make a sealed value say something else: it is seen, and shown to nobody."""

import copy
import json
import pickle
from dataclasses import dataclass
from uuid import UUID

import pytest
from django.core import serializers
from django.db import IntegrityError, connection
from django.db.models import Value
from django.forms.models import model_to_dict

from accounts.crypto import KeyUse
from accounts.fields import Sealed, SealedField
from accounts.keys import NotGranted, open_content, seal_fields
from accounts.models import Subject
from accounts.selectors import subject_by_id
from accounts.tenancy import narrow, scope
from consent.access import record_read
from consent.policy import decide
from consent.types import Act
from memory import index as sealed_index
from memory.models import IndexSegment, Memory, ProfileEntry

SECRET = "Mia keeps the spare key under the blue flowerpot."
ENVELOPE = bytes([1, 1]) + bytes(60)


@pytest.fixture
def known(mia):
    """Mia, who consented, with account data and one memory."""
    mia.consents()
    mia.world.admin.put(mia.path, {"name": "Mia Malone", "email": "mia@example.com"})
    mia.memory_id = mia.remembers(SECRET)
    return mia


@pytest.fixture
def superuser(connect_as):
    with connect_as("postgres", autocommit=True) as connection:
        yield connection


def put_bytes(superuser, table, column, row_id, value, **others):
    columns = {column: value} | others
    assignments = ", ".join(f"{name} = %s" for name in columns)
    changed = superuser.execute(f"UPDATE {table} SET {assignments} WHERE id = %s", [*columns.values(), row_id])
    assert changed.rowcount == 1


def take(superuser, table, column, row_id):
    return superuser.execute(f"SELECT {column} FROM {table} WHERE id = %s", [row_id]).fetchone()[0]


def assert_alarm(world, answer, row_id):
    """The answer, the entry in the log, and that nothing of what is sealed was said."""
    assert (answer.status_code, answer.json()["code"]) == (500, "tag_mismatch")
    assert not any(word in answer.content.decode() for word in ("Malone", "flowerpot", "example.com"))
    events = world.admin.get("/v1/audit/events?action=accounts.seal.mismatched").json()["items"]
    assert [(event["resource_ids"], event["decision"], event["reason"]) for event in events] == [
        ([str(row_id)], "refused", "tag_mismatch")
    ]


# --- moved, replaced, altered --------------------------------------------------------------------------------------


def test_untouched_values_open(known):
    assert known.world.admin.get(known.path).json()["name"] == "Mia Malone"
    assert known.world.agent.get(f"{known.path}/memories/{known.memory_id}").json()["text"] == SECRET
    assert known.texts("where is the spare key?") == [SECRET]
    assert known.world.admin.get("/v1/audit/events?action=accounts.seal.mismatched").json()["items"] == []


def test_account_data_moved_to_another_person_does_not_open(known, superuser):
    leo = known.world.person("leo", name="Leo")
    stolen = take(superuser, "accounts_subject", "contact_sealed", known.id)

    put_bytes(superuser, "accounts_subject", "contact_sealed", leo.id, stolen, content_version=2)

    assert_alarm(known.world, known.world.admin.get(leo.path), leo.id)


def test_account_data_moved_to_another_field_does_not_open(known, superuser):
    stolen = take(superuser, "accounts_subject", "contact_sealed", known.id)

    put_bytes(superuser, "accounts_subject", "external_id_sealed", known.id, stolen)

    assert_alarm(known.world, known.world.admin.get("/v1/subjects"), known.id)


def test_an_external_id_moved_to_another_person_does_not_open(known, superuser):
    """It is sealed under the tenant's key, the same for both people: the place alone tells them apart."""
    leo = known.world.person("leo")
    stolen = take(superuser, "accounts_subject", "external_id_sealed", known.id)

    put_bytes(superuser, "accounts_subject", "external_id_sealed", leo.id, stolen, content_version=2)

    assert_alarm(known.world, known.world.admin.get("/v1/subjects"), leo.id)


def test_a_value_of_another_tenant_does_not_open(known, zenith, superuser):
    stranger = zenith.person("leo", name="Leo Malone")
    stolen = take(superuser, "accounts_subject", "contact_sealed", stranger.id)

    put_bytes(superuser, "accounts_subject", "contact_sealed", known.id, stolen)

    assert_alarm(known.world, known.world.admin.get(known.path), known.id)


def test_a_memory_moved_to_another_row_of_the_same_person_does_not_open(known, superuser):
    other = known.remembers("Mia has a sister in Lyon.")
    stolen = take(superuser, "memory_memory", "content_sealed", known.memory_id)

    put_bytes(superuser, "memory_memory", "content_sealed", other, stolen)

    assert_alarm(known.world, known.world.agent.get(f"{known.path}/memories/{other}"), other)


def test_a_memory_moved_into_the_profile_of_the_same_person_does_not_open(known, superuser):
    """Same key, same version: table and row alone tell the two places apart."""
    known.world.admin.put("/v1/profile-keys/preferences.language", {"schema": {"type": "string"}})
    entry = known.world.agent.put(f"{known.path}/profile/preferences.language", {"value": "de"}).json()
    stolen = take(superuser, "memory_memory", "content_sealed", known.memory_id)

    put_bytes(superuser, "memory_profileentry", "value_sealed", entry["id"], stolen)

    assert_alarm(known.world, known.world.agent.get(f"{known.path}/profile"), entry["id"])


def test_a_memory_of_another_person_does_not_open(known, superuser):
    leo = known.world.person("leo").consents()
    other = leo.remembers("Leo plays the cello.")
    stolen = take(superuser, "memory_memory", "content_sealed", known.memory_id)

    put_bytes(superuser, "memory_memory", "content_sealed", other, stolen)

    assert_alarm(known.world, known.world.agent.get(f"{leo.path}/memories/{other}"), other)


def test_an_older_value_put_back_in_the_same_row_does_not_open(known, superuser):
    older = take(superuser, "accounts_subject", "contact_sealed", known.id)
    known.world.admin.put(known.path, {"name": "Mia Malone-Lind"})

    put_bytes(superuser, "accounts_subject", "contact_sealed", known.id, older)

    assert_alarm(known.world, known.world.admin.get(known.path), known.id)


def rewrite(person, memory_id, text):
    """A new text in the same row, as an edit will do it: next content version in the row and in the index."""
    with scope(person.world.id), narrow(person.id):
        decision = decide(subject_by_id(person.id), Act.STORE, caller=person.world.principal)
        row = Memory.objects.get(id=memory_id)
        seal_fields(row, decision, content_sealed=json.dumps({"text": text, "categories": [], "metadata": {}}).encode())
        row.save()
        sealed_index.change_entries(decision, changes={row.id: {"content_version": row.content_version}})


@pytest.mark.parametrize("door", ["read", "list", "recall"])
def test_a_whole_older_row_put_back_is_exposed_by_the_index(known, superuser, door):
    older = take(superuser, "memory_memory", "content_sealed", known.memory_id)
    rewrite(known, known.memory_id, "Mia keeps the spare key at the neighbour's.")
    doors = {
        "read": lambda: known.world.agent.get(f"{known.path}/memories/{known.memory_id}"),
        "list": lambda: known.world.agent.get(f"{known.path}/memories"),
        "recall": lambda: known.world.agent.post(f"{known.path}/recall", {"query": "where is the spare key?"}),
    }
    assert doors[door]().status_code == 200

    put_bytes(superuser, "memory_memory", "content_sealed", known.memory_id, older, content_version=1)

    assert_alarm(known.world, doors[door](), known.memory_id)


@pytest.mark.parametrize("place", [0.0, 0.4, 0.999])
def test_a_flipped_bit_is_seen(known, superuser, place):
    altered = bytearray(take(superuser, "memory_memory", "content_sealed", known.memory_id))
    altered[2 + int((len(altered) - 2) * place)] ^= 4

    put_bytes(superuser, "memory_memory", "content_sealed", known.memory_id, bytes(altered))

    answer = known.world.agent.get(f"{known.path}/memories/{known.memory_id}")
    assert_alarm(known.world, answer, known.memory_id)


def test_a_value_cut_short_is_seen(known, superuser):
    whole = take(superuser, "memory_memory", "content_sealed", known.memory_id)

    put_bytes(superuser, "memory_memory", "content_sealed", known.memory_id, whole[:-1])

    answer = known.world.agent.post(f"{known.path}/recall", {"query": "where is the spare key?"})
    assert_alarm(known.world, answer, known.memory_id)


@dataclass
class Segments:
    mine: str
    theirs: str


@pytest.fixture
def segments(known, superuser):
    leo = known.world.person("leo").consents()
    leo.remembers("Leo plays the cello.")
    rows = "SELECT id FROM memory_indexsegment WHERE subject_id = %s"
    return Segments(*(superuser.execute(rows, [person.id]).fetchone()[0] for person in (known, leo)))


@pytest.mark.parametrize("door", ["list", "recall"])
def test_a_segment_of_another_person_does_not_open(known, segments, superuser, door):
    stolen = take(superuser, "memory_indexsegment", "body_sealed", segments.theirs)

    put_bytes(superuser, "memory_indexsegment", "body_sealed", segments.mine, stolen)

    agent = known.world.agent
    answer = (
        agent.get(f"{known.path}/memories") if door == "list" else agent.post(f"{known.path}/recall", {"query": "x"})
    )
    assert_alarm(known.world, answer, segments.mine)


def test_an_older_segment_put_back_does_not_open(known, superuser):
    """Else a memory that was forgotten or replaced would come up again."""
    row_id = superuser.execute("SELECT id FROM memory_indexsegment WHERE subject_id = %s", [known.id]).fetchone()[0]
    older = take(superuser, "memory_indexsegment", "body_sealed", row_id)
    rewrite(known, known.memory_id, "Mia keeps the spare key at the neighbour's.")

    put_bytes(superuser, "memory_indexsegment", "body_sealed", row_id, older)

    assert_alarm(known.world, known.world.agent.get(f"{known.path}/memories"), row_id)


@pytest.mark.parametrize("door", ["list", "recall"])
def test_a_whole_older_segment_row_put_back_is_not_on_the_signed_list(known, superuser, door):
    row = "SELECT id, body_sealed, content_version FROM memory_indexsegment WHERE subject_id = %s"
    row_id, older, version = superuser.execute(row, [known.id]).fetchone()
    rewrite(known, known.memory_id, "Mia keeps the spare key at the neighbour's.")

    put_bytes(superuser, "memory_indexsegment", "body_sealed", row_id, older, content_version=version)

    agent = known.world.agent
    answer = (
        agent.get(f"{known.path}/memories") if door == "list" else agent.post(f"{known.path}/recall", {"query": "x"})
    )
    assert_alarm(known.world, answer, row_id)


def test_a_segment_taken_away_is_noticed(known, superuser):
    known.remembers("Mia plays the viola.")
    rows = "SELECT id FROM memory_indexsegment WHERE subject_id = %s ORDER BY id"
    first, second = (row_id for (row_id,) in superuser.execute(rows, [known.id]).fetchall())

    superuser.execute("DELETE FROM memory_indexsegment WHERE id = %s", [second])

    assert_alarm(known.world, known.world.agent.get(f"{known.path}/memories"), first)


# --- plaintext -----------------------------------------------------------------------------------------------------

SEALED_COLUMNS = [
    (Subject, "external_id_sealed"),
    (Subject, "contact_sealed"),
    (Memory, "content_sealed"),
    (IndexSegment, "body_sealed"),
]
MALFORMED = [b"", SECRET.encode(), bytes([1, 1]) + bytes(43), bytes([0, 1]) + bytes(60), bytes([1, 2]) + bytes(60)]


@pytest.mark.parametrize("value", MALFORMED)
@pytest.mark.parametrize(("model", "column"), SEALED_COLUMNS)
def test_what_is_not_an_envelope_is_refused_by_the_database(known, model, column, value):
    with pytest.raises(IntegrityError, match="check constraint"), scope(known.world.id), narrow(known.id):
        model.objects.update(**{column: Value(value)})


@pytest.mark.parametrize("value", MALFORMED)
@pytest.mark.parametrize(("model", "column"), SEALED_COLUMNS)
def test_raw_sql_of_the_application_is_refused_too(known, model, column, value):
    statement = f"UPDATE {model._meta.db_table} SET {column} = %s WHERE tenant_id = %s"

    with (
        pytest.raises(IntegrityError, match="check constraint"),
        scope(known.world.id),
        narrow(known.id),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement, [value, known.world.id])


def test_the_check_lets_an_envelope_pass(known):
    """The control: what is refused above is refused for its shape and for nothing else."""
    with scope(known.world.id), narrow(known.id):
        assert Memory.objects.update(content_sealed=Value(ENVELOPE)) == 1


@pytest.mark.parametrize("value", [SECRET, SECRET.encode(), bytearray(b"x"), memoryview(b"x"), 7, [1]])
def test_plaintext_cannot_be_assigned(value):
    row = Memory()

    with pytest.raises(TypeError, match="takes a Sealed value"):
        row.content_sealed = value
    with pytest.raises(TypeError, match="takes a Sealed value"):
        Memory(content_sealed=value)


@pytest.mark.parametrize(
    "statement",
    [
        lambda rows: rows.update(content_sealed=SECRET.encode()),
        lambda rows: rows.filter(content_sealed=SECRET.encode()).exists(),
        lambda rows: rows.exclude(content_sealed__in=[SECRET.encode()]).exists(),
    ],
)
def test_plaintext_cannot_be_written_in_bulk_or_looked_for(known, statement):
    with pytest.raises(TypeError, match="takes a Sealed value"), scope(known.world.id), narrow(known.id):
        statement(Memory.objects.all())


def test_a_row_without_its_sealed_value_is_refused(known):
    with pytest.raises(IntegrityError, match="null value"), scope(known.world.id), narrow(known.id):
        Memory.objects.update(content_sealed=None)


def test_a_sealed_field_has_no_default():
    assert SealedField(number=1, use=KeyUse.CONTENT).get_default() is None
    assert ProfileEntry().value_sealed is None


# --- rendering -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "render",
    [str, bytes, list, tuple, len, iter, "{}".format, "{:>9}".format, json.dumps, "".join, b"".join, bytearray],
)
def test_a_sealed_value_renders_as_nothing(render):
    with pytest.raises(TypeError):
        render(Sealed(ENVELOPE))


def test_a_sealed_value_shows_only_that_it_is_sealed():
    assert repr(Sealed(ENVELOPE)) == "<sealed>"
    assert f"{[Sealed(ENVELOPE)]} %r" % Sealed(ENVELOPE) == "[<sealed>] <sealed>"


def test_pickling_and_copying_keep_ciphertext_and_place(known):
    with scope(known.world.id), narrow(known.id):
        sealed = Memory.objects.get().content_sealed

    for copied in (pickle.loads(pickle.dumps(sealed)), copy.deepcopy(sealed)):  # noqa: S301  our own bytes
        assert (copied.envelope, copied.binding) == (sealed.envelope, sealed.binding)
    assert b"flowerpot" not in pickle.dumps(sealed)


def test_a_row_says_nothing_in_a_dictionary_or_form(known):
    with scope(known.world.id), narrow(known.id):
        row = Memory.objects.get()

    assert "content_sealed" not in model_to_dict(row)
    assert repr(row.__dict__["content_sealed"]) == "<sealed>"


@pytest.mark.parametrize("form", ["json", "python", "jsonl", "xml"])
def test_django_does_not_serialise_a_sealed_row(known, form):
    with scope(known.world.id), narrow(known.id), pytest.raises(TypeError, match="not serialised"):
        serializers.serialize(form, Memory.objects.all())


def test_a_value_read_without_its_row_cannot_be_opened(known):
    with scope(known.world.id), narrow(known.id):
        sealed = Memory.objects.values_list("content_sealed", flat=True).get()
        decision = decide(subject_by_id(known.id), Act.LIST, caller=known.world.principal)
        grant = record_read(decision, [UUID(known.memory_id)], action="memory.memory.read")

        with pytest.raises(NotGranted):
            open_content(sealed, grant)


def test_a_deferred_value_is_read_and_bound_when_asked_for(known):
    with scope(known.world.id), narrow(known.id):
        row = Memory.objects.defer("content_sealed").get()

        assert row.content_sealed.binding.row_id == row.id
