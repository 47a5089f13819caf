"""WSGI entry point: REST alone, for a threaded server in production."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
application = get_wsgi_application()

# What follows needs Django to be set up.
from accounts.safety import refuse_to_start_unsafe  # noqa: E402
from memory.encoding import warm_up  # noqa: E402

refuse_to_start_unsafe()
warm_up()
