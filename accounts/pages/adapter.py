"""How allauth behaves here: nobody signs up by themselves, and no answer says whether an address is known."""

import logging
from collections.abc import Callable
from functools import wraps
from smtplib import SMTPException
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from accounts.errors import MailUnavailable

logger = logging.getLogger(__name__)


def needs_mail(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Raises MailUnavailable for everybody where no mail is sent at all, before any address is looked up."""

    @wraps(view)
    def page(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        if not settings.SMTP_HOST and not settings.MAIL_FOLDER:
            raise MailUnavailable
        return view(request, *arguments, **named)

    return page


class ClosedSignUp(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Members are made known by `manage.py add_member`."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """A message that is not taken is said in the process's log: only a known address has one sent."""
        try:
            super().send_mail(template_prefix, email, context)
        except (SMTPException, OSError):
            logger.exception("a mail was not handed over")
