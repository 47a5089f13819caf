import signal
import subprocess
import sys
from dataclasses import replace

import psutil

from config.stack.logs import open_log, rotate, tail
from config.stack.processes import ProcessRecord, end, this_process

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on'); time.sleep(60)"


def start(code):
    process = subprocess.Popen([sys.executable, "-u", "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    return process


def record_of(process):
    record = ProcessRecord.of(process.pid)
    assert record is not None
    return record


def test_record_survives_writing_and_reading(tmp_path):
    this_process().write(tmp_path / "me.json")

    assert ProcessRecord.read(tmp_path / "me.json") == this_process()


def test_half_a_record_is_no_record(tmp_path):
    (tmp_path / "half.json").write_text('{"pid": 1')

    assert ProcessRecord.read(tmp_path / "half.json") is None
    assert ProcessRecord.read(tmp_path / "absent.json") is None


def test_reused_process_id_is_not_ours():
    assert this_process().is_alive()
    assert not replace(this_process(), started=this_process().started - 60).is_alive()


def test_killed_process_nobody_collected_is_dead():
    process = start(STUBBORN)
    record = record_of(process)

    end(record, patience_seconds=5)

    assert psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE
    assert not record.is_alive()
    process.wait()


def test_stubborn_process_is_killed_after_patience():
    process = start(STUBBORN)

    end(record_of(process), signal.SIGTERM, patience_seconds=0.2)

    assert process.poll() is not None


def test_end_spares_a_process_with_a_reused_id():
    process = start(STUBBORN)
    record = record_of(process)

    end(replace(record, started=record.started - 60), patience_seconds=0.2)

    assert process.poll() is None
    end(record, patience_seconds=5)
    process.wait()


def test_rotation_keeps_five_older_logs(tmp_path):
    file = tmp_path / "web.log"
    for number in range(8):
        rotate(file)
        file.write_text(f"run {number}")

    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {
        "web.log": "run 7",
        "web.1.log": "run 6",
        "web.2.log": "run 5",
        "web.3.log": "run 4",
        "web.4.log": "run 3",
        "web.5.log": "run 2",
    }


def test_tail_is_the_end(tmp_path):
    with open_log(tmp_path / "web.log") as log:
        log.write(b"".join(b"line %d\n" % number for number in range(40)))

    assert tail(tmp_path / "web.log").splitlines()[0] == "line 25"
    assert tail(tmp_path / "web.log").splitlines()[-1] == "line 39"
    assert tail(tmp_path / "absent.log") == "(empty)"
