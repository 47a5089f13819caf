"""Scoring policies: from how relevant a memory is to the score it is ranked by.

Relies on numpy only. Each policy is a frozen value with checked parameters; `policy_named` makes one from
what a project has configured. To add one, write a class with the members of ScoringPolicy and register it.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

type Scores = NDArray[np.float64]
type Ranges = Mapping[str, tuple[float, float]]

DEFAULT_POLICY = "evidence"


class PolicyInvalid(ValueError):
    """No such policy or parameter, or a value out of its range. Says what may be given, never what was."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a policy may look at, one float64[m] each, m candidates.

    relevance: the fused lanes, 0 to 1; importance 0 to 1; confirmed 0 or 1; age_days since the memory was
    made; idle_days since it was last recalled, or made; accesses: how often it was recalled.
    """

    relevance: Scores
    importance: Scores
    confirmed: Scores
    age_days: Scores
    idle_days: Scores
    accesses: Scores


class ScoringPolicy(Protocol):
    """A formula in named terms. `uses_access` tells whether accesses and idle_days have to be looked up."""

    name: ClassVar[str]
    uses_access: ClassVar[bool]

    def terms(self, facts: Facts) -> Mapping[str, Scores]:
        """The terms of the formula by name, float64[m] each: what an explanation shows."""
        ...

    def score(self, terms: Mapping[str, Scores]) -> Scores:
        """The terms combined, float64[m]; higher ranks first."""
        ...


@dataclass(frozen=True, slots=True)
class EvidencePolicy:
    """relevance + boost·importance + boost·confirmed, each boost at most 0.05 (ours).

    Measured on LoCoMo: recency in the sum costs recall (R@10 44.8 to 42.1), so it only breaks ties.
    """

    name: ClassVar[str] = "evidence"
    uses_access: ClassVar[bool] = False
    ranges: ClassVar[Ranges] = {"importance_boost": (0.0, 0.05), "confirmation_boost": (0.0, 0.05)}
    importance_boost: float = 0.05
    confirmation_boost: float = 0.05

    def __post_init__(self) -> None:
        _check_ranges(self, self.ranges)

    def terms(self, facts: Facts) -> Mapping[str, Scores]:
        return {
            "relevance": facts.relevance,
            "importance": self.importance_boost * facts.importance,
            "confirmation": self.confirmation_boost * facts.confirmed,
        }

    def score(self, terms: Mapping[str, Scores]) -> Scores:
        return _total(terms)


@dataclass(frozen=True, slots=True)
class WeightedPolicy:
    """0.6·similarity + 0.2·exp(-Δ/7 days) + 0.2·importance, Δ since the last access.

    After the weighted sum of relevance, recency and importance in Park and others 2023, "Generative Agents",
    section 4.1; these weights and the time scale are the ones our users know.
    """

    name: ClassVar[str] = "weighted"
    uses_access: ClassVar[bool] = True
    ranges: ClassVar[Ranges] = {
        "similarity_weight": (0.0, 1.0),
        "recency_weight": (0.0, 1.0),
        "importance_weight": (0.0, 1.0),
        "recency_days": (0.01, 36500.0),
    }
    similarity_weight: float = 0.6
    recency_weight: float = 0.2
    importance_weight: float = 0.2
    recency_days: float = 7.0

    def __post_init__(self) -> None:
        _check_ranges(self, self.ranges)

    def terms(self, facts: Facts) -> Mapping[str, Scores]:
        return {
            "similarity": self.similarity_weight * facts.relevance,
            "recency": self.recency_weight * np.exp(-facts.idle_days / self.recency_days),
            "importance": self.importance_weight * facts.importance,
        }

    def score(self, terms: Mapping[str, Scores]) -> Scores:
        return _total(terms)


@dataclass(frozen=True, slots=True)
class RecencyPolicy:
    """(1 - w)·similarity + w·exp(-age/30 days), w = 0.2: what is new gets ahead, not past what fits."""

    name: ClassVar[str] = "recency"
    uses_access: ClassVar[bool] = False
    ranges: ClassVar[Ranges] = {"recency_weight": (0.0, 1.0), "recency_days": (0.01, 36500.0)}
    recency_weight: float = 0.2
    recency_days: float = 30.0

    def __post_init__(self) -> None:
        _check_ranges(self, self.ranges)

    def terms(self, facts: Facts) -> Mapping[str, Scores]:
        return {
            "similarity": (1 - self.recency_weight) * facts.relevance,
            "recency": self.recency_weight * np.exp(-facts.age_days / self.recency_days),
        }

    def score(self, terms: Mapping[str, Scores]) -> Scores:
        return _total(terms)


@dataclass(frozen=True, slots=True)
class DecayPolicy:
    """relevance · exp(-λ·age) · min(1 + 0.1·accesses, cap) · 2 if confirmed; λ = ln 2 / 30 a day.

    The half-life is that of exponential forgetting (Ebbinghaus; used for memories in MemoryBank, Zhong and
    others 2023); the cap of 2 keeps a memory from rising because it was recalled because it rose.
    """

    name: ClassVar[str] = "decay"
    uses_access: ClassVar[bool] = True
    ranges: ClassVar[Ranges] = {
        "rate_per_day": (0.0, 10.0),
        "access_boost": (0.0, 10.0),
        "access_cap": (1.0, 10.0),
        "confirmation_factor": (1.0, 10.0),
    }
    rate_per_day: float = math.log(2) / 30
    access_boost: float = 0.1
    access_cap: float = 2.0
    confirmation_factor: float = 2.0

    def __post_init__(self) -> None:
        _check_ranges(self, self.ranges)

    def terms(self, facts: Facts) -> Mapping[str, Scores]:
        return {
            "relevance": facts.relevance,
            "decay": np.exp(-self.rate_per_day * facts.age_days),
            "access": np.minimum(1 + self.access_boost * facts.accesses, self.access_cap),
            "confirmation": np.where(facts.confirmed > 0, self.confirmation_factor, 1.0),
        }

    def score(self, terms: Mapping[str, Scores]) -> Scores:
        return np.asarray(np.prod(list(terms.values()), axis=0))


POLICIES: Mapping[str, type[EvidencePolicy | WeightedPolicy | RecencyPolicy | DecayPolicy]] = {
    policy.name: policy for policy in (EvidencePolicy, WeightedPolicy, RecencyPolicy, DecayPolicy)
}


def policy_named(name: str, parameters: Mapping[str, float] | None = None) -> ScoringPolicy:
    """The policy of this name with these parameters, defaults for the rest. Raises PolicyInvalid."""
    if name not in POLICIES:
        raise PolicyInvalid(f"there is no such policy; there are {', '.join(sorted(POLICIES))}")
    known = {each.name for each in dataclasses.fields(POLICIES[name])}
    if not known.issuperset(parameters or ()):
        raise PolicyInvalid(f"the parameters of the policy {name} are {', '.join(sorted(known))}")
    return POLICIES[name](**(parameters or {}))


def _check_ranges(policy: object, ranges: Ranges) -> None:
    for name, (low, high) in ranges.items():
        value = getattr(policy, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise PolicyInvalid(f"{name} is a number from {low:g} to {high:g}")


def _total(terms: Mapping[str, Scores]) -> Scores:
    return np.asarray(np.sum(list(terms.values()), axis=0))
