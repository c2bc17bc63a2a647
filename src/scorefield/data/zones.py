"""Time zones: their names, and days that start at local midnight."""

import datetime
import re
import zoneinfo

import numpy as np

from scorefield.data.cells import FIRST_DAY, LAST_DAY, NANOSECONDS

FIXED_OFFSET = re.compile(r"(?:UTC)?([+-])(\d\d):(\d\d)")
IN_DTYPE = re.compile(r".*\[\w+, tz=(.+?)\].*")  # of arrow
HOUR = 3600
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def zone_of(name):
    """The time zone of a name such as Europe/Paris, UTC or UTC+01:00; None for an unknown one."""
    if name == "UTC":
        return datetime.UTC
    fixed = FIXED_OFFSET.fullmatch(name)
    if fixed is None:
        try:
            return zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError):
            return None
    sign, hours, minutes = fixed.groups()
    offset = datetime.timedelta(hours=int(hours), minutes=int(minutes))
    return datetime.timezone(offset if sign == "+" else -offset)


def zone_in(storage):
    """The time zone of a stored column, None without one."""
    dtype = IN_DTYPE.fullmatch(storage.get("dtype", ""))
    name = dtype.group(1) if dtype else storage.get("zone")
    return None if name is None else zone_of(name)


def nearest_midnights(ticks, unit, zone):
    """Ticks of the local midnight nearest to each time, up to an hour."""
    per_second = NANOSECONDS["s"] // NANOSECONDS[unit]
    hours, inverse = np.unique(ticks // (HOUR * per_second), return_inverse=True)
    hours = np.clip(hours, 24 * (FIRST_DAY + 2), 24 * (LAST_DAY - 2))  # what Python's dates hold, in any zone
    midnights = []
    for hour in hours.tolist():
        half_a_day_later = EPOCH + datetime.timedelta(hours=hour + 12)
        midnight = half_a_day_later.astimezone(zone).replace(hour=0, minute=0, second=0, fold=0)
        midnights.append((midnight - EPOCH) // datetime.timedelta(seconds=1))
    return (np.array(midnights, dtype=np.int64) * per_second)[inverse]


def local_times(ticks, unit, zone):
    """Times of a zone, of whole seconds."""
    seconds = ticks // (NANOSECONDS["s"] // NANOSECONDS[unit])
    return [(EPOCH + datetime.timedelta(seconds=second)).astimezone(zone) for second in seconds.tolist()]
