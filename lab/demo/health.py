# SPDX-License-Identifier: Apache-2.0
"""Ask the controller's process how it is, as a kubelet's probes would."""

from __future__ import annotations

import requests

from batch_resources.resources import BatchResources, YarnResources
from lab.controller import ControllerProcess
from lab.demo.agreement import Aim
from lab.errors import LabError


def read_aims(controller: ControllerProcess | None) -> dict[str, Aim]:
    """Read from a controller's API what it means to do, by node name.

    Raises:
        LabError: it does not answer.
    """
    if controller is None:
        raise LabError("the controller was not started")
    try:
        nodes = controller.get("/api/v1/nodes").json()["nodes"]
    except (requests.RequestException, ValueError, KeyError) as error:
        raise LabError(f"the controller's API: {error}") from error
    aims = {}
    for node in nodes:
        origin, managers = node["origin"], node["node_managers"]
        target = managers[0]["target"] if len(managers) == 1 else None
        if target is not None and origin["cpu_milli"] is not None:
            aims[node["node"]] = Aim(
                origin=BatchResources(cpu_milli=origin["cpu_milli"], memory_bytes=origin["memory_bytes"]),
                capacity=YarnResources(memory_mib=target["memory_mib"], vcores=target["vcores"]),
            )
    return aims


def controller_trouble(controller: ControllerProcess | None) -> str | None:
    """Say what is wrong with a controller's process; None when nothing is."""
    if controller is None or not controller.is_running:
        return "its process is not running"
    for path in ("/healthz", "/readyz"):
        try:
            answer = controller.get(path)
        except requests.RequestException as error:
            return f"{path}: {error}"
        if answer.status_code != requests.codes.ok:
            return f"{path} answers {answer.status_code}: {answer.text[:200]}"
    return None
