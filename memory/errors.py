"""Refusals of memory's own."""

from accounts.errors import DomainError


class ProfileKeyUndeclared(DomainError):
    code, status, title = "profile_key_undeclared", 400, "This profile key is not declared"
    default_detail = "Declare the key with a JSON Schema first, or let the project take undeclared keys."


class ProfileValueInvalid(DomainError):
    code, status, title = "profile_value_invalid", 400, "The value does not satisfy its key's schema"


class QuotaExceeded(DomainError):
    code, status, title = "quota_exceeded", 409, "There is no room for more"
    default_detail = "A person has at most 200 profile values; remove one first."


class SupersessionRefused(DomainError):
    code, status, title = "supersession_refused", 409, "This memory may not replace that one"
    default_detail = "Only a current memory can be replaced, and what comes from outside replaces nothing by itself."


class MessagesNotTaken(DomainError):
    code, status, title = "messages_not_taken", 400, "Send text"
    default_detail = "Extraction from messages is not available; send `text` with `infer` false."
