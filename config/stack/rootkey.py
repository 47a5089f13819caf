"""The root key at a start: readable, of the right form, and the one this state was made with.

A fingerprint kept in the state folder tells a wrong key before any process meets data it cannot open.
Start at `require_root_key`.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from pathlib import Path

from config.stack.errors import StackError
from config.stack.state import ROOT_KEY_BYTES, write_private

FINGERPRINT_CONTEXT = b"fmn-root-fingerprint/1"
FINGERPRINT_DIGITS = 16
LOCAL_PROVIDER = "accounts.rootkey.LocalRootKey"


def require_root_key(environment: Mapping[str, str], fingerprint_file: Path) -> None:
    """Check the key of ROOT_KEY_FILE or ROOT_KEY; the first one seen is noted in `fingerprint_file`.

    Only the default ROOT_KEY_PROVIDER uses such a key. StackError names the key that is missing, broken or wrong.
    """
    if environment.get("ROOT_KEY_PROVIDER", LOCAL_PROVIDER) != LOCAL_PROVIDER:
        return
    source, text = _named_key(environment)
    found = fingerprint(_decoded(source, text))
    if not fingerprint_file.exists():
        write_private(fingerprint_file, f"{found}\n".encode())
    elif fingerprint_file.read_text().strip() != found:
        raise StackError(
            f"The root key of {source} is not the one this state was made with (noted in {fingerprint_file}); "
            "put the right one back from your copy."
        )


def fingerprint(key: bytes) -> str:
    return hashlib.sha256(FINGERPRINT_CONTEXT + key).hexdigest()[:FINGERPRINT_DIGITS]


def _named_key(environment: Mapping[str, str]) -> tuple[str, str]:
    """What to call the key in a message, and its text."""
    file = environment.get("ROOT_KEY_FILE")
    if file is None:
        return "ROOT_KEY", environment["ROOT_KEY"]
    try:
        return file, Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise StackError(f"The root key {file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise StackError(f"The root key {file} is no text; it must be base64.") from error


def _decoded(source: str, text: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise StackError(f"The root key of {source} is not base64.") from error
    if len(key) != ROOT_KEY_BYTES:
        raise StackError(f"The root key of {source} must be {ROOT_KEY_BYTES} bytes in base64, not {len(key)}.")
    return key
