"""`manage.py revoke_key`: give it a leaked key (or its tenant and id); from the commit on it opens nothing."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from accounts.credentials import parse_key
from accounts.errors import NotFound
from accounts.selectors import key_id_of
from accounts.services.credentials import revoke_api_key
from accounts.tenancy import scope
from config.provisioning import OPERATOR


class Command(BaseCommand):
    help = "Revoke an API key, named by its text, or by --tenant and its id."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("key", help="The key itself, or its id together with --tenant.")
        parser.add_argument("--tenant", type=UUID, help="The tenant's id, when the key is named by id.")

    def handle(self, *args: Any, **options: Any) -> None:
        claimed = parse_key(options["key"])
        tenant_id = claimed.tenant_id if claimed else options["tenant"]
        if tenant_id is None:
            raise CommandError("That is not a key. To name one by id, say --tenant too.")
        try:
            with scope(tenant_id):
                revoke_api_key(key_id_of(claimed) if claimed else UUID(options["key"]), actor=OPERATOR)
        except (NotFound, ValueError) as error:
            raise CommandError("There is no such key.") from error
        self.stdout.write("Revoked.")
