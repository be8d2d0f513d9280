# SPDX-License-Identifier: Apache-2.0
"""Register thousands of NodeManagers over one connection, report for each, and do as the answers say.

They have no containers: the ResourceManager accepts none that it did not allocate, and would dial a NodeManager to
start one. So `used` stays 0 on every node; everything else is as with real NodeManagers: a new resource is adopted
from the heartbeat's answer and registered with after a RESYNC.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType

from lab.fleet import messages
from lab.fleet.link import Link
from lab.fleet.proto import tracker_pb2
from yarn_copilot.hadoop import framing
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.model import NodeId, Resource
from yarn_copilot.hadoop.protocols import resources

RECONNECT_SECONDS = 0.2
FIRST_ADDRESS = "10.64.0.1"
SLICES_PER_ROUND = 20
"""Heartbeats of a round are spread over it, as those of independent NodeManagers are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """Say what the nodes look like.

    Attributes:
        resource: what a fresh node registers with.
        host_format: host names, from the node's number; empty: addresses like 10.64.0.17. The ResourceManager looks
            every registering name up (CachedDNSToSwitchMapping), which takes some 80 ms for one that does not exist,
            so names are for a ResourceManager with a hosts file.
        port: the same for every node.
        http_port: the same for every node.
        heartbeat_seconds: time between two reports of a node.
        user: effective user of the connection.
    """

    resource: Resource = field(default_factory=lambda: Resource(8192, 8))
    host_format: str = ""
    port: int = 8041
    http_port: int = 8042
    heartbeat_seconds: float = 1.0
    user: str = "yarn"


@dataclass(slots=True, eq=False)
class FleetNode:
    """Be one NodeManager.

    Attributes:
        resource: what it registers with: the value adopted last.
        adopted_at: monotonic seconds of the last adoption; None before the first.
        adoptions: how often a new resource came.
        is_silent: send nothing, so that the ResourceManager declares it LOST.
        shutdown_diagnostics: why the ResourceManager sent it away; None while it did not.
    """

    node_id: NodeId
    resource: Resource
    writer: messages.MessageWriter
    adopted_at: float | None = None
    adoptions: int = 0
    is_registered: bool = False
    is_silent: bool = False
    shutdown_diagnostics: str | None = None
    is_waiting: bool = False
    response_id: int = 0


@dataclass(slots=True)
class FleetStatistics:
    """Count what happened."""

    registrations: int = 0
    heartbeats: int = 0
    resyncs: int = 0
    shutdowns: int = 0
    connections: int = 0
    errors: int = 0
    last_error: str = ""
    registered_seconds: float | None = field(default=None)


