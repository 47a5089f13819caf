"""Text to terms, and terms to the keyed hashes that the sealed index holds instead of words.

Relies on the standard library, numpy and snowballstemmer. Start at terms and hash_terms for a text to keep,
at hash_query for a question. Any change in what `terms` gives raises ANALYSER_VERSION: old hashes stop
matching.
"""

import functools
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import snowballstemmer

from memory import stopwords
from memory.types import Hashes, TermVector

ANALYSER_VERSION = 1
STEM_MARK = "s:"
LONGEST_TERM = 128
LARGEST_COUNT = int(np.iinfo(np.uint16).max)

# Vowel signs and the like: parts of a word that \w does not match (Devanagari would fall apart).
MARKS = "".join(chr(code) for code in range(0x300, 0x1B00) if unicodedata.category(chr(code))[0] == "M")
WORD_CHARACTER = rf"(?:[^\W_]|[{MARKS}])"
WORD = re.compile(rf"{WORD_CHARACTER}+")
# Written without spaces between words: Thai, Lao, Burmese, Khmer, Kana, Han, Hangul.
UNSPACED = re.compile(
    r"[\u0E00-\u0EFF\u1000-\u109F\u1780-\u17DD\u3005-\u3007\u3040-\u30FF\u3400-\u4DBF\u4E00-\u9FFF"
    r"\uAC00-\uD7AF\uF900-\uFAFF\U00020000-\U0003FFFF]+"
)
HIRAGANA_ONLY = re.compile(r"[\u3040-\u309F]+")
INVISIBLE = re.compile(r"[\u00AD\u0640\u064B-\u0652\u0670\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF]")
ARABIC = re.compile(r"[\u0600-\u06FF]")
DEVANAGARI = re.compile(r"[\u0900-\u097F]")
CAMEL_BORDER = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
APOSTROPHES = re.compile(r"['\u2018\u2019\u02BC`]")
AROUND_TOKEN = "".join(chr(code) for code in range(33, 127) if not chr(code).isalnum() and chr(code) not in "+#")
AROUND_TOKEN += "\u2018\u2019\u201c\u201d\u00ab\u00bb\u2026\u00bf\u00a1\u3001\u3002\u2013\u2014\u0964\u061f\u060c"
IDENTIFIER = re.compile(r"\w[_.:/\\@\-+#=~]+\w|\w[+#]+$|[^\W\d_]\d|\d[^\W\d_]|\w_|_\w|[a-z][A-Z]")


@dataclass(frozen=True, slots=True)
class Word:
    """One thing a text speaks of, by all the terms it can be found under, the word itself first."""

    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """A question as hashes: `terms` for BM25; `content` with one uint64 array a content word (its forms)."""

    terms: TermVector
    content: tuple[Hashes, ...]


@dataclass(frozen=True, slots=True)
class AnalysedQuery:
    """A question in terms, before any key: `content` by word, with all its forms; `searched` what is looked for."""

    content: tuple[tuple[str, ...], ...]
    searched: tuple[str, ...]


def terms(text: str) -> list[str]:
    """The terms of a text in order, with repeats.

    A word gives its surface form and its stem (marked "s:"); a run of Han, Kana, Hangul, Thai and the like
    its overlapping pairs; an identifier, version, address or error code itself whole and the words in it.
    """
    cleaned = _cleaned(text)
    return [term for word in _words(cleaned, language_of(cleaned)) for term in word.terms]


def content_terms(query: str) -> list[tuple[str, ...]]:
    """What the question is about: for each word that is no function word, the terms it can be found under."""
    cleaned = _cleaned(query)
    language = language_of(cleaned)
    functional = stopwords.BY_LANGUAGE.get(language, frozenset())
    seen = dict.fromkeys(word.terms for word in _words(cleaned, language) if _is_content(word, functional))
    return list(seen)


