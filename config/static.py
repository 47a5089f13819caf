"""The address of the static files: it holds a digest of all of them, so that none is ever stale.

No file is copied or renamed: what lies in `static/` is served from there, and what changes gets a new address.
"""

from hashlib import sha256
from pathlib import Path


def static_address(folder: Path) -> str:
    """`/static/<digest of names and contents>/`; links between the files may be relative."""
    digest = sha256()
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(folder).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return f"/static/{digest.hexdigest()[:16]}/"


def never_changes(_path: str, _url: str) -> bool:
    """For WhiteNoise: every file may be kept for ever, since its address names its content."""
    return True
