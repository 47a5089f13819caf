"""ASGI entry point: everything the product serves."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
django_application = get_asgi_application()

# What follows needs Django to be set up.
from accounts.safety import refuse_to_start_unsafe  # noqa: E402
from config.body_door import BodyDoor  # noqa: E402
from memory.encoding import warm_up  # noqa: E402

application = BodyDoor(django_application)
refuse_to_start_unsafe()
warm_up()
