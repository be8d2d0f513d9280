# SPDX-License-Identifier: Apache-2.0
"""Read from a ResourceManager's log what became of updates and registrations, and when, by its own clock."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lab.errors import LabError

_STAMP: Final = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) ")
_BECOMES_ACTIVE: Final = "Transitioning to active state"
_ACTIVE: Final = "Transitioned to active state"
_ACCEPTED: Final = re.compile(r"IP=\S+\s+OPERATION=updateNodeResource\s.*RESULT=SUCCESS")
_REFUSED: Final = re.compile(r"ResourceManagerAdministrationProtocolPB\.updateNodeResource from ")
_REGISTERED: Final = re.compile(r"registered with capability: .*, assigned nodeId (\S+)")
_APPLIED: Final = re.compile(r"Update resource on node: (\S+) from: .*, to: <memory:(\d+),")


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstUpdate:
    """Say how long after a ResourceManager became active something happened for the first time, seconds.

    Attributes:
        reached: an update reached it, refused or not.
        registered: the NodeManager registered, so that updates of it could be taken; below 0 where it was quicker than
            the change, whose ports are open before its end.
        accepted: an update was carried out.
    """

    reached: float
    registered: float
    accepted: float

    @property
    def after_registration(self) -> float:
        """Return the seconds from the registration to the update: what the sender adds."""
        return self.accepted - max(self.registered, 0.0)


class ManagerLog:
    """Be one log, as far as it is written."""

    def __init__(self, rm_id: str, text: str) -> None:
        """Take the text; log lines begin with their time."""
        self._rm_id = rm_id
        self._text = text

    def accepted_updates(self) -> int:
        """Count the updateNodeResource calls over RPC that were carried out."""
        return len(_ACCEPTED.findall(self._text))

    def applied_memory(self, node_id: str) -> list[tuple[datetime, int]]:
        """List the totals of a node, MiB, in the order in which the scheduler took them."""
        found = ((moment, _APPLIED.search(line)) for moment, line in self._lines())
        return [(moment, int(match[2])) for moment, match in found if match is not None and match[1] == node_id]

    def first_update(self, node_id: str) -> FirstUpdate:
        """Say what happened since its last change to active.

        Raises:
            LabError: it never became active, or carried out no update after it.
        """
        began: datetime | None = None
        first: dict[str, datetime] = {}
        for moment, line in self._lines():
            if _BECOMES_ACTIVE in line:
                began, first = None, {}
            elif _ACTIVE in line:
                began = moment
            for name in self._events(line, node_id):
                first.setdefault(name, moment)
        if began is None or first.keys() != {"reached", "registered", "accepted"}:
            raise LabError(f"{self._rm_id} became active at {began}, and after it there was only {sorted(first)}")
        return FirstUpdate(**{name: (moment - began).total_seconds() for name, moment in first.items()})

    @staticmethod
    def _events(line: str, node_id: str) -> Iterator[str]:
        if _ACCEPTED.search(line):
            yield from ("reached", "accepted")
        elif _REFUSED.search(line):
            yield "reached"
        elif (found := _REGISTERED.search(line)) and found[1] == node_id:
            yield "registered"

    def _lines(self) -> Iterator[tuple[datetime, str]]:
        for line in self._text.splitlines():
            if stamp := _STAMP.match(line):
                # Only differences are used.
                yield datetime.strptime(stamp[1], "%Y-%m-%d %H:%M:%S,%f"), line  # noqa: DTZ007
