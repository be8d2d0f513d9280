# SPDX-License-Identifier: Apache-2.0
"""Hold containers and what is still asked for; records, no processes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from yarn_copilot.hadoop.model import NodeId, Resource


class ExitStatus(IntEnum):
    """Give the numbers of ContainerExitStatus that occur here."""

    SUCCESS = 0
    ABORTED = -100
    PREEMPTED = -102
    KILLED_AFTER_APPLICATION_COMPLETION = -107


@dataclass(slots=True, kw_only=True, eq=False)
class EmbeddedContainer:
    """Be one container.

    Attributes:
        number: start order over the whole cluster; the highest is the youngest.
        queue: path of a leaf queue.
        application: what it belongs to; ends with its application master.
        is_launched: its NodeManager has reported it. Only then can over-commit handling choose it.
        ends_at: monotonic seconds at which it finishes by itself; None: never.
        preemption_notices: how often the application was told that the container is to go.
        exit_status: None while it runs.
    """

    number: int
    node_id: NodeId
    resource: Resource
    queue: str
    application: int
    is_application_master: bool = False
    is_launched: bool = False
    ends_at: float | None = None
    preemption_notices: int = 0
    exit_status: ExitStatus | None = None

    @property
    def is_running(self) -> bool:
        """Tell whether it still holds its resources."""
        return self.exit_status is None


@dataclass(slots=True, kw_only=True, eq=False)
class Ask:
    """Be a request for equal containers that are placed wherever they fit.

    Attributes:
        count: containers still to place.
        container_seconds: how long each runs; None: until it is released.
    """

    queue: str
    resource: Resource
    count: int
    application: int
    container_seconds: float | None = None


def kill_order(containers: list[EmbeddedContainer]) -> list[EmbeddedContainer]:
    """Sort victims as SchedulerNode.getContainersToKill does: the youngest first, application masters last."""
    launched = [container for container in containers if container.is_launched]
    return sorted(launched, key=lambda container: (container.is_application_master, -container.number))
