"""Embedding: turning text into vectors, and vectors into what the sealed index keeps.

Relies on numpy; the local model also on onnxruntime and tokenizers. Start at `loading.embedder_from`, which
gives the one embedder of this process; `contract.Embedder` says what any embedder promises.
"""

from memory.embedding.contract import Embedder, EmbedderCorrupt, EmbedderUnavailable, TokenCounter
from memory.embedding.loading import embedder_from
from memory.embedding.quantising import quantise

__all__ = [
    "Embedder",
    "EmbedderCorrupt",
    "EmbedderUnavailable",
    "TokenCounter",
    "embedder_from",
    "quantise",
]
