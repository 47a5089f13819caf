"""What schemathesis cannot know: names of time zones, and that what happened lies in the past."""

from datetime import UTC, datetime
from zoneinfo import available_timezones

import schemathesis
from hypothesis import strategies

PAST = strategies.datetimes(datetime(1970, 1, 1), datetime(2026, 1, 1), timezones=strategies.just(UTC))  # noqa: DTZ001

schemathesis.openapi.format("date-time", PAST.map(lambda at: at.isoformat().replace("+00:00", "Z")))
schemathesis.openapi.format("iana-time-zone", strategies.sampled_from(sorted(available_timezones())))
