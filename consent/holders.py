"""The holders for what stands at and below consent, and the one that serves any app with plain rows about people."""

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.db.models import Q, QuerySet

from accounts import keystore
from accounts.models import Subject
from accounts.types import AgeBand, SubjectRef
from consent.holdings import register_holder


class RowsHolder:
    """Rows with a `subject_id`, erased in the order the labels are given in."""

    def __init__(self, name: str, labels: Iterable[str]) -> None:
        self.name = name
        self._labels = tuple(labels)
        self.models = frozenset(self._labels)

    def locate(self, subject: SubjectRef) -> dict[str, int]:
        return {label: self._rows(label, subject).count() for label in self._labels}

    def erase(self, subject: SubjectRef) -> dict[str, int]:
        return {label: self._rows(label, subject).delete()[0] for label in self._labels}

    def verify_absent(self, subject: SubjectRef) -> bool:
        return not any(self.locate(subject).values())

    def _rows(self, label: str, subject: SubjectRef) -> QuerySet[Any]:
        rows: QuerySet[Any] = apps.get_model(label)._default_manager.filter(subject_id=subject.id)
        return rows


class AccountHolder:
    """The person's own row: it stays as the tombstone that answers 410, with nothing of the person in it.

    Erasing needs the state to be `erased` already, as it is behind the fence.
    """

    name = "account"
    models = frozenset({"accounts.subject"})

    def locate(self, subject: SubjectRef) -> dict[str, int]:
        return {"accounts.subject": Subject.objects.filter(id=subject.id).exclude(_EMPTIED).count()}

    def erase(self, subject: SubjectRef) -> dict[str, int]:
        emptied: dict[str, Any] = dict.fromkeys(("external_id_sealed", "contact_sealed", "email_index"))
        emptied |= {"locale": "", "time_zone": "", "age_band": AgeBand.UNKNOWN, "index_list_digest": None}
        return {"accounts.subject": Subject.objects.filter(id=subject.id).exclude(_EMPTIED).update(**emptied)}

    def verify_absent(self, subject: SubjectRef) -> bool:
        return not any(self.locate(subject).values())


_EMPTIED = Q(external_id_sealed=None, contact_sealed=None, email_index=None, locale="", time_zone="")


class KeysHolder:
    """A person's wrapped keys: erasing them is what makes every sealed copy, here and in backups, unreadable."""

    name = "keys"
    models = frozenset({"accounts.wrappedkey"})

    def locate(self, subject: SubjectRef) -> dict[str, int]:
        return {"accounts.wrappedkey": keystore.count_subject_keys(subject.tenant_id, subject.id)}

    def erase(self, subject: SubjectRef) -> dict[str, int]:
        return {"accounts.wrappedkey": keystore.destroy_subject_keys(subject.tenant_id, [subject.id])}

    def verify_absent(self, subject: SubjectRef) -> bool:
        return not any(self.locate(subject).values())


class PseudonymousProof:
    """What stays after erasure by design, under a pseudonym nobody can compute once the audit key is destroyed."""

    name = "proof"
    models = frozenset({"consent.consentevent", "audit.auditevent"})

    def locate(self, subject: SubjectRef) -> dict[str, int]:
        return {}

    def erase(self, subject: SubjectRef) -> dict[str, int]:
        return {}

    def verify_absent(self, subject: SubjectRef) -> bool:
        """Absent means unlinkable: the keys that made the pseudonym are gone."""
        return keystore.count_subject_keys(subject.tenant_id, subject.id) == 0


def register_all() -> None:
    register_holder(PseudonymousProof())
    register_holder(KeysHolder())
    register_holder(AccountHolder())
    register_holder(RowsHolder("work", ("accounts.job", "accounts.outboxentry", "accounts.idempotencyrecord")))
    register_holder(RowsHolder("passes", ("accounts.portalpass",)))
    register_holder(RowsHolder("consents", ("consent.consentstate",)))
