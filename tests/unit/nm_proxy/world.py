# SPDX-License-Identifier: Apache-2.0
"""Build a node for tests: a made-up kernel of any kind, a NodeManager's directories, clocks that stand still."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from batch_resources.victims import ExecutionType
from lab.embedded.cgroup.interface_files import V2_CONTROLLERS
from lab.embedded.cgroup.kernel import FakeKernel
from lab.embedded.cgroup.processes import TICKS_PER_SECOND, FakeProcess
from nm_proxy.cgroup.detection import detect
from nm_proxy.cgroup.layout import Driver, Place
from nm_proxy.cgroup.mounts import Mount, parse_mounts
from nm_proxy.cgroup.tree import CgroupTree
from nm_proxy.node_view import NodeManagerView
from nm_proxy.nodemanager.model import Answering, ContainerReport
from nm_proxy.nodemanager.pid_files import PidFiles
from nm_proxy.nodemanager.processes import ProcessReader
from nm_proxy.parenting.adopter import Adopter, AdopterOptions, Times
from nm_proxy.parenting.parent import Parent
from nm_proxy.parenting.records import PassReport

APPLICATION: Final = "application_1700000000000_0001"
BOOT: Final = 1_700_000_000.0

V1_SEPARATE: Final = tuple(("v1", name, (name,)) for name in ("cpu", "cpuacct", "cpuset", "memory", "freezer"))
V1_JOINED: Final = (
    ("v1", "cpu,cpuacct", ("cpu", "cpuacct")),
    ("v1", "cpuset", ("cpuset",)),
    ("v1", "memory", ("memory",)),
    ("v1", "freezer", ("freezer",)),
)
V1_WITHOUT_FREEZER: Final = tuple(one for one in V1_SEPARATE if one[1] != "freezer")
V2: Final = (("v2", "", V2_CONTROLLERS),)
V1_WHOLE: Final = (
    *V1_SEPARATE,
    *(("v1", name, (name,)) for name in ("devices", "pids", "blkio")),
    ("v1", "systemd", ("name=systemd",)),
    ("v2", "unified", ()),
)
HYBRID_V1: Final = (*V1_SEPARATE, ("v2", "unified", ("hugetlb",)))
HYBRID_MIXED: Final = (("v2", "unified", ("memory", "io", "pids")), *(one for one in V1_SEPARATE if one[1] != "memory"))

KINDS: Final = {
    "v1": V1_SEPARATE,
    "v1-joined": V1_JOINED,
    "v1-whole": V1_WHOLE,
    "v1-hybrid": HYBRID_V1,
    "mixed": HYBRID_MIXED,
    "v2": V2,
}


def container_id(number: int, *, application: int = 1, epoch: int | None = None) -> str:
    """Give a container's id; number 1 is the ApplicationMaster."""
    prefix = "container_" if epoch is None else f"container_e{epoch}_"
    return f"{prefix}1700000000000_{application:04d}_01_{number:06d}"


def report(
    name: str,
    *,
    vcores: int | None = 2,
    memory_mib: int | None = 1024,
    state: str = "RUNNING",
    opportunistic: bool = False,
) -> ContainerReport:
    """Give what the NodeManager says of one container."""
    return ContainerReport(
        container_id=name,
        state=state,
        memory_mib=memory_mib,
        vcores=vcores,
        execution_type=ExecutionType.OPPORTUNISTIC if opportunistic else ExecutionType.GUARANTEED,
        user="alice",
    )


@dataclass
class ManualTime:
    """Be a clock that moves when told."""

    now: float = 1000.0

    def monotonic(self) -> float:
        """Give monotonic seconds."""
        return self.now

    def wall(self) -> float:
        """Give wall seconds, by which the made-up processes are as old as they should be."""
        return BOOT + self.now

    async def sleep(self, seconds: float) -> None:
        """Pass the time at once."""
        self.now += seconds


