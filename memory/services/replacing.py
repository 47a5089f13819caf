"""What new memories do to older ones: end them, or descend from them. The older stay, and `as_of` finds them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from accounts.errors import NotFound, ProjectForbidden
from accounts.keys import Decision
from accounts.types import Principal
from memory import index as sealed_index
from memory.errors import SupersessionRefused
from memory.models import Lineage, Memory
from memory.types import TRUST, SourceClass, State


class Successor(Protocol):
    """As far as descent goes, what a new memory says of older ones."""

    @property
    def supersedes(self) -> tuple[UUID, ...]: ...
    @property
    def derived_from(self) -> tuple[UUID, ...]: ...


def settle_descent(
    news: Sequence[tuple[Memory, Successor]], *, decision: Decision, principal: Principal, now: datetime
) -> list[Memory]:
    """End what is superseded at the moment its successor began, and write down who came from what. Returns the ended.

    Raises NotFound when a memory named is not one this person has and this project sees; ProjectForbidden when a key
    bound to a project would end one outside it; SupersessionRefused for what is not current, is another agent's, comes
    from outside, or would replace what is trusted more.
    """
    sources = _named_sources(news, decision)
    for row, new in news:
        _refuse_laundering(row, [sources[each] for each in (*new.derived_from, *new.supersedes)])
    ended = [_end(sources[old_id], row, principal, now) for row, new in news for old_id in new.supersedes]
    if ended:
        Memory.objects.bulk_update(ended, ["state", "superseded_at", "superseded_by", "valid_to"])
        sealed_index.change_entries(decision, changes={old.id: _ending(old) for old in ended})
    Lineage.objects.bulk_create(_lines(news))
    return ended


def _refuse_laundering(row: Memory, sources: Sequence[Memory]) -> None:
    """Trust is the least of the lineage: what comes from outside does not become a fact by being derived from."""
    if row.state == State.ACTIVE and any(source.state == State.QUARANTINED for source in sources):
        raise SupersessionRefused("A memory made from what came from outside comes from outside too; name its source.")


def _named_sources(news: Iterable[tuple[Memory, Successor]], decision: Decision) -> dict[UUID, Memory]:
    """All memories named, locked in the order of their ids."""
    named = {old_id for _, new in news for old_id in (*new.supersedes, *new.derived_from)}
    own = {row.id for row, _ in news}
    rows = Memory.objects.select_for_update(no_key=True).filter(id__in=named).order_by("id") if named else ()
    found = {row.id: row for row in rows if row.id not in own and row.project_id in (None, decision.project_id)}
    if set(found) != named:
        raise NotFound("A memory named in `supersedes` or `derived_from` is not one of this person's.")
    return found


def _end(old: Memory, successor: Memory, principal: Principal, now: datetime) -> Memory:
    if not principal.owns(old.project_id):
        raise ProjectForbidden("A key bound to a project may not replace what belongs to none.")
    if old.state != State.ACTIVE or successor.state != State.ACTIVE or old.agent not in ("", successor.agent):
        raise SupersessionRefused
    if TRUST[SourceClass(successor.source_class)] < TRUST[SourceClass(old.source_class)]:
        raise SupersessionRefused("What the person said is replaced by what the person said, not by a guess.")
    old.state, old.superseded_at, old.superseded_by_id = State.SUPERSEDED, now, successor.id
    old.valid_to = max(old.valid_from, successor.valid_from)
    return old


def _ending(old: Memory) -> dict[str, object]:
    return {"state": State.SUPERSEDED, "superseded_at": old.superseded_at, "valid_to": old.valid_to}


def _lines(news: Iterable[tuple[Memory, Successor]]) -> list[Lineage]:
    return [
        Lineage(
            tenant_id=row.tenant_id, subject_id=row.subject_id, memory_id=row.id, source_id=source, relation=relation
        )
        for row, new in news
        for relation, sources in (("supersedes", new.supersedes), ("derived", new.derived_from))
        for source in sources
    ]
