# SPDX-License-Identifier: Apache-2.0
"""Judge a ResourceManager's version: what must not be done with it, and which guarantees it lacks.

Below 3.3.1 an update that meets the removal of its node crashes the scheduler (YARN-10651). Below 3.3.0 over-commit
timeouts are ignored and NodeManagers are not told of updates (YARN-999). A distribution may carry the mends in an older
version, which only its vendor can tell.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_VERSION: Final = re.compile(r"^(\d{1,4})\.(\d{1,4})\.(\d{1,4})(?![\d])")


class Version(NamedTuple):
    """Hold the three numbers of a Hadoop version; what a distribution adds is left out."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


SAFE_TO_WRITE: Final = Version(3, 3, 1)
FULL_GUARANTEES: Final = Version(3, 3, 0)
TESTED: Final = ("3.3.6", "3.4.3", "3.5.0")
"""Versions that the tests run against."""


def parse_version(text: str) -> Version:
    """Read `3.3.6`, `3.4.0-SNAPSHOT` or `3.1.1.7.1.8.0-801`.

    Raises:
        ValueError: the text does not begin with three numbers.
    """
    found = _VERSION.match(text.strip())
    if found is None:
        raise ValueError(f"{text[:64]!r} is no Hadoop version")
    return Version(int(found[1]), int(found[2]), int(found[3]))


def why_not_to_write(version: Version) -> str:
    """Say why no update may be sent to a ResourceManager of this version; empty where it may."""
    if version >= SAFE_TO_WRITE:
        return ""
    return (
        f"ResourceManager {version} is older than {SAFE_TO_WRITE}: an update of a node that is just being removed can "
        "crash its scheduler (YARN-10651)"
    )


def missing_guarantees(version: Version) -> list[str]:
    """List what does not hold with this version, one sentence each."""
    if version >= FULL_GUARANTEES:
        return []
    return [
        "over-commit timeouts are ignored: containers above a lowered capacity are never asked to leave",
        "NodeManagers are not told of updates, so every capacity is lost when the ResourceManager restarts or fails "
        "over, and is sent again then",
        "the web services cannot change a node: transport rest can only read",
    ]
