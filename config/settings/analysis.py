"""For tools that read the code and serve nobody: type checks, migration drift, the API schema."""

import os
import secrets

os.environ.setdefault("SECRET_KEY", secrets.token_urlsafe(50))
for _name in ("DATABASE_URL", "AUDIT_DATABASE_URL", "KEYS_DATABASE_URL", "RELAY_DATABASE_URL"):
    os.environ.setdefault(_name, "postgresql://nobody@127.0.0.1:1/none")
os.environ.setdefault("REDIS_URL", "redis://127.0.0.1:1/0")
os.environ.setdefault("HTTPS_ONLY", "true")

from config.settings.base import *  # noqa: E402, F403  the environment must be complete first
