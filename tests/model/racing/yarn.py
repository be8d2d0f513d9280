# SPDX-License-Identifier: Apache-2.0
"""Play a ResourceManager whose parts are late, with messages that outlive the call and the caller.

Every update is a message of its own: it lands after its call has begun, whatever becomes of the caller. Bounds are the
product's assumptions: a message, its second copy and the scheduler's taking over of it all end within the message
lifetime.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.unit.controller.outside import FRESH, ZERO, FakeResourceManager, unrecognized
from yarn_copilot.hadoop.errors import CallTimeoutError
from yarn_copilot.hadoop.model import NodeId, NodeReport, NodeResourceUpdate, Resource, SchedulerReading
from yarn_copilot.kube.clock import Clock

CALL_SECONDS = 3.9
"""A call that is not answered until then has timed out; below the product's default."""


@dataclass(slots=True)
class Manager:
    """Hold one NodeManager: what the scheduler works with, what it has adopted, what really runs.

    `told` is the total in an answer that was lost: the NodeManager sends its report again and no new one before.
    """

    scheduled: Resource
    adopted: Resource
    used: Resource = ZERO
    zero_until: float = 0.0
    heartbeats: int = 0
    told: Resource | None = None


@dataclass(slots=True)
class Message:
    """Hold one update on its way: where it goes next, and when."""

    due: float
    node_id: NodeId
    value: Resource


@dataclass(slots=True)
class Fate:
    """Say what becomes of the next updates: seconds, and what is lost or doubled."""

    landing_seconds: float = 0.0
    allocation_seconds: float = 0.0
    copy_seconds: float | None = None
    is_lost: bool = False
    answer_is_lost: bool = False


