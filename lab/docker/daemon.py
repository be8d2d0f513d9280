# SPDX-License-Identifier: Apache-2.0
"""Run a Docker daemon that shares nothing with the machine's own and leaves nothing behind.

Data, socket, pid file and containerd are in the lab's folder. It makes no network and touches no packet filter:
containers use the host's network. Its containers' cgroups are below one directory, which is removed at the end.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import docker
from docker.errors import DockerException

from lab.errors import LabError
from lab.processes import probes
from lab.processes.group import ProcessGroup
from lab.processes.process import Command, ServerProcess
from lab.processes.state import StateFolder

_PROGRAM: Final = "dockerd"
_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 30.0
_CALL_SECONDS: Final = 300
_CGROUP_ROOT: Final = Path("/sys/fs/cgroup")


class DockerDaemon:
    """Start and stop the daemon; `client` talks to it."""

    def __init__(self) -> None:
        """Choose places; nothing is started.

        Raises:
            LabError: the program is missing, or this is not root.
        """
        if shutil.which(_PROGRAM) is None:
            raise LabError(f"the program {_PROGRAM} is not installed: apt-get install docker.io")
        if os.geteuid() != 0:
            raise LabError("only root can run a Docker daemon")
        self._group = ProcessGroup(StateFolder())
        self.folder = self._group.state.folder("docker")
        self.cgroup_parent = f"yarn-copilot-docker-{os.getpid()}-{secrets.token_hex(4)}"
        self.url = f"unix://{self.folder}/docker.sock"
        self._process: ServerProcess = self._group.add(
            Command(name=_PROGRAM, argv=self._argv(), log_path=self._group.state.log_path(_PROGRAM))
        )
        self._client: docker.DockerClient | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def client(self) -> docker.DockerClient:
        """Give a client.

        Raises:
            LabError: the daemon was not started.
        """
        if self._client is None:
            raise LabError("the Docker daemon was not started")
        return self._client

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises:
            LabError: it does not, in time; the end of its log is quoted.
        """
        self._process.start()
        self._client = probes.wait_until(
            self._connect, what="the Docker daemon answers", timeout_seconds=_START_SECONDS, processes=[self._process]
        )

    def stop(self) -> None:
        """Stop every container, then the daemon, and remove mounts, cgroups and files.

        Raises:
            LabError: something is left.
        """
        if self._client is not None:
            self._client.close()
            self._client = None
        self._process.signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        _unmount_below(self.folder)
        # The watchdog of the group ends what outlived the daemon, and removes the folder.
        self._group.close()
        _remove_groups(self.cgroup_parent)

    def _argv(self) -> list[str]:
        places = {
            "host": self.url,
            "data-root": f"{self.folder}/data",
            "exec-root": f"{self.folder}/run",
            "pidfile": f"{self.folder}/pid",
            "storage-driver": "overlay2",
            "exec-opt": "native.cgroupdriver=cgroupfs",
            "cgroup-parent": f"/{self.cgroup_parent}",
            "bridge": "none",
        }
        switched_off = ("iptables", "ip6tables", "ip-forward", "ip-masq")
        return [
            _PROGRAM,
            *(f"--{name}={value}" for name, value in places.items()),
            *(f"--{name}=false" for name in switched_off),
        ]

    def _connect(self) -> docker.DockerClient:
        # That client leaves the socket of a connection that fails to the garbage collector.
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(self.url.removeprefix("unix://"))
            except OSError as error:
                raise probes.NotReadyError(str(error)) from error
        client: docker.DockerClient | None = None
        try:
            client = docker.DockerClient(base_url=self.url, timeout=_CALL_SECONDS)
            client.ping()
        except (DockerException, OSError) as error:
            if client is not None:
                client.close()
            raise probes.NotReadyError(str(error)) from error
        return client


def _unmount_below(folder: Path) -> None:
    """Unmount what a daemon that was killed has left, innermost first."""
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for point in sorted((one for one in points if one.startswith(f"{folder}/")), key=len, reverse=True):
        subprocess.run(["umount", "--lazy", point], check=False, capture_output=True)


def _remove_groups(name: str) -> None:
    """Remove a directory with all below it from every cgroup hierarchy.

    Raises:
        LabError: processes are still in it after a while.
    """
    deadline = time.monotonic() + _STOP_SECONDS
    while tops := [top for top in (_CGROUP_ROOT / name, *_CGROUP_ROOT.glob(f"*/{name}")) if top.is_dir()]:
        for top in tops:
            for directory in sorted((top, *top.rglob("*/")), key=lambda path: -len(path.parts)):
                with contextlib.suppress(OSError):
                    directory.rmdir()
        if time.monotonic() > deadline:
            raise LabError(f"cgroups are left: {', '.join(map(str, tops))}")
        time.sleep(0.05)
