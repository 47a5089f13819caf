import os
import subprocess
import sys

import pytest

from config.stack.state import CHECKOUT

ENDS = """
from config.stack.ending import exit_status
def command():
    {}
    return 0
raise SystemExit(exit_status(command))
"""


def end_of(code, stdout=subprocess.PIPE):
    command = [sys.executable, "-c", ENDS.format(code)]
    done = subprocess.run(command, cwd=CHECKOUT, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("pass", (0, "")),
        ("from config.stack import StackError; raise StackError('Out of luck.')", (1, "Out of luck.\n")),
        ("raise KeyboardInterrupt", (130, "Interrupted.\n")),
    ],
)
def test_a_command_ends_with_a_line(code, end):
    assert end_of(code) == end


def test_a_reader_that_went_away_is_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)

    end = end_of("print('to nobody')", stdout=writer)

    os.close(writer)
    assert end == (1, "")
