"""`manage.py audit_partitions`: see that every month of the year ahead has its partition. Run it monthly."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.partitions import MONTHS_AHEAD, create_partitions, may_create_partitions


class Command(BaseCommand):
    help = "Creates the audit log's monthly partitions ahead of time. Needs migration settings."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--months", type=int, default=MONTHS_AHEAD, help="how many months ahead")

    def handle(self, *, months: int, **_: Any) -> None:
        if not may_create_partitions("default"):
            raise CommandError("This connection does not own the audit log: use config.settings.migrate.")
        names = create_partitions(months_ahead=months)
        self.stdout.write(f"created: {', '.join(names) or 'none, all are there'}")
