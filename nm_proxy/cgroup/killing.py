# SPDX-License-Identifier: Apache-2.0
"""End every process of a group, so that none can fork its way out, and verify that the group is empty.

Version 2 (Linux 5.14): `cgroup.kill` does it in the kernel. Before that, and with version 1: freeze the group, signal
each process, thaw it. A process frozen by version 1 can neither fork nor exit, so its number cannot be reused between
reading and signalling. One that is not surely so (no freezer, not frozen in time, frozen by version 2, which lets it be
killed) is pinned by a pidfd and its group read from /proc/PID/cgroup first. The cost is linear in the processes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from nm_proxy.cgroup.errors import (
    CgroupError,
    ForeignProcessError,
    GroupGoneError,
    KillIncompleteError,
    ValueRefusedError,
)
from nm_proxy.cgroup.hierarchy import FREEZER, Hierarchy
from nm_proxy.cgroup.layout import Version
from nm_proxy.cgroup.tree import CgroupTree

FREEZE_SECONDS: Final = 0.5
"""A process in uninterruptible sleep does not freeze; after so long it is signalled all the same."""

POLL_SECONDS: Final = 0.002
POLL_MAX_SECONDS: Final = 0.05
"""The lists of a large group cost more than what they tell."""


class Signaller(Protocol):
    """Send SIGKILL to a process that is verified to be a member."""

    def kill(self, pid: int, is_member: Callable[[int], bool]) -> None:
        """Kill `pid` if `is_member` still says so once its number is pinned; a process that is gone is fine."""


class PidfdSignaller:
    """Satisfy `Signaller` with pidfds: the number cannot come to mean another process in between."""

    def kill(self, pid: int, is_member: Callable[[int], bool]) -> None:
        """Pin, check, signal."""
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            if is_member(pid):
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Pace:
    """Hold the clock and the sleep of a kill, so that a test can own them."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def groups_of(pid: int) -> dict[str, str]:
    """Read the groups of a process from /proc/PID/cgroup, by the controllers of each hierarchy; none if it is gone."""
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return {}
    fields = (line.split(":", 2) for line in text.splitlines())
    return {one[1]: one[2] for one in fields if len(one) == 3}


