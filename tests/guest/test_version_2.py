# SPDX-License-Identifier: Apache-2.0
"""Test on real cgroup version 2: places, weights, limits, kills, repairs, and the kernel's own rules."""

from __future__ import annotations

import functools
import os
import signal
import time
from pathlib import Path

import pytest

from lab.node import programs
from lab.node.machine import Machine
from lab.node.programs import SLEEP, STORM, WithoutKill, storms
from nm_proxy.cgroup.detection import read_mounts
from nm_proxy.cgroup.errors import InternalProcessError, NotDelegatedError, TreeNotFoundError
from nm_proxy.cgroup.files import KernelFiles
from nm_proxy.cgroup.hierarchy import find_hierarchies, unmounted_lookalikes
from nm_proxy.cgroup.killing import GroupKiller
from nm_proxy.cgroup.stats import read_stats
from nm_proxy.cgroup.tree import CgroupTree
from nm_proxy.parenting.adopter import Adopter, AdopterOptions, Times
from nm_proxy.parenting.parent import Parent
from nm_proxy.parenting.planning import Repair

MIB = 1 << 20
BURN = """
import time
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
os.sched_setaffinity(0, {0})  # entering a group with a cpuset resets it
while True: pass
"""
GREED = """
import time
if os.fork() == 0:
    time.sleep(600)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
x = bytearray(256 << 20)
time.sleep(600)
"""

end = functools.partial(programs.end, timeout_seconds=60)
"""An emulated processor needs longer."""


def directory(machine: Machine, path: str) -> Path:
    """Give a group's directory."""
    return Path(machine.hierarchies.every[0].at(path))


def test_a_container_is_inside_with_weight_and_limit(machine: Machine) -> None:
    machine.know(2, vcores=3, memory_mib=128)
    process = machine.launch(2, SLEEP)
    report = machine.launch_pass(2)
    assert report.errors == {}
    assert len(report.latencies) == 1
    assert machine.outside(2) == {}
    group = directory(machine, machine.path(2))
    assert (group / "cpu.weight").read_text() == "300\n"
    assert (group / "memory.max").read_text() == f"{128 * MIB}\n"
    assert (group / "memory.oom.group").read_text() == "1\n"
    assert (group / "cgroup.procs").read_text() == f"{process.pid}\n"
    assert machine.look().repairs == []
    assert (directory(machine, machine.place.yarn) / "cpu.weight").read_text() == "118\n"  # 1 + 3070 * 9999 / 262142
    end(process)
    machine.look()
    assert (directory(machine, machine.place.yarn) / "cpu.weight").read_text() == "1\n"


def test_weights_divide_one_processor(machine: Machine) -> None:
    for number, vcores in ((2, 1), (3, 3)):
        machine.know(number, vcores=vcores)
    go = machine.local / "go"
    processes = [machine.launch(number, BURN, str(go)) for number in (2, 3)]
    for number in (2, 3):
        machine.launch_pass(number)
    go.write_text("")
    machine.wait_for(lambda: all(os.sched_getaffinity(process.pid) == {0} for process in processes))
    before = [read_stats(machine.tree, machine.path(number)) for number in (2, 3)]
    time.sleep(4)
    after = [read_stats(machine.tree, machine.path(number)) for number in (2, 3)]
    small, large = (
        (late.cpu_seconds or 0) - (early.cpu_seconds or 0) for late, early in zip(after, before, strict=True)
    )
    assert 2.0 < large / small < 4.5, f"{large:.2f} s and {small:.2f} s of processor time"
    pressure = read_stats(machine.tree, machine.path(2)).pressure["cpu"]
    assert pressure.some_seconds > 1.0
    end(*processes)


