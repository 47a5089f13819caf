"""ASGI entry point: everything the product serves."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
django_application = get_wsgi_application()

# What follows needs Django to be set up.
from django.conf import settings  # noqa: E402

from accounts.safety import refuse_to_start_unsafe  # noqa: E402
from config.body_door import BodyDoor  # noqa: E402
from config.bridge import ThreadedDjango  # noqa: E402
from memory.encoding import warm_up  # noqa: E402

# As many as may hold a connection: one more would take a thread only to wait for one.
application = BodyDoor(ThreadedDjango(django_application, threads=settings.DATABASE_POOL_SIZE))
refuse_to_start_unsafe()
warm_up()
