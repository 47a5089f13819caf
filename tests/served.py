"""The product's own processes as tests start, kill and ask them: exactly the commands `make run` uses."""

import http.client
import json
import os
import signal
import socket
import threading
import time

from config.stack.children import product_children, record_file
from config.stack.processes import ProcessRecord
from tests.world import Rest

START_SECONDS = 30
ANSWER_SECONDS = 30


def eventually(ask, *, seconds=60, every=0.05):
    """The first answer that is not empty or false; fails when none comes in time."""
    deadline = time.monotonic() + seconds
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"nothing for {seconds} seconds"
        time.sleep(every)
    return answer


class Process:
    """One of web, worker, system and beat, in the environment of the running stack and with what is given on top."""

    name: str

    def __init__(self, stack, port=0, **environment):
        self.state = stack.services.state
        children = product_children(stack.environment | environment, self.state, port)
        self.child = next(child for child in children if child.name == self.name)

    def __enter__(self):
        self.child.start()
        self.pid = ProcessRecord.read(record_file(self.state, self.name)).pid
        eventually(self.is_ready, seconds=START_SECONDS)
        return self

    def __exit__(self, *_):
        self.child.ask_to_stop()
        self.child.stop()

    def kill(self):
        """As a power cut would: the process and its children, with nothing tidied up."""
        os.killpg(self.pid, signal.SIGKILL)
        self.child.stop()

    def said(self):
        return self.child.log_file.read_text(errors="replace")

    def is_ready(self):
        assert self.child.is_running(), self.said()
        return self.looks_ready()


class OneWorker(Process):
    def looks_ready(self):
        return " ready." in self.said()


class SystemWorker(OneWorker):
    name = "system"


class Worker(OneWorker):
    """The worker of the long tasks, with that of the short ones beside it."""

    name = "worker"

    def __init__(self, stack, **environment):
        super().__init__(stack, **environment)
        self.system = SystemWorker(stack, **environment)

    def __enter__(self):
        self.system.__enter__()
        return super().__enter__()

    def __exit__(self, *_):
        self.system.__exit__()
        super().__exit__()

    def kill(self):
        self.system.kill()
        super().kill()


class Server(Process):
    name = "web"

    def __init__(self, stack, **environment):
        self.port = _free_port()
        super().__init__(stack, self.port, **environment)

    def looks_ready(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def as_key(self, key):
        return RemoteRest(key, self.port)

    def health(self):
        answer = RemoteRest("", self.port).get("/healthz")
        return answer.status_code, answer.json()["status"]


class RemoteRest(Rest):
    """`Rest` over a real connection; raises OSError or HTTPException when the server goes away."""

    def __init__(self, key, port):
        self.key, self.port = key, port

    def call(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS)
        sent = {"Authorization": f"Bearer {self.key}"} | {name.replace("_", "-"): v for name, v in headers.items()}
        if body is not None:
            body, sent["Content-Type"] = json.dumps(body), "application/json"
        started = time.monotonic()
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read(), time.monotonic() - started)
        finally:
            connection.close()


class Answer:
    def __init__(self, status, content, seconds):
        self.status_code, self.content, self.seconds = status, content, seconds

    def json(self):
        return json.loads(self.content)

    @property
    def outcome(self):
        """Status and code together: (503, "audit_unavailable"), (200, None)."""
        return self.status_code, self.json().get("code")


class HangingEmbedder:
    """Stands for a model that never answers."""

    model_id, model_number, dimension, floor = "hanging", 1, 384, 0.2

    def encode(self, texts):
        threading.Event().wait()


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
