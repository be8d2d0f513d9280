# SPDX-License-Identifier: Apache-2.0
"""Test on real cgroup version 1: limits, kills, repairs, and forks at every moment."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from lab.node.machine import Machine
from lab.node.programs import SLEEP, STORM, end, storms
from nm_proxy.cgroup.errors import GroupBusyError
from nm_proxy.cgroup.stats import read_stats
from nm_proxy.parenting.planning import Repair

MIB = 1 << 20


def test_a_container_is_inside_and_its_limits_are_in_force(machine: Machine) -> None:
    machine.know(2, vcores=3, memory_mib=128)
    process = machine.launch(2, SLEEP)
    report = machine.launch_pass(2)
    assert report.errors == {}
    assert len(report.latencies) == 1
    assert machine.outside(2) == {}
    values = machine.tree.values(machine.path(2))
    assert (values.cpu, values.memory_bytes) == (3 * 1024, 128 * MIB)
    assert machine.look().repairs == []
    assert machine.tree.values(machine.place.yarn).cpu == 3 * 1024
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    machine.look()
    assert machine.tree.values(machine.place.yarn).cpu == 2


def test_a_task_that_uses_too_much_is_killed_alone(machine: Machine) -> None:
    for number in (2, 3):
        machine.know(number, memory_mib=64)
    greedy = machine.launch(
        2, "sys.stdin = open(sys.argv[2])\nsys.stdin.read()\nx = bytearray(256 << 20)\n", _fifo(machine)
    )
    modest = machine.launch(3, SLEEP)
    machine.wait_for(machine.pid_file(3).exists)
    machine.launch_pass(2)
    Path(machine.local / "go").write_text("go")
    assert greedy.wait(timeout=60) == -signal.SIGKILL
    assert modest.poll() is None
    stats = read_stats(machine.tree, machine.path(2))
    assert stats.oom_kills == 1
    assert stats.memory_peak_bytes is not None
    assert stats.memory_peak_bytes <= 64 * MIB
    end(greedy, modest)


def _fifo(machine: Machine) -> str:
    machine.local.mkdir(parents=True, exist_ok=True)
    path = machine.local / "go"
    os.mkfifo(path)
    return str(path)


def test_kills_a_whole_group_with_sessions_of_its_own_and_nobody_else(machine: Machine) -> None:
    machine.know(2)
    machine.know(3)
    victim = machine.launch(2, STORM, "7", "1.0")
    other = machine.launch(3, SLEEP)
    machine.wait_for(machine.pid_file(3).exists)
    machine.launch_pass(2)
    machine.wait_for(lambda: len(machine.carriers(2)) > 5)
    machine.look()
    assert machine.killer.kill(machine.path(2), timeout_seconds=30) > 0
    assert machine.tree.processes(machine.path(2)) == set()
    victim.wait(timeout=30)
    assert machine.carriers(2) == set()
    assert other.poll() is None
    freezer = machine.hierarchies.of("freezer")
    assert freezer is not None
    assert machine.tree.files.read(f"{freezer.at(machine.path(2))}/freezer.state").strip() == "THAWED"
    machine.tree.remove(machine.path(2))
    end(victim, other)


def test_kills_a_fork_bomb(machine: Machine) -> None:
    machine.know(2)
    bomb = machine.launch(2, "import time\nos.read(os.open(sys.argv[2], os.O_RDONLY), 1)\n" + BOMB, _fifo(machine))
    machine.launch_pass(2)
    assert machine.outside(2) == {}
    (machine.local / "go").write_text("go")
    machine.wait_for(lambda: len(machine.tree.processes(machine.path(2))) > 20)
    machine.killer.kill(machine.path(2), timeout_seconds=60)
    assert machine.tree.processes(machine.path(2)) == set()
    bomb.wait(timeout=30)
    assert machine.carriers(2) == set()
    end(bomb)


BOMB = """
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
    time.sleep(0.02)
"""


def test_repairs_what_another_program_rewrites(machine: Machine) -> None:
    machine.know(2, vcores=2, memory_mib=128)
    process = machine.launch(2, SLEEP)
    machine.launch_pass(2)
    machine.look()
    cpu = machine.hierarchies.required("cpu")
    memory = machine.hierarchies.required("memory")
    Path(f"{cpu.at(machine.path(2))}/cpu.shares").write_text("9")
    Path(f"{cpu.at(machine.place.yarn)}/cpu.shares").write_text("9")
    Path(f"{memory.at(machine.path(2))}/memory.limit_in_bytes").write_text("-1")
    Path(f"{memory.at('')}/cgroup.procs").write_text(str(process.pid))
    repairs = machine.look().repairs
    assert set(repairs) == {Repair.CPU, Repair.MEMORY, Repair.MEMBERSHIP, Repair.PARENT_CPU}
    assert machine.outside(2) == {}
    assert machine.tree.values(machine.path(2)).memory_bytes == 128 * MIB
    assert machine.look().repairs == []
    end(process)


def test_leaves_a_cpuset_that_koordlet_shrank(machine: Machine) -> None:
    machine.know(2)
    process = machine.launch(2, SLEEP)
    machine.launch_pass(2)
    cpuset = machine.hierarchies.required("cpuset")
    first = machine.tree.files.read(f"{cpuset.at(machine.path(2))}/cpuset.cpus").strip()
    assert first == machine.tree.files.read(f"{cpuset.at(machine.name)}/cpuset.cpus").strip()
    for path in (machine.path(2), machine.place.yarn, machine.name):
        Path(f"{cpuset.at(path)}/cpuset.cpus").write_text("0")
    assert machine.look().repairs == []
    machine.know(3)
    late = machine.launch(3, SLEEP)
    assert machine.launch_pass(3).errors == {}
    assert machine.outside(3) == {}
    assert machine.tree.files.read(f"{cpuset.at(machine.path(3))}/cpuset.cpus").strip() == "0"
    end(process, late)


def test_a_group_with_processes_is_not_removed(machine: Machine) -> None:
    machine.know(2)
    process = machine.launch(2, SLEEP)
    machine.launch_pass(2)
    with pytest.raises(GroupBusyError):
        machine.tree.remove(machine.path(2))
    end(process)


def test_counts_what_a_container_uses(machine: Machine) -> None:
    machine.know(2)
    process = machine.launch(
        2, "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n" + SLEEP
    )
    machine.launch_pass(2)
    machine.wait_for(lambda: (read_stats(machine.tree, machine.path(2)).cpu_seconds or 0) > 0.1)
    stats = read_stats(machine.tree, machine.path(2))
    assert stats.memory_bytes is not None
    assert stats.throttled_periods == 0
    end(process)


def test_no_process_of_a_fork_storm_escapes(machine: Machine) -> None:
    escaped, seen = storms(machine, 40)
    assert seen > 40
    assert escaped == 0


@pytest.mark.soak
def test_no_process_of_a_thousand_fork_storms_escapes(machine: Machine) -> None:
    escaped, seen = storms(machine, 1000)
    print(f"{seen} processes, {escaped} escaped")
    assert escaped == 0
