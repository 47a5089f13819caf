"""Talks with questions whose evidence is known turn by turn: the bundled MemoryBank set, and LoCoMo from a file.

LoCoMo is not in this repository (CC BY-NC 4.0). Start at `read_memorybank` and `read_locomo`.
"""

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.evals.cases import SOURCES

# The numbers in the file; the paper's section 4.1 names them.
LOCOMO_CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "adversarial"}
_TURN = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_\d+")
_SESSION_TIME = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    evidence: frozenset[str]
    category: str
    asked_at: datetime


@dataclass(slots=True)
class Talk:
    """Turns as memories by the turn's id, in order, and the questions about them that have evidence."""

    id: str
    turns: dict[str, dict[str, Any]] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)


def read_memorybank(folder: Path) -> list[Talk]:
    talks: dict[str, Talk] = defaultdict(lambda: Talk(""))
    for turn in _lines(folder / "turns.jsonl"):
        talk = talks[turn["conversation"]]
        talk.id = turn["conversation"]
        said_at = _moment(turn["timestamp"]) + timedelta(seconds=turn["n"])
        talk.turns[turn["turn"]] = {
            "text": turn["text"],
            "source": SOURCES[turn["speaker"]],
            "occurred_at": said_at.isoformat(),
        }
    for line in _lines(folder / "questions.jsonl"):
        evidence = frozenset(line["evidence"])
        question = Question(line["question"], evidence, line["category"], _moment(line["date"]))
        talks[line["conversation"]].questions.append(question)
    return list(talks.values())


def read_locomo(file: Path) -> list[Talk]:
    """Every turn with words as "speaker: text". Evidence that names no such turn is dropped, and questions without."""
    return [_locomo_talk(sample) for sample in json.loads(file.read_text(encoding="utf-8"))]


def _locomo_talk(sample: dict[str, Any]) -> Talk:
    said = sample["conversation"]
    talk, latest = Talk(str(sample["sample_id"])), datetime.min.replace(tzinfo=UTC)
    for session in sorted(filter(_SESSION.fullmatch, said), key=lambda name: int(name.partition("_")[2])):
        began = _session_time(said[f"{session}_date_time"])
        for place, turn in enumerate(said[session]):
            latest = max(latest, began + timedelta(seconds=place))
            if turn["text"].strip():
                talk.turns[turn["dia_id"]] = {
                    "text": f"{turn['speaker']}: {turn['text']}",
                    "source": "person",
                    "occurred_at": (began + timedelta(seconds=place)).isoformat(),
                }
    for asked in sample["qa"]:
        evidence = frozenset(_TURN.findall(" ".join(asked.get("evidence") or ()))) & talk.turns.keys()
        if evidence:
            category = LOCOMO_CATEGORIES.get(asked["category"], str(asked["category"]))
            talk.questions.append(Question(asked["question"], evidence, category, latest + timedelta(days=1)))
    return talk


def _session_time(written: str) -> datetime:
    return datetime.strptime(written.strip(), _SESSION_TIME).replace(tzinfo=UTC)


def _moment(written: str) -> datetime:
    return datetime.fromisoformat(written).replace(tzinfo=UTC)


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
