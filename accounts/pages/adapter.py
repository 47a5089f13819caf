"""How allauth behaves here: nobody signs up by themselves, and mail that cannot be sent is said so."""

from smtplib import SMTPException
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest

from accounts.errors import MailUnavailable


class ClosedSignUp(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Members are made known by `manage.py add_member`."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Raises MailUnavailable when the message was not handed over."""
        try:
            super().send_mail(template_prefix, email, context)
        except (SMTPException, OSError) as error:
            raise MailUnavailable from error