class GroupKiller:
    """Kill whole groups; blocks, so callers keep it off the event loop."""

    def __init__(
        self,
        tree: CgroupTree,
        signaller: Signaller | None = None,
        pace: Pace | None = None,
        groups: Callable[[int], Mapping[str, str]] = groups_of,
    ) -> None:
        self._groups = groups
        self._tree = tree
        self._signaller = signaller or PidfdSignaller()
        self._pace = pace or Pace()

    def kill(self, path: str, *, timeout_seconds: float) -> int:
        """End every process of a group and wait until it is empty.

        Args:
            path: the group; a missing one is empty.
            timeout_seconds: how long to wait for the kernel to tear the processes down.

        Returns:
            How many processes were seen in it.

        Raises:
            ForeignProcessError: processes of another PID namespace are in it and the kernel cannot kill the group.
            KillIncompleteError: some are still there after the deadline.
            CgroupError: the tree cannot be read or written.
        """
        deadline = self._pace.monotonic() + timeout_seconds
        seen: set[int] = set()
        while True:
            members = self._tree.processes(path)
            if not members:
                return len(seen)
            seen |= members
            if self._pace.monotonic() >= deadline:
                raise self._incomplete(path, members)
            self._end(path, members, deadline)
            self._await_change(path, members, deadline)

    def thaw(self, path: str) -> bool:
        """Let a group run that a former run of this program left frozen; tell whether it was."""
        freezer = self._freezer(path)
        if freezer is None or not freezer.is_requested():
            return False
        freezer.thaw()
        return True

    def _end(self, path: str, members: frozenset[int], deadline: float) -> None:
        memory = self._tree.hierarchies.required("memory")
        if memory.version is Version.V2 and self._kernel_kill(memory, path):
            return
        if any(pid <= 0 for pid in members):
            raise ForeignProcessError(
                "processes of another PID namespace are in the group",
                path=memory.at(path),
                fix="run with hostPID, or on a kernel with cgroup.kill",
            )
        freezer = self._freezer(path)
        if freezer is None:
            self._signal(path, members, frozenset(), deadline)
            return
        try:
            is_frozen = self._freeze(freezer, deadline)
            by_hierarchy = self._tree.members(path)
            held = by_hierarchy.get(freezer.mount_point, frozenset()) if is_frozen and freezer.holds else frozenset()
            self._signal(path, frozenset().union(*by_hierarchy.values()), held, deadline)
        finally:
            with contextlib.suppress(GroupGoneError):
                freezer.thaw()

    def _kernel_kill(self, hierarchy: Hierarchy, path: str) -> bool:
        name = f"{hierarchy.at(path)}/cgroup.kill"
        if not self._tree.files.exists(name):
            return False
        try:
            self._tree.files.write(name, "1")
        except GroupGoneError:
            return True
        except ValueRefusedError:
            return False  # threaded groups refuse it; the slow way works there
        return True

    def _freeze(self, freezer: _Freezer, deadline: float) -> bool:
        """Freeze, and tell whether it was seen done in time."""
        freezer.freeze()
        until = min(self._pace.monotonic() + FREEZE_SECONDS, deadline)
        while not (is_frozen := freezer.is_frozen()) and self._pace.monotonic() < until:
            self._pace.sleep(POLL_SECONDS)
        return is_frozen

    def _signal(self, path: str, members: frozenset[int], held: frozenset[int], deadline: float) -> None:
        """Signal members until the deadline; the numbers of `held` cannot come to mean another process."""
        # The last part alone: what is before it depends on the cgroup namespace that this program is in.
        name = path.rpartition("/")[2]

        def is_member(pid: int) -> bool:
            return pid in held or any(group.rpartition("/")[2] == name for group in self._groups(pid).values())

        for pid in members:
            if self._pace.monotonic() >= deadline:
                return
            if pid > 1 and pid != os.getpid():
                self._signaller.kill(pid, is_member)

    def _await_change(self, path: str, members: frozenset[int], deadline: float) -> None:
        pause = POLL_SECONDS
        while self._pace.monotonic() < deadline:
            left = self._tree.processes(path)
            if not left or left - members:
                return
            self._pace.sleep(pause)
            pause = min(pause * 2, POLL_MAX_SECONDS)

    def _freezer(self, path: str) -> _Freezer | None:
        memory = self._tree.hierarchies.required("memory")
        if memory.version is Version.V2 and self._tree.files.exists(f"{memory.at(path)}/cgroup.freeze"):
            return _Freezer(self._tree, memory, path)
        hierarchy = self._tree.hierarchies.of(FREEZER)
        if hierarchy is None or not self._tree.files.exists(hierarchy.at(path)):
            return None
        return _Freezer(self._tree, hierarchy, path)

    def _incomplete(self, path: str, members: frozenset[int]) -> CgroupError:
        shown = ", ".join(map(str, sorted(members)[:8]))
        return KillIncompleteError(
            f"{len(members)} processes are alive after the deadline ({shown})",
            path=self._tree.hierarchies.required("memory").at(path),
            fix="they are in uninterruptible sleep, most likely on a device or network file system",
        )


class _Freezer:
    """Freeze and thaw one group: freezer.state (v1) or cgroup.freeze (v2)."""

    def __init__(self, tree: CgroupTree, hierarchy: Hierarchy, path: str) -> None:
        self._files = tree.files
        self._v2 = hierarchy.version is Version.V2
        self._directory = hierarchy.at(path)
        self.mount_point = hierarchy.mount_point
        self.holds = not self._v2
        """A frozen process cannot end: SIGKILL waits for the thaw in version 1 only."""

    def freeze(self) -> None:
        if self._v2:
            self._files.write(f"{self._directory}/cgroup.freeze", "1")
        else:
            self._files.write(f"{self._directory}/freezer.state", "FROZEN")

    def thaw(self) -> None:
        if self._v2:
            self._files.write(f"{self._directory}/cgroup.freeze", "0")
        else:
            self._files.write(f"{self._directory}/freezer.state", "THAWED")

    def is_frozen(self) -> bool:
        if self._v2:
            return "frozen 1" in self._files.read(f"{self._directory}/cgroup.events").splitlines()
        return self._files.read(f"{self._directory}/freezer.state").strip() == "FROZEN"

    def is_requested(self) -> bool:
        if self._v2:
            return self._files.read(f"{self._directory}/cgroup.freeze").strip() == "1"
        return self._files.read(f"{self._directory}/freezer.state").strip() != "THAWED"
