"""Sessions, as far as a memory can name the one it came from."""

from uuid import UUID

from accounts.keys import Decision, seal_fields, subject_of, tenant_digest
from memory.models import Session


def session_for_writing(name: str, project_id: UUID | None, decision: Decision) -> UUID:
    """The session of this name, made when it is new; of several who make it at once one does, and all get it."""
    found = session_id_of(name, decision)
    if found is not None:
        return found
    row = Session(
        tenant_id=decision.tenant_id,
        subject_id=subject_of(decision).id,
        project_id=project_id,
        name_digest=_digest(name, decision),
    )
    seal_fields(row, decision, name_sealed=name.encode())
    Session.objects.bulk_create([row], ignore_conflicts=True)
    return session_id_of(name, decision) or row.id


def session_id_of(name: str, decision: Decision) -> UUID | None:
    return Session.objects.filter(name_digest=_digest(name, decision)).values_list("id", flat=True).first()


def _digest(name: str, decision: Decision) -> bytes:
    """Keyed and per person, so that equal names of two people cannot be told to be equal."""
    person = subject_of(decision).id.bytes
    return tenant_digest(decision.tenant_id, decision.tenant_epoch, b"session", person, name.encode())
