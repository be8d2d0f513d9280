# SPDX-License-Identifier: Apache-2.0
"""Find who there is: first processes by pid files, orphans by their environment, launchers, and groups with somebody.

Fills the records; moves nobody. Belongs to the thread of the adopter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from nm_proxy.cgroup.layout import Place
from nm_proxy.cgroup.tree import CgroupTree
from nm_proxy.node_view import NodeManagerView
from nm_proxy.nodemanager.model import ContainerReport
from nm_proxy.nodemanager.pid_files import PidFile
from nm_proxy.nodemanager.processes import Process, ProcessReader, ProcessTable
from nm_proxy.parenting.belonging import Root, Strangers, own_processes, root_of
from nm_proxy.parenting.records import PassReport, Record

ORPHAN_AGE_SECONDS: Final = 3.0
"""So long a process of a container without a pid file is left alone: the file will come."""


class Finder:
    """Hold the records of all containers and fill in who there is."""

    def __init__(
        self,
        tree: CgroupTree,
        place: Place,
        processes: ProcessReader,
        *,
        monotonic: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._tree = tree
        self._place = place
        self._processes = processes
        self._wall = wall
        self._strangers = Strangers(processes, monotonic)
        self._began_at = wall()
        self.records: dict[str, Record] = {}

    def record(self, container_id: str) -> Record:
        """Give the record of a container, a new one where there is none."""
        record = self.records.get(container_id)
        if record is None:
            record = self.records[container_id] = Record(path=self._place.container(container_id))
        return record

    def note_pid_files(self, view: NodeManagerView, pid_files: Mapping[str, PidFile], report: PassReport) -> list[str]:
        """Take down the first process of each container, and give those for which it is a new one."""
        noted: list[str] = []
        own: frozenset[int] | None = None
        for container_id, file in pid_files.items():
            record = self.records.get(container_id)
            if record is not None and record.root is not None and record.root.pid == file.pid:
                continue
            known = view.containers.get(container_id)
            if known is not None and known.is_finished:
                continue
            own = own or own_processes(self._processes)
            root = root_of(file, self._processes) if file.pid not in own else None
            if root is None:
                report.unbelieved.append(container_id)
                continue
            record = self.record(container_id)
            record.root, record.is_settled = root, False
            record.launched_at = file.written_at
            record.is_measured = file.written_at < self._began_at
            noted.append(container_id)
        return noted

    def note_carriers(self, view: NodeManagerView, table: ProcessTable) -> dict[str, set[int]]:
        """Find orphans by the id in their environment; only ids that the NodeManager has live, or we have, count."""
        known = frozenset[int]().union(*(record.pids for record in self.records.values()))
        self._note_ancestors(table)
        mine: dict[str, set[int]] = {}
        for container_id, pids in self._strangers.carriers(table, known).items():
            record = self.records.get(container_id)
            if record is not None or is_live(view.containers.get(container_id)):
                orphans = {pid for pid in pids if self._is_orphan(table.processes[pid], record)}
                if orphans:
                    mine[self.record(container_id).path] = orphans
        return mine

    def populated(self, carriers: Mapping[str, set[int]], table: ProcessTable) -> list[str]:
        """List the containers that have, or should have, somebody inside."""
        names = []
        for container_id, record in self.records.items():
            is_running = record.root is not None and table.is_alive(record.root.pid, record.root.start_ticks)
            is_expected = record.pids or is_running or record.path in carriers
            if is_expected or any(self._tree.last_members(record.path).values()):
                names.append(container_id)
            else:
                record.pids = frozenset()
        return names

    def _note_ancestors(self, table: ProcessTable) -> None:
        for record in self.records.values():
            if record.root is not None and table.is_alive(record.root.pid, record.root.start_ticks):
                ancestors = table.ancestors(record.root.pid)
                record.ancestors = frozenset(Root(one.pid, one.start_ticks) for one in ancestors)

    def _is_orphan(self, process: Process, record: Record | None) -> bool:
        """Tell a task's process from the script that launches it; without a pid file the latter comes first."""
        if record is None or record.root is None:
            age = self._wall() - self._processes.started_at(process.start_ticks)
            return age >= ORPHAN_AGE_SECONDS
        return Root(process.pid, process.start_ticks) not in record.ancestors


def is_live(report: ContainerReport | None) -> bool:
    """Tell whether the NodeManager has a container that has not ended."""
    return report is not None and not report.is_finished
