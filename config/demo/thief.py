"""What a stolen dump would show: a sentence, or a vector in any of the forms a vector is written in."""

import base64
from collections.abc import Iterable, Sequence

import numpy as np

from memory.embedding import quantise
from memory.embedding.minilm import MiniLM
from memory.types import Floats

# A vector found by this many of its components in a row has been found.
RUN = 16


def sentences_in(dump: str, sentences: Iterable[str]) -> list[str]:
    """Those that stand in the dump as text, in hex (as bytea is dumped) or in base64."""
    lowered = dump.lower()
    return [sentence for sentence in sentences if any(form in lowered for form in _forms_of_text(sentence))]


def vectors_in(dump: str, texts: Sequence[str]) -> list[str]:
    """Those whose embedding stands in the dump: as numbers, or as int8, float16 or float32 bytes."""
    vectors = MiniLM().encode(texts)
    return [
        text
        for text, vector, stored in zip(texts, vectors, quantise(vectors)[0], strict=True)
        if any(form in dump for form in _forms_of_vector(vector, stored.tobytes()))
    ]


def _forms_of_text(sentence: str) -> tuple[str, ...]:
    raw = sentence.lower().encode()
    exact = sentence.encode()
    return sentence.lower(), exact.hex(), raw.hex(), base64.b64encode(exact).decode().lower()[:-4]


def _forms_of_vector(vector: Floats, int8: bytes) -> tuple[str, ...]:
    half = vector.astype(np.float16)
    written = ",".join(f"{number:g}" for number in half[:RUN].astype(np.float32).tolist())
    raw = (int8[:RUN], half[:RUN].tobytes(), vector[:RUN].tobytes())
    return written[: len(written) // 2], *(each.hex() for each in raw)