def hash_terms(texts_terms: Iterable[str], key: bytes) -> TermVector:
    """Keyed 64-bit hashes (BLAKE2b, key of 16 to 64 bytes) of terms, sorted, with their counts."""
    counts: Counter[int] = Counter()
    for term, count in Counter(texts_terms).items():
        counts[_hashed(term, key)] += count
    hashes = np.array(sorted(counts), np.uint64)
    occurrences = [min(counts[each], LARGEST_COUNT) for each in hashes.tolist()]
    return TermVector(hashes, np.array(occurrences, np.uint16), counts.total())


def analysed(query: str) -> AnalysedQuery:
    """A question of function words only is searched by those."""
    content = tuple(content_terms(query))
    return AnalysedQuery(content, tuple(term for forms in content for term in forms) or tuple(terms(query)))


def hash_query(query: str | AnalysedQuery, key: bytes) -> QueryTerms:
    """The question for the lexical lane. Who asks it under several keys analyses it once, before."""
    asked = analysed(query) if isinstance(query, str) else query
    forms_hashed = tuple(np.array([_hashed(form, key) for form in forms], np.uint64) for forms in asked.content)
    return QueryTerms(hash_terms(asked.searched, key), forms_hashed)


def language_of(text: str) -> str:
    """The stemmer to use: by script, else by whose function words occur most; English when undecided."""
    if ARABIC.search(text):
        return "arabic"
    if DEVANAGARI.search(text):
        return "hindi"
    words = [word.group().casefold() for word in WORD.finditer(text)]
    votes = {name: sum(word in listed for word in words) for name, listed in stopwords.BY_LANGUAGE.items()}
    return max(votes, key=votes.__getitem__)  # the first, English, wins a draw


def _cleaned(text: str) -> str:
    return INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def _hashed(term: str, key: bytes) -> int:
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest(), "little")


def _is_content(word: Word, functional: frozenset[str]) -> bool:
    """Single Latin letters are parts of identifiers, pairs of Hiragana mostly endings and particles."""
    first = word.terms[0]
    one_letter = len(first) == 1 and first.isascii()
    return first not in functional and not one_letter and not HIRAGANA_ONLY.fullmatch(first)


def _words(cleaned: str, language: str) -> Iterator[Word]:
    for token in cleaned.split():
        stripped = token.strip(AROUND_TOKEN)
        if stripped and IDENTIFIER.search(stripped) and len(stripped) <= LONGEST_TERM:
            yield from _identifier_words(stripped, language)
        else:
            yield from _plain_words(token, language)


def _identifier_words(token: str, language: str) -> Iterator[Word]:
    whole = token.casefold()
    parts = list(_plain_words(CAMEL_BORDER.sub(" ", token), language))
    if [part.terms[0] for part in parts] != [whole]:
        yield Word((whole,))
    yield from parts


def _plain_words(text: str, language: str) -> Iterator[Word]:
    for part in APOSTROPHES.split(text) if len(text) > 1 else [text]:
        if len(part) > 1 or part == text:  # not the s of "user's", the l of "l'école"
            yield from _forms(part.casefold(), language)


def _forms(part: str, language: str) -> Iterator[Word]:
    for found in WORD.finditer(part):
        start = 0
        for run in UNSPACED.finditer(found.group()):
            yield from _spaced(found.group()[start : run.start()], language)
            yield from (Word((pair,)) for pair in _pairs(run.group()))
            start = run.end()
        yield from _spaced(found.group()[start:], language)


def _spaced(word: str, language: str) -> Iterator[Word]:
    word = word[:LONGEST_TERM]
    if any(character.isdigit() for character in word):
        yield Word((word,))
    elif word:
        yield Word((word, STEM_MARK + _stem(word, language)))


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for start in range(len(run) - 1):
        yield run[start : start + 2]


class _Stemmers(threading.local):
    """A stemmer keeps the word it works on in itself, so every thread has its own."""

    def __init__(self) -> None:
        self.by_language: dict[str, snowballstemmer.stemmer] = {}


_stemmers = _Stemmers()


@functools.lru_cache(maxsize=20_000)
def _stem(word: str, language: str) -> str:
    if language not in _stemmers.by_language:
        _stemmers.by_language[language] = snowballstemmer.stemmer(language)
    return str(_stemmers.by_language[language].stemWord(word))
