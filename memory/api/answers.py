"""From views of memory to JSON, written out: a serializer copies all its fields anew for each answer.

The serializers say the same to the schema; tests/memory/test_answers.py ties the two together.
"""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

from accounts.errors import ScopeMissing
from memory.knowledge import Passage
from memory.ranking import Candidate
from memory.services.profile import ProfileLine
from memory.services.reading import MemoryView
from memory.services.recalling import Recall, RecalledMemory
from memory.services.remembering import Stored


def stored_answer(stored: Stored) -> dict[str, Any]:
    return {
        "id": str(stored.id),
        "state": stored.state.name.lower(),
        "version": stored.version,
        "vector": "pending" if stored.vector_pending else "stored",
    }


def memory_answer(memory: MemoryView) -> dict[str, Any]:
    return {
        "id": str(memory.id),
        "text": memory.text,
        "kind": memory.kind.name.lower(),
        "state": memory.state.name.lower(),
        "source": memory.source.name.lower(),
        "audience": memory.audience.name.lower(),
        "importance": memory.importance,
        "confidence": memory.confidence,
        "categories": list(memory.categories),
        "metadata": memory.metadata,
        "project": _id(memory.project_id),
        "agent": memory.agent,
        "session_id": _id(memory.session_id),
        "occurred_at": _instant(memory.occurred_at),
        "valid_to": _instant(memory.valid_to),
        "expires_at": _instant(memory.expires_at),
        "created_at": _instant(memory.created_at),
        "superseded_by": _id(memory.superseded_by),
        "version": memory.version,
        "access_count": memory.access_count,
        "last_accessed_at": _instant(memory.last_accessed_at),
    }


def profile_answer(line: ProfileLine) -> dict[str, Any]:
    return {
        "id": str(line.id),
        "key": line.key,
        "value": line.value,
        "project": _id(line.project_id),
        "version": line.version,
        "updated_at": _instant(line.updated_at),
    }


def recall_answer(answer: Recall, *, explain: bool) -> dict[str, Any]:
    context = answer.context
    body: dict[str, Any] = {
        "recall_id": str(answer.recall_id),
        "personal": {"status": answer.personal_status, "code": answer.personal_code or None},
        "memories": [_recalled(each, explain=explain) for each in answer.memories],
        "profile": [profile_answer(line) for line in answer.profile],
        "knowledge": [passage_answer(passage, explain=explain) for passage in answer.knowledge],
        "context": {
            "text": context.text,
            "tokens": context.tokens,
            "included": [str(each) for each in context.included],
            "left_out": [{"id": str(each), "reason": reason.value} for each, reason in context.left_out],
        },
        "degraded": list(answer.degraded),
        "left_out_parts": [{"part": part, "code": ScopeMissing.code} for part in answer.left_out_parts],
    }
    if explain:
        body["dropped"] = [{"id": str(each.id), "explain": explained(each)} for each in answer.dropped]
    return body


def passage_answer(passage: Passage, *, explain: bool) -> dict[str, Any]:
    body = {
        "id": str(passage.id),
        "document_id": str(passage.document_id),
        "document_version": passage.document_version,
        "title": passage.title,
        "heading": passage.heading,
        "text": passage.text,
        "source": passage.source,
        "created_at": _instant(passage.created_at),
        "score": passage.score,
    }
    if explain:
        body["explain"] = {name: value for name, value in asdict(passage.explanation).items() if name != "id"}
    return body


def explained(candidate: Candidate) -> dict[str, Any]:
    figures: dict[str, Any] = _plain(asdict(candidate.explanation))
    return {"score": candidate.score} | figures


def _recalled(each: RecalledMemory, *, explain: bool) -> dict[str, Any]:
    body = memory_answer(each.memory) | {"score": each.candidate.score, "critical": each.candidate.critical}
    return body | ({"explain": explained(each.candidate)} if explain else {})


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.value if isinstance(value, Enum) else value


def _id(value: UUID | None) -> str | None:
    return None if value is None else str(value)


def _instant(value: datetime | None) -> str | None:
    """As DRF's DateTimeField writes what is in UTC, as all times from the database are."""
    return None if value is None else value.isoformat().replace("+00:00", "Z")
