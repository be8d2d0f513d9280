# SPDX-License-Identifier: Apache-2.0
"""Read what the ResourceManager's scheduler did, and when, from its own log.

The web services show a use of zero for a moment after every update and nothing of what came and went between two
polls; the scheduler logs each container as it is handed out and taken back, and each total as it is taken over. After
a restart it logs recovered containers as handed out again; they are known by their id. Source: Hadoop 3.5.0,
FiCaSchedulerNode, RMContainerImpl, AbstractYarnScheduler, ResourceTrackerService, CapacityScheduler.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from batch_resources.resources import BatchResources
from lab.judge.events import CapacityEvent, ContainerEvent

_TIME: Final = r"^(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) INFO "
_SIZE: Final = r"<memory:(?P<memory>\d+), vCores:(?P<vcores>\d+)>"
_ASSIGNED: Final = re.compile(
    _TIME + r"\S+: Assigned container (?P<container>\S+) of capacity " + _SIZE + r" on host (?P<manager>\S+), which"
)
_ENDED: Final = re.compile(
    _TIME + r"\S+: (?P<container>container_\S+) Container Transitioned from \S+ to (COMPLETED|EXPIRED|RELEASED|KILLED)$"
)
_UPDATED: Final = re.compile(
    _TIME + r"\S+AbstractYarnScheduler: Update resource on node: (?P<manager>\S+) from: .*, to: " + _SIZE
)
_REGISTERED: Final = re.compile(
    _TIME
    + r"\S+: NodeManager from node .* registered with capability: "
    + _SIZE
    + r", assigned nodeId (?P<manager>\S+)"
)
_ADDED: Final = re.compile(_TIME + r"\S+: Added node (?P<manager>\S+) clusterResource")


RMEvent = ContainerEvent | CapacityEvent


def read_events(lines: Iterable[str], *, milli_cores_per_vcore: int = 1000) -> list[RMEvent]:
    """Give the events of a log, not in every case in its order.

    Args:
        lines: the log; whatever is not understood is skipped.
        milli_cores_per_vcore: what a vcore stands for.
    """
    reader = _Reader(milli_cores_per_vcore)
    for line in lines:
        reader.take(line)
    return reader.finish()


class _Reader:
    """Follow which NodeManager holds which container."""

    def __init__(self, milli_cores_per_vcore: int) -> None:
        self._milli_cores_per_vcore = milli_cores_per_vcore
        self._events: list[RMEvent] = []
        self._held: dict[str, set[str]] = {}
        self._registered: dict[str, BatchResources] = {}
        self._unseen: dict[str, tuple[float, set[str]]] = {}

    def take(self, line: str) -> None:
        """Take the next line."""
        if match := _ASSIGNED.match(line):
            self._assigned(match)
        elif match := _ENDED.match(line):
            self._ended(match["container"], _seconds(match))
        elif match := _UPDATED.match(line):
            self._changed(match["manager"], self._size(match), _seconds(match))
        elif match := _REGISTERED.match(line):
            self._registered[match["manager"]] = self._size(match)
        elif match := _ADDED.match(line):
            self._added(match["manager"], _seconds(match))

    def finish(self) -> list[RMEvent]:
        """Give all events."""
        for manager in list(self._unseen):
            self._end_unseen(manager)
        return self._events

    def _assigned(self, match: re.Match[str]) -> None:
        manager, container = match["manager"], match["container"]
        self._held.setdefault(manager, set()).add(container)
        self._unseen.get(manager, (0.0, set()))[1].discard(container)
        self._events.append(
            ContainerEvent(at=_seconds(match), manager=manager, container=container, size=self._size(match))
        )

    def _ended(self, container: str, at: float) -> None:
        for manager, held in self._held.items():
            if container in held:
                held.discard(container)
                self._events.append(ContainerEvent(at=at, manager=manager, container=container, size=None))

    def _added(self, manager: str, at: float) -> None:
        """Note that the scheduler begins with a node: what it held before and is not recovered now is gone."""
        self._end_unseen(manager)
        self._unseen[manager] = (at, set(self._held.get(manager, ())))
        self._changed(manager, self._registered[manager], at)

    def _end_unseen(self, manager: str) -> None:
        at, containers = self._unseen.pop(manager, (0.0, set()))
        for container in sorted(containers & self._held.get(manager, set())):
            self._ended(container, at)

    def _changed(self, manager: str, capacity: BatchResources, at: float) -> None:
        self._events.append(CapacityEvent(at=at, manager=manager, capacity=capacity))

    def _size(self, match: re.Match[str]) -> BatchResources:
        return BatchResources(
            cpu_milli=int(match["vcores"]) * self._milli_cores_per_vcore, memory_bytes=int(match["memory"]) << 20
        )


def _seconds(match: re.Match[str]) -> float:
    """Give the moment as seconds since 1970; the log is in local time."""
    return datetime.strptime(match["time"], "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp()
