"""The vocabulary: what may be written into the log at all.

Each app registers its actions when it is ready; an event under any other name, or with a count its action
does not declare, is refused. Start at `AuditAction` and `register`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from audit.errors import ConflictingAction, UnknownAction
from audit.types import ACTION_PATTERN, NAME_PATTERN, require, require_match


@dataclass(frozen=True, slots=True)
class AuditAction:
    """`name` is `<app>.<noun>.<past verb>`; `summary` is for the documentation and is never stored.

    `counts` are the only names under which events of this action may carry numbers.
    """

    name: str
    summary: str
    resource_kind: str
    counts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_match("action", ACTION_PATTERN, self.name)
        require_match("resource_kind", NAME_PATTERN, self.resource_kind)
        for name in self.counts:
            require_match("counts", NAME_PATTERN, name)


_actions: dict[str, AuditAction] = {}


def register(*actions: AuditAction) -> None:
    """Add actions to the vocabulary. Saying the same again is harmless; another meaning for a name raises."""
    for action in actions:
        if _actions.setdefault(action.name, action) != action:
            raise ConflictingAction(action.name)


def action_by_name(name: str) -> AuditAction:
    try:
        return _actions[name]
    except KeyError:
        # The name is not repeated: what is not registered may be anything, content included.
        raise UnknownAction("not a registered audit action") from None


def registered_actions() -> tuple[AuditAction, ...]:
    """All of them, by name."""
    return tuple(sorted(_actions.values(), key=lambda action: action.name))


def require_declared_counts(action: AuditAction, counts: Mapping[str, int]) -> None:
    require("counts", set(counts) <= set(action.counts))
