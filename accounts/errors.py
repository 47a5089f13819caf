"""Errors a caller can act on. Each has a stable code; docs/errors.md lists them all, and a test holds it to that.

`detail` is prose for people and may change; it never holds content, nor says whether a stranger's thing exists.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with the input. `pointer` is an RFC 6901 JSON pointer into the body, or a parameter's name."""

    pointer: str
    detail: str


class DomainError(Exception):
    """Base of all refusals: `code` is stable, `status` is the HTTP status a door answers with."""

    code: ClassVar[str] = "failed"
    status: ClassVar[int] = 500
    title: ClassVar[str] = "The request failed"
    default_detail: ClassVar[str] = ""
    # Whether the audit log has an entry of this refusal already, one that says more than the door could.
    recorded = False

    def __init__(self, detail: str = "", *, errors: Sequence[FieldError] = ()) -> None:
        self.detail = detail or self.default_detail
        self.errors = tuple(errors)
        super().__init__(self.detail)


class ValidationFailed(DomainError):
    code, status, title = "validation_failed", 400, "The input is not valid"
    default_detail = "Something in the request is wrong; see errors."


class Unauthenticated(DomainError):
    code, status, title = "unauthenticated", 401, "No valid API key"
    default_detail = "Send `Authorization: Bearer fmn_…` with a key that is neither revoked nor expired."


class ScopeMissing(DomainError):
    code, status, title = "scope_missing", 403, "The key lacks a scope"


class ProjectForbidden(DomainError):
    code, status, title = "project_forbidden", 403, "The key is bound to another project"
    default_detail = "This key is bound to one project and may not name another."


class NotFound(DomainError):
    code, status, title = "not_found", 404, "Not found"
    default_detail = "There is nothing here, or nothing for this key."


class SubjectErased(DomainError):
    code, status, title = "subject_erased", 410, "This person was erased"
    default_detail = "The person asked to be forgotten. PUT makes a new person under this id."


class SubjectRestricted(DomainError):
    code, status, title = "subject_restricted", 403, "This person's data is restricted"
    default_detail = "Stored, but not to be used until the restriction is lifted."


class IdempotencyMismatch(DomainError):
    code, status, title = "idempotency_mismatch", 422, "The idempotency key was used for another request"
    default_detail = "Use a new Idempotency-Key, or send the same method, path and body again."


class PreconditionFailed(DomainError):
    code, status, title = "precondition_failed", 412, "The resource has changed"
    default_detail = "If-Match does not name the current version; read it again."


class PayloadTooLarge(DomainError):
    code, status, title = "payload_too_large", 413, "The body is too large"
    default_detail = "A request body may hold up to 1 MiB."


class UnsupportedMediaType(DomainError):
    code, status, title = "unsupported_media_type", 415, "Send JSON"
    default_detail = "The body must be application/json in UTF-8."


class MethodNotAllowed(DomainError):
    code, status, title = "method_not_allowed", 405, "Not possible here"


class Conflict(DomainError):
    code, status, title = "conflict", 409, "In conflict with what is stored"


class AuditUnavailableError(DomainError):
    code, status, title = "audit_unavailable", 503, "The audit log cannot be written"
    default_detail = "Nothing is read without an audit entry, so nothing was read. Try again."


class KeyUnavailable(DomainError):
    code, status, title = "key_unavailable", 503, "The keys cannot be reached"
    default_detail = "Stored data cannot be opened at the moment. Try again."


class MailUnavailable(DomainError):
    code, status, title = "mail_unavailable", 503, "No mail can be sent"
    default_detail = "The message was not sent. Try again, or ask whoever runs this installation."


class PermissionDenied(DomainError):
    code, status, title = "permission_denied", 403, "Not allowed"
    default_detail = "This is not allowed from here."


class RoleForbidden(DomainError):
    code, status, title = "role_forbidden", 403, "Not for your role"
    default_detail = "Your role in this organisation does not allow this page."


class VisitRequired(DomainError):
    code, status, title = "visit_required", 403, "A link opens this page"
    default_detail = "Ask the company whose assistant remembers you for a link to your page."


class LinkUnusable(DomainError):
    """Unknown, used, run out, altered, or another person's: which of them is not said."""

    code, status, title = "link_unusable", 404, "This link opens nothing"
    default_detail = "It may have been used before or have run out. Ask for a new one."


class DatabaseUnavailable(DomainError):
    code, status, title = "database_unavailable", 503, "The database cannot be reached"
    default_detail = "Nothing was read or changed. Try again."


class KeyDestroyed(DomainError):
    code, status, title = "key_destroyed", 410, "The key was destroyed"
    default_detail = "What was stored under it can no longer be read by anyone."


class TagMismatch(DomainError):
    """A sealed value that is not what was sealed for this place: moved, replaced, or altered."""

    code, status, title = "tag_mismatch", 500, "A stored value is not authentic"
    default_detail = "The value was altered or moved, and is not shown. This has been recorded."


class InternalError(DomainError):
    code, status, title = "internal_error", 500, "Something failed on our side"
    default_detail = "Nothing was changed. Name the request id when you report this."
