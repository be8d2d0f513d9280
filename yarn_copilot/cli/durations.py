# SPDX-License-Identifier: Apache-2.0
"""Read durations from a command line: `45s`, `30m`, `1h30m`, `2d`."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_GRAMMAR: Final = re.compile(r"(?:(?P<d>\d{1,6})d)?(?:(?P<h>\d{1,6})h)?(?:(?P<m>\d{1,6})m)?(?:(?P<s>\d{1,6})s)?")


def parse_duration(text: str) -> int:
    """Read a duration.

    Returns:
        Seconds, at least 1.

    Raises:
        ValueError: the text is no duration, or it is zero.
    """
    match = _GRAMMAR.fullmatch(text.strip())
    seconds = 0 if match is None else sum(int(match[unit] or 0) * size for unit, size in _UNITS.items())
    if seconds <= 0:
        raise ValueError(f"{text[:64]!r} is no duration; allowed are 45s, 30m, 1h30m, 2d and the like")
    return seconds
