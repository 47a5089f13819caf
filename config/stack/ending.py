"""How a command ends for whoever started it: with a status and at most one line, never with a traceback.

Start at `exit_status`.
"""

import os
import sys
from collections.abc import Callable

from config.stack.errors import StackError

INTERRUPTED = 130  # what a shell reports for a command ended by SIGINT


def exit_status(command: Callable[[], int]) -> int:
    """The status of `command`; what a person can act on, or has caused, becomes one line on standard error."""
    try:
        status = command()
        sys.stdout.flush()
    except StackError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _write_nowhere()
        return 1
    return status


def _write_nowhere() -> None:
    """The interpreter flushes once more at its end, and would complain again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
