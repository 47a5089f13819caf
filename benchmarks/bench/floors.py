"""What nobody can be faster than: the bare view, the raw database, the model alone, and an echo.

The tables are in a schema of their own, in databases that are removed after the run. Start at `Floors`.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
from pgvector.psycopg import register_vector
from psycopg import sql

from benchmarks.bench.invented import questions
from benchmarks.bench.load import Call, Probe, WrongAnswer
from benchmarks.rest import Line
from benchmarks.stack import Served, free_port
from config.stack.environment import DATA_DATABASE
from config.stack.state import CHECKOUT
from memory.embedding import embedder_from
from memory.types import Floats

DIMENSION = 384
LIMIT = 5
_EMBEDDER = "memory.embedding.minilm.MiniLM"
_TABLES = """
    CREATE SCHEMA benchmark;
    CREATE TABLE benchmark.written (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, said text NOT NULL);
    CREATE TABLE benchmark.vector (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(), tenant_id int NOT NULL, subject_id int NOT NULL,
        embedding vector(384) NOT NULL);
    CREATE INDEX ON benchmark.vector (tenant_id, subject_id);
    GRANT USAGE ON SCHEMA benchmark TO fmn_app;
    GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA benchmark TO fmn_app;
"""
_NEAREST = """
    SELECT id FROM benchmark.vector WHERE tenant_id = 1 AND subject_id = %s ORDER BY embedding <=> %s LIMIT 5
"""


def make_tables(served: Served, sizes: tuple[int, ...]) -> None:
    """The floor's tables; a person's id is how many vectors they have."""
    with psycopg.connect(served.environment["ADMIN_DATABASE_URL"], dbname=DATA_DATABASE, autocommit=True) as server:
        server.execute(sql.SQL(_TABLES))
        register_vector(server)
        for size in sizes:
            with server.cursor().copy(
                "COPY benchmark.vector (tenant_id, subject_id, embedding) FROM STDIN WITH (FORMAT BINARY)"
            ) as rows:
                rows.set_types(["int4", "int4", "vector"])
                for vector in unit_vectors(size, seed=size):
                    rows.write_row((1, size, vector))
        server.execute("VACUUM ANALYZE benchmark.vector")


def unit_vectors(count: int, seed: int) -> Floats:
    drawn = np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), np.float32)


def floor_http(served: Served) -> Probe:
    @contextmanager
    def client() -> Iterator[Call]:
        with Line(served.port, "") as line:
            yield lambda: line.post("/benchmark/floor", {"query": "something"})

    return Probe("floor_http", client, _require_ok, note="bare DRF view, same server and middleware, one INSERT")


def floor_vector(served: Served, size: int) -> Probe:
    @contextmanager
    def client() -> Iterator[Call]:
        with psycopg.connect(served.environment["DATABASE_URL"], autocommit=True) as connection:
            register_vector(connection)
            asked = unit_vectors(1, seed=threading.get_ident() % 1000)[0]
            yield lambda: connection.execute(_NEAREST, [size, asked], prepare=True, binary=True).fetchall()

    return Probe("floor_vector", client, _require_rows, note="psycopg and pgvector, exact scan, prepared, no HTTP")


def floor_encoding() -> Probe:
    embedder = embedder_from(_EMBEDDER, 60.0)
    asked = questions(seed=3)
    turn = threading.Lock()

    def encode() -> Floats:
        with turn:
            question = next(asked)
        return embedder.encode([question])

    @contextmanager
    def client() -> Iterator[Call]:
        yield encode

    return Probe("floor_encoding", client, _require_vector, note="a new question each, in a process without a server")


@contextmanager
def echo() -> Iterator[Probe]:
    """The client against a server that does nothing."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.bench.echo", str(port)], cwd=CHECKOUT)

    @contextmanager
    def client() -> Iterator[Call]:
        with Line(port, "") as line:
            yield lambda: line.post("/", {"query": "something"})

    try:
        _wait_for(port)
        yield Probe("client", client, _require_ok, note="the load generator against an echo of 4 KiB")
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int) -> None:
    for _ in range(100):
        try:
            with Line(port, "") as line:
                line.post("/", {})
                return
        except OSError:
            time.sleep(0.1)
    raise WrongAnswer("the echo did not start")


def _require_ok(answer: Any) -> None:
    if answer.status != 200:
        raise WrongAnswer(f"the floor answered {answer.status}: {answer.content[:200]!r}")


def _require_rows(rows: Any) -> None:
    if len(rows) != LIMIT:
        raise WrongAnswer(f"the raw scan gave {len(rows)} rows instead of {LIMIT}")


def _require_vector(vectors: Any) -> None:
    if vectors.shape != (1, DIMENSION):
        raise WrongAnswer(f"the model gave {vectors.shape}")
