"""ASGI entry point: everything the product serves."""

import os

from django.core.asgi import get_asgi_application

from accounts.safety import refuse_to_start_unsafe
from memory.encoding import warm_up

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
application = get_asgi_application()
refuse_to_start_unsafe()
warm_up()
