# SPDX-License-Identifier: Apache-2.0
"""Keep a node's books as the scheduler does: total, containers, over-commit deadline.

Source: SchedulerNode and AbstractYarnScheduler.updateNodeResource, Hadoop 3.5.0; each rule was watched on a real
ResourceManager.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.embedded.yarn.containers import EmbeddedContainer, ExitStatus, kill_order
from yarn_copilot.hadoop.model import Resource


@dataclass(slots=True, kw_only=True, eq=False)
class SchedulerNode:
    """Be one node in the scheduler; made anew when the node registers or the ResourceManager restarts.

    Attributes:
        total: what may be allocated.
        overcommit_deadline: monotonic seconds after which containers above `total` are killed. None: never. Once set
            it can be moved, not removed: a negative timeout leaves it as it is.
        invisible_until: until then node reports show no use, since the scheduler takes a node out and in again when
            its total changes.
    """

    total: Resource
    overcommit_deadline: float | None = None
    invisible_until: float = float("-inf")
    containers: list[EmbeddedContainer] = field(default_factory=list)
    used_memory_mib: int = 0
    used_vcores: int = 0

    def add(self, container: EmbeddedContainer) -> None:
        """Book a container, whether or not it fits."""
        self.containers.append(container)
        self.used_memory_mib += container.resource.memory_mib
        self.used_vcores += container.resource.vcores

    def remove(self, container: EmbeddedContainer, exit_status: ExitStatus) -> None:
        """End a container and give its room back at once."""
        self.containers.remove(container)
        self.used_memory_mib -= container.resource.memory_mib
        self.used_vcores -= container.resource.vcores
        container.exit_status = exit_status

    def has_room_for(self, resource: Resource) -> bool:
        """Tell whether a container of this size fits below the total."""
        return (
            self.used_memory_mib + resource.memory_mib <= self.total.memory_mib
            and self.used_vcores + resource.vcores <= self.total.vcores
        )

    @property
    def is_overcommitted(self) -> bool:
        """Tell whether more is used than the total, in any of both resources (DominantResourceCalculator)."""
        return self.used_memory_mib > self.total.memory_mib or self.used_vcores > self.total.vcores

    def visible_use(self, now: float) -> tuple[Resource, int]:
        """Give use and number of containers as a node report shows them at `now`."""
        if now < self.invisible_until:
            return Resource(0, 0), 0
        return Resource(self.used_memory_mib, self.used_vcores), len(self.containers)

    def update_total(
        self, total: Resource, timeout_millis: int, *, now: float, invisible_seconds: float
    ) -> list[EmbeddedContainer]:
        """Change the total; an equal one is ignored, its timeout too.

        Args:
            total: the new total.
            timeout_millis: below 0 keeps the deadline; 0 or more moves it to so many milliseconds from now.
            now: monotonic seconds.
            invisible_seconds: how long reports show no use.

        Returns:
            Containers to kill at once.
        """
        if total == self.total:
            return []
        self.total = total
        self.invisible_until = now + invisible_seconds
        if timeout_millis >= 0:
            self.overcommit_deadline = now + timeout_millis / 1000
        if timeout_millis == 0:
            return self.overdue_victims(now)
        if self.overcommit_deadline is not None:
            for victim in self._victims():
                victim.preemption_notices += 1
        return []

    def overdue_victims(self, now: float) -> list[EmbeddedContainer]:
        """Choose what dies because the deadline has passed; empty while it has not or everything fits."""
        if self.overcommit_deadline is None or now < self.overcommit_deadline:
            return []
        return self._victims()

    def _victims(self) -> list[EmbeddedContainer]:
        """Choose containers in kill order until the rest fits."""
        memory_mib = self.used_memory_mib - self.total.memory_mib
        vcores = self.used_vcores - self.total.vcores
        victims = []
        for container in kill_order(self.containers):
            if memory_mib <= 0 and vcores <= 0:
                break
            victims.append(container)
            memory_mib -= container.resource.memory_mib
            vcores -= container.resource.vcores
        return victims
