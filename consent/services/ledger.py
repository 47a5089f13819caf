"""Reading a person's ledger: recorded like every look at a person."""

from uuid import UUID

from accounts.keys import subject_pseudonym
from accounts.tenancy import reveal_pseudonym
from accounts.types import Caller, SubjectRef
from consent.access import record_read
from consent.models import ConsentEvent
from consent.policy import decide, require
from consent.selectors import consents_of_person, ledger_of
from consent.types import Act, ConsentRef


def read_ledger(
    subject: SubjectRef, *, caller: Caller, after: UUID | None, limit: int
) -> tuple[list[ConsentRef], list[ConsentEvent]]:
    """Where the person stands, and a page of what they said about it, newest first.

    Up to limit + 1 events, the one too many only to say that there are more; recorded are those that are shown.
    """
    decision = require(decide(subject, Act.CONSENT, caller=caller))
    pseudonym = subject_pseudonym(caller.tenant_epoch, subject)
    reveal_pseudonym(pseudonym)
    events = ledger_of(pseudonym).order_by("-id")
    history = list((events.filter(id__lt=after) if after else events)[: limit + 1])
    standing, shown = consents_of_person(), [event.id for event in history[:limit]]
    record_read(
        decision,
        list(dict.fromkeys([*shown, *(consent.event_id for consent in standing)])),
        action="consent.ledger.read",
        counts={"items": len(shown)},
    )
    return standing, history
