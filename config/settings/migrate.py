"""Migrations only: log in as fmn_migrate, act as the owner that cannot log in. No serving process uses this."""

from typing import Any

import dj_database_url

from config.env import env_secret
from config.settings.base import *  # noqa: F403  settings extend base by design
from config.settings.base import DATABASES as SERVING


def as_owner(url: str) -> dict[str, Any]:
    return dict(dj_database_url.parse(url)) | {"OPTIONS": {"assume_role": "fmn_owner"}}


DATABASES = SERVING | {
    "default": as_owner(env_secret("DATABASE_MIGRATE_URL")),
    "keys": as_owner(env_secret("KEYS_DATABASE_MIGRATE_URL")),
}
