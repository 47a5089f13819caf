"""The local model gives the vectors it was measured with, in time, or says that it cannot."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

from memory.embedding import EmbedderCorrupt, EmbedderUnavailable, embedder_from, quantise
from memory.embedding.deadline import DeadlineEmbedder
from memory.embedding.minilm import (
    TOKENIZER_FILE,
    MiniLM,
    WordPieceCounter,
    batches_by_length,
    installed_model_file,
)
from memory.encoding import encode_question

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def minilm() -> MiniLM:
    return MiniLM()


def test_related_sentences_are_near_and_unrelated_ones_far(minilm):
    question, answer, other = minilm.encode(
        ["what DB does the user use", "The database the user runs in prod is Postgres", "We bake on Sundays"]
    )

    assert question @ answer == pytest.approx(0.597, abs=0.005)
    assert question @ other < minilm.floor < question @ answer


def test_vectors_have_length_one_in_the_order_asked_for(minilm):
    texts = [f"sentence number {number} " + "and more " * (number * 7 % 40) for number in range(50)]

    together = minilm.encode(texts)

    assert together.dtype == np.float32
    assert together.shape == (50, 384)
    assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-5)
    for place in (0, 17, 49):
        assert together[place] @ minilm.encode([texts[place]])[0] > 0.999


def test_no_texts_give_no_vectors(minilm):
    assert minilm.encode([]).shape == (0, 384)


def test_an_empty_text_has_a_vector(minilm):
    assert np.linalg.norm(minilm.encode([""])[0]) == pytest.approx(1, abs=1e-5)


def test_what_is_beyond_the_window_changes_nothing(minilm):
    short, longer = minilm.encode(["word " * 260, "word " * 260 + "something else entirely"])

    assert short.tolist() == longer.tolist()


def test_a_changed_model_or_tokenizer_is_refused(tmp_path):
    changed = tmp_path / "changed"
    changed.write_bytes(TOKENIZER_FILE.read_bytes() + b" ")

    with pytest.raises(EmbedderCorrupt):
        MiniLM(tokenizer_file=changed)
    with pytest.raises(EmbedderCorrupt):
        MiniLM(model_file=changed)
    with pytest.raises(EmbedderCorrupt):
        WordPieceCounter(tmp_path / "absent")
    assert installed_model_file().stat().st_size == 22_928_619


def test_word_pieces_are_counted_past_the_window():
    counter = WordPieceCounter()

    assert counter.count("") == 0
    assert counter.count("what DB does the user use") == 6
    assert counter.count("word " * 1000) == 1000


def test_batches_hold_like_lengths_and_every_position_once():
    lengths = [256, 3, 4, 200, 5] * 20

    batches = list(batches_by_length(lengths))

    assert sorted(place for batch in batches for place in batch) == list(range(100))
    assert all(8 <= len(batch) <= 32 for batch in batches[:-1])
    assert max(len(batch) for batch in batches if lengths[batch[-1]] == 256) == 8


def test_quantised_vectors_keep_length_and_direction():
    vectors = np.random.default_rng(7).normal(size=(100, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    values, scale = quantise(vectors)
    restored = values * scale[:, None]

    assert values.dtype == np.int8
    assert scale.dtype == np.float32
    assert np.abs(values).max(axis=1).tolist() == [127] * 100
    assert np.linalg.norm(restored, axis=1) == pytest.approx(1, abs=1e-5)
    assert (restored * vectors).sum(axis=1).min() > 0.9998


def test_a_zero_vector_stays_zero_and_a_broken_one_is_refused():
    values, scale = quantise(np.zeros((1, 4), np.float32))

    assert values.tolist() == [[0, 0, 0, 0]]
    assert scale.tolist() == [0.0]
    with pytest.raises(ValueError, match="not finite"):
        quantise(np.array([[np.nan, 1.0]], np.float32))


class SlowEmbedder:
    """Takes as long as it is told: a stand-in for a model that hangs."""

    model_id, model_number, dimension, floor = "slow", 9, 2, 0.3

    def __init__(self) -> None:
        self.may_finish = threading.Event()
        self.calls = 0

    def encode(self, texts):
        self.calls += 1
        if texts[0] == "hang":
            self.may_finish.wait(10)
        if texts[0] == "crash":
            raise RuntimeError("out of memory")
        if texts[0] == "time out":
            raise TimeoutError("the inner one gave up")
        return np.full((len(texts), 2), self.calls, np.float32)


def test_an_answer_in_time_is_passed_on():
    embedder = DeadlineEmbedder(SlowEmbedder(), 5)

    assert embedder.encode(["a", "b"]).tolist() == [[1, 1], [1, 1]]
    assert (embedder.model_id, embedder.model_number, embedder.dimension, embedder.floor) == (
        "slow",
        9,
        2,
        0.3,
    )


def test_a_hung_call_fails_in_time_and_later_ones_at_once_until_it_returns():
    slow = SlowEmbedder()
    embedder = DeadlineEmbedder(slow, 0.2)
    started = time.monotonic()
    with pytest.raises(EmbedderUnavailable):
        embedder.encode(["hang"])
    assert 0.2 <= time.monotonic() - started < 1

    started = time.monotonic()
    for _ in range(100):
        with pytest.raises(EmbedderUnavailable):
            embedder.encode(["a"])
    assert time.monotonic() - started < 0.2
    assert slow.calls == 1

    slow.may_finish.set()
    while embedder.circuit_open:
        time.sleep(0.001)
    assert embedder.encode(["a"]).tolist() == [[2, 2]]


@pytest.mark.parametrize(("text", "cause"), [("crash", RuntimeError), ("time out", TimeoutError)])
def test_a_crash_is_told_with_its_cause_and_does_not_last(text, cause):
    embedder = DeadlineEmbedder(SlowEmbedder(), 5)

    with pytest.raises(EmbedderUnavailable) as failed:
        embedder.encode([text])

    assert isinstance(failed.value.__cause__, cause)
    assert embedder.encode(["a"]).tolist() == [[2, 2]]


def test_calls_from_many_threads_are_all_answered():
    embedder = DeadlineEmbedder(SlowEmbedder(), 5)
    shapes: list[tuple[int, ...]] = []
    threads = [threading.Thread(target=lambda: shapes.append(embedder.encode(["a", "b"]).shape)) for _ in range(20)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert shapes == [(2, 2)] * 20


def test_a_deadline_of_nothing_is_refused():
    with pytest.raises(ValueError, match="more than 0"):
        DeadlineEmbedder(SlowEmbedder(), 0)


def test_the_process_has_one_embedder_for_a_path():
    first = embedder_from("memory.embedding.minilm.MiniLM", 30.0)

    assert embedder_from("memory.embedding.minilm.MiniLM", 30.0) is first
    assert first.model_number == 1
    assert first.encode(["hello"]).shape == (1, 384)


@pytest.mark.parametrize("path", ["MiniLM", "memory.embedding.minilm.Absent", "memory.embedding.absent.MiniLM"])
def test_a_path_that_names_nothing_is_an_import_error(path):
    with pytest.raises(ImportError):
        embedder_from(path, 1.0)


def test_loading_the_model_reports_to_nobody(tmp_path):
    """onnxruntime would keep an id of this machine and what it has to report in the home folder, and send it."""
    program = "from memory.embedding.minilm import MiniLM; MiniLM().encode(['hello'])"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, check=True)

    assert list(tmp_path.iterdir()) == []


# --- questions asked again --------------------------------------------------------------------------------------------


def test_a_question_asked_again_has_its_vector_still_and_no_other_one():
    tenant, stranger = uuid4(), uuid4()
    first, other = encode_question("Where are the bees?", tenant), encode_question("Where is the harbour?", tenant)

    assert encode_question("Where are the bees?", tenant) is first
    assert encode_question("Where are the bees?", stranger) is not first
    assert not np.array_equal(first.vectors, other.vectors)
