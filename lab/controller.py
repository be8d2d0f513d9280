# SPDX-License-Identifier: Apache-2.0
"""Run the controller as a process of the lab, as an operator would run it."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import requests
import yaml

from lab.errors import LabError
from lab.hadoop.yarn import Yarn
from lab.kubernetes.control_plane import ControlPlane
from lab.processes import probes
from lab.processes.group import ProcessGroup
from lab.processes.process import Command, ServerProcess

_MODULE: Final = "yarn_copilot.cli.main"
_REPOSITORY: Final = Path(__file__).resolve().parents[1]
_CALL_TIMEOUT_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Say what is run: the product, or a test's program around it, which takes the same arguments."""

    module: str = _MODULE
    environment: Mapping[str, str] = field(default_factory=dict)


class ControllerProcess:
    """Start, stop and ask one controller; it may be started again after it ended."""

    def __init__(
        self, group: ProcessGroup, *, name: str, config: Mapping[str, Any], port: int, program: Program | None = None
    ) -> None:
        program = program or Program()
        self.name = name
        self.url = f"http://127.0.0.1:{port}"
        self.config_path = group.state.folder("controllers") / f"{name}.yaml"
        self.write_config(config)
        self.process: ServerProcess = group.add(
            Command(
                name=name,
                argv=[sys.executable, "-m", program.module, "run", "--config", str(self.config_path)],
                log_path=group.state.log_path(name),
                environment={"PYTHONPATH": str(_REPOSITORY), "PYTHONUNBUFFERED": "1", **program.environment},
            )
        )

    @classmethod
    def in_lab(
        cls,
        group: ProcessGroup,
        *,
        name: str,
        config: Mapping[str, Any],
        kubernetes: ControlPlane | None,
        yarn: Yarn | None,
        token: str | None = None,
        program: Program | None = None,
    ) -> Self:
        """Fill in what the lab knows and make the process; keys that `config` has are left as they are."""
        full = copy.deepcopy(dict(config))
        port = full.get("server", {}).get("port") or group.ports.take()
        _fill(full, "server", {"bind_address": "127.0.0.1", "port": port})
        if kubernetes is not None:
            kubeconfig = kubernetes.kubeconfig if token is None else kubernetes.kubeconfig_for(token, user=name)
            _fill(full, "kubernetes", {"kubeconfig": str(kubeconfig)})
            _fill(full, "leader_election", {"namespace": "kube-system", "identity": name})
        if yarn is not None:
            _fill(full, "hadoop", {"conf_dir": str(yarn.conf_dir), "user": yarn.operator_user})
            _fill(
                full,
                "yarn",
                {"floor_memory_mib": yarn.options.floor_memory_mib, "floor_vcores": yarn.options.floor_vcores},
            )
        return cls(group, name=name, config=full, port=port, program=program)

    @property
    def log_path(self) -> Path:
        """Tell where the log is; it is appended to over restarts."""
        return self.process.log_path

    @property
    def is_running(self) -> bool:
        """Tell whether the process lives."""
        return self.process.is_running

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Replace the configuration file in one step, as an editor or a ConfigMap does."""
        self.config = dict(config)
        temporary = self.config_path.with_suffix(".tmp")
        temporary.write_text(yaml.safe_dump(self.config, sort_keys=False))
        temporary.replace(self.config_path)

    def start(self) -> Self:
        """Start the process; `wait_ready` waits until it works."""
        self.process.start()
        return self

    def terminate(self, *, timeout_seconds: float = 30.0) -> int | None:
        """End it with SIGTERM (SIGKILL after the timeout) and return its exit code."""
        self.process.stop(timeout_seconds=timeout_seconds)
        return self.process.exit_code

    def sigkill(self) -> None:
        """End it with SIGKILL: nothing can be tidied up, no lease is released."""
        self.process.kill()

    def pause(self) -> None:
        """Freeze it with SIGSTOP."""
        self.process.pause()

    def resume(self) -> None:
        """Let it go on."""
        self.process.resume()

    def wait_ready(self, *, timeout_seconds: float = 60.0) -> None:
        """Wait until /readyz answers 200: the first complete view is there.

        Raises:
            LabError: it ended or is not ready in time; the log's last lines are quoted.
        """
        probes.wait_until(
            lambda: probes.http_ok(f"{self.url}/readyz"),
            what=f"{self.name} is ready",
            timeout_seconds=timeout_seconds,
            processes=[self.process],
        )

    def get(self, path: str) -> requests.Response:
        """GET a path of its HTTP interface."""
        with requests.Session() as session:
            session.trust_env = False
            return session.get(self.url + path, timeout=_CALL_TIMEOUT_SECONDS)

    def metric(self, name: str, labels: Mapping[str, str] | None = None) -> float:
        """Read /metrics and add up the samples that match, as errors of one loop that differ in their kind.

        Args:
            name: sample name, with `_total` and the like.
            labels: labels that a sample must have; others may be there.

        Raises:
            LabError: there is no such sample.
        """
        wanted = [f'{key}="{value}"' for key, value in (labels or {}).items()]
        lines = (line.rpartition(" ") for line in self.get("/metrics").text.splitlines())
        found = [
            float(value)
            for head, _, value in lines
            if head.partition("{")[0] == name and all(label in head for label in wanted)
        ]
        if not found:
            raise LabError(f"{self.name} has no metric {name} with {labels or 'any labels'}")
        return sum(found)


def _fill(config: dict[str, Any], section: str, values: Mapping[str, Any]) -> None:
    config[section] = {**values, **config.get(section, {})}
