"""From views of memory to JSON."""

from collections.abc import Mapping
from dataclasses import asdict
from enum import Enum
from typing import Any

from accounts.errors import ScopeMissing
from memory.api.serializers import MemoryAnswer, PassageAnswer, ProfileLineAnswer
from memory.knowledge import Passage
from memory.ranking import Candidate
from memory.services.reading import MemoryView
from memory.services.recalling import Recall, RecalledMemory
from memory.services.remembering import Stored

_ENUMS = ("kind", "state", "source", "audience")


def stored_answer(stored: Stored) -> dict[str, Any]:
    return {
        "id": str(stored.id),
        "state": stored.state.name.lower(),
        "version": stored.version,
        "vector": "pending" if stored.vector_pending else "stored",
    }


def memory_answer(memory: MemoryView) -> dict[str, Any]:
    named = {name: getattr(memory, name).name.lower() for name in _ENUMS}
    fields = {field: getattr(memory, field) for field in MemoryView.__slots__}
    return dict(MemoryAnswer(_Shape(fields | named)).data)


def recall_answer(answer: Recall, *, explain: bool) -> dict[str, Any]:
    context = answer.context
    body: dict[str, Any] = {
        "recall_id": str(answer.recall_id),
        "personal": {"status": answer.personal_status, "code": answer.personal_code or None},
        "memories": [_recalled(each, explain=explain) for each in answer.memories],
        "profile": [dict(ProfileLineAnswer(line).data) for line in answer.profile],
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
    figures = {name: value for name, value in asdict(passage.explanation).items() if name != "id"}
    return dict(PassageAnswer(passage).data) | ({"explain": figures} if explain else {})


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


class _Shape:
    """Attributes from a mapping, for a serializer."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.__dict__.update(fields)
