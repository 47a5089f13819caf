import stat

import pytest

from config.stack import StackError
from config.stack.account import service_account
from config.stack.belongings import belongings, strangers
from config.stack.cleaning import clean
from config.stack.state import state_folder
from tests.stack.conftest import services_in


def prepare(folder):
    state_folder(folder / "state", folder / "key").prepare(service_account())


def clean_all(folder):
    clean(services_in(folder), folder / "venv", ask=lambda _: True, ask_about_root_key=lambda _: False)


def test_somebody_elses_folder_is_refused_and_left_as_it_is(folder):
    theirs = folder / "state"
    theirs.mkdir()
    theirs.chmod(0o750)
    (theirs / "thesis.txt").write_text("years of work")

    with pytest.raises(StackError, match=r"is not ours: it holds thesis\.txt"):
        prepare(folder)

    assert stat.S_IMODE(theirs.stat().st_mode) == 0o750
    assert [each.name for each in theirs.iterdir()] == ["thesis.txt"]


def test_state_from_before_the_marker_is_adopted(folder):
    (folder / "state").mkdir()
    (folder / "state" / "secrets.json").write_text("{}")

    prepare(folder)

    assert (folder / "state" / ".forget-me-not").exists()


def test_own_entries_are_told_from_others(folder):
    for name in (".secrets.json.0a1b2c3d", "beat.db", "beatles.mp3", "logs", "run.lock", ".bashrc"):
        (folder / name).touch()

    assert [each.name for each in belongings(folder)] == [".secrets.json.0a1b2c3d", "beat.db", "logs", "run.lock"]
    assert [each.name for each in strangers(folder)] == [".bashrc", "beatles.mp3"]


def test_cleaning_spares_what_others_put_there_later(folder, capsys):
    prepare(folder)
    (folder / "state" / "notes.txt").write_text("mine")

    clean_all(folder)

    assert [each.name for each in (folder / "state").iterdir()] == ["notes.txt"]
    assert "it stays, since other files are in it." in capsys.readouterr().out


def test_cleaning_refuses_somebody_elses_folder(folder):
    (folder / "state" / "logs").mkdir(parents=True)
    (folder / "state" / "thesis.txt").write_text("years of work")

    with pytest.raises(StackError, match="is not ours"):
        clean_all(folder)

    assert (folder / "state" / "logs").exists()
