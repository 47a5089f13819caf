"""Ranking a person's opened index for one question. Start at rank; policies holds the formulas."""

from memory.ranking.explanation import Candidate, Dropped, Explanation, LaneScore, PassedBy, Ranking
from memory.ranking.fusion import Query
from memory.ranking.lanes import QueryVector
from memory.ranking.policies import (
    DEFAULT_POLICY,
    POLICIES,
    DecayPolicy,
    EvidencePolicy,
    PolicyInvalid,
    RecencyPolicy,
    ScoringPolicy,
    WeightedPolicy,
    policy_named,
)
from memory.ranking.ranker import Access, AccessLookup, keep_slots, rank

__all__ = [
    "DEFAULT_POLICY",
    "POLICIES",
    "Access",
    "AccessLookup",
    "Candidate",
    "DecayPolicy",
    "Dropped",
    "EvidencePolicy",
    "Explanation",
    "LaneScore",
    "PassedBy",
    "PolicyInvalid",
    "Query",
    "QueryVector",
    "Ranking",
    "RecencyPolicy",
    "ScoringPolicy",
    "WeightedPolicy",
    "keep_slots",
    "policy_named",
    "rank",
]
