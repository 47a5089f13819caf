"""Refusals for want of consent. The code is the decision's reason."""

from accounts.errors import DomainError, SubjectRestricted


class ConsentRequired(DomainError):
    code, status, title = "consent_required", 403, "The person has not consented"
    default_detail = "Ask the person; without a consent on record nothing is stored or recalled."


class ConsentRefused(DomainError):
    code, status, title = "consent_refused", 403, "The person said no"
    default_detail = "The person was asked and refused this purpose. Do not ask again unprompted."


class ConsentWithdrawn(DomainError):
    code, status, title = "consent_withdrawn", 403, "The person withdrew consent"
    default_detail = "The person withdrew this purpose. Do not ask again unprompted."


class ConsentExpired(DomainError):
    code, status, title = "consent_expired", 403, "The consent has expired"
    default_detail = "The consent ran out; ask the person whether it should be renewed."


class GuardianRequired(DomainError):
    code, status, title = "guardian_required", 403, "A guardian must consent"
    default_detail = "For a child a guardian has to give this consent."


class EvidenceMissing(DomainError):
    code, status, title = "evidence_missing", 400, "A relayed consent needs evidence"
    default_detail = "Say what shows that the person said yes, for example the message's reference."


class NoticeOutdated(DomainError):
    code, status, title = "notice_outdated", 409, "The person saw an older notice"
    default_detail = "The notice has changed since; show the current one and ask again."


BY_REASON: dict[str, type[DomainError]] = {
    error.code: error
    for error in (
        ConsentRequired,
        ConsentRefused,
        ConsentWithdrawn,
        ConsentExpired,
        GuardianRequired,
        SubjectRestricted,
    )
}
