"""What accounts does in the background with care: keys are swept one by one or not at all; counts of strangers end."""

import logging
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
import redis
from uuid_utils.compat import uuid7

from accounts import keystore
from accounts.tasks import _usual_orphans, record_refused_keys, sweep_orphan_keys
from accounts.usage import REFUSED_KEYS, note_refused_key

# --- keys without a person --------------------------------------------------------------------------------------------


@pytest.fixture
def orphans(connect_as):
    """orphans(world, n): keys of n persons who never came to be, of yesterday."""

    def make(world, number):
        made = [uuid7() for _ in range(number)]
        for subject_id in made:
            keystore.create_subject_keys(world.id, world.tenant.key_epoch, subject_id)
        grow_old(connect_as, world)
        return made

    return make


def grow_old(connect_as, world):
    with connect_as("postgres", "forgetmenot_keys") as superuser:
        superuser.execute(
            "UPDATE accounts_wrappedkey SET created_at = %s WHERE tenant_id = %s",
            [datetime.now(UTC) - timedelta(days=1), world.id],
        )


def left(world, people):
    return sum(keystore.count_subject_keys(world.id, subject_id) for subject_id in people)


def swept(world):
    return world.admin.get("/v1/audit/events?action=accounts.key.swept").json()["items"]


def test_sweeping_keys_is_recorded_with_how_many_persons(acme, mia, orphans):
    made = orphans(acme, 3)

    assert sweep_orphan_keys(acme.id) == 6

    assert (left(acme, made), left(acme, [mia.id])) == (0, 2)
    (event,) = swept(acme)
    assert (event["resource_kind"], event["counts"], event["resource_ids"]) == ("subject_key", {"items": 3}, [])
    assert event["actor"]["id"] == "sweep"


def test_a_sweep_that_finds_nothing_leaves_no_event(acme, mia, connect_as):
    grow_old(connect_as, acme)

    assert sweep_orphan_keys(acme.id) == 0

    assert swept(acme) == []


def test_twenty_orphans_are_swept_and_one_more_is_not(acme, zenith, mia, orphans, caplog):
    twenty, more = orphans(acme, 20), orphans(zenith, 21)

    with caplog.at_level(logging.CRITICAL, "accounts.tasks"):
        assert (sweep_orphan_keys(acme.id), sweep_orphan_keys(zenith.id)) == (40, 0)

    assert (left(acme, twenty), left(zenith, more)) == (0, 42)
    assert swept(zenith) == []
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        f"tenant {zenith.id}: 21 of 22 people with keys have no row"
    ]


@pytest.mark.parametrize(("number", "gone"), [(10, 20), (11, 0)])
def test_where_nobody_is_known_more_than_twenty_keys_stay(acme, orphans, number, gone):
    made = orphans(acme, number)

    assert sweep_orphan_keys(acme.id) == gone

    assert left(acme, made) == 2 * number - gone


def test_keys_outlive_a_data_database_that_was_emptied(acme, connect_as):
    people = [acme.person(f"person-{number}").id for number in range(12)]
    grow_old(connect_as, acme)
    with connect_as("postgres") as superuser:
        superuser.execute("DELETE FROM accounts_subject WHERE tenant_id = %s", [acme.id])

    assert sweep_orphan_keys(acme.id) == 0

    assert left(acme, people) == 24


@pytest.mark.parametrize(("people", "usual"), [(1, 20), (400, 20), (420, 21), (100_000, 5000)])
def test_a_large_tenant_may_have_one_orphan_for_twenty_people(people, usual):
    assert _usual_orphans(people, is_empty=False) == usual


# --- keys that were refused -------------------------------------------------------------------------------------------


@pytest.fixture
def counts(stack):
    """The hash of refused keys, empty before and after."""
    with redis.Redis.from_url(stack.environment["REDIS_URL"], decode_responses=True) as store:
        store.delete(REFUSED_KEYS)
        yield lambda: store.hgetall(REFUSED_KEYS)
        store.delete(REFUSED_KEYS)


@pytest.fixture
def claimed_by_strangers(stack, counts):
    """As many tenants as are kept, none of which there is; one short of it with `leave`."""

    def fill(leave=0):
        with redis.Redis.from_url(stack.environment["REDIS_URL"]) as store:
            store.hset(REFUSED_KEYS, mapping={str(uuid4()): 1 for _ in range(10_000 - leave)})

    return fill


def test_no_more_than_ten_thousand_claimed_tenants_are_kept(acme, counts, claimed_by_strangers):
    claimed_by_strangers(leave=1)

    for tenant_id in (acme.id, uuid4(), acme.id, uuid4()):
        note_refused_key(tenant_id)

    assert len(counts()) == 10_000
    assert counts()[str(acme.id)] == "2"


def test_counting_goes_on_once_the_counts_were_taken(acme, counts, claimed_by_strangers):
    claimed_by_strangers()
    note_refused_key(acme.id)
    record_refused_keys()

    note_refused_key(acme.id)

    assert counts() == {str(acme.id): "1"}
