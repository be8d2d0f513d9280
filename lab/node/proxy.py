# SPDX-License-Identifier: Apache-2.0
"""Run `nm-proxy run` as a real process in front of a NodeManager that the lab prepared and did not start."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from typing import Any, Final

import requests
import yaml

from lab.cluster import Lab
from lab.hadoop import java
from lab.hadoop.node_manager import NodeManager
from lab.processes import probes
from lab.processes.process import Command, ServerProcess

WAIT_SECONDS: Final = 240.0
_MARKS: Final = {
    "init": "nm_proxy.supervisor.init",
    "supervisor": "nm_proxy.cli.supervise",
    "node-manager": java.MAIN_NODE_MANAGER,
}
"""The word of its command by which each part is known."""


class Proxy:
    """Hold one nm-proxy: its settings file, its process, and what can be seen of both.

    Args:
        lab: runs YARN.
        node_manager: prepared (`YarnOptions.unstarted`) and known by its address (`nameless`).
        hierarchy: YARN's directory in the cgroup tree.
        sections: laid over the settings.
        argv_prefix: in front of the command, for example to give it a PID namespace of its own.
    """

    def __init__(
        self,
        lab: Lab,
        node_manager: NodeManager,
        *,
        hierarchy: str,
        sections: dict[str, dict[str, Any]] | None = None,
        argv_prefix: tuple[str, ...] = (),
    ) -> None:
        self.lab = lab
        self.node_manager = node_manager
        self.folder = node_manager.folder / "proxy"
        self.folder.mkdir()
        self.rendered = self.folder / "conf"
        self.health_port, self.copilot_port = lab.free_port(), lab.free_port()
        settings = self._settings(hierarchy)
        for name, section in (sections or {}).items():
            settings[name] = {**settings.get(name, {}), **section}
        self.settings_file = self.folder / "nm-proxy.yaml"
        self.settings_file.write_text(yaml.safe_dump(settings))
        self.process: ServerProcess = lab.run_beside(
            Command(
                name=f"nm-proxy-{node_manager.identity.short_name}",
                argv=[*argv_prefix, *self.argv("run")],
                log_path=self.folder / "log",
                environment={
                    "HADOOP_HOME": str(node_manager.folder),
                    "HADOOP_YARN_HOME": str(node_manager.folder),
                    "NM_PROXY_CONFIG": str(self.settings_file),
                },
            )
        )

    def argv(self, command: str) -> list[str]:
        """Give a command line of nm-proxy in front of the NodeManager's own."""
        node_manager = self.lab.yarn.java.command(
            java.MAIN_NODE_MANAGER, self.rendered, heap_mib=self.lab.yarn.options.node_manager_heap_mib
        )
        return [sys.executable, "-m", "nm_proxy.cli.main", command, "--", *node_manager]

    def start(self) -> None:
        """Start it and wait until the ResourceManager has the node RUNNING and /readyz says so."""
        self.process.start()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until the node is RUNNING at the ResourceManager and ready by its own word."""
        self.lab.yarn.wait_for_resource_manager()
        probes.wait_until(
            lambda: self.probe("readyz")[0] == 200 and self.state_at_manager() == "RUNNING",
            what="the node is ready",
            timeout_seconds=WAIT_SECONDS,
            processes=[self.process],
        )

    def state_at_manager(self) -> str | None:
        """Give the node's state as the ResourceManager has it."""
        states = {node["id"]: node["state"] for node in self.lab.yarn.nodes()}
        return states.get(self.node_manager.node_id)

    def probe(self, name: str) -> tuple[int, dict[str, Any]]:
        """Call a probe of nm-proxy; 0 where nothing listens."""
        try:
            answer = requests.get(f"http://127.0.0.1:{self.health_port}/{name}", timeout=30)
        except requests.ConnectionError:
            return 0, {}
        return answer.status_code, answer.json()

    def metric(self, name: str) -> float:
        """Read one figure without labels."""
        text = requests.get(f"http://127.0.0.1:{self.health_port}/metrics", timeout=30).text
        found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
        assert found, f"no {name} in\n{text[:2000]}"  # noqa: S101 - a test's helper
        return float(found[1])

    def copilot_state(self) -> dict[str, Any]:
        """Ask GET /v1/state, as the controller does."""
        state: dict[str, Any] = requests.get(f"http://127.0.0.1:{self.copilot_port}/v1/state", timeout=30).json()
        return state

    def configured(self, key: str) -> str:
        """Ask the running NodeManager for the value of a key of its configuration."""
        identity = self.node_manager.identity
        url = f"http://{identity.address}:{identity.ports.web}/conf"
        properties = requests.get(url, headers={"Accept": "application/json"}, timeout=30).json()["properties"]
        return next(str(one["value"]) for one in properties if one["key"] == key)

    def pid_of(self, part: str) -> int:
        """Find the number of a part of it: init, supervisor or node-manager.

        Raises:
            ProcessLookupError: there is none.
        """
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and self._is(folder, _MARKS[part]):
                return int(folder.name)
        raise ProcessLookupError(part)

    def kill(self, part: str) -> int:
        """End a part of it with SIGKILL and give its number."""
        pid = self.pid_of(part)
        os.kill(pid, signal.SIGKILL)
        return pid

    def stop(self) -> int:
        """End it with SIGTERM and give its exit code."""
        self.process.signal(signal.SIGTERM)
        self.process.wait(60.0)
        code = self.process.exit_code
        assert code is not None  # noqa: S101 - a test's helper
        return code

    def log(self) -> str:
        """Read what it and the NodeManager wrote."""
        return self.process.log_path.read_text(errors="replace")

    def _is(self, folder: Path, mark: str) -> bool:
        """Tell whether a process is the part: by the words of its command, the first that names a part decides."""
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            return False
        if str(self.folder) not in " ".join(words):
            return False
        first = next((word for word in words if word in _MARKS.values()), None)
        return first == mark

    def _settings(self, hierarchy: str) -> dict[str, Any]:
        folder = self.node_manager.folder
        return {
            "cgroup": {"hierarchy": hierarchy},
            "hadoop": {"conf_dir": str(folder / "conf"), "rendered_dir": str(self.rendered)},
            "recovery": {"directory": str(folder / "recovery")},
            "supervisor": {"state_dir": str(self.folder), "restart_min_seconds": 0.5},
            "stop": {"grace_seconds": 60},
            "health": {"bind_address": "127.0.0.1", "port": self.health_port},
            "copilot": {
                "socket": str(self.folder / "copilot.sock"),
                "bind_address": "127.0.0.1",
                "port": self.copilot_port,
            },
        }
