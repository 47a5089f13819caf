"""Reading the environment: one function a type, and `NAME_FILE` wins over `NAME` for secrets.

Every name read here stands in docs/configuration.md; a test holds the page to that.
"""

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def env_text(name: str, default: str = "") -> str:
    return os.environ.get(name, default)


def env_list(name: str, default: str = "") -> list[str]:
    return [item.strip() for item in os.environ.get(name, default).split(",") if item.strip()]


def env_float(name: str, default: float) -> float:
    raw = os.environ.get(name, "")
    try:
        return float(raw) if raw else default
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a number, not {raw!r}.") from error


def env_flag(name: str) -> bool:
    """True for 1/true/yes/on; empty is False; anything else is an error, never a silent no."""
    raw = os.environ.get(name, "").lower()
    if raw in {"", "0", "false", "no", "off"}:
        return False
    if raw in {"1", "true", "yes", "on"}:
        return True
    raise ImproperlyConfigured(f"{name} must be true or false, not {raw!r}.")


def env_secret(name: str) -> str:
    """A required secret: the content of the file `NAME_FILE` names, else `NAME`."""
    file = os.environ.get(f"{name}_FILE", "")
    if file:
        try:
            return Path(file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE cannot be read: {error.strerror}.") from error
    value = os.environ.get(name, "")
    if not value:
        raise ImproperlyConfigured(f"{name} is not set. `make run` makes one; see docs/configuration.md.")
    return value
