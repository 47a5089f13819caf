"""Tables of memory: what is kept of a person, sealed, and what a tenant knows, in plain text."""

from memory.models.knowledge import Chunk, Document, Posting
from memory.models.personal import IndexSegment, Lineage, Memory, Session
from memory.models.profile import ProfileEntry, ProfileKey

__all__ = [
    "Chunk",
    "Document",
    "IndexSegment",
    "Lineage",
    "Memory",
    "Posting",
    "ProfileEntry",
    "ProfileKey",
    "Session",
]
