# SPDX-License-Identifier: Apache-2.0
"""Bring containers into their groups and keep them there, one pass at a time.

A pass looks at everything that is and makes it what it should be; it remembers only identities of processes and which
values were in force, so that it can tell a repair from a first write. Nothing is tried once: what fails is tried
again by the next pass. Blocking; one thread at a time.

`adopt`: groups are made here, from pid files and from container ids in environments. `executor`: groups exist
already in the hierarchies that the executor knows; the others are completed, and values stay the NodeManager's.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nm_proxy.cgroup.errors import CgroupError, GroupGoneError
from nm_proxy.cgroup.gathering import Gathered, gather, move_first
from nm_proxy.cgroup.layout import Place
from nm_proxy.cgroup.tree import CgroupTree, Values
from nm_proxy.node_view import NodeManagerView
from nm_proxy.nodemanager.model import Answering, ContainerReport
from nm_proxy.nodemanager.pid_files import PidFile
from nm_proxy.nodemanager.processes import ProcessReader, ProcessTable
from nm_proxy.parenting.belonging import BelongingLook, own_processes
from nm_proxy.parenting.detaching import Detacher
from nm_proxy.parenting.finding import Finder, is_live
from nm_proxy.parenting.parent import Parent
from nm_proxy.parenting.planning import Repair, desired_values, plan_values
from nm_proxy.parenting.records import GroupState, PassReport, Record

logger = logging.getLogger(__name__)


LAUNCHES_AT_ONCE: Final = 1000
"""So many are moved at most before the look for those that their first processes have started meanwhile."""


@dataclass(slots=True, kw_only=True)
class AdopterOptions:
    """Hold how the adopter behaves.

    Attributes:
        makes_groups: mode `adopt`; False is `executor`.
        milli_cores_per_vcore: for the parent's weight.
        empty_group_age_seconds: before this age an empty group is never removed.
        detacher: takes tasks out of this program's container; None where that does not matter.
    """

    makes_groups: bool = True
    milli_cores_per_vcore: int = 1000
    empty_group_age_seconds: float = 60.0
    detacher: Detacher | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Hold the clocks of the adopter's thread."""

    monotonic: Callable[[], float]
    wall: Callable[[], float]


