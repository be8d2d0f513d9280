# SPDX-License-Identifier: Apache-2.0
"""Join the agent: parenting, lingering work and both APIs, over one cgroup tree and one NodeManager.

The supervisor (or a sidecar's entry point) builds one, runs it beside the NodeManager and tells it about drains.
Nothing here stops or starts the NodeManager.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass

from batch_resources.resources import BatchResources, YarnResources
from batch_resources.units import UnitModel
from nm_proxy.agent_metrics import AgentMetrics, ContainerFigures, NodeFigures
from nm_proxy.agent_settings import AgentSettings, ParentingMode
from nm_proxy.cgroup.detection import Detection, detect
from nm_proxy.cgroup.errors import CgroupError
from nm_proxy.cgroup.files import Files, KernelFiles
from nm_proxy.cgroup.holding import Hold
from nm_proxy.cgroup.killing import GroupKiller, Signaller
from nm_proxy.cgroup.mounts import Mount
from nm_proxy.cgroup.tree import CgroupTree
from nm_proxy.clock import Clock, SystemClock
from nm_proxy.containers import Catalog
from nm_proxy.copilot.answers import State
from nm_proxy.copilot.node import CopilotNode
from nm_proxy.copilot.port_api import PortAPI
from nm_proxy.copilot.socket_api import SocketAPI
from nm_proxy.draining import Drain, DrainState
from nm_proxy.killing import ContainerKiller
from nm_proxy.lingering.loop import LingeringLoop
from nm_proxy.lingering.tracking import Delays, total_held
from nm_proxy.node_view import NodeManagerReader, NodeManagerView
from nm_proxy.nodemanager.model import Answering
from nm_proxy.nodemanager.pid_files import PidFiles
from nm_proxy.nodemanager.processes import ProcessReader
from nm_proxy.nodemanager.rest import NodeManagerClient
from nm_proxy.parenting.adopter import Adopter, AdopterOptions, Times
from nm_proxy.parenting.detaching import Detacher, is_detaching
from nm_proxy.parenting.loop import ParentingLoop
from nm_proxy.parenting.parent import Owner, Parent
from nm_proxy.pid_namespace import is_host_pid_namespace

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Hold what of the machine a test replaces.

    Attributes:
        files: how to touch the cgroup tree.
        mounts: which hierarchies are mounted; None reads /proc/self/mountinfo.
        processes: how to read /proc.
        signaller: how to signal a process; None uses pidfds.
        clock: time.
        is_host_pid: this is the machine's own PID namespace.
    """

    files: Files
    mounts: Iterable[Mount] | None
    processes: ProcessReader
    signaller: Signaller | None
    clock: Clock
    is_host_pid: bool = False

    @classmethod
    def of_machine(cls) -> Surroundings:
        """Give the real ones."""
        return cls(
            files=KernelFiles(),
            mounts=None,
            processes=ProcessReader(),
            signaller=None,
            clock=SystemClock(),
            is_host_pid=is_host_pid_namespace(),
        )


