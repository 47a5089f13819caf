"""What an embedder and a token counter promise, and how embedding goes wrong.

Relies on numpy only. `Embedder` is the protocol to implement for another model.
"""

from collections.abc import Sequence
from typing import Protocol

from memory.types import Floats


class EmbedderUnavailable(Exception):
    """No vector in time: the embedder hangs, failed, or is still busy with a call that hung."""


class EmbedderCorrupt(Exception):
    """A file of the model is missing or is not the one that was measured; nothing is embedded with it."""


class Embedder(Protocol):
    """Turns texts into vectors whose cosine says how near their meanings are.

    model_number is written into sealed indexes: each model has its own and keeps it for ever
    (1 = all-MiniLM-L6-v2, int8). floor is the lowest cosine of this model that counts as related.
    """

    @property
    def model_id(self) -> str: ...

    @property
    def model_number(self) -> int: ...

    @property
    def dimension(self) -> int: ...

    @property
    def floor(self) -> float: ...

    def encode(self, texts: Sequence[str]) -> Floats:
        """float32[len(texts), dimension], each row of length 1. Raises EmbedderUnavailable."""
        ...


class TokenCounter(Protocol):
    """Counts a text the way the model splits it; the unit of every token budget."""

    def count(self, text: str) -> int: ...