class Adopter:
    """Hold the records of all containers and do the passes."""

    def __init__(
        self,
        tree: CgroupTree,
        place: Place,
        parent: Parent,
        processes: ProcessReader,
        *,
        times: Times,
        options: AdopterOptions | None = None,
    ) -> None:
        self._tree = tree
        self._place = place
        self._parent = parent
        self._processes = processes
        self._times = times
        self.options = options or AdopterOptions()
        self._finder = Finder(tree, place, processes, monotonic=times.monotonic, wall=times.wall)
        self._records = self._finder.records
        self._lock = threading.Lock()
        self.states: Mapping[str, GroupState] = {}

    def full_pass(self, view: NodeManagerView, pid_files: Mapping[str, PidFile]) -> PassReport:
        """Look at everything and put everything right.

        Args:
            view: the NodeManager's last list and how it answers.
            pid_files: all pid files there are.
        """
        report = PassReport()
        with self._lock:
            try:
                report.repair("", self._parent.prepare())
                existing = self._bring_in(view, pid_files, report)
                self._apply_values(self._records, view, report)
                self._weigh(report)
                self._sweep(view, pid_files, existing, report)
                if self.options.detacher is not None:
                    self.options.detacher.detach(self._records)
            except CgroupError as error:
                report.errors[""] = str(error)
            self._publish()
        return report

    def launch_pass(
        self,
        view: NodeManagerView,
        pid_files: Mapping[str, PidFile],
        more: Callable[[], Mapping[str, PidFile]] = dict,
    ) -> PassReport:
        """Bring newly launched containers in as fast as possible; everything else waits for the full pass.

        What `expect` did ahead is not checked again here; the full pass does that.

        Args:
            view: the NodeManager's last list.
            pid_files: those that appeared.
            more: gives those that appeared since, none if there are none. A look at all processes costs more than to
                move the first ones of many containers, so it comes once, when nobody waits to be moved.
        """
        report = PassReport()
        if not self.options.makes_groups:
            return report
        with self._lock:
            fresh: dict[str, Record] = {}
            begun: dict[str, Gathered] = {}
            try:
                while pid_files:
                    self._enter(view, pid_files, fresh, begun, report)
                    pid_files = more() if len(fresh) < LAUNCHES_AT_ONCE else {}
                self._gather(list(begun), lambda: (self._processes.table(), {}), report, begun=begun)
                self._measure(fresh, report)
            except CgroupError as error:
                report.errors[""] = str(error)
            self._publish()
        return report

    def _enter(
        self,
        view: NodeManagerView,
        pid_files: Mapping[str, PidFile],
        fresh: dict[str, Record],
        begun: dict[str, Gathered],
        report: PassReport,
    ) -> None:
        """Limit what is launched and move the first process of each; adds to what is fresh and what is begun."""
        launched = self._finder.note_pid_files(view, pid_files, report)
        found = {name: self._records[name] for name in pid_files if name in self._records}
        self._complete_groups([name for name in launched if not found[name].is_ahead], report)
        self._apply_values(found, view, report, trusts_own=True)
        fresh |= found
        for name in launched:
            record = found[name]
            record.is_ahead = False
            if record.root is not None:
                pids = frozenset((record.root.pid,))
                begun[name] = move_first(self._tree, record.path, pids, now=self._times.wall)

    def expect(self, container_ids: Iterable[str], view: NodeManagerView) -> None:
        """Make groups ahead, and limit those that the NodeManager lists: it has begun to prepare these containers."""
        if not self.options.makes_groups:
            return
        with self._lock:
            for container_id in container_ids:
                try:
                    self._tree.create(self._place.container(container_id))
                    record = self._finder.record(container_id)
                    self._limit(record, view.containers.get(container_id))
                    record.is_ahead = True
                except CgroupError as error:
                    logger.debug("Cannot make a group ahead", extra={"container": container_id, "error": str(error)})

    # Who there is

    def _bring_in(self, view: NodeManagerView, pid_files: Mapping[str, PidFile], report: PassReport) -> set[str]:
        """Find everyone, see that they are inside in every hierarchy, and tell which groups there were."""
        existing, complete = self._tree.containers_by_hierarchy(self._place.yarn)
        if not existing and not pid_files and not any(map(is_live, view.containers.values())):
            for record in self._records.values():
                record.pids = frozenset()
            return existing
        table = self._processes.table()
        carriers: dict[str, set[int]] = {}
        if self.options.makes_groups:
            carriers = self._finder.note_carriers(view, table)
            self._finder.note_pid_files(view, pid_files, report)
        for container_id in existing:
            self._finder.record(container_id)
        populated = self._finder.populated(carriers, table)
        self._complete_groups([name for name in populated if name not in complete], report)
        looks = iter([(table, carriers)])

        def look() -> tuple[ProcessTable, Mapping[str, set[int]]]:
            seen = next(looks, None)
            if seen is not None:
                return seen
            # An orphan can be born, and lose its parent, after any look; so its id is looked for in each of them.
            later = self._processes.table()
            return later, self._finder.note_carriers(view, later) if self.options.makes_groups else {}

        self._gather(populated, look, report)
        return existing | set(populated)

    # What they need

    def _complete_groups(self, names: Iterable[str], report: PassReport) -> None:
        """Make what is missing of groups; with an executor, in the hierarchies that it does not know."""
        for name in names:
            record = self._records[name]
            if self._tree.exists(record.path):
                continue
            try:
                if self._create(record.path) and record.is_settled:
                    report.repair(name, [Repair.GROUP])
                    record.in_force = None
            except CgroupError as error:
                self._failed(name, record, error, report)

    def _create(self, path: str) -> bool:
        try:
            return self._tree.create(path)
        except GroupGoneError:
            self._parent.prepare()
            return self._tree.create(path)

    def _gather(
        self,
        names: list[str],
        look: Callable[[], tuple[ProcessTable, Mapping[str, set[int]]]],
        report: PassReport,
        *,
        begun: Mapping[str, Gathered] | None = None,
    ) -> None:
        """Bring everyone in; with what was begun, by container, it is a launch and only that is looked at."""
        by_path = {self._records[name].path: name for name in names}
        roots = {path: root for path, name in by_path.items() if (root := self._records[name].root) is not None}
        excluded = own_processes(self._processes)

        def take_apart() -> BelongingLook:
            table, carriers = look()
            return BelongingLook(table, roots=roots, carriers=carriers, excluded=excluded)

        results = gather(
            self._tree,
            by_path,
            take_apart,
            is_complete=begun is None,
            begun={path: begun[name] for path, name in by_path.items()} if begun else None,
            now=self._times.wall,
        )
        for path, result in results.items():
            self._gathered(by_path[path], result, report)

    def _gathered(self, name: str, result: Gathered, report: PassReport) -> None:
        record = self._records[name]
        record.changed_at = result.moved_at or record.changed_at
        if result.error is not None:
            self._failed(name, record, result.error, report)
            return
        if result.brought and record.is_settled:
            report.repair(name, [Repair.MEMBERSHIP])
        if result.is_settled and not record.is_settled:
            record.is_settled = True
            report.adopted.append(name)
        record.pids = result.pids
        record.error = "" if result.is_settled else "processes appear faster than they can be moved"

    def _apply_values(
        self, records: Mapping[str, Record], view: NodeManagerView, report: PassReport, *, trusts_own: bool = False
    ) -> None:
        for container_id, record in records.items():
            if self.options.makes_groups and not self._is_populated(record):
                continue
            try:
                known = view.containers.get(container_id)
                report.repair(container_id, self._limit(record, known, trusts_own=trusts_own))
            except CgroupError as error:
                self._failed(container_id, record, error, report)
        self._measure(records, report)

    def _limit(self, record: Record, known: ContainerReport | None, *, trusts_own: bool = False) -> tuple[Repair, ...]:
        """Write what the NodeManager's figures ask for, if it gave any; what we wrote ourselves may be trusted."""
        record.vcores = known.vcores if known is not None and known.vcores is not None else record.vcores
        wanted = desired_values(known, self._tree.container_cpu)
        if wanted is None or not self.options.makes_groups:
            return ()
        record.wanted = wanted
        if trusts_own and record.in_force == wanted:
            return ()
        return self._apply(record, wanted)

    def _is_populated(self, record: Record) -> bool:
        return bool(record.pids) or record.root is not None

    def _apply(self, record: Record, wanted: Values) -> tuple[Repair, ...]:
        plan = plan_values(self._tree.values(record.path), wanted, record.in_force)
        if record.in_force is None:
            self._tree.kill_together(record.path)
        # The weight comes first: the kernel refuses a limit while the group uses more (version 1), and never a weight.
        if plan.cpu is not None:
            self._tree.set_cpu(record.path, plan.cpu)
        if plan.memory_bytes is not None:
            self._tree.set_memory_limit(record.path, plan.memory_bytes)
        if plan.cpu is not None or plan.memory_bytes is not None:
            record.changed_at = self._times.wall()
        record.in_force = wanted
        return plan.repairs

    def _measure(self, records: Mapping[str, Record], report: PassReport) -> None:
        for record in records.values():
            if record.is_done and not record.is_measured and record.launched_at is not None:
                record.is_measured = True
                # The look that proved it came later than the move, or the value, that put the limits in force.
                since = record.changed_at or self._times.wall()
                report.latencies.append(max(since - record.launched_at, 0.0))

    def _weigh(self, report: PassReport) -> None:
        vcores = sum(record.vcores for record in self._records.values() if record.pids)
        report.repair("", self._parent.weigh(vcores * self.options.milli_cores_per_vcore))
        report.repair("", self._parent.wall())

    # What is left over

    def _sweep(
        self, view: NodeManagerView, pid_files: Mapping[str, PidFile], existing: set[str], report: PassReport
    ) -> None:
        """Remove empty groups that are old and unknown to a NodeManager that answers; a silent one may need all."""
        now = self._times.wall()
        for container_id, record in list(self._records.items()):
            if record.pids or container_id in pid_files:
                continue
            if container_id not in existing:
                del self._records[container_id]
            elif view.answering is Answering.ANSWERS and not is_live(view.containers.get(container_id)):
                age_seconds = self._tree.age_seconds(record.path, now)
                if age_seconds >= self.options.empty_group_age_seconds and not self._tree.processes(record.path):
                    self._remove(container_id, record, report)

    def _remove(self, container_id: str, record: Record, report: PassReport) -> None:
        try:
            self._tree.remove(record.path)
        except CgroupError as error:
            self._failed(container_id, record, error, report)
            return
        del self._records[container_id]
        report.removed.append(container_id)

    def _failed(self, container_id: str, record: Record, error: CgroupError, report: PassReport) -> None:
        record.error = str(error)
        report.errors[container_id] = str(error)

    def _publish(self) -> None:
        self.states = {
            name: GroupState(
                path=record.path,
                root=record.root,
                launched_at=record.launched_at,
                is_done=record.is_done if self.options.makes_groups else record.is_settled,
                error=record.error,
            )
            for name, record in self._records.items()
        }
