import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import close_old_connections, connection, transaction
from django.test import override_settings

from accounts import keystore
from accounts.errors import KeyDestroyed, KeyUnavailable
from accounts.models import Subject
from accounts.rootkey import root_key
from accounts.services.subjects import AccountData, create_subject
from accounts.tasks import sweep_nightly, sweep_orphan_keys
from accounts.tenancy import narrow, scope
from consent.policy import decide_for_new
from tests.conftest import ROOT

ANOTHER_ROOT_KEY = "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="


@pytest.fixture
def known(mia):
    mia.consents()
    mia.remembers("Mia plays the cello.")
    return mia


@pytest.fixture
def superuser(connect_as):
    with connect_as("postgres", "forgetmenot_keys", autocommit=True) as connection:
        yield connection


def listing(person):
    answer = person.world.agent.get(f"{person.path}/memories")
    return answer.status_code, answer.json().get("code")


def raise_epoch(person):
    """What erasure and rotation do to the person's row."""
    with scope(person.world.id), narrow(person.id):
        Subject.objects.filter(id=person.id).update(key_epoch=2)


def kinds(superuser, subject_id):
    rows = superuser.execute("SELECT kind FROM accounts_wrappedkey WHERE subject_id = %s ORDER BY kind", [subject_id])
    return [kind for (kind,) in rows.fetchall()]


# --- destroying ------------------------------------------------------------------------------------------------------


def test_destroyed_keys_open_nothing_at_once_when_the_epoch_rises(known):
    assert listing(known) == (200, None)

    keystore.destroy_subject_keys(known.world.id, [known.id])
    raise_epoch(known)

    assert listing(known) == (410, "key_destroyed")


def test_destroyed_keys_open_nothing_once_the_cached_ones_are_gone(known):
    assert listing(known) == (200, None)
    keystore.destroy_subject_keys(known.world.id, [known.id])
    assert listing(known) == (200, None)  # at most a minute: the cache still holds them

    keystore.cache.clear()

    assert listing(known) == (410, "key_destroyed")


def test_a_cached_key_is_held_for_no_longer_than_it_says(known, monkeypatch):
    monkeypatch.setattr(keystore, "CACHE_SECONDS", 0.0)
    keystore.cache.clear()
    assert listing(known) == (200, None)

    keystore.destroy_subject_keys(known.world.id, [known.id])

    assert listing(known) == (410, "key_destroyed")


def test_the_longest_a_key_is_cached_is_a_minute():
    assert keystore.CACHE_SECONDS == 60.0


