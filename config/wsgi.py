"""WSGI entry point: REST alone, for a threaded server in production."""

import os

from django.core.wsgi import get_wsgi_application

from accounts.safety import refuse_to_start_unsafe
from memory.encoding import warm_up

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
application = get_wsgi_application()
refuse_to_start_unsafe()
warm_up()
