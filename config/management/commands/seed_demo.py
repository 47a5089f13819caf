"""`manage.py seed_demo --keys-file F`: the demo organisation, opened once; keys and sign-ins are kept in F (0600)."""

import json
import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from config.provisioning import open_demo


class Command(BaseCommand):
    help = "Open the demo organisation, unless the keys file says that it was."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--keys-file", type=Path, required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        file: Path = options["keys_file"]
        if file.exists():
            return
        opened = open_demo()
        half_written = file.with_suffix(".new")
        with os.fdopen(os.open(half_written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
            json.dump({"tenants": [opened]}, out)
            out.flush()
            os.fsync(out.fileno())
        half_written.replace(file)
