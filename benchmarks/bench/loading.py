"""Filling the stack before anything is timed: memories by batches over REST, documents through a worker."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import batched

import psycopg

from benchmarks.bench.invented import handbook, sentences
from benchmarks.stack import Served, Tenant, require
from config.stack.environment import DATA_DATABASE, serving
from config.stack.errors import StackError
from config.stack.state import CHECKOUT

BATCH = 80  # more would exceed what the server encodes while somebody waits
SECTIONS = 1000  # of one document: some 350,000 characters
INGEST_SECONDS = 900.0
NEIGHBOURS_MEMORIES = 5


def load_memories(tenant: Tenant, path: str, count: int, seed: int) -> float:
    """Store that many, all with their vectors; gives the seconds it took."""
    started = time.perf_counter()
    for texts in batched(sentences(count, seed), BATCH):
        answer = tenant.agent.post(f"{path}/memories", {"items": [{"text": text} for text in texts]})
        require(answer, 201)
        if answer.json()["degraded"]:
            raise StackError("The memories were stored without vectors; the machine is too busy to measure on.")
    return time.perf_counter() - started


def load_knowledge(tenant: Tenant, chunks: int, seed: int) -> float:
    """Documents of one chunk a section, taken in by the worker; gives the seconds it took."""
    started = time.perf_counter()
    jobs = []
    for part in range(0, chunks, SECTIONS):
        text = handbook(min(SECTIONS, chunks - part), seed + part)
        body = {"name": f"cases-{part}", "title": "Cases", "text": text, "format": "markdown"}
        answer = tenant.admin.post("/v1/knowledge/documents", body)
        require(answer, 202)
        jobs.append(answer.json()["job"]["id"])
    stored = sum(_ingested(tenant, job) for job in jobs)
    if stored != chunks:
        raise StackError(f"{chunks} chunks were expected, {stored} were stored.")
    return time.perf_counter() - started


def refresh_statistics(served: Served) -> None:
    """What autovacuum does a minute later: the floor's tables have theirs from the beginning."""
    with psycopg.connect(served.environment["ADMIN_DATABASE_URL"], dbname=DATA_DATABASE, autocommit=True) as server:
        server.execute("ANALYZE")


def _ingested(tenant: Tenant, job_id: str) -> int:
    """The number of chunks, once the worker has taken the document in."""
    deadline = time.monotonic() + INGEST_SECONDS
    while time.monotonic() < deadline:
        job = tenant.admin.wait_for_job(job_id)
        if job["state"] == "failed":
            break
        if job["state"] == "succeeded":
            return int(job["result"]["chunks"])
    raise StackError(f"A document was not taken in: {job}")


def open_neighbours(served: Served, count: int) -> float:
    """That many further tenants, each with a person who has five memories; gives the seconds it took.

    The tenants are opened by one process through the services (a command each would take an hour); their people are
    made over REST.
    """
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench.neighbours", str(count)],
        cwd=CHECKOUT,
        env=serving({**os.environ, **served.environment}),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise StackError("The neighbouring tenants could not be made.")
    with ThreadPoolExecutor(2) as settling:
        for _ in settling.map(partial(_settle, served), enumerate(json.loads(done.stdout))):
            pass
    return time.perf_counter() - started


def _settle(served: Served, numbered: tuple[int, dict[str, str]]) -> None:
    seed, keys = numbered
    tenant = served.tenant(keys)
    with closing(tenant):
        load_memories(tenant, tenant.welcome("mia"), NEIGHBOURS_MEMORIES, seed)
