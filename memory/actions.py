"""What memory writes into the audit log."""

from audit.registry import AuditAction, register

_READ = ("memories", "profile", "knowledge")

ACTIONS = (
    AuditAction("memory.memory.stored", "Memories of a person were stored", "memory", counts=("items",)),
    AuditAction("memory.memory.superseded", "Memories were replaced by newer ones", "memory", counts=("items",)),
    AuditAction("memory.memory.listed", "A person's memories were listed", "memory", counts=("items",)),
    AuditAction("memory.memory.read", "One memory was read", "memory"),
    AuditAction(
        "memory.disclosure.read",
        "A person looked at what is remembered of them",
        "memory",
        counts=("memories", "profile"),
    ),
    AuditAction("memory.memory.forgotten", "A memory was deleted for good", "memory"),
    AuditAction(
        "memory.memory.embedded",
        "Memories stored without a vector were opened to make it",
        "memory",
        counts=("items",),
    ),
    AuditAction("memory.recall.answered", "A question was answered from memory", "memory", counts=_READ),
    AuditAction("memory.profile.read", "A person's profile was read", "profile", counts=("items",)),
    AuditAction("memory.profile.changed", "A profile value was set", "profile"),
    AuditAction("memory.profile.removed", "A profile value was removed", "profile"),
    AuditAction("memory.profile_key.declared", "A profile key was declared or changed", "profile_key"),
    AuditAction("memory.document.stored", "A document was stored or replaced", "document"),
    AuditAction("memory.document.removed", "A document was removed", "document"),
    AuditAction("memory.document.read", "A document was read", "document"),
    AuditAction("memory.knowledge.read", "Shared knowledge was read", "chunk", counts=_READ),
)


def register_all() -> None:
    register(*ACTIONS)