def test_a_task_that_uses_too_much_is_killed_whole_and_alone(machine: Machine) -> None:
    for number in (2, 3):
        machine.know(number, memory_mib=64)
    go = machine.local / "go"
    greedy, modest = machine.launch(2, GREED, str(go)), machine.launch(3, SLEEP)
    machine.wait_for(machine.pid_file(3).exists)
    machine.launch_pass(2)
    machine.wait_for(lambda: len(machine.tree.processes(machine.path(2))) == 2)
    go.write_text("")
    assert greedy.wait(timeout=120) == -signal.SIGKILL
    machine.wait_for(lambda: not machine.tree.processes(machine.path(2)))
    assert modest.poll() is None
    stats = read_stats(machine.tree, machine.path(2))
    assert (stats.oom_kills or 0) >= 2  # the kernel counts the one that it chose twice
    assert stats.memory_peak_bytes is not None
    assert stats.memory_peak_bytes <= 64 * MIB
    assert stats.pressure["memory"].some_seconds >= 0
    end(greedy, modest)


def test_repairs_what_another_program_rewrites(machine: Machine) -> None:
    machine.know(2, vcores=2, memory_mib=128)
    process = machine.launch(2, SLEEP)
    machine.launch_pass(2)
    machine.look()
    group, parent = directory(machine, machine.path(2)), directory(machine, machine.place.yarn)
    (group / "cpu.weight").write_text("9")
    (group / "memory.max").write_text("max")
    (parent / "cpu.weight").write_text("9")
    (directory(machine, "") / "cgroup.procs").write_text(str(process.pid))
    assert set(machine.look().repairs) == {Repair.CPU, Repair.MEMORY, Repair.MEMBERSHIP, Repair.PARENT_CPU}
    assert machine.outside(2) == {}
    assert (group / "cpu.weight").read_text() == "200\n"
    assert (group / "memory.max").read_text() == f"{128 * MIB}\n"
    assert machine.look().repairs == []
    end(process)


def test_repairs_controllers_that_were_taken_away(machine: Machine) -> None:
    machine.know(2, vcores=2, memory_mib=128)
    process = machine.launch(2, SLEEP)
    machine.launch_pass(2)
    machine.look()
    parent = directory(machine, machine.place.yarn)
    (parent / "cgroup.subtree_control").write_text("-memory -cpu")
    assert not (directory(machine, machine.path(2)) / "memory.max").exists()
    repairs = machine.look().repairs
    assert Repair.PARENT_GROUP in repairs
    assert (directory(machine, machine.path(2)) / "memory.max").read_text() == f"{128 * MIB}\n"
    assert (directory(machine, machine.path(2)) / "cpu.weight").read_text() == "200\n"
    end(process)


def test_leaves_quota_and_cpuset_to_koordlet(machine: Machine) -> None:
    machine.know(2)
    process = machine.launch(2, SLEEP)
    machine.launch_pass(2)
    best_effort, parent = directory(machine, machine.name), directory(machine, machine.place.yarn)
    (best_effort / "cpu.max").write_text("50000 100000")
    (parent / "cpuset.cpus").write_text("0")
    assert machine.look().repairs == []
    assert (best_effort / "cpu.max").read_text() == "50000 100000\n"
    assert (parent / "cpuset.cpus").read_text() == "0\n"
    assert (directory(machine, machine.path(2)) / "cpuset.cpus.effective").read_text() == "0\n"
    end(process)


@pytest.mark.parametrize("files", [KernelFiles, WithoutKill], ids=["cgroup.kill", "freeze-signal-thaw"])
def test_kills_a_whole_group_and_nobody_else(machine: Machine, files: type[KernelFiles]) -> None:
    for number in (2, 3):
        machine.know(number)
    victim, other = machine.launch(2, STORM, "7", "1.0"), machine.launch(3, SLEEP)
    machine.wait_for(machine.pid_file(3).exists)
    machine.launch_pass(2)
    machine.wait_for(lambda: len(machine.carriers(2)) > 5, seconds=60)
    machine.look()
    killer = GroupKiller(CgroupTree(machine.hierarchies, files()))
    assert killer.kill(machine.path(2), timeout_seconds=60) > 0
    assert victim.wait(timeout=60) == -signal.SIGKILL
    assert machine.carriers(2) == set()
    assert other.poll() is None
    events = (directory(machine, machine.path(2)) / "cgroup.events").read_text().splitlines()
    assert sorted(events) == ["frozen 0", "populated 0"]
    machine.tree.remove(machine.path(2))
    end(victim, other)