class Fleet:
    """Be many NodeManagers; use with `async with`, which returns when all are registered."""

    def __init__(
        self, tracker_address: str, nodes: int | Sequence[NodeId], *, options: FleetOptions | None = None
    ) -> None:
        """Make the nodes; nothing is sent yet.

        Args:
            tracker_address: host:port of yarn.resourcemanager.resource-tracker.address.
            nodes: how many, or their ids.
            options: sizes and times.
        """
        self.options = options or FleetOptions()
        self._address = Address.parse(tracker_address)
        node_ids = self._numbered(nodes) if isinstance(nodes, int) else nodes
        self.nodes = [
            FleetNode(
                node_id,
                self.options.resource,
                messages.MessageWriter(node_id, http_port=self.options.http_port),
            )
            for node_id in node_ids
        ]
        self.statistics = FleetStatistics()
        self._unregistered = len(self.nodes)
        self._all_registered = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._link: Link[FleetNode] | None = None

    async def __aenter__(self) -> Fleet:
        started = time.monotonic()
        self._task = asyncio.create_task(self._run(), name="fleet")
        await self.wait_registered()
        self.statistics.registered_seconds = time.monotonic() - started
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def wait_registered(self) -> None:
        """Wait until every node that is neither silent nor sent away is registered.

        Raises:
            BaseException: whatever ended the fleet's task.
        """
        waiting = asyncio.create_task(self._all_registered.wait())
        try:
            await asyncio.wait([waiting, *([self._task] if self._task else [])], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if self._task is not None and self._task.done():
            self._task.result()

    def restart_node(self, node: FleetNode) -> None:
        """Start a node's process anew: it registers with what it was configured with."""
        if node.is_registered:
            self._unregister(node)
        elif node.shutdown_diagnostics is not None:
            self._unregistered += 1
            self._all_registered.clear()
        node.resource = self.options.resource
        node.shutdown_diagnostics = None
        node.is_silent = False

    def unregister_node(self, node: FleetNode) -> None:
        """Stop a node's process in good order: it says goodbye and becomes SHUTDOWN."""
        node.is_silent = True
        if self._link is not None:
            self._link.queue_call(messages.UNREGISTER, node.writer.farewell(), node)
            self._link.flush()

    async def say_farewell(self, *, timeout_seconds: float = 10.0) -> None:
        """Stop every node in good order and wait until the ResourceManager has answered them all.

        Raises:
            TimeoutError: it did not.
        """
        for node in self.nodes:
            if node.is_registered:
                self.unregister_node(node)
        async with asyncio.timeout(timeout_seconds):
            if self._link is not None:
                await self._link.all_answered()

    async def stop(self) -> None:
        """Stop without a word; the nodes become LOST in time."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _run(self) -> None:
        """Connect, report until the connection ends, and again."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                _, link = await loop.create_connection(self._make_link, self._address.host, self._address.port)
            except OSError as error:
                self.statistics.last_error = str(error)
                await asyncio.sleep(RECONNECT_SECONDS)
                continue
            self.statistics.connections += 1
            self._link = link
            try:
                await self._report(link)
            finally:
                for node in link.abandon():
                    node.is_waiting = False
                await link.closed

    def _make_link(self) -> Link[FleetNode]:
        return Link(messages.PROTOCOL, self.options.user, on_answer=self._take_answer)

    async def _report(self, link: Link[FleetNode]) -> None:
        """Send rounds until the connection ends."""
        for node in self.nodes:
            if not node.is_registered:
                self._send(node, link)
        link.flush()
        pause = self.options.heartbeat_seconds / SLICES_PER_ROUND
        next_slice = time.monotonic()
        number = 0
        while not link.closed.done():
            for node in self.nodes[number % SLICES_PER_ROUND :: SLICES_PER_ROUND]:
                self._send(node, link)
            link.flush()
            number += 1
            next_slice = max(next_slice + pause, time.monotonic() - self.options.heartbeat_seconds)
            await asyncio.wait([link.closed], timeout=max(0.0, next_slice - time.monotonic()))

    def _send(self, node: FleetNode, link: Link[FleetNode]) -> None:
        """Queue a registration or a heartbeat, unless the last one has no answer yet."""
        if node.is_waiting or node.is_silent or node.shutdown_diagnostics is not None:
            return
        node.is_waiting = True
        if node.is_registered:
            link.queue_call(messages.HEARTBEAT, node.writer.heartbeat(node.response_id), node)
        else:
            link.queue_call(messages.REGISTER, node.writer.registration(node.resource), node)

    def _take_answer(self, node: FleetNode, response: framing.Response) -> None:
        node.is_waiting = False
        if response.status is not framing.Status.SUCCESS:
            self.statistics.errors += 1
            self.statistics.last_error = f"{response.exception_class_name}: {response.error_message[:256]}"
        elif node.is_silent:
            return  # an answer to what was sent before, or to the farewell
        elif node.is_registered:
            self._take_heartbeat_answer(node, response.body)
        else:
            self._take_registration_answer(node, response.body)

    def _take_registration_answer(self, node: FleetNode, body: bytes) -> None:
        answer = tracker_pb2.RegisterNodeManagerResponse.FromString(body)
        if answer.node_action == tracker_pb2.SHUTDOWN:
            self._shut_down(node, answer.diagnostics_message)
            self._count_registered()
            return
        self.statistics.registrations += 1
        node.writer.keep_keys(answer)
        node.response_id = 0
        node.is_registered = True
        if answer.HasField("resource"):
            self._adopt(node, resources.from_proto(answer.resource))
        self._count_registered()

    def _take_heartbeat_answer(self, node: FleetNode, body: bytes) -> None:
        answer = tracker_pb2.NodeHeartbeatResponse.FromString(body)
        self.statistics.heartbeats += 1
        if answer.node_action == tracker_pb2.NORMAL:
            node.response_id = answer.response_id
            if answer.HasField("resource"):
                self._adopt(node, resources.from_proto(answer.resource))
        elif answer.node_action == tracker_pb2.RESYNC:
            self.statistics.resyncs += 1
            self._unregister(node)
            if self._link is not None:
                self._send(node, self._link)
                self._link.flush()
        else:
            self._unregister(node)
            self._shut_down(node, answer.diagnostics_message)
            self._count_registered()

    def _adopt(self, node: FleetNode, resource: Resource) -> None:
        node.resource = resource
        node.adopted_at = time.monotonic()
        node.adoptions += 1

    def _shut_down(self, node: FleetNode, diagnostics: str) -> None:
        self.statistics.shutdowns += 1
        node.shutdown_diagnostics = diagnostics

    def _unregister(self, node: FleetNode) -> None:
        node.is_registered = False
        self._unregistered += 1
        self._all_registered.clear()

    def _count_registered(self) -> None:
        self._unregistered -= 1
        if self._unregistered == 0:
            self._all_registered.set()

    def _numbered(self, count: int) -> list[NodeId]:
        host_format, port = self.options.host_format, self.options.port
        if host_format:
            return [NodeId(host_format.format(number), port) for number in range(count)]
        first = ipaddress.IPv4Address(FIRST_ADDRESS)
        return [NodeId(str(first + number), port) for number in range(count)]
