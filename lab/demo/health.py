# SPDX-License-Identifier: Apache-2.0
"""Ask the controller's process how it is, as a kubelet's probes would."""

from __future__ import annotations

import requests

from lab.controller import ControllerProcess


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