def test_no_process_of_a_fork_storm_escapes(machine: Machine) -> None:
    escaped, seen = storms(machine, 6, seconds=0.3)  # an emulated processor may not come to a fork in less
    assert seen > 6
    assert escaped == 0


def test_processes_in_the_directory_of_all_containers_are_an_error_that_says_so(machine: Machine) -> None:
    parent = directory(machine, machine.place.yarn)
    parent.mkdir()
    intruder = machine.launch(9, SLEEP)
    machine.wait_for(machine.pid_file(9).exists)
    machine.pid_file(9).unlink()
    (parent / "cgroup.procs").write_text(str(intruder.pid))
    with pytest.raises(InternalProcessError, match="must not run in this directory") as caught:
        machine.tree.prepare_parent(machine.place.yarn)
    assert caught.value.path == f"{parent}/cgroup.procs"
    assert "cpu" not in (parent / "cgroup.subtree_control").read_text()
    machine.know(2)
    process = machine.launch(2, SLEEP)
    machine.wait_for(machine.pid_file(2).exists)
    assert "must not run in this directory" in machine.look().errors[""]
    (directory(machine, "") / "cgroup.procs").write_text(str(intruder.pid))
    assert machine.look().errors == {}
    assert machine.look().errors == {}
    assert machine.outside(2) == {}
    assert (directory(machine, machine.path(2)) / "memory.max").read_text() == f"{256 * MIB}\n"
    end(intruder, process)


def test_controllers_that_kubelet_did_not_delegate_are_an_error_that_names_the_file(machine: Machine) -> None:
    best_effort = directory(machine, machine.name)
    (best_effort / "cgroup.subtree_control").write_text("-memory")
    with pytest.raises(NotDelegatedError, match="controller memory is not available") as caught:
        machine.tree.prepare_parent(machine.place.yarn)
    assert caught.value.path == f"{best_effort}/cgroup.subtree_control"
    assert "+memory" in str(caught.value)


def test_a_stale_version_1_tree_beside_it_is_not_used(machine: Machine) -> None:
    mounts = read_mounts()
    assert unmounted_lookalikes(machine.hierarchies, "/sys/fs/cgroup", KernelFiles()) == []
    stale = directory(machine, "") / "cpu"
    stale.mkdir()
    try:
        found = find_hierarchies(mounts, "/sys/fs/cgroup", KernelFiles())
        assert [one.mount_point for one in found.every] == ["/sys/fs/cgroup"]
        assert unmounted_lookalikes(found, "/sys/fs/cgroup", KernelFiles()) == [str(stale)]
        with pytest.raises(TreeNotFoundError):
            find_hierarchies(mounts, str(stale), KernelFiles())
    finally:
        stale.rmdir()


def test_completes_what_an_executor_made_and_leaves_its_values(machine: Machine) -> None:
    adopter = Adopter(
        machine.tree,
        machine.place,
        Parent(machine.tree, machine.place),
        machine.processes,
        times=Times(monotonic=time.monotonic, wall=time.time),
        options=AdopterOptions(makes_groups=False),
    )
    machine.know(2, vcores=2)
    assert adopter.full_pass(machine.view(), {}).errors == {}
    group = directory(machine, machine.path(2))
    group.mkdir()
    (group / "cpu.weight").write_text("777")
    process = machine.launch(2, "pid = os.fork()\n" + SLEEP)
    machine.wait_for(machine.pid_file(2).exists)
    (group / "cgroup.procs").write_text(str(process.pid))
    machine.wait_for(lambda: len(machine.carriers(2)) == 2)
    adopter.full_pass(machine.view(), machine.files.scan())
    assert machine.outside(2) == {}
    assert (group / "cpu.weight").read_text() == "777\n"
    assert adopter.full_pass(machine.view(), machine.files.scan()).repairs == []
    for pid in machine.carriers(2):
        os.kill(pid, signal.SIGKILL)
    end(process)
