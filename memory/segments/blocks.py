"""The envelope of a segment: magic, format version, then blocks of tag, length and payload.

    b"FMNX" | version u8 | ( tag u8 | length u32 little-endian | payload )*

Tags from 0x80 are optional: who does not know one skips it. Any other tag must be known. The last block, END,
holds the number of required blocks before it (u32), so that none can go missing unseen. Start at read_blocks
and write_blocks.
"""

import struct
from collections.abc import Iterable

MAGIC = b"FMNX"
FORMAT_VERSION = 1
FIRST_OPTIONAL_TAG = 0x80
END = 0x7F
BLOCK_HEAD = struct.Struct("<BI")
BLOCK_COUNT = struct.Struct("<I")

type Blocks = dict[int, list[memoryview]]


class SegmentCorrupt(Exception):
    """The bytes are not a segment this code can read whole; nothing of them has been used."""


def write_blocks(blocks: Iterable[tuple[int, bytes]]) -> bytes:
    parts = [MAGIC, bytes([FORMAT_VERSION])]
    required = 0
    for tag, payload in blocks:
        parts += (BLOCK_HEAD.pack(tag, len(payload)), payload)
        required += tag < FIRST_OPTIONAL_TAG
    return b"".join([*parts, BLOCK_HEAD.pack(END, BLOCK_COUNT.size), BLOCK_COUNT.pack(required)])


def read_blocks(blob: bytes, known: frozenset[int]) -> Blocks:
    """Payloads of the `known` tags, which are all required ones, in the order found.

    Raises SegmentCorrupt for foreign bytes, a cut or gap, and what a later format would need.
    """
    view = memoryview(blob)
    start = len(MAGIC) + 1
    if len(view) < start or view[: len(MAGIC)] != MAGIC:
        raise SegmentCorrupt("not a segment")
    if view[len(MAGIC)] != FORMAT_VERSION:
        raise SegmentCorrupt(f"segment format {view[len(MAGIC)]} is not known")
    blocks: Blocks = {}
    required, ended = 0, False
    while start < len(view):
        try:
            tag, length = BLOCK_HEAD.unpack_from(view, start)
        except struct.error as cut:
            raise SegmentCorrupt("cut in the head of a block") from cut
        start += BLOCK_HEAD.size + length
        if start > len(view) or ended:
            raise SegmentCorrupt(f"cut inside block {tag:#04x}, or more behind the end")
        if tag in known:
            blocks.setdefault(tag, []).append(view[start - length : start])
            required += 1
        elif tag == END:
            ended = view[start - length : start] == BLOCK_COUNT.pack(required)
        elif tag < FIRST_OPTIONAL_TAG:
            raise SegmentCorrupt(f"block {tag:#04x} is required and not known")
    if not ended:
        raise SegmentCorrupt("cut, or a block is missing")
    return blocks


def only_block(blocks: Blocks, tag: int) -> memoryview:
    found = blocks.get(tag, ())
    if len(found) != 1:
        raise SegmentCorrupt(f"block {tag:#04x} occurs {len(found)} times instead of once")
    return found[0]
