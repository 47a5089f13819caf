"""Two keys to turn: a decision opens index data, a grant the contents it names, and nothing else opens anything."""

from uuid import uuid4

import pytest

from accounts.keys import NotGranted, open_content, open_index, seal_fields, subject_pseudonym, tenant_blind_index
from accounts.keys import tenant_digest as digest
from accounts.models import Subject
from accounts.tenancy import narrow, scope
from consent.access import record_read
from consent.policy import decide, decide_for_tenant
from consent.types import Act
from memory.models import IndexSegment, Memory, ProfileEntry


@pytest.fixture
def known(mia):
    mia.consents()
    mia.remembers("Mia plays the cello.")
    mia.world.admin.put("/v1/profile-keys/preferences.language", {"schema": {"type": "string"}})
    mia.world.agent.put(f"{mia.path}/profile/preferences.language", {"value": "de"})
    return mia


@pytest.fixture
def leo(acme):
    person = acme.person("leo").consents()
    person.remembers("Leo plays the flute.")
    return person


def row_of(person, model):
    with scope(person.world.id), narrow(person.id):
        return model.objects.get()


def granted(person, ids, act=Act.LIST):
    with scope(person.world.id), narrow(person.id):
        decision = decide(person.ref_inside(), act, caller=person.world.principal)
        return record_read(decision, ids, action="memory.memory.read")


def events(world, action):
    return world.admin.get(f"/v1/audit/events?action={action}").json()["items"]


# --- contents -------------------------------------------------------------------------------------------------------


def test_a_grant_opens_the_contents_it_names(known):
    row = row_of(known, Memory)

    assert b"Mia plays the cello." in open_content(row.content_sealed, granted(known, [row.id]))


def test_the_entry_stands_in_the_log_before_the_grant_is_had(known):
    row = row_of(known, Memory)

    grant = granted(known, [row.id])

    assert events(known.world, "memory.memory.read")[0]["id"] == str(grant.event_id)
    assert events(known.world, "memory.memory.read")[0]["resource_ids"] == [str(row.id)]


@pytest.mark.parametrize("ids", [[], [uuid4()]])
def test_a_grant_opens_no_row_it_does_not_name(known, ids):
    row = row_of(known, Memory)

    with pytest.raises(NotGranted):
        open_content(row.content_sealed, granted(known, ids))


def test_another_persons_grant_opens_nothing_even_naming_the_row(known, leo):
    row = row_of(known, Memory)

    with pytest.raises(NotGranted):
        open_content(row.content_sealed, granted(leo, [row.id]))


def test_another_tenants_grant_opens_nothing_even_naming_the_row(known, zenith):
    row = row_of(known, Memory)
    stranger = zenith.person("zoe").consents()

    with pytest.raises(NotGranted):
        open_content(row.content_sealed, granted(stranger, [row.id]))


def test_a_decision_for_the_tenant_opens_no_persons_content(known):
    row = row_of(known, Memory)

    decision = decide_for_tenant(Act.TENANT, caller=known.world.principal)
    grant = record_read(decision, [row.id], action="accounts.subject.listed")

    with pytest.raises(NotGranted):
        open_content(row.content_sealed, grant)


def test_a_decision_for_the_tenant_opens_the_tenants_own_content(known):
    with scope(known.world.id):
        row = Subject.objects.get(id=known.id)
    decision = decide_for_tenant(Act.TENANT, caller=known.world.principal)

    grant = record_read(decision, [row.id], action="accounts.subject.listed")

    assert open_content(row.external_id_sealed, grant) == b"mia"


def test_index_data_is_not_content(known):
    segment = row_of(known, IndexSegment)

    with pytest.raises(NotGranted):
        open_content(segment.body_sealed, granted(known, [segment.id]))


# --- index data -----------------------------------------------------------------------------------------------------


def test_a_decision_opens_index_data(known):
    entry = row_of(known, ProfileEntry)

    assert open_index(entry.facets_sealed, known.decides(Act.LIST)) == b'{"sensitive": false}'


def test_a_refused_decision_opens_no_index_data(known):
    segment = row_of(known, IndexSegment)
    known.says("withdrawn")
    refused = known.decides(Act.LIST)

    assert (refused.allowed, refused.reason) == (False, "consent_withdrawn")
    with pytest.raises(NotGranted):
        open_index(segment.body_sealed, refused)


def test_another_persons_decision_opens_no_index_data(known, leo):
    segment = row_of(known, IndexSegment)

    with pytest.raises(NotGranted):
        open_index(segment.body_sealed, leo.decides(Act.LIST))


def test_a_decision_opens_no_content(known):
    row = row_of(known, Memory)

    with pytest.raises(NotGranted):
        open_index(row.content_sealed, known.decides(Act.LIST))


# --- refusals -------------------------------------------------------------------------------------------------------


def test_a_refused_decision_gives_no_grant_and_no_entry_of_a_read(known):
    known.says("withdrawn")

    with pytest.raises(NotGranted):
        granted(known, [uuid4()])

    assert events(known.world, "memory.memory.read") == []


def test_a_refused_decision_seals_nothing(known):
    row = row_of(known, Memory)
    known.says("withdrawn")

    with pytest.raises(NotGranted):
        seal_fields(row, known.decides(Act.STORE), content_sealed=b"x")


def test_another_persons_decision_seals_nothing(known, leo):
    row = row_of(known, Memory)

    with pytest.raises(NotGranted):
        seal_fields(row, leo.decides(Act.STORE), content_sealed=b"x")


@pytest.mark.parametrize(
    "values", [{}, {"value_sealed": b"x"}, {"value_sealed": b"x", "facets_sealed": b"y", "z": b""}]
)
def test_all_sealed_fields_of_a_row_are_sealed_together(known, values):
    entry = row_of(known, ProfileEntry)

    with pytest.raises(TypeError, match="facets_sealed"):
        seal_fields(entry, known.decides(Act.STORE), **values)


def test_sealing_anew_raises_the_content_version(known):
    entry = row_of(known, ProfileEntry)
    before = entry.value_sealed.envelope

    seal_fields(entry, known.decides(Act.STORE), value_sealed=b"x", facets_sealed=b"y")

    assert (entry.content_version, entry.value_sealed.binding.version) == (2, 2)
    assert entry.value_sealed.envelope != before
    assert open_content(entry.value_sealed, granted(known, [entry.id])) == b"x"


# --- names ----------------------------------------------------------------------------------------------------------


def test_a_pseudonym_is_one_persons_and_stays(known, leo):
    names = [subject_pseudonym(known.world.tenant.key_epoch, person.ref()) for person in (known, known, leo)]

    assert names[0] == names[1] != names[2]
    assert len(names[0]) == 32
    assert known.id.hex not in names[0]


def test_a_blind_index_is_equal_within_a_tenant_and_a_field_alone(acme, zenith):
    def index(world, field, value):
        return tenant_blind_index(world.id, world.tenant.key_epoch, field, value)

    of_mia = index(acme, "subject.external_id", b"mia")

    assert of_mia == index(acme, "subject.external_id", b"mia")
    assert len({of_mia, index(zenith, "subject.external_id", b"mia"), index(acme, "subject.email", b"mia")}) == 3


def test_a_digest_is_keyed_by_the_tenant(acme, zenith):
    digests = {digest(world.id, world.tenant.key_epoch, b"a", b"b") for world in (acme, acme, zenith)}

    assert len(digests) == 2
