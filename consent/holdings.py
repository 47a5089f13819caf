"""Every place that holds personal data says so here, so that a person's rights reach it without knowing what it is.

A model with a person in it that no holder names fails the gate (tests/house). Export and the certificate's residual
dates join the protocol with the rights they serve.
"""

from collections.abc import Iterable
from typing import Protocol

from accounts.types import SubjectRef


class PersonalDataHolder(Protocol):
    """One kind of place. All functions run inside the person's scope."""

    name: str
    # Model labels ("app.model", lower case) this holder answers for.
    models: frozenset[str]

    def locate(self, subject: SubjectRef) -> dict[str, int]:
        """How many rows each model holds of the person."""
        ...

    def erase(self, subject: SubjectRef) -> dict[str, int]:
        """Remove them; returns how many went. Calling twice is harmless."""
        ...

    def verify_absent(self, subject: SubjectRef) -> bool:
        """Read back: nothing is left."""
        ...


_holders: list[PersonalDataHolder] = []


def register_holder(holder: PersonalDataHolder) -> None:
    """Register once, from AppConfig.ready. Two holders may not answer for one model."""
    taken = covered_models() & holder.models
    if taken:
        raise ValueError(f"{holder.name}: {', '.join(sorted(taken))} already has a holder")
    _holders.append(holder)


def holders() -> Iterable[PersonalDataHolder]:
    """Dependants first: the last registered refers to the first."""
    return tuple(reversed(_holders))


def covered_models() -> frozenset[str]:
    return frozenset().union(*(holder.models for holder in _holders))
