"""Reading a person's ledger: recorded like every look at a person."""

from accounts.keys import subject_pseudonym
from accounts.tenancy import reveal_pseudonym
from accounts.types import Caller, SubjectRef
from consent.access import record_read
from consent.models import ConsentEvent
from consent.policy import decide, require
from consent.selectors import consents_of_person, ledger_of
from consent.types import Act, ConsentRef


def read_ledger(subject: SubjectRef, *, caller: Caller) -> tuple[list[ConsentRef], list[ConsentEvent]]:
    """Where the person stands, and everything they ever said about it, oldest first."""
    decision = require(decide(subject, Act.CONSENT, caller=caller))
    pseudonym = subject_pseudonym(caller.tenant_epoch, subject)
    reveal_pseudonym(pseudonym)
    history = list(ledger_of(pseudonym))
    record_read(
        decision,
        [event.id for event in history[-100:]],
        action="consent.ledger.read",
        counts={"items": len(history)},
    )
    return consents_of_person(), history
