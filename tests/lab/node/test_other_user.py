# SPDX-License-Identifier: Apache-2.0
"""Test a NodeManager that runs as another user (`hadoop.user`): its directories, the socket, kills, a takeover."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pwd
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lab.node.machine import APPLICATION, MARK, Machine, container_id, end_carriers
from lab.node.silent import silent_url
from lab.node.supervised import SUPERVISOR, number_of
from lab.processes import probes
from tests.unit.nm_proxy.entry.site import write_site

pytestmark = pytest.mark.timeout(300)
USER = "nobody"
WAIT_SECONDS = 120.0
NODE_MANAGER = """
trap 'echo "asked to stop"; exit 0' TERM
cat "$HADOOP_CONF_DIR/yarn-site.xml" >/dev/null && : >"$1/recovery/state" || exit 4
mkdir -p "$2"
CONTAINER_ID="$3" setsid sh -c 'echo $$ >"$0.tmp" && mv "$0.tmp" "$0" && exec sleep 600' "$2/$3.pid" &
echo "node manager $$"
while :; do sleep 1 & wait $!; done
"""
"""What stands for Java: a shell, since an interpreter in somebody's home is closed to other users."""


class UnixConnection(http.client.HTTPConnection):
    """Speak HTTP over a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Node:
    """Hold one `nm-proxy run` whose NodeManager belongs to somebody else."""

    def __init__(self, folder: Path, machine: Machine, *, url: str) -> None:
        self.folder, self.machine, self.url = folder, machine, url
        self.socket = folder / "socket" / "copilot.sock"
        self.log = folder / "log"
        entry = pwd.getpwnam(USER)
        self.uid, self.gid = entry.pw_uid, entry.pw_gid
        local = folder / "local"
        local.mkdir()
        os.chown(local, self.uid, self.gid)
        write_site(folder / "conf/yarn-site.xml", {"yarn.nodemanager.local-dirs": str(local)})
        (folder / "nm-proxy.yaml").write_text(yaml.safe_dump(self._settings()))
        private = local / "nmPrivate" / APPLICATION / container_id(2)
        command = ["/bin/sh", "-c", NODE_MANAGER, "sh", str(folder), str(private), container_id(2)]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "nm_proxy.cli.main", "run", "--", *command],
                env={**os.environ, "NM_PROXY_CONFIG": str(folder / "nm-proxy.yaml"), MARK: machine.name},
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

    def wait_told(self, part: str) -> None:
        """Wait until a sentence is in the log."""

        def is_told() -> bool:
            text = self.log.read_text()
            assert self.process.poll() is None, text
            return part in text

        probes.wait_until(is_told, what=f"{part!r} in the log", timeout_seconds=WAIT_SECONDS)

    def call(self, method: str, path: str, body: object = None) -> tuple[int, object]:
        """Call the socket's API as whoever this process is."""
        connection = UnixConnection(self.socket)
        try:
            connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def _settings(self) -> dict[str, object]:
        folder = self.folder
        return {
            "cgroup": {"hierarchy": self.machine.place.yarn},
            "hadoop": {
                "conf_dir": str(folder / "conf"),
                "rendered_dir": str(folder / "rendered"),
                "version": "3.5.0",
                "user": USER,
            },
            "identity": {"host_name": "127.0.0.1"},
            "node_manager": {"url": self.url},
            "recovery": {"directory": str(folder / "recovery")},
            "supervisor": {"state_dir": str(folder / "state")},
            "health": {"port": None},
            "copilot": {"socket": str(self.socket)},
        }


@pytest.fixture
def node(machine: Machine) -> Iterator[Node]:
    """Run one in a folder that everybody may enter, and end all that it started."""
    with tempfile.TemporaryDirectory(prefix="nm-proxy-user-") as name, silent_url() as url:
        folder = Path(name)
        folder.chmod(0o755)
        one = Node(folder, machine, url=url)
        try:
            yield one
        finally:
            end_carriers(machine.name)
            one.process.wait(30)


def identity_of(pid: int) -> tuple[set[int], set[int], set[int]]:
    """Give all user, group and further group numbers of a process."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    users, groups, further = (set(map(int, lines[name].split())) for name in ("Uid", "Gid", "Groups"))
    return users, groups, further


@contextlib.contextmanager
def being(user: int, *, group: int) -> Iterator[None]:
    """Be somebody else for a while, without the rights of root and without further groups."""
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(group)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


def test_its_tasks_are_parented_and_killed_and_only_root_may_ask_for_that(node: Node) -> None:
    machine = node.machine
    node.wait_told("node manager")
    mine = ({node.uid}, {node.gid}, set(os.getgrouplist(USER, node.gid)))
    node_manager = int(node.log.read_text().partition("node manager ")[2].split()[0])
    assert identity_of(node_manager) == mine
    recovery = (node.folder / "recovery").stat()
    assert (recovery.st_uid, stat.S_IMODE(recovery.st_mode)) == (node.uid, 0o700)
    assert (node.folder / "recovery" / "state").stat().st_uid == node.uid

    probes.wait_until(
        lambda: machine.carriers(2) and machine.outside(2) == {} and len(machine.tree.processes(machine.path(2))) == 1,
        what="the task of the other user is inside",
        timeout_seconds=WAIT_SECONDS,
    )
    (task,) = machine.tree.processes(machine.path(2))
    assert identity_of(task) == mine

    known = node.socket.stat()
    assert (known.st_uid, stat.S_IMODE(known.st_mode)) == (0, 0o660)
    ask = ("POST", "/v1/killContainer", {"containerID": container_id(2)})
    with being(node.uid, group=0):  # the socket's mode lets root's group in, the peer's credentials do not
        status, refusal = node.call(*ask)
    assert status == 403, refusal
    with being(node.uid, group=node.gid), pytest.raises(PermissionError):
        node.call(*ask)
    assert machine.tree.processes(machine.path(2)) == {task}

    os.kill(number_of(machine, SUPERVISOR), signal.SIGKILL)
    node.wait_told("Took over a running NodeManager")
    probes.wait_until(node.socket.exists, what="the socket is there again", timeout_seconds=WAIT_SECONDS)
    answer = probes.wait_until(
        lambda: _killed(node, container_id(2)), what="the task is killed", timeout_seconds=WAIT_SECONDS
    )
    assert isinstance(answer, dict)
    assert (answer["containerID"], answer["processes"]) == (container_id(2), 1)
    assert [item["name"] for item in answer["items"]] == [container_id(2)]
    assert machine.tree.processes(machine.path(2)) == set()

    node.process.send_signal(signal.SIGTERM)
    assert node.process.wait(60) == 0
    assert "asked to stop" in node.log.read_text()


def _killed(node: Node, name: str) -> object:
    """Ask for a kill; nothing while the supervisor that was started anew does not serve yet, or has not looked yet."""
    try:
        status, answer = node.call("POST", "/v1/killContainer", {"containerID": name})
    except ConnectionRefusedError:
        return None
    return answer if status == 200 else None
