"""`manage.py add_member EMAIL --tenant ID --role ROLE`: a member of the team, with a link to choose a password."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from accounts.errors import ValidationFailed
from accounts.models import User
from accounts.selectors import tenant_ids
from accounts.services.members import add_member
from accounts.types import Role
from config.provisioning import OPERATOR


class Command(BaseCommand):
    help = "Give somebody a role in a tenant; print the path under which they choose their password, once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--tenant", type=UUID, required=True, help="The tenant's id, as create_tenant printed it.")
        parser.add_argument("--role", choices=[role.value for role in Role], required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["tenant"] not in tenant_ids():
            raise CommandError("There is no such tenant.")
        try:
            user = add_member(options["email"], Role(options["role"]), tenant_id=options["tenant"], actor=OPERATOR)
        except ValidationFailed as error:
            raise CommandError(error.errors[0].detail) from error
        self.stdout.write(password_path(user))


def password_path(user: User) -> str:
    """Where this user chooses a password; works once, until they did or the time of PASSWORD_RESET_TIMEOUT is over."""
    parts = {"uidb36": user_pk_to_url_str(user), "key": default_token_generator.make_token(user)}
    return reverse("account_reset_password_from_key", kwargs=parts)
