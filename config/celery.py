"""The Celery application and its schedule. Tasks that must not be lost go through the outbox, not straight to here."""

import logging.config
import os

from celery import Celery
from celery.signals import setup_logging, worker_init, worker_process_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")

app = Celery("forget-me-not")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def use_the_products_logging(**_: object) -> None:
    """Celery's own format prints what an exception says, which may be content."""
    from django.conf import settings  # app ready

    logging.config.dictConfig(settings.LOGGING)


@worker_init.connect
def refuse_unsafe(**_: object) -> None:
    from accounts.safety import refuse_to_start_unsafe  # app ready

    refuse_to_start_unsafe()


@worker_process_init.connect
def drop_inherited_pools(**_: object) -> None:
    """A forked worker must not share its parent's sockets."""
    from django.db import connections  # app ready

    for connection in connections.all(initialized_only=True):
        connection.close_pool()  # type: ignore[attr-defined] # PostgreSQL's wrapper has it