def test_another_process_opens_nothing_once_the_epoch_has_risen(known, stack):
    """A long-lived worker holds the key in its own memory: the epoch it reads with the row makes it useless."""
    script = (
        "import sys, django; django.setup()\n"
        "from uuid import UUID\n"
        "from accounts import keystore\n"
        "from accounts.errors import KeyDestroyed\n"
        "from accounts.selectors import subject_by_id\n"
        "from accounts.tenancy import scope\n"
        "tenant, person = map(UUID, sys.argv[1:])\n"
        "def look():\n"
        "    with scope(tenant):\n"
        "        subject = subject_by_id(person)\n"
        "    try:\n"
        "        keystore.subject_keys(tenant, 1, person, subject.key_epoch)\n"
        "    except KeyDestroyed:\n"
        "        return 'destroyed'\n"
        "    return 'held'\n"
        "print(look(), flush=True); sys.stdin.readline(); print(look(), flush=True)\n"
    )
    command = [sys.executable, "-c", script, str(known.world.id), str(known.id)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environment = stack.environment | {"DJANGO_SETTINGS_MODULE": "config.settings.base", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, **pipes) as other:
        assert other.stdout.readline() == "held\n"

        keystore.destroy_subject_keys(known.world.id, [known.id])
        raise_epoch(known)
        output, _ = other.communicate("\n", timeout=20)

    assert output == "destroyed\n"


def test_destroying_takes_every_key_of_the_person_and_nobody_elses(known, superuser):
    leo = known.world.person("leo")
    assert kinds(superuser, known.id) == ["subject", "subject_audit"]

    assert keystore.destroy_subject_keys(known.world.id, [known.id]) == 2
    assert keystore.destroy_subject_keys(known.world.id, [known.id]) == 0

    assert kinds(superuser, known.id) == []
    assert kinds(superuser, leo.id) == ["subject", "subject_audit"]
    assert keystore.count_subject_keys(known.world.id, known.id) == 0


def test_one_tenant_cannot_destroy_anothers_keys(known, zenith, superuser):
    assert keystore.destroy_subject_keys(zenith.id, [known.id]) == 0

    assert kinds(superuser, known.id) == ["subject", "subject_audit"]


# --- wrapped ---------------------------------------------------------------------------------------------------------


def test_a_wrapped_key_does_not_unwrap_in_another_persons_row(known, superuser):
    leo = known.world.person("leo")
    superuser.execute(
        "UPDATE accounts_wrappedkey SET wrapped = (SELECT wrapped FROM accounts_wrappedkey WHERE subject_id = %s "
        "AND kind = 'subject') WHERE subject_id = %s AND kind = 'subject'",
        [leo.id, known.id],
    )
    keystore.cache.clear()

    assert listing(known) == (503, "key_unavailable")


def test_a_wrapped_key_does_not_unwrap_as_another_kind(known, superuser):
    superuser.execute(
        "UPDATE accounts_wrappedkey SET wrapped = (SELECT wrapped FROM accounts_wrappedkey WHERE subject_id = %s "
        "AND kind = 'subject_audit') WHERE subject_id = %s AND kind = 'subject'",
        [known.id, known.id],
    )
    keystore.cache.clear()

    assert listing(known) == (503, "key_unavailable")


def test_no_key_lies_unwrapped_in_the_keys_database(known, superuser):
    keystore.cache.clear()
    keys = keystore.subject_keys(known.world.id, 1, known.id, 1)
    tenant = keystore.tenant_keys(known.world.id, 1)
    secrets = [*keys.by_id.values(), keys.steady, *tenant.by_id.values(), tenant.steady]

    stored = b"".join(row[0] for row in superuser.execute("SELECT wrapped FROM accounts_wrappedkey").fetchall())

    assert len({len(secret) for secret in secrets}) == 1
    assert not any(secret in stored for secret in secrets)
    assert not any(secret.hex() in repr(keys) or repr(secret) in repr(keys) for secret in secrets)


def test_another_root_key_opens_no_tenant(known):
    root_key.cache_clear()
    keystore.cache.clear()
    try:
        with override_settings(READ_ROOT_KEY=lambda: ANOTHER_ROOT_KEY):
            assert listing(known) == (503, "key_unavailable")
    finally:
        root_key.cache_clear()
    assert listing(known) == (200, None)


def test_the_keys_database_shows_a_tenant_its_own_keys_alone(known, zenith, connect_as):
    count = "SELECT count(*) FROM accounts_wrappedkey WHERE tenant_id = %s"
    with connect_as("fmn_keys") as keys:
        keys.execute("SELECT set_config('app.tenant_id', %s, true)", [str(zenith.id)])
        assert keys.execute(count, [known.world.id]).fetchone() == (0,)
        assert keys.execute(count, [zenith.id]).fetchone() == (4,)


def test_the_cache_is_bounded(acme):
    full = keystore._Cache()
    keys = keystore.KeySet(uuid4(), {}, uuid4(), b"")

    for number in range(keystore.CACHE_ENTRIES + 10):
        full.put((acme.id, None, number), keys)

    assert full.get((acme.id, None, 9)) is None
    assert full.get((acme.id, None, 10)) is keys


@pytest.mark.parametrize("alias", ["keys", "audit", "default"])
def test_a_thread_whose_connection_was_cut_serves_again(known, superuser, alias):
    """Also where threads outlive requests: a threaded WSGI server, a worker."""
    role = {"keys": "fmn_keys", "audit": "fmn_audit", "default": "fmn_app"}[alias]
    assert listing(known) == (200, None)
    superuser.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [role])
    keystore.cache.clear()

    answers = []
    for _ in range(3):
        answers.append(listing(known))
        close_old_connections()  # as the end of every request does outside tests

    assert {status for status, _ in answers[:-1]} <= {200, 503}
    assert answers[-1] == (200, None)


