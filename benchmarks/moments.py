# SPDX-License-Identifier: Apache-2.0
"""Take moments out of the servers' own logs, so that they are independent of the product.

Everything is turned into seconds of this machine's monotonic clock, which all processes share.
- kube-apiserver's audit log: when a request arrived and when its answer was complete, in microseconds.
- ResourceManager's log: when AdminService took the update of a node, and when the scheduler applied it, in
  milliseconds (AdminService.updateNodeResource, AbstractYarnScheduler.updateNodeResource of Hadoop 3.x).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from lab.errors import LabError

_TAKEN: Final = re.compile(rb"^(\S+ \S+) INFO \S*AdminService: Update resource on node\(([^)]+)\)")
_APPLIED: Final = re.compile(rb"^(\S+ \S+) INFO \S*AbstractYarnScheduler: Update resource on node: (\S+) from:")

_SCHEDULER_SECONDS: Final = 60.0


class LogReader:
    """Give the complete lines that a log got since the last reading."""

    def __init__(self, path: Path) -> None:
        """Begin at the end of what is there."""
        self._path = path
        self._offset = path.stat().st_size if path.exists() else 0

    def lines(self) -> Iterator[bytes]:
        """Give new lines; one that is still being written waits for the next reading."""
        if not self._path.exists():
            return
        with self._path.open("rb") as stream:
            stream.seek(self._offset)
            for line in stream:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                yield line


@dataclass(frozen=True, slots=True)
class Call:
    """Hold one request to the API server; times are monotonic seconds."""

    user: str
    verb: str
    resource: str
    name: str
    code: int
    arrived_at: float
    answered_at: float


@dataclass(frozen=True, slots=True)
class Updates:
    """Hold when the ResourceManager last took and last applied an update, by node id; monotonic seconds."""

    taken_at: dict[str, float]
    applied_at: dict[str, float]


class AuditReader:
    """Read the API server's audit log."""

    def __init__(self, path: Path) -> None:
        """Begin with the next request."""
        self._log = LogReader(path)
        self._offset = _wall_minus_monotonic()

    def calls(self) -> list[Call]:
        """Give the requests that were answered since the last reading."""
        return [call for line in self._log.lines() if (call := self._call(line)) is not None]

    def _call(self, line: bytes) -> Call | None:
        event = json.loads(line)
        if event["stage"] != "ResponseComplete":
            return None
        target = event.get("objectRef") or {}
        return Call(
            user=(event.get("user") or {}).get("username", ""),
            verb=event.get("verb", ""),
            resource=target.get("resource", ""),
            name=target.get("name", ""),
            code=(event.get("responseStatus") or {}).get("code", 0),
            arrived_at=self._moment(event["requestReceivedTimestamp"]),
            answered_at=self._moment(event["stageTimestamp"]),
        )

    def _moment(self, text: str) -> float:
        return datetime.fromisoformat(text).timestamp() - self._offset


class UpdateReader:
    """Read the ResourceManager's log."""

    def __init__(self, path: Path) -> None:
        """Begin with the next line."""
        self._log = LogReader(path)
        self._offset = _wall_minus_monotonic()

    def updates(self) -> Updates:
        """Give the updates since the last reading."""
        found = Updates({}, {})
        self._add_to(found)
        return found

    def updates_of(self, node_ids: Iterable[str]) -> Updates:
        """Give the updates since the last reading, when the scheduler has applied one of each of these nodes.

        The node list of the ResourceManager shows a new capacity before its scheduler works with it.

        Raises:
            LabError: the scheduler did not within a minute.
        """
        found, deadline = Updates({}, {}), time.monotonic() + _SCHEDULER_SECONDS
        while True:
            self._add_to(found)
            missing = set(node_ids) - found.applied_at.keys()
            if not missing:
                return found
            if time.monotonic() > deadline:
                raise LabError(f"the scheduler did not apply {len(missing)} updates, like that of {min(missing)}")
            time.sleep(0.05)

    def _add_to(self, found: Updates) -> None:
        for line in self._log.lines():
            if match := _TAKEN.match(line):
                found.taken_at[match[2].decode()] = self._moment(match[1])
            elif match := _APPLIED.match(line):
                found.applied_at[match[2].decode()] = self._moment(match[1])

    def _moment(self, text: bytes) -> float:
        """Read a time like `2026-12-01 22:05:40,287`, in this machine's time zone as Java writes it."""
        return datetime.fromisoformat(text.decode().replace(",", ".")).timestamp() - self._offset


def _wall_minus_monotonic() -> float:
    return time.time() - time.monotonic()
