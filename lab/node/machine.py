# SPDX-License-Identifier: Apache-2.0
"""Hold a private part of the machine's cgroup tree, and launch processes as a NodeManager does."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from nm_proxy.cgroup.detection import read_mounts
from nm_proxy.cgroup.files import KernelFiles
from nm_proxy.cgroup.hierarchy import Hierarchies, Hierarchy, find_others
from nm_proxy.cgroup.killing import GroupKiller
from nm_proxy.cgroup.layout import Place, Version, place_by_path
from nm_proxy.cgroup.tree import CgroupTree
from nm_proxy.node_view import NodeManagerView
from nm_proxy.nodemanager.model import Answering, ContainerReport
from nm_proxy.nodemanager.pid_files import PidFiles
from nm_proxy.nodemanager.processes import ProcessReader
from nm_proxy.parenting.adopter import Adopter, AdopterOptions, Times
from nm_proxy.parenting.parent import Parent
from nm_proxy.parenting.records import PassReport

_CLUSTER: Final = 1_000_000_000_000 + secrets.randbelow(9_000_000_000_000)
"""Start of a ResourceManager in milliseconds, as it is in ids; of this process alone: agents of two test runs at once
find orphans by the id in their environment, and would take each other's."""

APPLICATION: Final = f"application_{_CLUSTER}_0001"
ROOT: Final = "/sys/fs/cgroup"
SWEEP_SECONDS: Final = 20.0
MARK: Final = "NM_PROXY_TEST"
"""Whoever carries this variable was started by the test of that name, wherever it is."""


def container_id(number: int) -> str:
    """Give a container's id."""
    return f"container_{_CLUSTER}_0001_01_{number:06d}"


class Machine:
    """Hold one private best-effort directory, an adopter on it and a NodeManager's local directory."""

    def __init__(self, folder: Path, hierarchies: Hierarchies, name: str) -> None:
        self.name = name
        self.hierarchies = hierarchies
        self.place: Place = place_by_path(f"{name}/hadoop-yarn")
        for hierarchy in hierarchies.every:
            make_best_effort(hierarchy, name)
        self.tree = CgroupTree(hierarchies, KernelFiles())
        self.killer = GroupKiller(self.tree)
        self.processes = ProcessReader()
        self.local = folder / "local"
        self.files = PidFiles([str(self.local)])
        self.reports: dict[str, ContainerReport] = {}
        self.adopter = Adopter(
            self.tree,
            self.place,
            Parent(self.tree, self.place),
            self.processes,
            times=Times(monotonic=time.monotonic, wall=time.time),
            options=AdopterOptions(),
        )

    def know(self, number: int, *, vcores: int = 1, memory_mib: int = 256) -> None:
        """Let the NodeManager list a container."""
        name = container_id(number)
        self.reports[name] = ContainerReport(container_id=name, state="RUNNING", memory_mib=memory_mib, vcores=vcores)

    def launch(self, number: int, code: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a Python program in a session of its own that writes its pid file first, as a launch script does."""
        path = self.pid_file(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        prologue = (
            "import os, sys\n"
            "with open(sys.argv[1] + '.tmp', 'w') as file: file.write(str(os.getpid()))\n"
            "os.rename(sys.argv[1] + '.tmp', sys.argv[1])\n"
        )
        return subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", prologue + code, str(path), *arguments],
            start_new_session=True,
            env={"CONTAINER_ID": container_id(number), "PATH": os.environ["PATH"], MARK: self.name},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )

    def pid_file(self, number: int) -> Path:
        """Give where a container's pid file is."""
        name = container_id(number)
        return self.local / "nmPrivate" / APPLICATION / name / f"{name}.pid"

    def view(self) -> NodeManagerView:
        """Give what the NodeManager says."""
        return NodeManagerView(containers=dict(self.reports), answering=Answering.ANSWERS, asked_at=0.0)

    def launch_pass(self, number: int) -> PassReport:
        """Bring one launched container in."""
        self.wait_for(self.pid_file(number).exists)
        return self.adopter.launch_pass(self.view(), self.files.scan())

    def look(self) -> PassReport:
        """Do one complete pass."""
        return self.adopter.full_pass(self.view(), self.files.scan())

    def path(self, number: int) -> str:
        """Give a container's group."""
        return self.place.container(container_id(number))

    def carriers(self, number: int) -> set[int]:
        """Find, independently of the product, every living process that has the container's id in its environment."""
        return carriers_of(f"CONTAINER_ID={container_id(number)}", f"{MARK}={self.name}")

    def outside(self, number: int) -> dict[int, str]:
        """Find carriers that are not in the group in some hierarchy, by the kernel's own /proc/PID/cgroup."""
        strays = {}
        for pid in self.carriers(number):
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{pid}/cgroup").read_text()
                groups = {line.split(":")[1]: line.split(":")[2] for line in text.splitlines()}
                for hierarchy in self.hierarchies.every:
                    # Version 2 names no controllers there.
                    wanted = [""] if hierarchy.version is Version.V2 else hierarchy.controllers
                    for controller in wanted:
                        mine = next(path for names, path in groups.items() if controller in names.split(","))
                        if mine != f"/{self.path(number)}":
                            strays[pid] = f"{controller}:{mine}"
        return strays

    @staticmethod
    def wait_for(holds: object, seconds: float = 30.0) -> None:
        """Wait for a callable to become true."""
        deadline = time.monotonic() + seconds
        while not holds():  # type: ignore[operator] # a callable without arguments
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds:g} s")
            time.sleep(0.001)


def carriers_of(*entries: str) -> set[int]:
    """Find every living process that has all of these entries in its environment."""
    wanted = {entry.encode() for entry in entries}
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted <= set((folder / "environ").read_bytes().split(b"\0")):
                    found.add(int(folder.name))
    return found


def make_best_effort(hierarchy: Hierarchy, name: str) -> None:
    """Make what kubelet makes: a directory with cpus (version 1) or controllers for the groups below (version 2)."""
    directory = Path(hierarchy.at(name))
    directory.mkdir()
    if hierarchy.version is Version.V2:
        controllers = (directory / "cgroup.controllers").read_text().split()
        (directory / "cgroup.subtree_control").write_text(" ".join(f"+{one}" for one in controllers))
    if hierarchy.version is Version.V1 and "cpuset" in hierarchy.controllers:
        for file in ("cpuset.mems", "cpuset.cpus"):
            (directory / file).write_text((directory.parent / file).read_text())


def end_carriers(name: str) -> None:
    """Kill every process that was started for a machine of this name."""
    for pid in carriers_of(f"{MARK}={name}"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def sweep(hierarchies: Hierarchies, name: str) -> None:
    """End every process below a private directory and remove all of it, from every hierarchy of the machine."""
    deadline = time.monotonic() + SWEEP_SECONDS
    others = find_others(read_mounts(), ROOT, hierarchies)
    tops = [Path(hierarchy.at(name)) for hierarchy in (*hierarchies.every, *others)]
    while any(top.exists() for top in tops) and time.monotonic() < deadline:
        end_carriers(name)
        for top in tops:
            for directory in sorted([top, *top.rglob("*/")], key=lambda path: -len(path.parts)):
                _empty(directory)
                with contextlib.suppress(OSError):
                    directory.rmdir()
        time.sleep(0.01)
    left = [str(top) for top in tops if top.exists()]
    if left:
        raise RuntimeError(f"cannot remove {left}")


def _empty(directory: Path) -> None:
    with contextlib.suppress(OSError):
        state = directory / "freezer.state"
        if state.exists():
            state.write_text("THAWED")
        for pid in map(int, (directory / "cgroup.procs").read_text().split()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
