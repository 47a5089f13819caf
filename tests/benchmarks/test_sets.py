"""What is read from the sets: cases with their labels and dates, talks with their evidence."""

import json
from datetime import UTC, date, datetime

import pytest

from benchmarks.evals.__main__ import SETS, chosen_evals
from benchmarks.evals.cases import DISTRACTORS, distractors, read_cases
from benchmarks.evals.retrieval import BATCH_CHARACTERS, fitting
from benchmarks.evals.talks import read_locomo, read_memorybank
from config.stack.errors import StackError

LIFECYCLE = SETS / "lifecycle.jsonl"
# Invented, in the format of snap-research's locomo10.json.
LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bo",
            "session_10_date_time": "12:05 am on 3 June, 2023",
            "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "The kiln is repaired."}],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [
                {"speaker": "Ann", "dia_id": "D2:1", "text": "I threw my first bowl."},
                {"speaker": "Bo", "dia_id": "D2:2", "text": "", "blip_caption": "a bowl"},
            ],
            "session_3_date_time": "1:56 pm on 9 May, 2023",
        },
        "qa": [
            {"question": "What did Ann make?", "answer": "a bowl", "evidence": ["D2:1"], "category": 4},
            {"question": "What was mended when?", "answer": "", "evidence": ["D2:1; D10:1", "D9:9"], "category": 1},
            {"question": "What was shown?", "answer": "", "evidence": ["D2:2"], "category": 4},
            {"question": "Why?", "answer": "", "evidence": [], "category": 5},
        ],
    }
]


@pytest.fixture(scope="module")
def cases():
    return read_cases(LIFECYCLE, date(2026, 6, 1))


def test_every_case_lies_in_the_past_on_the_weekday_it_was_written_for():
    lines = [json.loads(line) for line in LIFECYCLE.read_text().splitlines()]

    cases = read_cases(LIFECYCLE, date(2026, 6, 1))

    assert max(case.asked_at for case in cases) < datetime(2026, 6, 1, tzinfo=UTC)
    assert [case.asked_at.weekday() for case in cases] == [date.fromisoformat(line["now"]).weekday() for line in lines]


def test_cases_that_are_past_already_are_not_moved():
    case = read_cases(LIFECYCLE, date(2030, 1, 1))[0]

    assert (case.asked_at.date(), case.statements[0].said_at.date()) == (date(2026, 6, 1), date(2026, 1, 5))


def test_what_is_sent_holds_no_label(cases):
    sent = {name for case in cases for each in case.statements for name in each.as_sent}

    assert sent == {"text", "source", "occurred_at"}


def test_the_halves_are_about_alike_and_stay_as_they_are(cases):
    halves = [case.split for case in cases]

    assert (halves.count("tune"), halves.count("test")) == (101, 79)
    assert cases[0].id == "en001"
    assert halves[:3] == ["tune", "tune", "test"]


def test_distractors_are_those_of_other_cases_and_can_come_up(cases):
    for case in cases:
        drawn = distractors(case, cases)

        own = {each.text for each in case.statements}
        assert len(drawn) == DISTRACTORS
        assert all(datetime.fromisoformat(each["occurred_at"]) < case.asked_at for each in drawn)
        assert drawn == distractors(case, cases)
        assert sum(each["text"] in own for each in drawn) <= 1, "another case may say the very same, hardly twice"


def test_memorybank_has_evidence_that_exists():
    talks = read_memorybank(SETS / "memorybank-en")

    assert (len(talks), sum(len(talk.turns) for talk in talks)) == (15, 1132)
    asked = [(talk, question) for talk in talks for question in talk.questions]
    assert len(asked) == 73
    assert all(question.evidence and question.evidence <= talk.turns.keys() for talk, question in asked)


def test_locomo_is_read_turn_by_turn(tmp_path):
    file = tmp_path / "locomo.json"
    file.write_text(json.dumps(LOCOMO))

    (talk,) = read_locomo(file)

    assert {turn: memory["text"] for turn, memory in talk.turns.items()} == {
        "D2:1": "Ann: I threw my first bowl.",
        "D10:1": "Bo: The kiln is repaired.",
    }
    assert talk.turns["D2:1"]["occurred_at"] == "2023-05-08T13:56:00+00:00"
    assert [(each.category, each.evidence) for each in talk.questions] == [
        ("single_hop", {"D2:1"}),
        ("multi_hop", {"D2:1", "D10:1"}),
    ]
    assert talk.questions[0].asked_at > datetime(2023, 6, 3, tzinfo=UTC)


def test_another_file_than_locomo_is_refused_in_a_line(tmp_path):
    file = tmp_path / "other.json"
    file.write_text('[{"text": "something"}]')

    with pytest.raises(StackError, match=r"other\.json is not a LoCoMo file"):
        chosen_evals({"LOCOMO": str(file)})


def test_an_unknown_set_is_refused():
    with pytest.raises(StackError, match="EVALS picks from"):
        chosen_evals({"EVALS": "locomo"})


def test_turns_go_in_batches_that_are_encoded_at_once():
    turns = [(str(number), {"text": "x" * size}) for number, size in enumerate([BATCH_CHARACTERS, 1, 9_000, 2])]

    batches = fitting(turns)

    assert [[turn for turn, _ in batch] for batch in batches] == [["0"], ["1"], ["2"], ["3"]]
    assert max(len(memory["text"]) for batch in batches for _, memory in batch) == 8_000


def test_a_batch_holds_no_more_than_the_server_takes():
    batches = fitting([(str(number), {"text": "x"}) for number in range(250)])

    assert [len(batch) for batch in batches] == [100, 100, 50]
