# SPDX-License-Identifier: Apache-2.0
"""Test init and supervisor as real processes, also as PID 1 of a namespace, before a program that stands for Java."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lab.node.machine import MARK, Machine, carriers_of
from lab.node.silent import silent_url
from lab.node.supervised import INIT, OWN_PID_NAMESPACE, SUPERVISOR, Supervised, number_of, words_of
from tests.unit.nm_proxy.entry.site import write_site

NODE_MANAGER = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGQUIT, lambda *_: print("thread dump", flush=True))
signal.signal(signal.SIGTERM, lambda *_: (print("asked to stop", flush=True), sys.exit(0)))
print("node manager", os.getpid(), flush=True)
for _ in range(int(sys.argv[1])):
    # A container has a session of its own, and its shell has ended long ago: it is nobody's child but init's.
    subprocess.Popen(["setsid", "sh", "-c", "ROLE=container sleep 600 & ROLE=orphan sleep 0.1 &"])
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    time.sleep(max(end - time.monotonic(), 0))
sys.exit(3)
"""


def containers_of(machine: Machine) -> set[int]:
    return carriers_of("ROLE=container", f"{MARK}={machine.name}")


def node_manager_of(machine: Machine) -> int:
    every = carriers_of(f"{MARK}={machine.name}")
    (found,) = [pid for pid in every if any(word.endswith("/nm.py") for word in words_of(pid)[1:2])]
    return found


@contextlib.contextmanager
def running(
    folder: Path,
    machine: Machine,
    *arguments: str,
    namespace: bool = False,
    sections: Mapping[str, Mapping[str, Any]] | None = None,
) -> Iterator[Supervised]:
    program = folder / "nm.py"
    program.write_text(NODE_MANAGER)
    with silent_url() as url:
        one = Supervised(
            folder,
            machine,
            command=[sys.executable, str(program), *arguments],
            prefix=OWN_PID_NAMESPACE if namespace else (),
            sections={"node_manager": {"url": url}, **(sections or {})},
        )
        try:
            one.wait_text("node manager")
            yield one
        finally:
            one.end()


pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("namespace", [True, False], ids=["PID 1", "hostPID"])
def test_a_crash_of_the_supervisor_loses_nothing_and_orphans_are_reaped(
    tmp_path: Path, machine: Machine, namespace: bool
) -> None:
    with running(tmp_path, machine, "3", "600", namespace=namespace) as one:
        machine.wait_for(lambda: len(containers_of(machine)) == 3)
        containers, node_manager = containers_of(machine), node_manager_of(machine)
        os.kill(number_of(machine, SUPERVISOR), signal.SIGKILL)
        one.wait_text("Took over a running NodeManager")
        assert containers_of(machine) == containers
        assert node_manager_of(machine) == node_manager
        assert one.text().count("node manager") == 1
        init = number_of(machine, INIT)
        machine.wait_for(lambda: not zombies_of(init))
        assert parent_of(node_manager) == init


def test_the_death_of_pid_1_loses_everything(tmp_path: Path, machine: Machine) -> None:
    with running(tmp_path, machine, "3", "600", namespace=True):
        machine.wait_for(lambda: len(containers_of(machine)) == 3)
        os.kill(number_of(machine, INIT), signal.SIGKILL)
        machine.wait_for(lambda: not carriers_of(f"{MARK}={machine.name}"))


def test_with_host_pid_the_death_of_init_leaves_node_manager_and_containers(tmp_path: Path, machine: Machine) -> None:
    with running(tmp_path, machine, "3", "600"):
        machine.wait_for(lambda: len(containers_of(machine)) == 3)
        supervisor, node_manager, containers = (
            number_of(machine, SUPERVISOR), node_manager_of(machine), containers_of(machine)
        )  # fmt: skip
        os.kill(number_of(machine, INIT), signal.SIGKILL)
        machine.wait_for(lambda: supervisor not in carriers_of(f"{MARK}={machine.name}"))
        assert containers_of(machine) == containers
        assert node_manager_of(machine) == node_manager


def test_a_node_manager_that_keeps_ending_is_started_again(tmp_path: Path, machine: Machine) -> None:
    with running(tmp_path, machine, "0", "0.05") as one:
        one.wait_text("node manager", 4)
        assert one.text().count('The NodeManager ended how="code 3"') >= 3
        one.process.send_signal(signal.SIGTERM)
        assert one.process.wait(30) == 0


def in_order(text: str, *parts: str) -> bool:
    places = [text.find(part) for part in parts]
    return -1 not in places and places == sorted(places)


def adopted(machine: Machine) -> subprocess.Popen[bytes]:
    """Launch a container as a NodeManager does, inside its group."""
    machine.know(2)
    container = machine.launch(2, "import time\ntime.sleep(600)\n")
    assert container.stdout is not None
    container.stdout.close()
    machine.launch_pass(2)
    return container


