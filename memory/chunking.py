"""Documents in pieces that fit the embedding model's window, cut where the text itself has borders.

Relies on a token counter (see embedding.TokenCounter) and, for Markdown, on markdown-it-py. Start at
chunk_text and chunk_markdown. Time is linear in the length of the text.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

TARGET_TOKENS = 200
LARGEST_TOKENS = 256  # the window of the model: what is beyond it is not embedded
HEADING_LENGTH = 500  # characters
OVERLAP_TOKENS = 40  # at most; whole sentences, so about 30

# A counter may call a thousand characters without a space one unknown token; here a token is never more than:
CHARACTERS_A_TOKEN = 8
LONGEST_SPAN = LARGEST_TOKENS * CHARACTERS_A_TOKEN

# One character of punctuation, not a run of it: a run would be scanned again from each of its characters.
SENTENCE_END = re.compile(r"[.!?\u2026\u0964\u061F][\"'\u2019\u201D)\]]{0,3}\s+|[\u3002\uFF01\uFF1F]|\n\s*")
LINE_END = re.compile(r"\r\n?|\n")
WORD_GAP = re.compile(r"\s+")

type CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Chunk:
    """text is source[start:end]; heading is the path of headings above it, outermost first."""

    text: str
    start: int
    end: int
    token_count: int
    heading: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Span:
    """A part of the source that is not cut again; whole: a code block or table, never repeated as overlap."""

    start: int
    end: int
    size: int
    whole: bool = False


def heading_of(chunk: Chunk) -> str:
    """The path of headings in one line, as it is stored and cited."""
    return " › ".join(chunk.heading)[:HEADING_LENGTH]


def citation(title: str, heading: str) -> str:
    """Where a chunk stands, for people: title and headings, none said twice."""
    return " › ".join(dict.fromkeys(part for part in (title, *heading.split(" › ")) if part))


def searchable_text(title: str, heading: str, text: str) -> str:
    """What is embedded and indexed of a chunk: by itself it often does not say what it is about."""
    return "\n".join(filter(None, (title, heading, text)))


def chunk_text(text: str, count_tokens: CountTokens) -> list[Chunk]:
    """Chunks of whole sentences: up to 200 tokens, the last sentences of one opening the next.

    A single sentence of up to 256 tokens stands alone; a longer one is cut. No text, no chunks.
    """
    spans = _prose_spans(text, 0, len(text), count_tokens)
    return _chunks(text, _packed(spans), (), count_tokens)


def chunk_markdown(text: str, count_tokens: CountTokens) -> list[Chunk]:
    """Like chunk_text, but no chunk crosses a heading, and code blocks and tables stay whole if they fit."""
    return [
        chunk
        for section in _sections(text)
        for chunk in _chunks(text, _packed(_section_spans(text, section, count_tokens)), section.heading, count_tokens)
    ]


def _chunks(
    source: str, packs: Iterator[list[_Span]], heading: tuple[str, ...], count_tokens: CountTokens
) -> list[Chunk]:
    chunks = []
    for pack in packs:
        raw = source[pack[0].start : pack[-1].end]
        text = raw.strip()
        if text:
            start = pack[0].start + len(raw) - len(raw.lstrip())
            chunks.append(Chunk(text, start, start + len(text), count_tokens(text), heading))
    return chunks


def _packed(spans: Iterator[_Span]) -> Iterator[list[_Span]]:
    """Consecutive spans up to the target, each pack repeating the end of the last. A larger span is alone."""
    pack: list[_Span] = []
    size = 0
    for span in spans:
        if pack and size + span.size > TARGET_TOKENS:
            yield pack
            pack = _overlap(pack, TARGET_TOKENS - span.size)
            size = sum(each.size for each in pack)
        pack.append(span)
        size += span.size
    if pack:
        yield pack


def _overlap(pack: Sequence[_Span], room: int) -> list[_Span]:
    left = min(OVERLAP_TOKENS, room)
    first = len(pack)
    while first and not pack[first - 1].whole and pack[first - 1].size <= left:
        first -= 1
        left -= pack[first].size
    return list(pack[first:])


def _prose_spans(source: str, start: int, end: int, count_tokens: CountTokens) -> Iterator[_Span]:
    """Sentences that together are exactly source[start:end], the too long ones in pieces."""
    begin = start
    for border in SENTENCE_END.finditer(source, start, end):
        yield from _fitting(source, begin, border.end(), count_tokens)
        begin = border.end()
    yield from _fitting(source, begin, end, count_tokens)


def _fitting(source: str, start: int, end: int, count_tokens: CountTokens) -> Iterator[_Span]:
    """source[start:end] as one span when it fits a chunk, else cut, between words where that can be."""
    while end - start > LONGEST_SPAN:
        cut = _gap_before(source, start, start + LONGEST_SPAN)
        yield from _fitting(source, start, cut, count_tokens)
        start = cut
    size = _size(source[start:end], count_tokens)
    if size <= LARGEST_TOKENS or end - start < 2:
        if end > start:
            yield _Span(start, end, size)
        return
    cut = _gap_before(source, start, (start + end) // 2)
    yield from _fitting(source, start, cut, count_tokens)
    yield from _fitting(source, cut, end, count_tokens)


def _gap_before(source: str, start: int, limit: int) -> int:
    """Where to cut source[start:limit]: behind the last white space of its second half, else at `limit`."""
    gaps = [gap.end() for gap in WORD_GAP.finditer(source, (start + limit) // 2, limit)]
    return gaps[-1] if gaps and gaps[-1] > start else limit


def _size(text: str, count_tokens: CountTokens) -> int:
    return max(count_tokens(text), len(text) // CHARACTERS_A_TOKEN)


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading with what stands under it; blocks: code and tables inside, as offsets."""

    heading: tuple[str, ...]
    start: int
    end: int
    blocks: tuple[tuple[int, int], ...]


