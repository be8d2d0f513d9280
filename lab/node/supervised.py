# SPDX-License-Identifier: Apache-2.0
"""Run init and supervisor as real processes before a program that stands for Java, and see them from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from lab.node.machine import MARK, Machine, carriers_of, end_carriers

INIT: Final = "nm_proxy.supervisor.init"
SUPERVISOR: Final = "nm_proxy.cli.supervise"
WAIT_SECONDS: Final = 240.0
"""For an emulated processor, or ten programs on one that is not."""
COMMAND_LINE: Final = ("-m", "nm_proxy.cli.main", "run")
"""As a user starts it; replaces itself by init."""
INIT_ITSELF: Final = ("-m", INIT, "--", sys.executable, "-m", SUPERVISOR)
"""What that becomes, without the time that an emulated processor needs for the command line."""
OWN_PID_NAMESPACE: Final = ("unshare", "--pid", "--fork", "--mount-proc")


class Supervised:
    """Hold one run; everything that it starts carries the machine's mark, and ends with `end`."""

    def __init__(
        self,
        folder: Path,
        machine: Machine,
        *,
        command: Sequence[str],
        entry: Sequence[str] = COMMAND_LINE,
        prefix: Sequence[str] = (),
        sections: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """Write what it needs and start it.

        Args:
            folder: for its files; a second run in it takes over what the first one left.
            machine: whose cgroup tree it gets.
            command: what stands for the NodeManager.
            entry: arguments of the interpreter, `COMMAND_LINE` or `INIT_ITSELF`.
            prefix: what init is started by, such as `OWN_PID_NAMESPACE`.
            sections: of the settings, over those of this class.
        """
        self.machine = machine
        self.log = folder / "log"
        site = folder / "conf/yarn-site.xml"
        site.parent.mkdir(exist_ok=True)
        site.write_text("<configuration/>")
        settings = folder / "nm-proxy.yaml"
        settings.write_text(yaml.safe_dump(_document(folder, machine, sections)))
        # Appended to: a NodeManager that outlives its supervisor goes on to write here.
        with self.log.open("a") as log:
            self._begin = log.tell()
            self.process = subprocess.Popen(
                [*prefix, sys.executable, *entry, "--config", str(settings), "--", *command],
                env={**os.environ, MARK: machine.name},
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

    def text(self) -> str:
        """Give what was written since it was started, the NodeManager's words included."""
        return self.log.read_bytes()[self._begin :].decode()

    def wait_text(self, part: str, count: int = 1) -> None:
        """Wait until it has written something so many times.

        Raises:
            AssertionError: it did not within the deadline, or ended; with all that it wrote.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            ended = self.process.poll()  # before the look at its words, which are all there once it has ended
            if self.text().count(part) >= count:
                return
            if ended is not None or time.monotonic() > deadline:
                raise AssertionError(f"never wrote {part!r} {count} times; its code is {ended}\n{self.text()}")
            time.sleep(0.005)

    def end(self) -> None:
        """End every process of it."""
        end_carriers(self.machine.name)
        self.process.wait(30)


def words_of(pid: int) -> list[str]:
    """Give the words of a process's command; empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def number_of(machine: Machine, module: str) -> int:
    """Find the one process that runs a module, such as `INIT` or `SUPERVISOR`."""
    (found,) = [pid for pid in carriers_of(f"{MARK}={machine.name}") if words_of(pid)[1:3] == ["-m", module]]
    return found


def _document(folder: Path, machine: Machine, sections: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    document: dict[str, dict[str, Any]] = {
        "cgroup": {"hierarchy": machine.place.yarn},
        "hadoop": {"conf_dir": str(folder / "conf"), "rendered_dir": str(folder / "r"), "version": "3.5.0"},
        "identity": {"host_name": "127.0.0.1"},
        "recovery": {"enabled": False},
        "supervisor": {"state_dir": str(folder / "state"), "restart_min_seconds": 0.1},
        "health": {"port": None},
        "copilot": {"socket": str(folder / "socket/s")},
    }
    for name, section in sections.items():
        document[name] = {**document.get(name, {}), **section}
    return document
