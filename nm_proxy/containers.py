# SPDX-License-Identifier: Apache-2.0
"""Join what the NodeManager says, what parenting knows and what the kernel counts into one list of containers.

Read when somebody asks; reading touches the cgroup tree and /proc, so callers keep it off the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from batch_resources.resources import ZERO_BATCH, BatchResources, YarnResources
from batch_resources.units import UnitModel
from batch_resources.victims import Candidate, ExecutionType
from nm_proxy.cgroup.layout import Place, Version
from nm_proxy.cgroup.stats import Stats, read_stats
from nm_proxy.cgroup.tree import CgroupTree
from nm_proxy.cgroup.weights import SHARES_PER_CORE, WEIGHT_PER_VCORE
from nm_proxy.container_ids import application_of, is_application_master, turn_of
from nm_proxy.node_view import NodeManagerView
from nm_proxy.nodemanager.model import ContainerReport
from nm_proxy.nodemanager.processes import ProcessReader
from nm_proxy.parenting.records import GroupState


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContainer:
    """Hold one container that has a group, or that the NodeManager lists.

    Attributes:
        path: of its group, relative to a hierarchy's root.
        report: the NodeManager's entry in its last list; None where it is not in it.
        stats: what the kernel counts; None without a group.
        processes: how many are inside; None where its group is missing.
        holds: what it was given (what the group is limited to, where the NodeManager does not know it), and at least
            the memory it uses.
        started_at: when its first process started, seconds since 1970; None where that is not known.
        is_done: everyone is inside and the limits are in force.
    """

    container_id: str
    path: str
    report: ContainerReport | None
    stats: Stats | None
    processes: int
    holds: BatchResources
    started_at: float | None
    is_done: bool
    error: str = ""

    @property
    def application_id(self) -> str:
        """Give its application."""
        return application_of(self.container_id) or ""

    @property
    def is_application_master(self) -> bool:
        """Tell whether its application dies with it."""
        return is_application_master(self.container_id)

    @property
    def execution_type(self) -> ExecutionType:
        """Give its type; GUARANTEED where the NodeManager does not know it, which spares it longer."""
        return self.report.execution_type if self.report else ExecutionType.GUARANTEED

    @property
    def is_finished(self) -> bool:
        """Tell whether the NodeManager lists it as finished."""
        return self.report is not None and self.report.is_finished

    def candidate(self) -> Candidate:
        """Give it to the kill policy."""
        return Candidate(
            container_id=self.container_id,
            holds=self.holds,
            started_at=self.started_at,
            application_id=self.application_id,
            turn=turn_of(self.container_id),
            is_application_master=self.is_application_master,
            execution_type=self.execution_type,
        )


class Catalog:
    """Read the list; safe for several threads."""

    def __init__(
        self,
        tree: CgroupTree,
        place: Place,
        processes: ProcessReader,
        *,
        units: UnitModel,
        states: Callable[[], Mapping[str, GroupState]],
        view: Callable[[], NodeManagerView],
    ) -> None:
        """Join sources.

        Args:
            tree, place, processes: adapters.
            units: how many milli-cores a vcore is.
            states: what parenting knows now.
            view: what the NodeManager said last.
        """
        self.tree = tree
        self.place = place
        self._processes = processes
        self._units = units
        self._states = states
        self._view = view

    def every(self) -> list[NodeContainer]:
        """Read all containers that have a group, and those that the NodeManager has live without one yet."""
        view = self._view()
        live = {name for name, report in view.containers.items() if not report.is_finished}
        names = self.tree.containers(self.place.yarn) | live
        return [self._container(name, view.containers.get(name)) for name in sorted(names)]

    def in_groups(self, view: NodeManagerView, wanted: Callable[[ContainerReport | None], bool]) -> list[NodeContainer]:
        """Read those containers with a group whose entry in the NodeManager's list, None without one, is wanted."""
        names = sorted(self.tree.containers(self.place.yarn))
        return [self._container(name, view.containers.get(name)) for name in names if wanted(view.containers.get(name))]

    def one(self, container_id: str) -> NodeContainer | None:
        """Read one container; None if nobody knows it.

        Raises:
            ValueError: the text is no container id.
        """
        path = self.place.container(container_id)
        report = self._view().containers.get(container_id)
        if not self.tree.exists_anywhere(path) and (report is None or report.is_finished):
            return None
        return self._container(container_id, report)

    def parent_stats(self) -> Stats | None:
        """Read YARN's directory as a whole; None if it does not exist."""
        return read_stats(self.tree, self.place.yarn) if self.tree.exists(self.place.yarn) else None

    def _container(self, container_id: str, report: ContainerReport | None) -> NodeContainer:
        path = self.place.container(container_id)
        state = self._states().get(container_id)
        stats = read_stats(self.tree, path) if self.tree.exists_anywhere(path) else None
        root = state.root if state else None
        return NodeContainer(
            container_id=container_id,
            path=path,
            report=report,
            stats=stats,
            processes=len(self.tree.processes(path)) if stats else 0,
            holds=self._holds(report, stats),
            started_at=self._processes.started_at(root.start_ticks) if root else state.launched_at if state else None,
            is_done=state.is_done if state else False,
            error=state.error if state else "",
        )

    def _holds(self, report: ContainerReport | None, stats: Stats | None) -> BatchResources:
        given = self._given(report) or self._limited_to(stats)
        used = BatchResources(cpu_milli=0, memory_bytes=(stats.memory_bytes or 0) if stats else 0)
        return given.at_least(used)

    def _given(self, report: ContainerReport | None) -> BatchResources | None:
        if report is None or report.memory_mib is None or report.vcores is None:
            return None
        return self._units.to_batch(YarnResources(memory_mib=report.memory_mib, vcores=report.vcores))

    def _limited_to(self, stats: Stats | None) -> BatchResources:
        """Read off the group what the container was given, for one that the NodeManager has forgotten."""
        if stats is None or stats.values is None:
            return ZERO_BATCH
        cpu = self.tree.hierarchies.required("cpu")
        each = SHARES_PER_CORE if cpu.version is Version.V1 else WEIGHT_PER_VCORE
        vcores = (stats.values.cpu or 0) // each
        cpu_milli = self._units.to_batch(YarnResources(memory_mib=0, vcores=vcores)).cpu_milli
        return BatchResources(cpu_milli=cpu_milli, memory_bytes=stats.values.memory_bytes or 0)