def test_after_an_outage_no_request_waits_for_the_dead_connections(known, superuser):
    """As many idle ones as a process may hold, all cut at once, as a restart of the database does."""
    at_once = settings.DATABASE_POOL_SIZE
    everybody = threading.Barrier(at_once, timeout=60)
    close_old_connections()

    def holding_one():
        listing(known)
        everybody.wait()

    known.world.at_once(*[holding_one] * at_once)
    close_old_connections()
    assert connection.pool.get_stats()["pool_size"] == at_once
    superuser.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'fmn_app'")
    listing(known)  # where this thread held one itself, it learns of the cut
    close_old_connections()

    assert listing(known) == (200, None)


# --- orphans ---------------------------------------------------------------------------------------------------------


def make_orphan(world):
    """Keys come first: a person whose row is rolled back leaves them behind."""
    made = []

    def decide(ref):
        made.append(ref.id)
        return decide_for_new(ref, caller=world.principal)

    with scope(world.id):
        create_subject("nobody", AccountData(), principal=world.principal, decide=decide)
        transaction.set_rollback(True)
    return made[0]


def make_older(superuser, subject_id):
    superuser.execute(
        "UPDATE accounts_wrappedkey SET created_at = %s WHERE subject_id = %s",
        [datetime.now(UTC) - timedelta(minutes=61), subject_id],
    )


def test_keys_are_committed_before_the_persons_row(acme, superuser):
    orphan = make_orphan(acme)

    assert kinds(superuser, orphan) == ["subject", "subject_audit"]
    assert acme.admin.get("/v1/subjects/nobody").status_code == 404


def test_orphans_are_swept_and_known_people_are_not(acme, superuser):
    orphan, person = make_orphan(acme), acme.person("leo")
    make_older(superuser, orphan)
    make_older(superuser, person.id)

    assert sweep_orphan_keys(acme.id) == 2

    assert kinds(superuser, orphan) == []
    assert kinds(superuser, person.id) == ["subject", "subject_audit"]
    assert acme.admin.get("/v1/subjects/leo").status_code == 200


def test_an_orphan_that_may_still_become_a_person_is_left(acme, superuser):
    orphan = make_orphan(acme)

    assert sweep_orphan_keys(acme.id) == 0

    assert kinds(superuser, orphan) == ["subject", "subject_audit"]


def test_the_nightly_sweep_reaches_every_tenant(acme, zenith, superuser):
    orphans = [make_orphan(acme), make_orphan(zenith)]
    for orphan in orphans:
        make_older(superuser, orphan)

    sweep_nightly()

    assert [kinds(superuser, orphan) for orphan in orphans] == [[], []]


def test_a_person_without_keys_cannot_be_opened_and_says_so(acme):
    with pytest.raises(KeyDestroyed):
        keystore.subject_keys(acme.id, 1, uuid4(), 1)


def test_a_tenants_damaged_key_opens_nothing(acme, superuser):
    superuser.execute(
        "UPDATE accounts_wrappedkey SET wrapped = set_byte(wrapped, 40, get_byte(wrapped, 40) # 1) "
        "WHERE tenant_id = %s AND kind = 'tenant'",
        [acme.id],
    )
    keystore.cache.clear()

    with pytest.raises(KeyUnavailable):
        keystore.tenant_keys(acme.id, 1)
