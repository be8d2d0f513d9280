# SPDX-License-Identifier: Apache-2.0
"""Hold mounted hierarchies with their groups and processes: what the rules of the kernel work on."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from lab.embedded.cgroup import devices
from lab.embedded.cgroup.interface_files import CPUS, V1_FILES, V2_BASE, V2_FILES
from lab.embedded.cgroup.processes import FakeProcess, FakeProcesses
from nm_proxy.cgroup.errors import CgroupError, translated


@dataclass(slots=True, kw_only=True)
class FakeMount:
    """Hold one mounted hierarchy."""

    version: str
    mount_point: str
    controllers: tuple[str, ...]
    is_read_only: bool = False

    def mountinfo(self) -> str:
        """Write the line of /proc/self/mountinfo."""
        mode = "ro" if self.is_read_only else "rw"
        kind = "cgroup" if self.version == "v1" else "cgroup2"
        point = self.mount_point.replace(" ", "\\040")
        options = ",".join((mode, *(self.controllers if self.version == "v1" else ())))
        return f"40 30 0:30 / {point} {mode},nosuid,nodev - {kind} {kind} {options}"


@dataclass(slots=True, kw_only=True)
class Fault:
    """Answer an operation with an error for some times; -1 is for ever."""

    operation: str
    suffix: str
    number: int
    times: int


class FakeGroups:
    """Hold the groups; no rule is kept here.

    Attributes:
        processes: the process table.
        before_move: called with pid and mount point before each move, for forks at the worst moment.
        operations: all operations so far, `read PATH` and so on.
    """

    def __init__(self, root: Path, *, hierarchies: Iterable[tuple[str, str, tuple[str, ...]]], boot_time: float = 0.0):
        """Mount hierarchies.

        Args:
            root: a temporary directory.
            hierarchies: version, name of the directory below the mount root ("" is the root itself), controllers.
            boot_time: of the process table.
        """
        self.lock = threading.RLock()
        self.root = root / "cgroup"
        self.root.mkdir(parents=True)
        self.processes = FakeProcesses(root / "proc", boot_time=boot_time)
        self.mounts = [
            FakeMount(
                version=version, mount_point=str(self.root / name if name else self.root), controllers=controllers
            )
            for version, name, controllers in hierarchies
        ]
        self.before_move: Callable[[int, str], None] = lambda pid, mount_point: None
        self.operations: list[str] = []
        self.freezes_slowly = False
        self._faults: list[Fault] = []
        for mount in self.mounts:
            Path(mount.mount_point).mkdir(exist_ok=True)
            self._populate(mount, "")

    def _record(self, operation: str, path: str) -> None:
        """Note an operation, and answer it with the error that a test has ordered."""
        self.operations.append(f"{operation} {path}")
        for fault in self._faults:
            if fault.operation == operation and path.endswith(fault.suffix) and fault.times != 0:
                fault.times -= 1
                raise self._error(fault.number, path)

    def _enter(self, operation: str, path: str) -> tuple[FakeMount, str, str]:
        self._record(operation, path)
        mount = max(
            (one for one in self.mounts if path == one.mount_point or path.startswith(one.mount_point + "/")),
            key=lambda one: len(one.mount_point),
            default=None,
        )
        if mount is None:
            raise self._error(errno.ENOENT, path)
        group, _, name = path[len(mount.mount_point) :].lstrip("/").rpartition("/")
        return mount, group, name

    def _error(self, number: int, path: str) -> CgroupError:
        return translated(OSError(number, os.strerror(number)), "cannot touch", path)

    def _check_group(self, mount: FakeMount, group: str, path: str) -> None:
        if not (Path(mount.mount_point) / group).is_dir():
            raise self._error(errno.ENOENT, path)

    def _make(self, mount: FakeMount, path: str) -> None:
        directory = Path(mount.mount_point) / path
        is_new = not directory.exists()
        directory.mkdir(exist_ok=True)
        self._populate(mount, path)
        if is_new and "devices" in mount.controllers:
            devices.inherit(directory)

    def _populate(self, mount: FakeMount, path: str) -> None:
        directory = Path(mount.mount_point) / path
        if mount.version == "v1":
            files = {name: V1_FILES[name] for name in mount.controllers if name in V1_FILES}
            self._add_files(directory, files)
            if not path:
                self._open_cpuset(mount, path)
            return
        self._add_files(directory, {"": V2_BASE})
        self._add_files(
            directory, {name: V2_FILES.get(name, {}) for name in self._available(mount, path)} if path else {}
        )

    def _add_files(self, directory: Path, files: dict[str, dict[str, str]]) -> None:
        for contents in files.values():
            for name, text in contents.items():
                if not (directory / name).exists():
                    (directory / name).write_text(text)

    def _open_cpuset(self, mount: FakeMount, path: str) -> None:
        if mount.version == "v1" and "cpuset" in mount.controllers:
            (Path(mount.mount_point) / path / "cpuset.cpus").write_text(CPUS)
            (Path(mount.mount_point) / path / "cpuset.mems").write_text("0")

    def _available(self, mount: FakeMount, path: str) -> list[str]:
        if not path:
            return list(mount.controllers)
        parent = Path(mount.mount_point) / path.rpartition("/")[0]
        return (parent / "cgroup.subtree_control").read_text().split()

    def _below(self, mount: FakeMount, group: str) -> list[FakeProcess]:
        return [
            process
            for process in list(self.processes.by_pid.values())
            if (process.groups.get(mount.mount_point, "") + "/").startswith(group + "/")
        ]

    def _is_frozen(self, process: FakeProcess) -> bool:
        for mount in self.mounts:
            directory = Path(mount.mount_point) / process.groups.get(mount.mount_point, "")
            for name, word in (("freezer.state", "FR"), ("cgroup.freeze", "1")):
                file = directory / name
                if file.exists() and file.read_text().startswith(word):
                    return True
        return False

    def _thawed(self, mount: FakeMount, group: str) -> None:
        for process in self._below(mount, group):
            if process.is_doomed:
                self.processes.exit(process.pid)

    def _mount_of(self, controller: str) -> FakeMount:
        return next(mount for mount in self.mounts if controller in mount.controllers)
