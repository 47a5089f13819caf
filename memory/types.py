"""The words of memory: the closed sets every layer shares, and the array values that ranking works on.

Relies on numpy only. The numbers of the enums are written into sealed indexes: never reuse or renumber one.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

type Bytes = NDArray[np.uint8]
type Hashes = NDArray[np.uint64]
type Counts = NDArray[np.uint16]
type Int8s = NDArray[np.int8]
type Floats = NDArray[np.float32]
type Positions = NDArray[np.intp]
type Mask = NDArray[np.bool_]


class Kind(IntEnum):
    SEMANTIC = 1
    EPISODIC = 2
    PROCEDURAL = 3


class State(IntEnum):
    ACTIVE = 1
    QUARANTINED = 2
    SUPERSEDED = 3
    FORGOTTEN = 4
    RESTRICTED = 5


class SourceClass(IntEnum):
    PERSON = 1
    PERSON_CONFIRMED = 2
    AGENT_INFERENCE = 3
    TOOL = 4
    DOCUMENT = 5
    OTHER_AGENT = 6
    IMPORT = 7


class Audience(IntEnum):
    PRIVATE = 1
    SHARED_SETTING = 2


@dataclass(frozen=True, slots=True, eq=False)
class TermVector:
    """The words of one text as keyed hashes.

    hashes: uint64[n], ascending, each once; counts: uint16[n], how often each occurs;
    length: all terms of the text, repeats included (what BM25 calls the document length).
    """

    hashes: Hashes
    counts: Counts
    length: int

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TermVector)
            and self.length == other.length
            and np.array_equal(self.hashes, other.hashes)
            and np.array_equal(self.counts, other.counts)
        )

    def __hash__(self) -> int:
        return hash((self.length, self.hashes.tobytes()))

    @classmethod
    def empty(cls) -> "TermVector":
        return cls(np.empty(0, np.uint64), np.empty(0, np.uint16), 0)


@dataclass(frozen=True, slots=True, eq=False)
class StoredVector:
    """One embedding as it is kept: values int8[d]; the vector it stands for is values * scale."""

    values: Int8s
    scale: float

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StoredVector) and self.scale == other.scale and np.array_equal(self.values, other.values)
        )

    def __hash__(self) -> int:
        return hash((self.scale, self.values.tobytes()))


# The numbers of consent purposes in sealed indexes: what a memory is kept for.
PURPOSE_NUMBERS = {"memory.store": 1, "memory.infer": 2}

# How far a source is believed; a fact is replaced only by one at least as trusted.
TRUST = {
    SourceClass.PERSON_CONFIRMED: 3,
    SourceClass.PERSON: 3,
    SourceClass.AGENT_INFERENCE: 2,
    SourceClass.IMPORT: 2,
    SourceClass.TOOL: 1,
    SourceClass.DOCUMENT: 1,
    SourceClass.OTHER_AGENT: 1,
}

# What comes from outside is evidence with its origin, not yet a fact about the person (trust.md 6).
QUARANTINED_SOURCES = frozenset({SourceClass.TOOL, SourceClass.DOCUMENT, SourceClass.OTHER_AGENT})
