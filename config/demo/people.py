"""REST as the story's people use it: one client a key."""

import time
from typing import Any
from uuid import uuid4

import httpx2

JOB_SECONDS = 60.0


class Client:
    """JSON over HTTP with one API key; every write carries an Idempotency-Key."""

    def __init__(self, address: str, key: str) -> None:
        self._http = httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {key}"}, timeout=30)

    def get(self, path: str, **query: str) -> httpx2.Response:
        return self._http.get(path, params=query)

    def post(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        return self._http.post(path, json=body, headers={"Idempotency-Key": str(uuid4())})

    def put(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        return self._http.put(path, json=body, headers={"Idempotency-Key": str(uuid4())})

    def wait_for_job(self, job_id: str) -> dict[str, Any]:
        """The job once it has ended, or as it is after a minute."""
        deadline = time.monotonic() + JOB_SECONDS
        while True:
            job: dict[str, Any] = self.get(f"/v1/jobs/{job_id}").json()
            if job["state"] in {"succeeded", "failed"} or time.monotonic() > deadline:
                return job
            time.sleep(0.2)
