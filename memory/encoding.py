"""The process's embedder and token counter, as memory uses them: a vector in time, or none.

Called before a transaction is opened: encoding may take long, and a lock is not held meanwhile.
"""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from memory.embedding import EmbedderCorrupt, EmbedderUnavailable, embedder_from, quantise
from memory.embedding.minilm import WINDOW_TOKENS, word_piece_counter
from memory.ranking import QueryVector
from memory.types import Floats, StoredVector

logger = logging.getLogger(__name__)

# What is encoded while somebody waits, about half a second's work; a job does the rest.
TOKENS_AT_ONCE = 2048
CHARACTERS_A_TOKEN = 4


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
    """For somebody who waits. None when the embedder is late: the caller goes on with words alone and says so.

    Also None for more than it does well within that time: everybody's questions share the one embedder.
    """
    if sum(min(len(text) // CHARACTERS_A_TOKEN, WINDOW_TOKENS) for text in texts) > TOKENS_AT_ONCE:
        return None
    return _encode(texts, settings.EMBEDDER_TIMEOUT_SECONDS)


def encode_patiently(texts: Sequence[str]) -> Encoded | None:
    """For a job. None when there is no embedder for now: the job is tried again."""
    return _encode(texts, settings.EMBEDDER_JOB_TIMEOUT_SECONDS)


def _encode(texts: Sequence[str], seconds: float) -> Encoded | None:
    try:
        embedder = embedder_from(settings.EMBEDDER, seconds)
        return Encoded(embedder.model_number, embedder.floor, embedder.encode(texts))
    except EmbedderUnavailable:
        return None
    except (EmbedderCorrupt, ImportError):
        logger.exception("the embedder cannot be loaded; memory works by words alone")
        return None


def warm_up() -> None:
    """Load the model beside whatever else is starting, so that the first question does not wait for it."""
    threading.Thread(target=encode, args=(["warm up"],), daemon=True).start()


def count_tokens(text: str) -> int:
    """The length of a text in word pieces, the unit of every budget."""
    return word_piece_counter().count(text)
