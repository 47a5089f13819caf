"""Invented sentences, questions and documents, the same in every run. No two sentences are alike."""

import math
from collections.abc import Iterator

_PEOPLE = (
    "sister",
    "brother",
    "neighbour",
    "colleague",
    "cousin",
    "manager",
    "dentist",
    "trainer",
    "landlord",
    "teacher",
)
_DEEDS = (
    "recommended",
    "praised",
    "borrowed",
    "repaired",
    "ordered",
    "returned",
    "polished",
    "painted",
    "sold",
    "described",
    "photographed",
    "cleaned",
    "packed",
    "measured",
    "compared",
    "admired",
    "replaced",
    "stored",
    "wrapped",
    "collected",
)
_THINGS = (
    "bicycle",
    "kettle",
    "guitar",
    "umbrella",
    "raincoat",
    "camera",
    "bookshelf",
    "telescope",
    "backpack",
    "armchair",
    "toaster",
    "violin",
    "lantern",
    "keyboard",
    "tent",
    "carpet",
    "mirror",
    "sewing-machine",
    "microscope",
    "skateboard",
    "printer",
    "hammock",
    "saddle",
    "wardrobe",
    "canoe",
)
_PLACES = (
    "Lyon",
    "Ghent",
    "Porto",
    "Bergen",
    "Turin",
    "Leipzig",
    "Seville",
    "Tartu",
    "Utrecht",
    "Krakow",
    "Malmo",
    "Graz",
    "Aarhus",
    "Bilbao",
    "Zadar",
    "Basel",
    "Cork",
    "Nantes",
    "Tampere",
    "Trieste",
)
_TIMES = ("in spring", "last summer", "on a rainy Monday", "before the holidays", "after the concert", "at the fair")
_CHOICES = (_PEOPLE, _DEEDS, _THINGS, _PLACES)
_COMBINATIONS = math.prod(map(len, _CHOICES))
_STEP = 61_803  # shares no divisor with their number, so that walking in such steps visits all of them


def _drawn(seed: int) -> Iterator[tuple[str, ...]]:
    """All combinations, beginning at a place of the seed's own."""
    for turn in range(_COMBINATIONS):
        place = (seed * 7_919 + turn * _STEP) % _COMBINATIONS
        chosen = []
        for words in _CHOICES:
            place, which = divmod(place, len(words))
            chosen.append(words[which])
        yield (*chosen, _TIMES[turn % len(_TIMES)])


def sentences(count: int, seed: int) -> list[str]:
    """About sixteen words each, in the manner of what an agent notes."""
    return [
        f"Mia said that her {person} {deed} the {thing} she had bought in {place} {time}."
        for (person, deed, thing, place, time), _ in zip(_drawn(seed), range(count), strict=False)
    ]


def questions(seed: int) -> Iterator[str]:
    """A hundred thousand, none twice."""
    for person, deed, thing, place, time in _drawn(seed):
        yield f"What did her {person} say about the {thing} from {place} that was {deed} {time}?"


def handbook(sections: int, seed: int) -> str:
    """Markdown of which each section becomes one chunk of some sixty words."""
    said = iter(sentences(sections * 4, seed))
    parts = (f"## Case {number}\n\n{' '.join(next(said) for _ in range(4))}\n" for number in range(sections))
    return "\n".join(parts)
