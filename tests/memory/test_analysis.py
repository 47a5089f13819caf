"""What a text can be found by, and that its hashes say nothing without the key."""

import sys
import threading

import numpy as np
import pytest
import snowballstemmer
from hypothesis import given
from hypothesis import strategies as st

from memory.analysis import content_terms, hash_query, hash_terms, language_of, terms

KEY = b"k" * 32


def test_word_gives_surface_form_and_marked_stem():
    assert terms("Running shoes") == ["running", "s:run", "shoes", "s:shoe"]


def test_repeats_and_order_are_kept():
    assert terms("no no yes") == ["no", "s:no", "no", "s:no", "yes", "s:yes"]


def test_compatibility_forms_and_case_are_folded():
    assert terms("\uff21\uff22\uff23") == ["abc", "s:abc"]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("error TS2345 again", "ts2345"),
        ("see foo_bar.baz, please", "foo_bar.baz"),
        ("node --max-old-space=4096", "max-old-space=4096"),
        ("write to ada@acme.example.", "ada@acme.example"),
        ("(error:0308010C)", "error:0308010c"),
        ("on v1.2.3;", "v1.2.3"),
        ("she writes C++.", "c++"),
        ("call getUserById now", "getuserbyid"),
        ("at 10:30", "10:30"),
    ],
)
def test_identifier_is_kept_whole(text, whole):
    assert whole in terms(text)


def test_parts_of_an_identifier_are_found_too():
    assert terms("getUserById") == [
        "getuserbyid",
        "get",
        "s:get",
        "user",
        "s:user",
        "by",
        "s:by",
        "id",
        "s:id",
    ]
    assert {"foo", "bar", "baz"} <= set(terms("foo_bar.baz"))


def test_possessive_and_elided_letters_are_no_words():
    assert terms("user's") == ["user", "s:user"]
    assert terms("l'école") == ["école", "s:écol"]


def test_unspaced_scripts_give_pairs_and_a_lone_character_itself():
    assert terms("東京都") == ["東京", "京都"]
    assert terms("東 tokyo") == ["東", "tokyo", "s:tokyo"]
    assert terms("tokyo東京") == ["tokyo", "s:tokyo", "東京"]


def test_vowel_signs_do_not_split_hindi_words():
    assert terms("मेरी किताब") == ["मेरी", "s:मेर", "किताब", "s:किताब"]


def test_arabic_vowel_marks_do_not_matter():
    assert terms("مُحَمَّد") == terms("محمد")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Where do I live?", "english"),
        ("Wo wohne ich?", "german"),
        ("¿Dónde vivo yo?", "spanish"),
        ("Où est mon école ?", "french"),
        ("أين أعيش؟", "arabic"),
        ("मैं कहाँ रहता हूँ?", "hindi"),
        ("Kubernetes", "english"),
    ],
)
def test_language_is_told_by_script_and_function_words(text, language):
    assert language_of(text) == language


def test_inflected_german_words_meet_in_their_stem():
    assert set(terms("Ich wohne in Bremen")) & set(terms("wo wohnst du und wohnen wir")) >= {"s:wohn"}


def test_content_terms_leave_function_words_out():
    assert content_terms("What is the name of my dog?") == [("name", "s:name"), ("dog", "s:dog")]
    assert content_terms("Wie heißt mein Hund?") == [("heisst", "s:heisst"), ("hund", "s:hund")]
    assert content_terms("Who am I?") == []


def test_hashes_are_sorted_unique_and_counted():
    vector = hash_terms(["b", "a", "b"], KEY)

    assert vector.hashes.dtype == np.uint64
    assert vector.counts.dtype == np.uint16
    assert vector.hashes.tolist() == sorted(set(vector.hashes.tolist()))
    assert sorted(vector.counts.tolist()) == [1, 2]
    assert vector.length == 3


def test_hashes_are_the_same_for_ever():
    assert hash_terms(["peanut"], KEY).hashes.tolist() == [7761086613925121342]


def test_hashes_under_another_key_have_nothing_in_common():
    text = terms("I have a severe peanut allergy")

    shared = set(hash_terms(text, KEY).hashes.tolist()) & set(hash_terms(text, b"x" * 32).hashes.tolist())

    assert shared == set()


def test_query_of_function_words_is_searched_by_those():
    query = hash_query("Who am I?", KEY)

    assert query.content == ()
    assert query.terms == hash_terms(terms("Who am I?"), KEY)


def test_empty_text_gives_an_empty_vector():
    assert hash_terms(terms(" \n"), KEY).hashes.tolist() == []
    assert hash_terms([], KEY).length == 0


@pytest.fixture
def eager_thread_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_stems_are_right_from_many_threads(eager_thread_switches):
    endings = ("ings", "edly", "nesses", "ational", "fulness")
    words = [f"w{chr(97 + n // 26)}{chr(97 + n % 26)}lk{endings[n % 5]}" for n in range(520)]
    stems: list[tuple[str, str]] = []

    def analyse(some: list[str]) -> None:
        stems.extend((word, terms(word)[1]) for word in some)

    threads = [threading.Thread(target=analyse, args=(words[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    alone = snowballstemmer.stemmer("english")
    assert sorted(stems) == sorted((word, f"s:{alone.stemWord(word)}") for word in words)


@given(st.text())
def test_every_text_is_analysed_the_same_way_twice(text):
    first = hash_terms(terms(text), KEY)

    assert first == hash_terms(terms(text), KEY)
    assert first.length == len(terms(text))


@given(st.text(max_size=60))
def test_content_words_of_a_query_are_among_the_terms_of_the_same_text(text):
    assert {form for forms in content_terms(text) for form in forms} <= set(terms(text))
