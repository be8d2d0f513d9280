# SPDX-License-Identifier: Apache-2.0
"""Test init and supervisor as real processes, also as PID 1 of a namespace, before a program that stands for Java."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.node.machine import MARK, Machine, carriers_of, end_carriers
from lab.node.silent import silent_url
from tests.unit.nm_proxy.entry.site import write_site

NODE_MANAGER = """
import os, signal, subprocess, sys, time
print("node manager", os.getpid(), flush=True)
for _ in range(int(sys.argv[1])):
    # A container has a session of its own, and its shell has ended long ago: it is nobody's child but init's.
    subprocess.Popen(["setsid", "sh", "-c", "ROLE=container sleep 600 & ROLE=orphan sleep 0.1 &"])
signal.signal(signal.SIGQUIT, lambda *_: print("thread dump", flush=True))
signal.signal(signal.SIGTERM, lambda *_: (print("asked to stop", flush=True), sys.exit(0)))
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    time.sleep(max(end - time.monotonic(), 0))
sys.exit(3)
"""


class Running:
    """Hold one `nm-proxy run` and see its processes from outside."""

    def __init__(
        self,
        folder: Path,
        machine: Machine,
        *,
        arguments: tuple[str, str],
        prefix: tuple[str, ...],
        stop: dict[str, float],
        rendered_dir: Path,
        state_dir: Path,
        url: str,
    ) -> None:
        self.machine = machine
        self.log = folder / "log"
        write_site(folder / "conf/yarn-site.xml", {})
        (folder / "nm.py").write_text(NODE_MANAGER)
        document: dict[str, Any] = {
            "cgroup": {"hierarchy": machine.place.yarn},
            "hadoop": {"conf_dir": str(folder / "conf"), "rendered_dir": str(rendered_dir), "version": "3.5.0"},
            "identity": {"host_name": "127.0.0.1"},
            "node_manager": {"url": url},
            "recovery": {"enabled": False},
            "supervisor": {"state_dir": str(state_dir), "restart_min_seconds": 0.1},
            "stop": stop,
            "health": {"port": None},
            "copilot": {"socket": str(folder / "socket/s")},
        }
        (folder / "nm-proxy.yaml").write_text(yaml.safe_dump(document))
        command = [sys.executable, str(folder / "nm.py"), *arguments]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "nm_proxy.cli.main", "run", "--", *command],
                env={**os.environ, "NM_PROXY_CONFIG": str(folder / "nm-proxy.yaml"), MARK: machine.name},
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

    def text(self) -> str:
        return self.log.read_text()

    def wait_text(self, part: str, count: int = 1) -> None:
        self.machine.wait_for(lambda: self.text().count(part) >= count, 240)

    def containers(self) -> set[int]:
        return carriers_of("ROLE=container", f"{MARK}={self.machine.name}")


def words_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def number_of(machine: Machine, mark: str) -> int:
    (found,) = [pid for pid in carriers_of(f"{MARK}={machine.name}") if words_of(pid)[1:3] == ["-m", mark]]
    return found


def node_manager_of(machine: Machine) -> int:
    every = carriers_of(f"{MARK}={machine.name}")
    (found,) = [pid for pid in every if words_of(pid)[1:2] and words_of(pid)[1].endswith("/nm.py")]
    return found


@contextlib.contextmanager
def running(
    folder: Path,
    machine: Machine,
    *arguments: str,
    namespace: bool = False,
    stop: dict[str, float] | None = None,
    rendered_dir: Path | None = None,
    state_dir: Path | None = None,
) -> Iterator[Running]:
    prefix = ("unshare", "--pid", "--fork", "--mount-proc") if namespace else ()
    with silent_url() as url:
        one = Running(
            folder,
            machine,
            arguments=(arguments[0], arguments[1]),
            prefix=prefix,
            stop=stop or {},
            rendered_dir=rendered_dir or folder / "r",
            state_dir=state_dir or folder / "state",
            url=url,
        )
        try:
            one.wait_text("node manager")
            yield one
        finally:
            end_carriers(machine.name)
            one.process.wait(30)


pytestmark = pytest.mark.timeout(900)
INIT, SUPERVISOR = "nm_proxy.supervisor.init", "nm_proxy.cli.supervise"


@pytest.mark.parametrize("namespace", [True, False], ids=["PID 1", "hostPID"])
def test_a_crash_of_the_supervisor_loses_nothing_and_orphans_are_reaped(
    tmp_path: Path, machine: Machine, namespace: bool
) -> None:
    with running(tmp_path, machine, "3", "600", namespace=namespace) as one:
        machine.wait_for(lambda: len(one.containers()) == 3)
        containers, node_manager = one.containers(), node_manager_of(machine)
        os.kill(number_of(machine, SUPERVISOR), signal.SIGKILL)
        one.wait_text("Took over a running NodeManager")
        assert one.containers() == containers
        assert node_manager_of(machine) == node_manager
        assert one.text().count("node manager") == 1
        init = number_of(machine, INIT)
        machine.wait_for(lambda: not zombies_of(init))
        assert parent_of(node_manager) == init


def test_the_death_of_pid_1_loses_everything(tmp_path: Path, machine: Machine) -> None:
    with running(tmp_path, machine, "3", "600", namespace=True) as one:
        machine.wait_for(lambda: len(one.containers()) == 3)
        os.kill(number_of(machine, INIT), signal.SIGKILL)
        machine.wait_for(lambda: not carriers_of(f"{MARK}={machine.name}"))


def test_with_host_pid_the_death_of_init_leaves_node_manager_and_containers(tmp_path: Path, machine: Machine) -> None:
    with running(tmp_path, machine, "3", "600") as one:
        machine.wait_for(lambda: len(one.containers()) == 3)
        supervisor, node_manager, containers = (
            number_of(machine, SUPERVISOR), node_manager_of(machine), one.containers()
        )  # fmt: skip
        os.kill(number_of(machine, INIT), signal.SIGKILL)
        machine.wait_for(lambda: supervisor not in carriers_of(f"{MARK}={machine.name}"))
        assert one.containers() == containers
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
    with running(tmp_path, machine, "0", "600", stop={"grace_seconds": 120}) as one:
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
    with running(tmp_path, machine, "0", "600", stop={"grace_seconds": 7, "node_manager_seconds": 4}) as one:
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
        with running(tmp_path, machine, "0", "600", rendered_dir=small / "r", state_dir=small / "state") as one:
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
