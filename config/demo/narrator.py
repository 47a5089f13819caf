"""Says each step as it happens and remembers what came out wrong."""

import json
from typing import Any

import httpx2

WIDTH = 118
LISTED = 8


class Narrator:
    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.steps = 0

    def chapter(self, title: str) -> None:
        print(f"\n{title}")

    def say(self, line: str) -> None:
        print(f"    {line[:WIDTH]}")

    def check(self, claim: str, holds: object) -> None:
        """State what must be true, and whether it is."""
        self.steps += 1
        print(f"  {'✓' if holds else '✗'} {claim}")
        if not holds:
            self.wrong.append(claim)

    def answer(self, claim: str, response: httpx2.Response, status: int, code: str = "") -> Any:
        """Check an answer's status, and a refusal's code; returns the body."""
        body = response.json()
        right = response.status_code == status and body.get("code", "") == code
        self.check(f"{claim} ({response.status_code}{f' {code}' if code else ''})", right)
        if not right:
            self.say(f"expected {status} {code}, got {response.status_code}: {json.dumps(body)[:400]}")
        return body

    def conclude(self) -> int:
        if self.wrong:
            print(f"\n{len(self.wrong)} of {self.steps} checks came out wrong:")
            for claim in self.wrong:
                print(f"  ✗ {claim}")
            return 1
        print(f"\nAll {self.steps} checks came out right.")
        return 0
