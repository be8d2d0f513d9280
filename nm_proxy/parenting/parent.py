# SPDX-License-Identifier: Apache-2.0
"""Prepare and repair the directory that holds all containers: presence, controllers, weight, wall.

Never written: cpu quota, group identity, and cpuset once it has a value; they are koordlet's.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from nm_proxy.cgroup.layout import Place
from nm_proxy.cgroup.stats import read_memory_bytes
from nm_proxy.cgroup.tree import CgroupTree
from nm_proxy.cgroup.weights import limit_bytes
from nm_proxy.parenting.planning import Repair, may_set_wall

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Hold who may make groups below YARN's directory, where the executor does not run as root."""

    uid: int
    gid: int


class Parent:
    """Keep YARN's own directory in order; belongs to the thread of the adopter."""

    def __init__(
        self, tree: CgroupTree, place: Place, *, memory_wall_bytes: int | None = None, owner: Owner | None = None
    ) -> None:
        self._tree = tree
        self._place = place
        self._owner = owner
        self.memory_wall_bytes = memory_wall_bytes
        self._was_ready = False
        self._cpu: int | None = None
        self._wall: int | None = None
        self._was_walled: bool | None = None
        self._waits_for_room = False

    def prepare(self) -> list[Repair]:
        """Make the directory usable.

        Returns:
            A repair if it had been usable before.

        Raises:
            CgroupError: it cannot be made usable; path and fix are in it.
        """
        changed = self._tree.prepare_parent(self._place.yarn)
        if changed and self._owner is not None:
            self._tree.give_to(self._place.yarn, uid=self._owner.uid, gid=self._owner.gid)
        was_ready, self._was_ready = self._was_ready, True
        return [Repair.PARENT_GROUP] if changed and was_ready else []

    def weigh(self, cpu_milli: int) -> list[Repair]:
        """Let the directory weigh as much as its live containers, also less than before.

        Args:
            cpu_milli: sum over live containers.

        Raises:
            CgroupError: the value cannot be read or written.
        """
        wanted = self._tree.parent_cpu(cpu_milli)
        observed = self._tree.values(self._place.yarn).cpu
        repairs = [Repair.PARENT_CPU] if self._cpu == wanted and observed != wanted else []
        if observed != wanted:
            self._tree.set_cpu(self._place.yarn, wanted)
        self._cpu = wanted
        return repairs

    def wall(self) -> list[Repair]:
        """Keep the hard memory limit of all of YARN, if one is configured; lift our own when it no longer is.

        Raises:
            CgroupError: the value cannot be read or written.
        """
        wanted = None if self.memory_wall_bytes is None else limit_bytes(self.memory_wall_bytes)
        if wanted is None and self._wall is None and self._was_walled is not None:
            return []
        observed = self._tree.values(self._place.yarn).memory_bytes
        if self._was_walled is None:
            self._was_walled = observed is not None
            if wanted is None and observed is not None:
                # A former run's, or an operator's own: nothing tells, so it stays.
                logger.warning(
                    "YARN's directory has a memory limit although none is configured; set parenting.memory_wall_bytes, "
                    "or lift it by hand",
                    extra={"path": self._place.yarn, "limit_bytes": observed},
                )
        if wanted is None and self._wall is None:
            return []
        if observed == wanted:
            self._wall = wanted
            return []
        if wanted is not None and not self._has_room(wanted):
            return []
        self._tree.set_memory_limit(self._place.yarn, wanted)
        repairs = [Repair.PARENT_MEMORY] if self._wall == wanted else []
        self._wall = wanted
        return repairs

    def _has_room(self, wanted: int) -> bool:
        used = read_memory_bytes(self._tree, self._place.yarn)
        has_room = may_set_wall(wanted, used)
        if not has_room and not self._waits_for_room:
            logger.warning("The memory wall waits until YARN uses less", extra={"wall": wanted, "used": used})
        self._waits_for_room = not has_room
        return has_room
