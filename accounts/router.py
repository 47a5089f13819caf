"""Which database a table lives in: wrapped keys in the keys database, everything else in the default one."""

from typing import Any

from django.db import models

_KEYS_MODELS = frozenset({"accounts.wrappedkey"})


class KeysRouter:
    def db_for_read(self, model: type[models.Model], **hints: Any) -> str:
        return "keys" if model._meta.label_lower in _KEYS_MODELS else "default"

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, model_name: str | None = None, **hints: Any) -> bool:
        if db == "keys":
            return f"{app_label}.{model_name}" in _KEYS_MODELS
        return db == "default" and f"{app_label}.{model_name}" not in _KEYS_MODELS
