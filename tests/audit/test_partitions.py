import pytest
from django.core.management import CommandError, call_command

from audit.partitions import after_migrate, may_create_partitions


def test_the_serving_role_may_not_create_partitions():
    assert may_create_partitions("default") is False
    assert may_create_partitions("audit") is False


def test_the_command_says_which_settings_it_needs():
    with pytest.raises(CommandError, match=r"config\.settings\.migrate"):
        call_command("audit_partitions")


def test_after_migrate_leaves_alone_a_database_it_does_not_own(connect_as):
    def partitions():
        with connect_as("postgres") as admin:
            return admin.execute(
                "SELECT count(*) FROM pg_inherits WHERE inhparent = 'audit_event'::regclass"
            ).fetchone()

    before = partitions()
    after_migrate(using="default")

    assert partitions() == before