def _sections(text: str) -> Iterator[_Section]:
    """Consecutive sections that together are the whole text.

    A heading with nothing under it but a deeper heading opens the deeper one's section.
    """
    offsets = [0, *(line.end() for line in LINE_END.finditer(text)), len(text)]
    path: list[tuple[int, str]] = []
    start, blocks, bare = 0, list[tuple[int, int]](), False
    for token, title in _structure(text):
        first, last = (offsets[min(line, len(offsets) - 1)] for line in token.map or (0, 0))
        if token.type != "heading_open":
            blocks += [(first, last)] if token.type in WHOLE_BLOCKS else []
            bare = False
            continue
        depth = int(token.tag[1:])
        if first > start and not (bare and depth > path[-1][0]):
            yield _Section(tuple(name for _, name in path), start, first, tuple(blocks))
            start, blocks = first, []
        path = [*(each for each in path if each[0] < depth), (depth, title)]
        bare = True
    yield _Section(tuple(name for _, name in path), start, len(text), tuple(blocks))


WHOLE_BLOCKS = frozenset({"fence", "code_block", "table_open"})


def _structure(text: str) -> Iterator[tuple[Token, str]]:
    """The outermost blocks in order; with a heading, its words."""
    tokens = MarkdownIt("commonmark").enable("table").disable("inline").parse(text)
    for place, token in enumerate(tokens):
        if token.level == 0 and token.nesting >= 0:
            title = tokens[place + 1].content.strip() if token.type == "heading_open" else ""
            yield token, title


def _section_spans(source: str, section: _Section, count_tokens: CountTokens) -> Iterator[_Span]:
    begin = section.start
    for start, end in section.blocks:
        yield from _prose_spans(source, begin, start, count_tokens)
        yield from _block_spans(source, start, end, count_tokens)
        begin = end
    yield from _prose_spans(source, begin, section.end, count_tokens)


def _block_spans(source: str, start: int, end: int, count_tokens: CountTokens) -> Iterator[_Span]:
    """A code block or table whole, or, when no chunk could hold it, line by line."""
    size = _size(source[start:end], count_tokens)
    if size <= LARGEST_TOKENS:
        yield _Span(start, end, size, whole=True)
        return
    begin = start
    for border in LINE_END.finditer(source, start, end):
        yield from _fitting(source, begin, border.end(), count_tokens)
        begin = border.end()
    yield from _fitting(source, begin, end, count_tokens)