def asked_again_and_again(process: subprocess.Popen[bytes]) -> int:
    """Send SIGTERM until it has ended, so that one comes at every moment of its end; gives its code."""
    deadline = time.monotonic() + 60
    while (code := process.poll()) is None:
        assert time.monotonic() < deadline, "it does not stop"
        process.send_signal(signal.SIGTERM)
        time.sleep(0.001)
    return code


def test_a_stop_goes_on_after_a_crash_of_the_supervisor_in_its_middle(tmp_path: Path, machine: Machine) -> None:
    with running(tmp_path, machine, "0", "600", sections={"stop": {"grace_seconds": 120}}) as one:
        container = adopted(machine)
        one.process.send_signal(signal.SIGTERM)
        one.wait_text("Waiting for containers left=1")
        os.kill(number_of(machine, SUPERVISOR), signal.SIGKILL)
        one.wait_text("Waiting for containers left=1", 2)
        assert container.poll() is None
        container.kill()
        container.wait(30)
        assert asked_again_and_again(one.process) == 0
        assert in_order(one.text(), "No container is left", "asked to stop", "The NodeManager has stopped")
        assert one.text().count("starting it again") == 1


def test_what_is_left_at_the_end_of_the_grace_is_ended_after_the_node_manager(tmp_path: Path, machine: Machine) -> None:
    with running(
        tmp_path, machine, "0", "600", sections={"stop": {"grace_seconds": 7, "node_manager_seconds": 4}}
    ) as one:
        container = adopted(machine)
        one.process.send_signal(signal.SIGTERM)
        assert one.process.wait(60) == 0
        assert container.wait(30) == -signal.SIGKILL
        words = ("The grace is over", "asked to stop", "The NodeManager has stopped", "Ended a container")
        assert in_order(one.text(), *words)


def test_signals_reach_whom_they_are_for(tmp_path: Path, machine: Machine) -> None:
    with running(tmp_path, machine, "0", "600") as one:
        one.process.send_signal(signal.SIGUSR1)
        one.process.send_signal(signal.SIGQUIT)
        one.wait_text("thread dump")
        settings = tmp_path / "nm-proxy.yaml"
        settings.write_text(settings.read_text().replace("host_name:", "hostname:"))
        one.process.send_signal(signal.SIGHUP)
        one.wait_text("The settings file is refused")
        assert "identity.hostname: unknown key" in one.text()
        assert one.text().count("node manager") == 1


def test_a_node_that_is_not_fit_ends_with_the_kind_of_trouble(tmp_path: Path, machine: Machine) -> None:
    (tmp_path / "conf").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "nm_proxy.cli.main", "run", "--", "no-such-program"],
        env={**os.environ, "NM_PROXY_HADOOP__CONF_DIR": str(tmp_path / "conf"), MARK: machine.name},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert f"{tmp_path}/conf/yarn-site.xml: does not exist" in done.stderr
    assert "no-such-program: is not an executable file" in done.stderr


def test_a_full_disk_does_not_keep_a_node_manager_from_being_started_again(tmp_path: Path, machine: Machine) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], check=True)
    try:
        directories = {
            "hadoop": {"rendered_dir": str(small / "r")},
            "supervisor": {"state_dir": str(small / "state")},
        }
        with running(tmp_path, machine, "0", "600", sections=directories) as one:
            first = node_manager_of(machine)
            with contextlib.suppress(OSError), (small / "filler").open("wb", buffering=0) as filler:
                while True:
                    filler.write(bytes(4096))
            os.kill(first, signal.SIGKILL)
            one.wait_text("node manager", 2)
            assert "The last good Hadoop configuration stays in use" in one.text()
            assert "No space left on device" in one.text()
            os.kill(number_of(machine, SUPERVISOR), signal.SIGKILL)
            one.wait_text("Took over a running NodeManager")
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_tree_that_is_mounted_read_only_is_named(tmp_path: Path, machine: Machine) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", {})
    mounts = " ".join(one.mount_point for one in machine.hierarchies.every)
    remount = f'for one in {mounts}; do mount -o remount,bind,ro "$one"; done; exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", remount, "sh", sys.executable, "-m", "nm_proxy.cli.main", "check"],
        env={
            **os.environ,
            "NM_PROXY_HADOOP__CONF_DIR": str(tmp_path / "conf"),
            "NM_PROXY_CGROUP__HIERARCHY": machine.place.yarn,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 12, done.stdout
    for one in machine.hierarchies.every:
        assert f"{one.mount_point}: is mounted read-only" in done.stdout
    assert "readOnly: false" in done.stdout


def zombies_of(parent: int) -> set[int]:
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if fields[0] == "Z" and int(fields[1]) == parent:
                    found.add(int(folder.name))
    return found


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
