"""What a tenant's agents did in the last days, as the console shows it: counted from the audit log."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from audit.selectors import DayCount, EventFilter, counts_by_day

DAYS = 7


@dataclass(frozen=True, slots=True)
class Day:
    day: date
    calls: int
    refusals: int


@dataclass(frozen=True, slots=True)
class Activity:
    """The last DAYS UTC days, oldest first, today included and days without a call too; refusals by reason."""

    days: tuple[Day, ...]
    reasons: tuple[tuple[str, int], ...]

    @property
    def calls(self) -> int:
        return sum(each.calls for each in self.days)

    @property
    def refusals(self) -> int:
        return sum(each.refusals for each in self.days)


def activity_of(tenant_id: UUID) -> Activity:
    """Of API keys: what members and the system did is not an agent's call."""
    today = datetime.now(UTC).date()
    days = [today - timedelta(days=back) for back in range(DAYS - 1, -1, -1)]
    since = datetime.combine(days[0], datetime.min.time(), UTC)
    wanted = EventFilter(actor_kind="api_key", since=since)
    counted = counts_by_day(wanted, tenant_id=tenant_id, by=("result", "reason"))
    return Activity(tuple(_day(day, counted) for day in days), _reasons(counted))


def _day(day: date, counted: list[DayCount]) -> Day:
    of_day = [each for each in counted if each.day == day]
    refused = sum(each.events for each in of_day if each.facts["result"] == "refused")
    return Day(day, sum(each.events for each in of_day) - refused, refused)


def _reasons(counted: list[DayCount]) -> tuple[tuple[str, int], ...]:
    reasons: Counter[str] = Counter()
    for each in counted:
        if each.facts["result"] == "refused":
            reasons[each.facts["reason"]] += each.events
    return tuple(reasons.most_common())
