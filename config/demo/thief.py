"""What a stolen dump would show: a sentence, or a vector in any of the forms a vector is kept in.

A vector need not be equal to count as found: whatever is nearly parallel to it says the same, however it was rounded.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from memory.embedding.minilm import MiniLM

type Numbers = NDArray[np.float64]

NEARLY_PARALLEL = 0.9
BLOCK = 1 << 18
_BYTEA = re.compile(r"\\\\x([0-9a-f]{32,})")
_WRITTEN_VECTOR = re.compile(r"\[(-?[0-9.e+-]+(?:,-?[0-9.e+-]+){31,})\]")


def sentences_in(dump: str, sentences: Iterable[str]) -> list[str]:
    """Those that stand in the dump as text, in hex (as bytea is dumped) or in base64."""
    lowered = dump.lower()
    return [sentence for sentence in sentences if any(form in lowered for form in _forms_of_text(sentence))]


def vectors_in(dump: str, texts: Sequence[str]) -> list[str]:
    """Those whose embedding stands in the dump: written as numbers, or as int8, float16 or float32 bytes."""
    vectors = MiniLM().encode(texts).astype(np.float64)
    found = np.zeros(len(texts), np.bool_)
    for numbers in _numbers_in(dump):
        found |= [_holds(numbers, vector) for vector in vectors]
    return [text for text, is_there in zip(texts, found, strict=True) if is_there]


def _forms_of_text(sentence: str) -> tuple[str, ...]:
    exact = sentence.encode()
    # Three alignments of base64; its first and last characters depend on what stands beside.
    encoded = [base64.b64encode(b" " * shift + exact).decode()[4:-4].lower() for shift in range(3)]
    return sentence.lower(), exact.hex(), *encoded


def _numbers_in(dump: str) -> Iterator[Numbers]:
    for written in _WRITTEN_VECTOR.finditer(dump):
        yield np.array(written[1].split(","), np.float64)
    raw = bytes.fromhex("".join(blob[1] for blob in _BYTEA.finditer(dump)))
    for kind in (np.int8, np.float16, np.float32):
        for shift in range(np.dtype(kind).itemsize):
            whole = (len(raw) - shift) // np.dtype(kind).itemsize
            with np.errstate(invalid="ignore"):  # most bytes are no floats at all
                read = np.frombuffer(raw, kind, count=whole, offset=shift).astype(np.float64)
            # No component of a vector is larger; what is would only drown its neighbours.
            yield np.clip(np.nan_to_num(read), -128, 128) if kind is np.int8 else np.clip(np.nan_to_num(read), -1, 1)


def _holds(numbers: Numbers, vector: Numbers) -> bool:
    """Whether some run of the numbers is nearly parallel to the vector. Blocks overlap by the vector's length."""
    size = len(vector)
    starts = range(0, max(len(numbers) - size + 1, 0), BLOCK)
    return any(_block_holds(numbers[start : start + BLOCK + size - 1], vector) for start in starts)


def _block_holds(block: Numbers, vector: Numbers) -> bool:
    size, length = len(vector), len(block)
    products = np.fft.irfft(np.fft.rfft(block) * np.conj(np.fft.rfft(vector, length)), length)[: length - size + 1]
    sums = np.concatenate(([0.0], np.cumsum(block**2)))
    norms = np.sqrt(np.maximum(sums[size:] - sums[:-size], 1e-12))
    return bool((products > NEARLY_PARALLEL * norms * np.linalg.norm(vector)).any())
