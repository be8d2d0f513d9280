# SPDX-License-Identifier: Apache-2.0
"""Put a whole small YARN into the process: ResourceManager ports, NodeManagers, applications."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol

from lab.embedded.yarn.containers import Ask, EmbeddedContainer, ExitStatus
from lab.embedded.yarn.faults import FaultScript
from lab.embedded.yarn.node_manager import EmbeddedNodeManager
from lab.embedded.yarn.operations import HA_PROTOCOL, HAService, OperationsService, Register
from lab.embedded.yarn.queues import DEFAULT_QUEUES, QueueDefinition, QueueTree
from lab.embedded.yarn.resource_manager import ResourceManagerState, RMNode, Rules
from lab.embedded.yarn.rpc_server import Method, RPCServer
from lab.embedded.yarn.sasl_server import Authentication
from lab.embedded.yarn.services import (
    ADMIN_PROTOCOL,
    CLIENT_PROTOCOL,
    TRACKER_PROTOCOL,
    AdminService,
    ClientService,
    TrackerService,
)
from yarn_copilot.hadoop.model import NodeId, NodeResourceUpdate, Resource


class MonotonicClock(Protocol):
    """Give seconds that never run backwards."""

    def monotonic(self) -> float:
        """Read the clock."""


class _SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(frozen=True, slots=True)
class RecordedUpdate:
    """Remember one node of one accepted batch; `at` in monotonic seconds."""

    update: NodeResourceUpdate
    user: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedYarnOptions:
    """Say how the cluster behaves.

    Attributes:
        heartbeat_seconds: time between two rounds of heartbeats; None: only when `heartbeat` is called.
        apply_delay_seconds: time between the answer to an update and its effect; 0: the loop's next turn.
        rules: limits and delays of the ResourceManager.
        queues: the queue tree.
        admins: users that may change nodes; None: everybody.
        clock: injected by tests.
        host: loopback address to listen on.
        rm_id: id in a pair; None: no high availability, so that HAServiceProtocol is unknown.
        is_active: state in a pair at the start.
        authentication: what clients must prove on the client and administration ports; None: nothing.
    """

    heartbeat_seconds: float | None = 0.2
    apply_delay_seconds: float = 0.0
    rules: Rules | None = None
    queues: QueueDefinition = DEFAULT_QUEUES
    admins: frozenset[str] | None = None
    clock: MonotonicClock | None = None
    host: str = "127.0.0.1"
    rm_id: str | None = None
    is_active: bool = True
    authentication: Authentication | None = None


class EmbeddedYarn:
    """Be a YARN cluster on loopback; use with `async with`, on one event loop.

    Attributes:
        calls: method name to number of calls, over all ports.
        updates: every node update that was accepted, in order.
        faults: what is to go wrong with answers.
        node_managers: the NodeManagers that `add_node` made, by node id.
        register: exclude list, labels and attributes.
        is_active: state in a pair; change it with `become_active` and `become_standby`, or set it to play a
            ResourceManager that does not know yet that it was deposed.
    """

    def __init__(self, options: EmbeddedYarnOptions | None = None) -> None:
        """Prepare a cluster without nodes; nothing listens yet."""
        self.options = options or EmbeddedYarnOptions()
        self._clock = self.options.clock or _SystemClock()
        self.calls: Counter[str] = Counter()
        self.updates: list[RecordedUpdate] = []
        self.faults = FaultScript()
        self.admins = self.options.admins
        self.node_managers: dict[NodeId, EmbeddedNodeManager] = {}
        self.state = ResourceManagerState(self.options.rules or Rules())
        self.queues = QueueTree(self.options.queues)
        self._applications = 0
        self._is_up = False
        self._heartbeats: asyncio.Task[None] | None = None
        self._pending: set[asyncio.TimerHandle] = set()
        self.register = Register()
        self.is_active = self.options.is_active
        operations = OperationsService(lambda: self.state, self.register, self.now)
        client = ClientService(lambda: self.state, self.queues, self.now)
        admin = AdminService(lambda: self.state, self.take, lambda: self.admins)
        heartbeat_millis = int((self.options.heartbeat_seconds or 1.0) * 1000)
        self.client_port = self._server({CLIENT_PROTOCOL: {**client.methods(), **operations.client_methods()}})
        guarded = admin.guarded(
            {**admin.methods(), **operations.admin_methods()},
            rm_id=self.options.rm_id or "null",
            is_active=lambda: self.is_active,
        )
        ha = {HA_PROTOCOL: HAService(lambda: self.is_active).methods()} if self.options.rm_id else {}
        self.admin_port = self._server({ADMIN_PROTOCOL: guarded, **ha})
        self.tracker_port = self._server(
            {TRACKER_PROTOCOL: TrackerService(lambda: self.state, self.now, heartbeat_millis).methods()}
        )
        self.client_port.authentication = self.admin_port.authentication = self.options.authentication

    async def __aenter__(self) -> EmbeddedYarn:
        await self.start_rm()
        if self.options.heartbeat_seconds is not None:
            self._heartbeats = asyncio.create_task(self._beat_for_ever(self.options.heartbeat_seconds))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._heartbeats
        await self.stop_rm()

    # Where it is

    def now(self) -> float:
        """Read the clock, monotonic seconds."""
        return self._clock.monotonic()

    @property
    def tracker_address(self) -> str:
        """Give host:port for NodeManagers of other processes."""
        return f"{self.options.host}:{self.tracker_port.port}"

    def conf_dir(self, path: Path, *, cluster_id: str = "", web_port: int | None = None) -> Path:
        """Write a yarn-site.xml that leads here, and give the directory.

        Args:
            path: directory; made if missing.
            cluster_id: prefix of the file's name; empty for the only cluster.
            web_port: where its web services are served; None: nowhere.
        """
        path.mkdir(parents=True, exist_ok=True)
        properties = {
            "yarn.resourcemanager.address": f"{self.options.host}:{self.client_port.port}",
            "yarn.resourcemanager.admin.address": f"{self.options.host}:{self.admin_port.port}",
            "yarn.resourcemanager.resource-tracker.address": self.tracker_address,
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": str(
                int((self.options.heartbeat_seconds or 1.0) * 1000)
            ),
        }
        if web_port is not None:
            properties["yarn.resourcemanager.webapp.address"] = f"{self.options.host}:{web_port}"
        lines = [
            f"  <property><name>{key}</name><value>{value}</value></property>" for key, value in properties.items()
        ]
        name = f"{cluster_id}.yarn-site.xml" if cluster_id else "yarn-site.xml"
        (path / name).write_text("\n".join(["<configuration>", *lines, "</configuration>", ""]))
        return path

    # The ResourceManager's life

    async def start_rm(self) -> None:
        """Listen, on the same ports as before a stop; NodeManagers register with their next heartbeat."""
        await self.admin_port.start()
        for server in self._active_servers():
            await server.start()  # also on standby, so that ports are known
        self._is_up = True
        if not self.is_active:
            await self.become_standby()

    async def become_standby(self) -> None:
        """Stop what only an active one serves, forget everything, and refuse administration."""
        self.is_active = False
        await self._stop_active_services()

    async def become_active(self) -> None:
        """Serve again; NodeManagers register with their next heartbeat."""
        self.is_active = True
        for server in self._active_servers():
            await server.start()
        self._is_up = True

    async def stop_rm(self) -> None:
        """Close ports and connections and forget everything; NodeManagers and containers go on."""
        await self.admin_port.stop()
        await self._stop_active_services()

    async def _stop_active_services(self) -> None:
        self._is_up = False
        for server in self._active_servers():
            await server.stop()
        for handle in self._pending:
            handle.cancel()
        self._pending.clear()
        old = self.state
        self.state = ResourceManagerState(old.rules, finished=old.finished, asks=old.asks, counter=old.counter)
        for node_id, manager in self.node_managers.items():
            node = old.nodes.get(node_id)
            manager.forget_registration(list(node.scheduler.containers) if node else manager.survivors)

    async def restart_rm(self) -> None:
        """Stop and start at once."""
        await self.stop_rm()
        await self.start_rm()

    # Nodes

    def add_node(
        self, host: str, port: int = 8041, *, memory_mib: int = 8192, vcores: int = 8, http_port: int = 8042
    ) -> EmbeddedNodeManager:
        """Start a NodeManager; it registers and reports at once."""
        return self.add_node_with(NodeId(host, port), Resource(memory_mib, vcores), http_port=http_port)

    def add_node_with(self, node_id: NodeId, configured: Resource, *, http_port: int = 8042) -> EmbeddedNodeManager:
        """Start a NodeManager with any resource vector."""
        manager = EmbeddedNodeManager(node_id=node_id, configured=configured, http_port=http_port)
        self.node_managers[node_id] = manager
        if self._is_up:
            manager.beat(self.state, self.now())
        return manager

    def node(self, node_id: NodeId) -> RMNode:
        """Look at an active node as the ResourceManager does.

        Raises:
            KeyError: the node is not in the active map.
        """
        return self.state.nodes[node_id]

    def stop_node(self, node_id: NodeId) -> None:
        """Stop a NodeManager in good order: it becomes SHUTDOWN."""
        self.node_managers[node_id].stop(self.state)

    def decommission(self, node_id: NodeId) -> None:
        """Begin a graceful decommission."""
        self.state.decommission(node_id)

    def recommission(self, node_id: NodeId) -> None:
        """Take a decommissioning node back."""
        self.state.recommission(node_id, now=self.now())

    def heartbeat(self, rounds: int = 1) -> None:
        """Let every NodeManager report once, or several times; silent ones expire."""
        for _ in range(rounds):
            if self._is_up:
                now = self.now()
                for manager in self.node_managers.values():
                    manager.beat(self.state, now)
                self.state.expire(now)

    # Applications

    def new_application(self) -> int:
        """Give the number of a new application."""
        self._applications += 1
        return self._applications

    def launch_container(
        self,
        node_id: NodeId,
        *,
        memory_mib: int,
        vcores: int,
        queue: str = "root.batch.etl",
        application: int | None = None,
        is_application_master: bool = False,
        seconds: float | None = None,
    ) -> EmbeddedContainer:
        """Put a running container on a node, whether or not it fits.

        Args:
            node_id: an active node.
            memory_mib: its memory.
            vcores: its vcores.
            queue: a leaf queue.
            application: what it belongs to; None: an application of its own.
            is_application_master: its end ends the application.
            seconds: how long it runs; None: until it is finished from outside.
        """
        container = EmbeddedContainer(
            number=next(self.state.counter),
            node_id=node_id,
            resource=Resource(memory_mib, vcores),
            queue=self.queues.leaf_path(queue),
            application=self.new_application() if application is None else application,
            is_application_master=is_application_master,
            is_launched=True,
            ends_at=None if seconds is None else self.now() + seconds,
        )
        self.state.launch(container)
        return container

    def ask(
        self,
        queue: str,
        *,
        memory_mib: int,
        vcores: int,
        count: int,
        application: int | None = None,
        seconds: float | None = None,
    ) -> Ask:
        """Ask for containers; heartbeats place them wherever they fit."""
        ask = Ask(
            queue=self.queues.leaf_path(queue),
            resource=Resource(memory_mib, vcores),
            count=count,
            application=self.new_application() if application is None else application,
            container_seconds=seconds,
        )
        self.state.asks.append(ask)
        return ask

    def end_application(self, application: int) -> None:
        """End an application: its containers stop, what it still asks for is withdrawn."""
        self.state.end_application(application)

    def finish_container(self, container: EmbeddedContainer) -> None:
        """End a container well."""
        self.state.finish(container, ExitStatus.SUCCESS)

    def running(self, application: int | None = None) -> Sequence[EmbeddedContainer]:
        """List running containers, of one application or of all."""
        containers = self.state.running_containers()
        return [one for one in containers if application is None or one.application == application]

    def killed(self) -> Sequence[EmbeddedContainer]:
        """List containers that a capacity change killed."""
        return [one for one in self.state.finished if one.exit_status is ExitStatus.PREEMPTED]

    # Inside

    def _active_servers(self) -> Iterable[RPCServer]:
        return (self.client_port, self.tracker_port)

    def _server(self, services: Mapping[str, Mapping[str, Method]]) -> RPCServer:
        return RPCServer(services, calls=self.calls, faults=self.faults, host=self.options.host)

    def take(self, updates: list[NodeResourceUpdate], user: str) -> None:
        """Accept a batch; it takes effect later, as through the dispatcher of a real ResourceManager."""
        now = self.now()
        self.updates.extend(RecordedUpdate(update, user, now) for update in updates)
        handle: asyncio.TimerHandle

        def apply() -> None:
            self._pending.discard(handle)
            for update in updates:
                self.state.apply_update(update, now=self.now())

        handle = asyncio.get_running_loop().call_later(self.options.apply_delay_seconds, apply)
        self._pending.add(handle)

    async def _beat_for_ever(self, interval_seconds: float) -> None:
        while True:
            await asyncio.sleep(interval_seconds)
            self.heartbeat()
