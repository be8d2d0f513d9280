# SPDX-License-Identifier: Apache-2.0
"""Behave as the kernel's cgroup file systems do, where that matters to whoever manages groups.

Groups are real directories and values real files below a temporary directory; what the kernel computes (cgroup.procs,
freezing, killing, refusing) is done here. Rules kept: a group appears with the files of its controllers; a populated
one, or one with groups below, cannot be removed (EBUSY); a process that is gone cannot be moved (ESRCH); children are
born where their parent is; v1 cpusets refuse processes without cpus (ENOSPC) and cpus that the parent lacks (EACCES);
v1 memory limits below what is used and cannot be reclaimed are refused (EBUSY); v2 shows a controller's files only
where the parent delegates it, and a group that delegates takes no processes (EBUSY); a frozen process does
not die before it is thawed. Errors can be scripted. Source: kernel/cgroup, mm/memcontrol (Linux 6.x).
"""

from __future__ import annotations

import errno
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from lab.embedded.cgroup import devices
from lab.embedded.cgroup.groups import FakeGroups, FakeMount, Fault
from lab.embedded.cgroup.interface_files import V1_UNLIMITED, V2_FILES

P = ParamSpec("P")
T = TypeVar("T")


def _one_at_a_time(
    method: Callable[Concatenate[FakeKernel, P], T],
) -> Callable[Concatenate[FakeKernel, P], T]:
    """Let nobody see half of an operation, as the kernel does."""

    @functools.wraps(method)
    def locked(self: FakeKernel, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self.lock:
            return method(self, *args, **kwargs)

    return locked


class FakeKernel(FakeGroups):
    """Satisfy the product's port for cgroup files; see the module for what it does."""

    # For tests

    def mountinfo(self) -> str:
        """Give the text of /proc/self/mountinfo."""
        return "\n".join(["22 1 0:20 / /proc rw - proc proc rw", *(mount.mountinfo() for mount in self.mounts), ""])

    @_one_at_a_time
    def make_kubelet_directories(self, best_effort: str, *pods: str) -> None:
        """Make what kubelet makes, cpus and delegation included."""
        for mount in self.mounts:
            path = ""
            for part in best_effort.split("/"):
                path = f"{path}/{part}" if path else part
                self._make(mount, path)
                self._delegate_all(mount, path.rpartition("/")[0])
                self._open_cpuset(mount, path)
            self._delegate_all(mount, best_effort)
            for pod in pods:
                self._make(mount, f"{best_effort}/{pod}")

    def fail(self, operation: str, suffix: str, number: int, *, times: int = -1) -> None:
        """Answer an operation (read, write, make, remove, list) on paths that end so with an error."""
        self._faults.append(Fault(operation=operation, suffix=suffix, number=number, times=times))

    def heal(self) -> None:
        """Forget all scripted errors."""
        self._faults.clear()

    @_one_at_a_time
    def force(self, controller: str, path: str, name: str, text: str) -> None:
        """Change a file past all rules: somebody else, or the passing of time."""
        (Path(self._mount_of(controller).mount_point) / path / name).write_text(text)

    @_one_at_a_time
    def show(self, controller: str, path: str, name: str) -> str:
        """Read a file past all rules."""
        return (Path(self._mount_of(controller).mount_point) / path / name).read_text().strip()

    def where(self, pid: int) -> dict[str, str]:
        """Tell in which group a process is, by mount point."""
        return dict(self.processes.by_pid[pid].groups)

    @_one_at_a_time
    def put(self, pid: int, path: str, *, controller: str | None = None) -> None:
        """Move a process past all rules, in one or all hierarchies."""
        for mount in self.mounts:
            if controller is None or controller in mount.controllers:
                self.processes.by_pid[pid].groups[mount.mount_point] = path

    @_one_at_a_time
    def signal(self, pid: int) -> None:
        """Deliver SIGKILL; to a frozen process when it is thawed."""
        process = self.processes.by_pid.get(pid)
        if process is None or process.is_unkillable:
            return
        if self._is_frozen(process):
            process.is_doomed = True
        else:
            self.processes.exit(pid)

    # The port

    @_one_at_a_time
    def read(self, path: str) -> str:
        """Read a file."""
        mount, group, name = self._enter("read", path)
        if name == "cgroup.procs":
            self._check_group(mount, group, path)
            members = self.processes.members(mount.mount_point, group)
            return "".join(f"{0 if process.is_foreign else process.pid}\n" for process in members)
        if name == "cgroup.controllers":
            return " ".join(self._available(mount, group)) + "\n"
        try:
            return Path(path).read_text()
        except OSError as error:
            raise self._error(error.errno or errno.EIO, path) from error

    @_one_at_a_time
    def write(self, path: str, text: str) -> None:
        """Write a value."""
        mount, group, name = self._enter("write", path)
        if mount.is_read_only:
            raise self._error(errno.EROFS, path)
        self._check_group(mount, group, path)
        if not Path(path).exists() and name != "cgroup.procs":
            raise self._error(errno.ENOENT, path)
        rules = {
            "cgroup.procs": self._write_procs,
            "cgroup.subtree_control": self._write_subtree_control,
            "cgroup.kill": self._write_kill,
            "cgroup.freeze": self._write_freeze,
            "freezer.state": self._write_freezer_state,
            "cpu.shares": self._write_shares,
            "cpu.weight": self._write_weight,
            "cpuset.cpus": self._write_cpus,
            "memory.limit_in_bytes": self._write_limit,
            "devices.allow": self._write_rule,
            "devices.deny": self._write_rule,
        }
        rules.get(name, self._store)(mount, group, path, text)

    @_one_at_a_time
    def make_directory(self, path: str) -> bool:
        """Make a group."""
        mount, group, name = self._enter("make", path)
        full = f"{group}/{name}" if group else name
        if (Path(mount.mount_point) / full).is_dir():
            return False
        if mount.is_read_only:
            raise self._error(errno.EROFS, path)
        self._check_group(mount, group, path)
        self._make(mount, full)
        return True

    @_one_at_a_time
    def remove_directory(self, path: str) -> None:
        """Remove a group."""
        mount, group, name = self._enter("remove", path)
        full = f"{group}/{name}" if group else name
        directory = Path(path)
        if not directory.is_dir():
            raise self._error(errno.ENOENT, path)
        if mount.is_read_only:
            raise self._error(errno.EROFS, path)
        if self.processes.members(mount.mount_point, full) or any(child.is_dir() for child in directory.iterdir()):
            raise self._error(errno.EBUSY, path)
        for file in directory.iterdir():
            file.unlink()
        directory.rmdir()

    @_one_at_a_time
    def directories(self, path: str) -> list[str]:
        """List groups."""
        self._record("list", path)
        try:
            return [child.name for child in Path(path).iterdir() if child.is_dir()]
        except OSError as error:
            raise self._error(error.errno or errno.EIO, path) from error

    def exists(self, path: str) -> bool:
        """Tell whether a path exists."""
        return Path(path).exists()

    def change_owner(self, path: str, *, uid: int, gid: int) -> None:
        """Note the new owner."""
        self.operations.append(f"own {path} {uid}:{gid}")

    def age_seconds(self, path: str, now: float) -> float:
        """Tell the age of a directory."""
        try:
            return max(now - Path(path).stat().st_mtime, 0.0)
        except OSError as error:
            raise self._error(error.errno or errno.EIO, path) from error

    # Rules of single files

    def _write_procs(self, mount: FakeMount, group: str, path: str, text: str) -> None:
        pid = int(text)
        self.before_move(pid, mount.mount_point)
        if pid <= 0:
            raise self._error(errno.EINVAL, path)
        process = self.processes.by_pid.get(pid)
        if process is None:
            raise self._error(errno.ESRCH, path)
        directory = Path(mount.mount_point) / group
        if mount.version == "v2" and group and (directory / "cgroup.subtree_control").read_text().strip():
            raise self._error(errno.EBUSY, path)
        if "cpuset" in mount.controllers and mount.version == "v1" and not _cpus_of(directory):
            raise self._error(errno.ENOSPC, path)
        process.groups[mount.mount_point] = group

    def _write_subtree_control(self, mount: FakeMount, group: str, path: str, text: str) -> None:
        wanted = [word.removeprefix("+") for word in text.split()]
        if any(word not in self._available(mount, group) for word in wanted):
            raise self._error(errno.ENOENT, path)
        if group and self.processes.members(mount.mount_point, group):
            raise self._error(errno.EBUSY, path)
        file = Path(path)
        enabled = set(file.read_text().split()) | set(wanted)
        file.write_text(" ".join(sorted(enabled)))
        for child in Path(mount.mount_point, group).iterdir():
            if child.is_dir():
                self._add_files(child, {name: V2_FILES.get(name, {}) for name in enabled})

    def _write_kill(self, mount: FakeMount, group: str, path: str, text: str) -> None:
        for process in self._below(mount, group):
            process.is_doomed = False
            if not process.is_unkillable:
                self.processes.exit(process.pid)

    def _write_freeze(self, mount: FakeMount, group: str, path: str, text: str) -> None:
        Path(path).write_text(text)
        Path(path).with_name("cgroup.events").write_text(f"populated 1\nfrozen {text}")
        if text == "0":
            self._thawed(mount, group)

    def _write_freezer_state(self, mount: FakeMount, group: str, path: str, text: str) -> None:
        if text not in ("FROZEN", "THAWED"):
            raise self._error(errno.EINVAL, path)
        Path(path).write_text("FREEZING" if text == "FROZEN" and self.freezes_slowly else text)
        if text == "THAWED":
            self._thawed(mount, group)

    def _write_shares(self, mount: FakeMount, group: str, path: str, text: str) -> None:
        Path(path).write_text(str(min(max(int(text), 2), 262_144)))

    def _write_weight(self, mount: FakeMount, group: str, path: str, text: str) -> None:
        if not 1 <= int(text) <= 10_000:
            raise self._error(errno.ERANGE, path)
        Path(path).write_text(text)

    def _write_cpus(self, mount: FakeMount, group: str, path: str, text: str) -> None:
        parent = _cpus_of(Path(mount.mount_point) / group.rpartition("/")[0])
        if not _cpu_set(text) <= parent:
            raise self._error(errno.EACCES, path)
        Path(path).write_text(text)

    def _write_limit(self, mount: FakeMount, group: str, path: str, text: str) -> None:
        if text == "-1":
            Path(path).write_text(V1_UNLIMITED)
            return
        used = int(Path(path).with_name("memory.usage_in_bytes").read_text())
        if int(text) < used:
            raise self._error(errno.EBUSY, path)
        Path(path).write_text(str(int(text) // 4096 * 4096))

    def _write_rule(self, mount: FakeMount, group: str, path: str, text: str) -> None:
        change = devices.allow if path.endswith(".allow") else devices.deny
        change(Path(path).parent, text)

    def _store(self, mount: FakeMount, group: str, path: str, text: str) -> None:
        Path(path).write_text(text)

    def _delegate_all(self, mount: FakeMount, path: str) -> None:
        if mount.version == "v2":
            self._write_subtree_control(
                mount,
                path,
                str(Path(mount.mount_point) / path / "cgroup.subtree_control"),
                " ".join(f"+{name}" for name in self._available(mount, path)),
            )


def _cpus_of(directory: Path) -> set[int]:
    return _cpu_set((directory / "cpuset.cpus").read_text())


def _cpu_set(text: str) -> set[int]:
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus
