"""Chunks fit the window, follow the text's own borders, and point back to where they came from."""

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.chunking import chunk_markdown, chunk_text
from memory.embedding.minilm import word_piece_counter


def count(text: str) -> int:
    return word_piece_counter().count(text)


def words(text: str) -> int:
    return len(text.split())


SENTENCE = "The returns desk opens at nine and closes at five every day. "


@pytest.mark.parametrize("text", ["", " ", "\n\n\t\n", "\u3000"])
@pytest.mark.parametrize("chunk", [chunk_text, chunk_markdown])
def test_nothing_gives_no_chunks(chunk, text):
    assert chunk(text, count) == []


def test_a_short_text_is_one_chunk_without_the_space_around_it():
    (chunk,) = chunk_text("  Hello there.\n", count)

    assert (chunk.text, chunk.start, chunk.end, chunk.heading) == ("Hello there.", 2, 14, ())
    assert chunk.token_count == 3


def test_long_text_is_cut_at_sentences_with_the_last_ones_repeated():
    chunks = chunk_text(SENTENCE * 60, words)

    assert len(chunks) == 5
    for chunk in chunks:
        assert chunk.text.startswith("The returns")
        assert chunk.text.endswith("every day.")
        assert chunk.token_count <= 200
    for before, after in pairwise(chunks):
        assert words((SENTENCE * 60)[after.start : before.end]) == 36


def test_sentences_end_without_spaces_in_chinese_and_japanese():
    chunks = chunk_text("我住在柏林的一个小公寓里。" * 100, len)

    assert all(chunk.text.endswith("。") for chunk in chunks)
    assert all(len(chunk.text) <= 200 for chunk in chunks)


def test_a_sentence_larger_than_the_target_stands_alone():
    long = "word " * 230 + "end. "

    chunks = chunk_text(SENTENCE + long + SENTENCE, words)

    assert [chunk.token_count for chunk in chunks] == [12, 231, 12]


def test_a_sentence_larger_than_the_window_is_cut_between_words():
    chunks = chunk_text("word " * 1000, words)

    assert all(chunk.token_count <= 256 for chunk in chunks)
    assert all(set(chunk.text.split()) == {"word"} for chunk in chunks)


def test_a_run_without_spaces_is_cut_though_it_counts_as_one_token():
    chunks = chunk_text("x" * 10_000, count)

    assert max(len(chunk.text) for chunk in chunks) <= 2048


GUIDE = """Before any heading.

# Guide

## Returns

Send it back within 30 days.

```python
def refund(order):

    # not a heading
    return order.total
```

| Country | Days |
|---------|------|
| Germany | 14   |

Setext
------

- one
- two

# Other

Last words.
"""


def test_markdown_follows_its_headings():
    chunks = chunk_markdown(GUIDE, count)

    assert [(chunk.heading, chunk.text.splitlines()[0]) for chunk in chunks] == [
        ((), "Before any heading."),
        (("Guide", "Returns"), "# Guide"),
        (("Guide", "Setext"), "Setext"),
        (("Other",), "# Other"),
    ]
    assert all(GUIDE[chunk.start : chunk.end] == chunk.text for chunk in chunks)


def test_a_code_block_and_a_table_stay_whole():
    code = "```\n" + "\n".join(f"line = {number}" for number in range(40)) + "\n```\n"
    table = "| a | b |\n|---|---|\n" + "\n".join(f"| {number} | x |" for number in range(30)) + "\n"
    text = "\n".join([SENTENCE * 14, code, SENTENCE * 14, table, SENTENCE * 3])

    chunks = chunk_markdown(text, words)

    assert sum(code.strip() in chunk.text for chunk in chunks) == 1
    assert sum(table.strip() in chunk.text for chunk in chunks) == 1
    assert sum("line = 7\n" in chunk.text for chunk in chunks) == 1


def test_code_is_not_repeated_in_the_next_chunk():
    code = "```\nonly once\n```\n"

    first, second = chunk_markdown(SENTENCE * 15 + "\n\n" + code + "\n" + SENTENCE * 10, words)

    assert "only once" in first.text
    assert "only once" not in second.text


def test_a_code_block_larger_than_the_window_is_cut_at_lines():
    code = "```\n" + "\n".join(f"value number {number} end" for number in range(200)) + "\n```\n"

    chunks = chunk_markdown(code, words)

    assert len(chunks) > 1
    assert all(chunk.token_count <= 256 for chunk in chunks)
    lines = {line for chunk in chunks for line in chunk.text.splitlines()}
    assert lines == set(code.splitlines())


def test_a_heading_with_nothing_under_it_is_not_lost():
    assert [(chunk.text, chunk.heading) for chunk in chunk_markdown("# One\n\n# Two", count)] == [
        ("# One", ("One",)),
        ("# Two", ("Two",)),
    ]


def test_line_ends_of_other_systems_do_not_shift_the_offsets():
    text = GUIDE.replace("\n", "\r\n")

    chunks = chunk_markdown(text, count)

    assert [chunk.heading for chunk in chunks] == [(), ("Guide", "Returns"), ("Guide", "Setext"), ("Other",)]
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in chunks)


markdown = st.lists(
    st.sampled_from(
        [
            "# h",
            "## h2",
            "text. More text! ",
            "```",
            "| a | b |",
            "|--|--|",
            "",
            "- item",
            "> quote",
            "    code",
            "\r",
        ]
    )
    | st.text(max_size=20),
    max_size=30,
).map("\n".join)


@settings(deadline=None, max_examples=60)
@given(markdown, st.sampled_from([chunk_text, chunk_markdown]), st.sampled_from([count, words, len]))
def test_chunks_cover_every_word_in_order_within_the_window(text, chunk, counter):
    chunks = chunk(text, counter)

    covered = set()
    for each in chunks:
        assert each.text == text[each.start : each.end] == each.text.strip() != ""
        assert each.token_count == counter(each.text) <= 256
        covered.update(range(each.start, each.end))
    assert [each.start for each in chunks] == sorted(each.start for each in chunks)
    assert "".join(text[place] for place in range(len(text)) if place not in covered).strip() == ""


@pytest.mark.parametrize("unit", [SENTENCE, "x", ".", "# h\n\n", "```\n", "- a\n", "word ", "> "])
def test_time_grows_with_the_length_only(unit):
    def seconds(size: int) -> float:
        started = time.perf_counter()
        chunk_markdown((unit * size)[:size], words)
        return time.perf_counter() - started

    small = min(seconds(10_000) for _ in range(3))

    assert min(seconds(80_000) for _ in range(2)) < 8 * small * 3 + 0.05
