"""Members: users made known, and their role in the tenant of the scope. Start at `add_member`."""

from uuid import UUID

from allauth.account.models import EmailAddress
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from accounts.errors import FieldError, ValidationFailed
from accounts.models import User
from accounts.services.tenants import grant_membership
from accounts.tenancy import scope
from accounts.types import Role
from audit.types import Actor


def add_member(email: str, role: Role, *, tenant_id: UUID, actor: Actor) -> User:
    """Give the user of this address the role; a new one has no password until they choose it. Twice is harmless.

    Raises ValidationFailed for what is no e-mail address.
    """
    try:
        validate_email(email)
    except ValidationError as error:
        raise ValidationFailed(errors=[FieldError("email", "Not an e-mail address.")]) from error
    with scope(tenant_id):
        user = _known(email) or _make_known(email)
        grant_membership(user, role, actor=actor)
    return user


def _known(email: str) -> User | None:
    return User.objects.filter(email__iexact=email).first()


def _make_known(email: str) -> User:
    with transaction.atomic():
        user = User.objects.create_user(email)
        EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return user
