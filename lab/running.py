# SPDX-License-Identifier: Apache-2.0
"""Look at and stop labs that run in other processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from lab.errors import LabError
from lab.processes import members, probes
from lab.processes.process import tail_of
from lab.processes.state import running_labs

_STOP_TIMEOUT_SECONDS: Final = 60.0
_START_TIMEOUT_SECONDS: Final = 1800.0  # a first start builds Kubernetes


def stop_lab(record: dict[str, Any]) -> None:
    """End the process that owns a lab and wait until nothing of the lab is left.

    Raises:
        LabError: something is still there after a minute.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(record["pid"], signal.SIGTERM)
    state_dir = Path(record["state_dir"])

    def is_gone() -> bool:
        return members.start_ticks_of(record["pid"]) != record["start_ticks"] and not members.find_members(state_dir)

    probes.wait_until(is_gone, what=f"the lab in {state_dir} is gone", timeout_seconds=_STOP_TIMEOUT_SECONDS)


def start_detached(arguments: Sequence[str], state_dir: Path | None) -> dict[str, Any]:
    """Run `python -m lab up` in a session of its own and wait until it is ready.

    Args:
        arguments: options of `up` beside the state folder.
        state_dir: folder to use and keep; None: a temporary one.

    Raises:
        LabError: it ended or is not ready in time; the end of its output is quoted.
    """
    folder = state_dir or Path(tempfile.mkdtemp(prefix="yarn-copilot-lab-"))
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--state-dir", str(folder), *([] if state_dir else ["--remove-state"]), *arguments]
    output = folder / "up.log"
    with output.open("ab") as stream:
        child = subprocess.Popen(
            [sys.executable, "-m", "lab", "up", "--outlive-parent", *options],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )

    def record() -> dict[str, Any] | None:
        if child.poll() is not None:
            raise LabError(f"the lab ended with exit code {child.returncode}\n{tail_of(output)}")
        return next((each for each in running_labs() if each["pid"] == child.pid), None)

    try:
        found = probes.wait_until(record, what="the lab is up", timeout_seconds=_START_TIMEOUT_SECONDS)
    except BaseException:
        child.terminate()
        child.wait(_STOP_TIMEOUT_SECONDS)
        raise
    if found is None:
        raise LabError("the lab did not say where it is")
    child.returncode = 0  # it goes on without us: the destructor must not wait for it or complain
    return found


def exports(record: dict[str, Any]) -> list[str]:
    """Render shell lines that point tools at a lab."""
    names = {
        "KUBECONFIG": "kubeconfig",
        "HADOOP_CONF_DIR": "hadoop_conf_dir",
        "LAB_RM_REST": "resource_manager_rest",
        "LAB_RM_ADMIN": "resource_manager_admin",
    }
    return [f"export {name}={record[key]}" for name, key in names.items() if key in record]