class LateResourceManager(FakeResourceManager):
    """Hold nodes as a ResourceManager does, each part at its own pace."""

    def __init__(self, clock: Clock, on_send: Callable[[Sequence[NodeResourceUpdate]], None]) -> None:
        """Take the time, and who judges an update as it is sent."""
        super().__init__()
        self._clock = clock
        self._on_send = on_send
        self.managers: dict[NodeId, Manager] = {}
        self.messages: list[Message] = []
        self.unscheduled: list[Message] = []
        self.fate = Fate()
        self.read_seconds = 0.0
        self.zero_seconds = 0.0
        self.incarnation = 1
        self.heartbeats_stop = False
        self.answers_are_lost = False

    def add(self, node_id: str, **report: Any) -> NodeId:
        """Register a NodeManager."""
        parsed = super().add(node_id, **report)
        registered = self.reports[parsed]
        self.managers[parsed] = Manager(registered.capability, registered.capability, registered.used)
        return parsed

    # What the controller asks.

    async def get_cluster_nodes(self) -> Sequence[NodeReport]:
        """List the nodes as they were when the read began."""
        reports = [self._report(node_id) for node_id in self.reports]
        await self._clock.sleep(self.read_seconds)
        return reports

    async def read_scheduler(self, node_ids: Collection[NodeId]) -> Mapping[NodeId, SchedulerReading]:
        """Read the scheduler as it was when the read began."""
        readings = {
            node_id: SchedulerReading(
                self.managers[node_id].scheduled,
                self._shown(node_id),
                str(self.managers[node_id].heartbeats),
                str(self.incarnation),
            )
            for node_id in node_ids
            if node_id in self.managers
        }
        await self._clock.sleep(self.read_seconds)
        return readings

    async def update_node_resource(self, updates: Sequence[NodeResourceUpdate]) -> None:
        """Take one batch on its way; it lives on when the caller does not."""
        for update in updates:
            if update.node_id not in self.reports:
                raise unrecognized(update.node_id)
        self.batches.append(list(updates))
        self._on_send(updates)
        now, fate = self._clock.monotonic(), self.fate
        for update in updates:
            if not fate.is_lost:
                self.messages.append(Message(now + fate.landing_seconds, update.node_id, update.resource))
            if fate.copy_seconds is not None:
                self.messages.append(Message(now + fate.copy_seconds, update.node_id, update.resource))
        if fate.is_lost or fate.answer_is_lost or fate.landing_seconds >= CALL_SECONDS:
            await self._clock.sleep(CALL_SECONDS)
            raise CallTimeoutError("no answer")
        await self._clock.sleep(fate.landing_seconds + 0.01)

    # What happens by itself.

    def tick(self) -> None:
        """Let everything happen that is due now."""
        now = self._clock.monotonic()
        for message in [message for message in self.messages if message.due <= now]:
            self.messages.remove(message)
            self._land(message, now)
        for message in [message for message in self.unscheduled if message.due <= now]:
            self.unscheduled.remove(message)
            manager = self.managers[message.node_id]
            manager.scheduled = message.value
            manager.zero_until = now + self.zero_seconds

    def heartbeat(self) -> None:
        """Let every NodeManager be heard, and adopt its total if the answer reaches it."""
        if self.heartbeats_stop:
            return
        for node_id, manager in self.managers.items():
            if manager.told is not None:
                if not self.answers_are_lost:
                    manager.adopted, manager.told = manager.told, None
                continue
            manager.heartbeats += 1
            if not any(message.node_id == node_id for message in self.unscheduled):
                # Use is hidden while the scheduler takes a total over; it hears the next report after that.
                manager.zero_until = min(manager.zero_until, self._clock.monotonic())
            if self.answers_are_lost:
                manager.told = self.reports[node_id].capability
            else:
                manager.adopted = self.reports[node_id].capability

    def fail_over(self) -> None:
        """Let another ResourceManager take over; it is told what the NodeManagers have adopted."""
        self.incarnation += 1
        self.unscheduled = []
        for node_id, manager in self.managers.items():
            self.change(node_id, capability=manager.adopted)
            manager.told = None
            manager.scheduled = manager.adopted
            manager.zero_until = self._clock.monotonic() + self.zero_seconds

    def restart_manager(self, node_id: NodeId, *, keeps_containers: bool) -> None:
        """Let a NodeManager register anew, with what it is configured to."""
        manager = self.managers[node_id]
        self.unscheduled = [message for message in self.unscheduled if message.node_id != node_id]
        if (self.reports[node_id].capability, manager.scheduled) != (FRESH, FRESH):
            manager.zero_until = self._clock.monotonic() + self.zero_seconds
        self.change(node_id, capability=FRESH)
        manager.scheduled = manager.adopted = FRESH
        manager.told = None
        if not keeps_containers:
            manager.used = ZERO

    def start_container(self, node_id: NodeId, size: Resource) -> bool:
        """Start a container if the scheduler has room for it."""
        manager = self.managers[node_id]
        after = Resource(manager.used.memory_mib + size.memory_mib, manager.used.vcores + size.vcores)
        if after.memory_mib > manager.scheduled.memory_mib or after.vcores > manager.scheduled.vcores:
            return False
        manager.used = after
        return True

    def end_container(self, node_id: NodeId, size: Resource) -> None:
        """End so much of what runs."""
        used = self.managers[node_id].used
        self.managers[node_id].used = Resource(
            max(used.memory_mib - size.memory_mib, 0), max(used.vcores - size.vcores, 0)
        )

    def offered(self, node_id: NodeId) -> list[Resource]:
        """Give every total that is in force somewhere or may come into force."""
        manager = self.managers[node_id]
        on_their_way = [message.value for message in (*self.messages, *self.unscheduled) if message.node_id == node_id]
        return [self.reports[node_id].capability, manager.scheduled, *on_their_way]

    def _land(self, message: Message, now: float) -> None:
        waiting = any(later.node_id == message.node_id for later in self.unscheduled)
        if message.value == self.reports[message.node_id].capability and not waiting:
            return  # the ResourceManager ignores what changes nothing
        self.change(message.node_id, capability=message.value)
        due = max([now + self.fate.allocation_seconds, *(earlier.due for earlier in self.unscheduled)])
        self.unscheduled.append(Message(due, message.node_id, message.value))

    def _report(self, node_id: NodeId) -> NodeReport:
        self.change(node_id, used=self._shown(node_id))
        return self.reports[node_id]

    def _shown(self, node_id: NodeId) -> Resource:
        manager = self.managers[node_id]
        return ZERO if self._clock.monotonic() < manager.zero_until else manager.used