@dataclass
class Node:
    """Hold a node: kernel, tree, a NodeManager's directory and what the NodeManager says."""

    folder: Path
    kind: str = "v1"
    driver: Driver = Driver.CGROUPFS
    options: AdopterOptions = field(default_factory=AdopterOptions)
    wall_bytes: int | None = None
    launches: int = 0

    def __post_init__(self) -> None:
        self.time = ManualTime()
        self.kernel = FakeKernel(self.folder, hierarchies=KINDS[self.kind], boot_time=BOOT)
        self.kernel.make_kubelet_directories(self.driver.best_effort, f"{self.driver.pod_prefix}1")
        self.found = detect(str(self.kernel.root), mounts=self.mounts, files=self.kernel)
        self.tree = CgroupTree(self.found.hierarchies, self.kernel)
        self.processes = ProcessReader(str(self.kernel.processes.directory), boot_time=lambda: BOOT)
        self.parent = Parent(self.tree, self.place, memory_wall_bytes=self.wall_bytes)
        self.reports: dict[str, ContainerReport] = {}
        self.answering = Answering.ANSWERS
        self.local = self.folder / "local"
        self.files = PidFiles([str(self.local)])
        self.node_manager = self.kernel.processes.start(command=["java", "NodeManager"])
        self.adopter = self.new_adopter()

    @property
    def mounts(self) -> list[Mount]:
        """Give what is mounted."""
        return parse_mounts(self.kernel.mountinfo())

    @property
    def place(self) -> Place:
        """Give where YARN's containers belong."""
        return self.found.place

    def new_adopter(self) -> Adopter:
        """Give an adopter that knows nothing: a restart of the program."""
        times = Times(monotonic=self.time.monotonic, wall=self.time.wall)
        return Adopter(self.tree, self.place, self.parent, self.processes, times=times, options=self.options)

    def view(self) -> NodeManagerView:
        """Give what the NodeManager says."""
        return NodeManagerView(
            containers=dict(self.reports), answering=self.answering, asked_at=self.time.now, answering_since=0.0
        )

    def launch(
        self,
        number: int = 2,
        *,
        vcores: int = 2,
        memory_mib: int = 1024,
        known: bool = True,
        opportunistic: bool = False,
    ) -> FakeProcess:
        """Launch a container as the NodeManager does: process first, then its pid file."""
        name = container_id(number)
        self.kernel.processes.now_ticks = int(self.time.now * TICKS_PER_SECOND)
        process = self.kernel.processes.start(
            parent=self.node_manager.pid,
            command=["bash", f"/x/{name}/default_container_executor.sh"],
            environment={"CONTAINER_ID": name},
        )
        if known:
            self.reports[name] = report(name, vcores=vcores, memory_mib=memory_mib, opportunistic=opportunistic)
        self.write_pid_file(name, str(process.pid))
        return process

    def write_pid_file(self, name: str, text: str, *, at: float | None = None) -> Path:
        """Write a pid file, dated by the clock of this node."""
        path = self.local / "nmPrivate" / APPLICATION / name / f"{name}.pid"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        when = self.time.wall() if at is None else at
        os.utime(path, (when, when))
        return path

    def look(self) -> PassReport:
        """Do one complete pass."""
        return self.adopter.full_pass(self.view(), self.files.scan())

    def path(self, number: int = 2) -> str:
        """Give a container's group."""
        return self.place.container(container_id(number))

    def is_inside(self, pid: int, number: int = 2) -> bool:
        """Tell whether a process is in a container's group in every hierarchy in use."""
        where = self.kernel.where(pid)
        return all(where.get(one.mount_point) == self.path(number) for one in self.tree.hierarchies.every)

    def where_is(self, pid: int) -> str:
        """Tell the group of a process in the hierarchy of memory."""
        return self.kernel.where(pid).get(self.tree.hierarchies.required("memory").mount_point, "")

    def cpu(self, path: str) -> int | None:
        """Read shares or weight."""
        return self.tree.values(path).cpu

    def set_cpu(self, path: str, text: str) -> None:
        """Be somebody else who rewrites shares or weight."""
        is_v2 = self.tree.hierarchies.required("cpu").version == "v2"
        self.kernel.force("cpu", path, "cpu.weight" if is_v2 else "cpu.shares", text)

    def set_limit(self, path: str, text: str) -> None:
        """Be somebody else who rewrites the memory limit."""
        is_v2 = self.tree.hierarchies.required("memory").version == "v2"
        self.kernel.force("memory", path, "memory.max" if is_v2 else "memory.limit_in_bytes", text)

    def set_used(self, path: str, amount: int) -> None:
        """Let a group use memory."""
        is_v2 = self.tree.hierarchies.required("memory").version == "v2"
        self.kernel.force("memory", path, "memory.current" if is_v2 else "memory.usage_in_bytes", str(amount))


def let_the_group_be(node: Node, seconds: float) -> None:
    """Set the clock so that the group is so old; its files are dated by the machine."""
    made = (node.kernel.root / "cpu" / node.path()).stat().st_mtime
    node.time.now = made - BOOT + seconds
