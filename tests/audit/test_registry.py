import pytest

from audit.errors import ConflictingAction, UndeclaredField, UnknownAction
from audit.registry import AuditAction, action_by_name, register, registered_actions, require_declared_counts


def test_a_registered_action_is_found_by_its_name(sample_action):
    assert action_by_name("audit.sample.read") is sample_action


def test_an_unknown_action_raises_and_its_name_is_not_repeated():
    with pytest.raises(UnknownAction) as raised:
        action_by_name("mia@example.com is allergic to peanuts")

    assert "mia" not in str(raised.value)


def test_registering_the_same_again_is_harmless(sample_action):
    register(AuditAction("audit.sample.read", "A sample was read", "sample", counts=("items", "tokens")))

    assert action_by_name("audit.sample.read") == sample_action


def test_another_meaning_for_a_name_raises_and_changes_nothing(sample_action):
    with pytest.raises(ConflictingAction):
        register(AuditAction("audit.sample.read", "Something else", "sample"))

    assert action_by_name("audit.sample.read") == sample_action


def test_actions_are_listed_by_name():
    register(AuditAction("audit.zebra.counted", "Last", "zebra"), AuditAction("audit.ant.counted", "First", "ant"))

    names = [action.name for action in registered_actions()]

    assert names == sorted(names)
    assert {"audit.ant.counted", "audit.sample.read", "audit.zebra.counted"} <= set(names)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "read",
        "memory.read",
        "memory.memory.read.twice",
        "Memory.memory.read",
        "memory.me mory.read",
        "a..b",
        "a.b.c\n",
    ],
)
def test_a_name_that_is_not_app_noun_verb_is_refused(name):
    with pytest.raises(UndeclaredField):
        AuditAction(name, "", "sample")


@pytest.mark.parametrize("kind", ["", "Memory", "two words", "x" * 41])
def test_a_resource_kind_is_a_code(kind):
    with pytest.raises(UndeclaredField):
        AuditAction("audit.sample.kept", "", kind)


def test_a_count_name_is_a_code():
    with pytest.raises(UndeclaredField):
        AuditAction("audit.sample.kept", "", "sample", counts=("mia@example.com",))


def test_only_declared_counts_pass(sample_action):
    require_declared_counts(sample_action, {"items": 1})

    with pytest.raises(UndeclaredField):
        require_declared_counts(sample_action, {"items": 1, "age": 44})
