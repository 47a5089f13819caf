"""The request an event belongs to, set by the HTTP layer above and read when an event is recorded.

Empty where there is no request. A value outside `audit.types.REQUEST_ID_PATTERN` makes recording raise, so
whoever sets it checks it (or makes it) first.
"""

from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("audit_request_id", default="")