class Agent:
    """Be everything that runs beside the NodeManager, but the supervisor; one per process and event loop."""

    def __init__(self, settings: AgentSettings, surroundings: Surroundings | None = None) -> None:
        """Find the tree and build; nothing is changed before `run`.

        Raises:
            CgroupError: the tree, the driver or kubelet's directories were not found; path and fix are in it.
        """
        around = surroundings or Surroundings.of_machine()
        self.settings = settings
        self.metrics = AgentMetrics()
        self.drain = Drain()
        self._clock = around.clock
        self.detection = self._detect(around)
        self.tree = CgroupTree(self.detection.hierarchies, around.files)
        self._hold = Hold(self.detection.hierarchies.required("memory").at(self.detection.place.yarn))
        self._group_killer = GroupKiller(self.tree, around.signaller)
        access = settings.node_manager
        self._client = NodeManagerClient(access.url, timeout_seconds=access.timeout_seconds, user=access.user)
        self.reader = NodeManagerReader(
            self._client, clock=around.clock, poll_interval_seconds=access.poll_interval_seconds
        )
        self._units = UnitModel(settings.parenting.milli_cores_per_vcore)
        self._parent = self._build_parent()
        self.adopter = self._build_adopter(around)
        self.catalog = Catalog(
            self.tree,
            self.detection.place,
            around.processes,
            units=self._units,
            states=lambda: self.adopter.states,
            view=lambda: self.reader.view,
        )
        self.killer = ContainerKiller(self.catalog, self._group_killer, metrics=self.metrics, clock=around.clock)
        self._build_loops()
        self.node = self._build_node()
        self.copilot_port: int | None = None
        self.is_serving = asyncio.Event()
        self.metrics.set_source(self._figures)

    async def run(self) -> None:
        """Work until cancelled.

        Raises:
            DirectoryTakenError: the agent of another NodeManager works in the same directory.
            ServerStartError: the socket or the port cannot be used.
            TokenError: the token cannot be used.
        """
        logger.info("The cgroup tree", extra=self._found())
        with contextlib.suppress(CgroupError):  # the first pass says why
            await asyncio.to_thread(self._parent.prepare)
        with self._hold:
            await asyncio.to_thread(self._thaw_leftovers)
            await self._work()

    async def _work(self) -> None:
        servers = await self._start_servers()
        self.is_serving.set()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.reader.run())
                group.create_task(self.parenting.run())
                group.create_task(self.lingering.run())
        finally:
            for server in reversed(servers):
                await server.aclose()
            await self._client.aclose()

    async def state(self) -> State:
        """Give what `GET /v1/state` answers; for the supervisor's own drain and readiness."""
        return await self.node.state()

    def reload(self, settings: AgentSettings) -> None:
        """Take over the reloadable fields of new settings."""
        self.settings = settings
        self.reader.poll_interval_seconds = settings.node_manager.poll_interval_seconds
        self.parenting.interval_seconds = settings.parenting.interval_seconds
        self.adopter.options.empty_group_age_seconds = settings.parenting.empty_group_age_seconds
        self._parent.memory_wall_bytes = settings.parenting.memory_wall_bytes
        self.lingering.delays = self._delays()
        self.lingering.ends_them = settings.lingering.enabled

    def largest_ask(self) -> BatchResources:
        """Give what this node has: the machine, or more where the ResourceManager offers more."""
        machine = BatchResources(
            cpu_milli=(os.cpu_count() or 1) * 1000,
            memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        )
        info = self.reader.view.info
        if info is None:
            return machine
        return machine.at_least(self._units.to_batch(YarnResources(memory_mib=info.memory_mib, vcores=info.vcores)))

    def _detect(self, around: Surroundings) -> Detection:
        cgroup = self.settings.cgroup
        return detect(
            str(cgroup.root), mounts=around.mounts, files=around.files, driver=cgroup.driver, hierarchy=cgroup.hierarchy
        )

    def _build_parent(self) -> Parent:
        parenting = self.settings.parenting
        owner = None
        if parenting.mode is ParentingMode.EXECUTOR and parenting.owner_uid is not None:
            owner = Owner(uid=parenting.owner_uid, gid=parenting.owner_gid)
        return Parent(self.tree, self.detection.place, memory_wall_bytes=parenting.memory_wall_bytes, owner=owner)

    def _build_adopter(self, around: Surroundings) -> Adopter:
        parenting = self.settings.parenting
        return Adopter(
            self.tree,
            self.detection.place,
            self._parent,
            around.processes,
            times=Times(monotonic=around.clock.monotonic, wall=around.clock.wall),
            options=AdopterOptions(
                makes_groups=parenting.mode is ParentingMode.ADOPT,
                milli_cores_per_vcore=parenting.milli_cores_per_vcore,
                empty_group_age_seconds=parenting.empty_group_age_seconds,
                detacher=self._build_detacher(around),
            ),
        )

    def _build_detacher(self, around: Surroundings) -> Detacher | None:
        """Give one where a container's end would end tasks, and the kernel alone would not."""
        if not is_detaching(self.settings.parenting.mode, is_host_pid=around.is_host_pid):
            return None
        return Detacher(self.detection, around.files, around.processes, monotonic=around.clock.monotonic)

    def _build_loops(self) -> None:
        self.parenting = ParentingLoop(
            self.adopter,
            PidFiles(self.settings.node_manager.local_directories),
            self.reader,
            metrics=self.metrics,
            clock=self._clock,
            interval_seconds=self.settings.parenting.interval_seconds,
        )
        self.lingering = LingeringLoop(
            self.catalog,
            self.killer,
            self._view,
            delays=self._delays(),
            metrics=self.metrics,
            clock=self._clock,
        )
        self.lingering.ends_them = self.settings.lingering.enabled

    def _build_node(self) -> CopilotNode:
        return CopilotNode(
            catalog=self.catalog,
            killer=self.killer,
            view=self._view,
            lingering=lambda: self.lingering.lingering,
            drain=self.drain,
            largest_ask=self.largest_ask,
            kill_timeout_seconds=lambda: self.settings.copilot.kill_timeout_seconds,
            monotonic=self._clock.monotonic,
        )

    async def _start_servers(self) -> list[SocketAPI | PortAPI]:
        copilot = self.settings.copilot
        servers: list[SocketAPI | PortAPI] = []
        try:
            if copilot.socket is not None:
                socket_api = SocketAPI(self.node, copilot.socket, allowed_uids=copilot.allowed_uids)
                await socket_api.start()
                servers.append(socket_api)
            if copilot.port is not None:
                port_api = PortAPI(self.node, copilot)
                self.copilot_port = await port_api.start()
                servers.append(port_api)
        except BaseException:
            for server in servers:
                await server.aclose()
            raise
        return servers

    def _view(self) -> NodeManagerView:
        return self.reader.view

    def _delays(self) -> Delays:
        lingering = self.settings.lingering
        return Delays(
            finished_seconds=lingering.finished_delay_seconds,
            dead_node_manager_seconds=lingering.dead_node_manager_delay_seconds,
        )

    def _thaw_leftovers(self) -> None:
        """Let groups run that this program left frozen when it was killed in the middle of a kill."""
        for container_id in self.tree.containers(self.detection.place.yarn):
            try:
                if self._group_killer.thaw(self.detection.place.container(container_id)):
                    logger.warning("Thawed a group that a former run left frozen", extra={"container": container_id})
            except CgroupError as error:
                logger.warning("Cannot thaw a group", extra={"container": container_id, "error": str(error)})

    def _found(self) -> dict[str, str]:
        place = self.detection.place
        return {
            "version": self.tree.version.value,
            "driver": place.driver.value if place.driver else "given path",
            "path": place.yarn,
            "hierarchies": " ".join(
                f"{one.mount_point}({one.version.value}:{','.join(sorted(one.controllers))})"
                for one in self.detection.hierarchies.every
            ),
        }

    def _figures(self) -> NodeFigures:
        containers = self.catalog.every()
        with_group = [one for one in containers if one.stats is not None]
        lingering = dict(self.lingering.lingering)
        held = total_held(lingering.values())
        count = sum(1 for one in containers if one.processes or (one.report and not one.is_finished))
        return NodeFigures(
            parent=self.catalog.parent_stats(),
            containers=[
                ContainerFigures(
                    container_id=one.container_id, stats=one.stats, vcores=one.report.vcores if one.report else None
                )
                for one in with_group
                if one.stats is not None
            ],
            answering=self.reader.view.answering.value,
            answering_words=tuple(word.value for word in Answering),
            drain=self.drain.state(containers=count).value,
            drain_words=tuple(word.value for word in DrainState),
            unsettled=sum(1 for one in containers if one.processes and not one.is_done),
            lingering=len(lingering),
            lingering_memory_bytes=held.memory_bytes,
            lingering_cpu_milli=held.cpu_milli,
        )
