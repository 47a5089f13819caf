"""Result files: what was measured, when, where and of which commit. docs/measuring.md says what the fields mean."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
_CPUINFO = Path("/proc/cpuinfo")


def write_results(name: str, rows: Sequence[Mapping[str, Any]], **facts: Any) -> Path:
    """Put the rows into `results/<name>.json`, whole or not at all."""
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{name}.json"
    document = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "commit": commit(), **facts, "rows": list(rows)}
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    draft.replace(file)
    return file


def commit() -> str:
    """The commit that was measured, with `+` behind it when the tree differs from it; empty outside a repository."""
    found = _git("rev-parse", "--short=12", "HEAD")
    return f"{found}+" if found and _git("status", "--porcelain", "--untracked-files=no") else found


def machine() -> str:
    lines = _CPUINFO.read_text(encoding="utf-8").splitlines() if _CPUINFO.exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    return f"{platform.system()} {platform.machine()}, {model or platform.processor()}, {cores} cores, load {load}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be; the first is flush left, the others right."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = []
    for row in (heads, ["-" * width for width in widths], *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=RESULTS.parent, capture_output=True, text=True, check=False, timeout=30
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
