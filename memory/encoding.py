"""The process's embedder and token counter, as memory uses them: a vector in time, or none.

Called before a transaction is opened: encoding may take long, and a lock is not held meanwhile.
"""

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from uuid import UUID

from django.conf import settings

from memory.embedding import EmbedderCorrupt, EmbedderUnavailable, embedder_from, quantise
from memory.embedding.minilm import WINDOW_TOKENS, word_piece_counter
from memory.ranking import QueryVector
from memory.types import Floats, StoredVector

logger = logging.getLogger(__name__)

# What is encoded while somebody waits, about half a second's work; a job does the rest.
TOKENS_AT_ONCE = 2048
CHARACTERS_A_TOKEN = 4
# An agent asks the same before several steps. At 384 float32 each these are 1.5 MB.
QUESTION_SECONDS = 60.0
MOST_QUESTIONS = 1000


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


def encode_question(text: str, tenant_id: UUID) -> Encoded | None:
    """A question by itself; one that this tenant asked within the last minute has its vector still."""
    name = _asked_before.name_of(settings.EMBEDDER, str(tenant_id), text)
    found = _asked_before.get(name)
    if found is None:
        found = encode([text])
        if found is not None:
            _asked_before.put(name, found)
    return found


class _Questions:
    """Vectors by keyed digest of the question, bounded by number and age; no text is kept. Safe from any thread."""

    def __init__(self) -> None:
        self._key = os.urandom(32)
        self._vectors: OrderedDict[bytes, tuple[float, Encoded]] = OrderedDict()
        self._lock = threading.Lock()

    def name_of(self, *parts: str) -> bytes:
        return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), key=self._key, digest_size=32).digest()

    def get(self, name: bytes) -> Encoded | None:
        with self._lock:
            self._drop_old()
            found = self._vectors.get(name)
            return found[1] if found else None

    def put(self, name: bytes, encoded: Encoded) -> None:
        with self._lock:
            self._drop_old()
            self._vectors[name] = (time.monotonic() + QUESTION_SECONDS, encoded)
            while len(self._vectors) > MOST_QUESTIONS:
                self._vectors.popitem(last=False)

    def _drop_old(self) -> None:
        now = time.monotonic()
        while self._vectors and next(iter(self._vectors.values()))[0] <= now:
            self._vectors.popitem(last=False)


_asked_before = _Questions()


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
