"""Forgetting one memory for good: the row, its place in the index, its descent."""

from uuid import UUID

from accounts.errors import NotFound, ProjectForbidden
from accounts.keys import subject_pseudonym
from accounts.types import Asker, SubjectRef
from audit import services as audit
from consent.policy import decide, require
from consent.types import Act
from memory import index as sealed_index
from memory.models import Memory


def forget_memory(subject: SubjectRef, memory_id: UUID, *, caller: Asker) -> None:
    """Delete it hard; from the commit on nothing finds it. Needs no consent: it is the person's right.

    Raises NotFound for an unknown memory, another person's, and one the caller does not see; ProjectForbidden for one
    they may see but not change.
    """
    decision = require(decide(subject, Act.FORGET, caller=caller))
    row = Memory.objects.filter(id=memory_id).first()
    if row is None or not caller.sees(row.project_id):
        raise NotFound
    if not caller.owns(row.project_id):
        raise ProjectForbidden("A key bound to a project may not delete what belongs to none.")
    # The index first, as every write does: whoever changes a memory waits at the same place.
    sealed_index.change_entries(decision, removed=[memory_id])
    deleted, _ = Memory.objects.filter(id=memory_id).delete()
    if not deleted:
        raise NotFound
    audit.record_in_transaction(
        tenant_id=subject.tenant_id,
        actor=caller.actor,
        action="memory.memory.forgotten",
        resource_ids=[memory_id],
        subject_pseudonym=subject_pseudonym(caller.tenant_epoch, subject),
    )
