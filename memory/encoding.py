"""The process's embedder and token counter, as memory uses them: a vector in time, or none.

Called before a transaction is opened: encoding may take long, and a lock is not held meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from django.conf import settings

from memory.embedding import Embedder, EmbedderUnavailable, embedder_from, quantise
from memory.embedding.minilm import WordPieceCounter
from memory.ranking import QueryVector
from memory.types import Floats, StoredVector


@dataclass(frozen=True, slots=True)
class Encoded:
    """Texts under one model: float32[n, d], rows of length 1."""

    model_number: int
    floor: float
    vectors: Floats

    def stored(self) -> list[dict[int, StoredVector]]:
        """What the index keeps of each text: int8 by model number."""
        values, scales = quantise(self.vectors)
        return [{self.model_number: StoredVector(row, float(scale))} for row, scale in zip(values, scales, strict=True)]

    def query(self) -> QueryVector:
        return QueryVector(self.model_number, self.vectors[0], self.floor)


def encode(texts: Sequence[str]) -> Encoded | None:
    """None when the embedder does not answer in time: the caller goes on with words alone and says so."""
    try:
        embedder = the_embedder()
        return Encoded(embedder.model_number, embedder.floor, embedder.encode(texts))
    except EmbedderUnavailable:
        return None


def the_embedder() -> Embedder:
    return embedder_from(settings.EMBEDDER, settings.EMBEDDER_TIMEOUT_SECONDS)


def count_tokens(text: str) -> int:
    """The length of a text in word pieces, the unit of every budget."""
    return _counter().count(text)


@cache
def _counter() -> WordPieceCounter:
    return WordPieceCounter()
