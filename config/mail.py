"""Where no mail server is configured."""

from collections.abc import Sequence

from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend


class NoMail(BaseEmailBackend):
    """Refuses every message, so that nobody waits for one that was never sent."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        raise ConnectionRefusedError("No mail server is configured: set SMTP_HOST or MAIL_FOLDER.")
