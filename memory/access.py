"""What may appear: the one rule over index entries that recall, lists and the person's own page share."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np

from accounts.keys import Decision
from consent.types import SENSITIVE_CATEGORIES
from memory.segments import Index
from memory.segments.index import NEVER, to_microseconds
from memory.types import PURPOSE_NUMBERS, Kind, Mask, State


@dataclass(frozen=True, slots=True)
class View:
    """From where one looks: a project (or none: unscoped memories only), an agent, a moment, and what is asked for.

    `as_of` is event time. `across_projects` sees every project's; it needs memory.share, which the decision checked.
    `history` shows what was replaced or has run out too.
    """

    as_of: datetime
    project_id: UUID | None = None
    agent: str = ""
    session_id: UUID | None = None
    across_projects: bool = False
    history: bool = False
    kinds: frozenset[Kind] = frozenset()
    categories: frozenset[str] = frozenset()
    created_after: datetime | None = None


def recallable(index: Index, decision: Decision, view: View) -> Mask:
    """bool[n]: which entries may appear for this decision in this view. Those outside its purposes drop out singly."""
    return permitted(index, decision) & _in_scope(index, view) & _in_time(index, view) & _asked_for(index, view)


def usable_now(index: Index, decision: Decision, now: datetime) -> Mask:
    """bool[n]: which entries can come up at this moment from some project and agent: the union over all such views."""
    if not decision.allowed:
        return np.zeros(len(index), np.bool_)
    return permitted(index, decision) & _in_time(index, View(as_of=now))


def permitted(index: Index, decision: Decision) -> Mask:
    """bool[n]: which entries may appear for this decision in any view at all. What is quarantined may in none."""
    decision.require()
    return _within_purposes(index, decision) & np.isin(index.state, [int(State.ACTIVE), int(State.SUPERSEDED)])


def _within_purposes(index: Index, decision: Decision) -> Mask:
    granted = [number for purpose, number in PURPOSE_NUMBERS.items() if purpose in decision.granted]
    within = np.isin(index.purpose, granted)
    if "memory.sensitive" not in decision.granted:
        within &= ~index.categories.have_any(SENSITIVE_CATEGORIES)
    return within


def _in_scope(index: Index, view: View) -> Mask:
    in_scope = index.agent.are(None) | (index.agent.are(view.agent) if view.agent else False)
    if not view.across_projects:
        in_scope &= index.project.are(None) | (index.project.are(view.project_id) if view.project_id else False)
    return in_scope & index.session.are(view.session_id) if view.session_id else in_scope


def _in_time(index: Index, view: View) -> Mask:
    """Current at `as_of`: begun, not ended, not expired. What was replaced ended when its successor began."""
    moment = to_microseconds(view.as_of)
    begun = (index.valid_from == NEVER) | (index.valid_from <= moment)
    if view.history:
        return np.asarray(begun)
    ended = (index.valid_to != NEVER) & (index.valid_to <= moment)
    expired = (index.expires_at != NEVER) & (index.expires_at <= moment)
    return np.asarray(begun & ~ended & ~expired)


def _asked_for(index: Index, view: View) -> Mask:
    asked = np.ones(len(index), np.bool_)
    if view.kinds:
        asked &= np.isin(index.kind, [int(kind) for kind in view.kinds])
    if view.categories:
        asked &= index.categories.have_any(view.categories)
    if view.created_after:
        asked &= index.created_at > to_microseconds(view.created_after)
    return asked
