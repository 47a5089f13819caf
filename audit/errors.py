"""What can go wrong when an event is declared, written or read back. Messages name fields, never values."""


class AuditError(Exception):
    """Base of everything this app raises."""


class UnknownAction(AuditError):
    """The action was never registered, so nothing may be written under its name."""


class ConflictingAction(AuditError):
    """One action name was registered with two meanings."""


class UndeclaredField(AuditError):
    """A field holds what its declaration does not allow: free text, an unregistered count, a wrong type."""


class NotCanonical(AuditError):
    """Bytes that are not a canonical event of a known format."""


class OutsideTransaction(AuditError):
    """An event of a change was recorded where no transaction is open; the two could come apart."""


class InsideTransaction(AuditError):
    """An event that has to be committed at once was recorded where a rollback could still take it away."""


class AuditUnavailable(AuditError):
    """The event could not be committed. What it would have allowed must not happen."""
