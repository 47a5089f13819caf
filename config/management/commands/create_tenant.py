"""`manage.py create_tenant NAME`: an organisation with one tenant and its keys, printed once as JSON."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from accounts.types import Mode
from config.provisioning import open_organisation


class Command(BaseCommand):
    help = "Open an organisation with one tenant; print its keys once, as JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="The organisation's name.")
        parser.add_argument("--mode", choices=[mode.value for mode in Mode], default=Mode.SANDBOX.value)

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(json.dumps(open_organisation(options["name"], Mode(options["mode"]))))
