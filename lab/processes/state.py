# SPDX-License-Identifier: Apache-2.0
"""Keep everything of one lab in one folder, and list the labs that run.

A temporary folder is removed with the lab (unless LAB_KEEP=1), a given one stays. The list of running labs is a
folder of small files, `<temporary directory>/yarn-copilot-labs-<uid>/<name>.json`: pid and start time of the owning
process, the state folder, and how to reach the servers.
"""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.processes import members


class StateFolder:
    """Create and name the state folder of a lab.

    Args:
        path: the folder; None: a new one among the temporary files.
        remove: remove it with the lab; None: a temporary one, unless LAB_KEEP=1.
    """

    def __init__(self, path: Path | None = None, *, remove: bool | None = None) -> None:
        self.is_temporary = (path is None and os.environ.get("LAB_KEEP") != "1") if remove is None else remove
        if path is None:
            path = Path(tempfile.mkdtemp(prefix="yarn-copilot-lab-"))
        path.mkdir(parents=True, exist_ok=True)
        self.path = path.resolve()
        if (self.path / "lab.json").exists() and _is_alive(_read(self.path / "lab.json")):
            raise LabError(f"a lab runs already in {self.path}")
        self.registry_entry = registry_folder() / f"{uuid.uuid4().hex}.json"

    def folder(self, *names: str) -> Path:
        """Return a folder below the state folder, made if missing."""
        path = self.path.joinpath(*names)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def log_path(self, name: str) -> Path:
        """Return the log file of a server."""
        return self.folder("logs") / f"{name}.log"

    def publish(self, description: dict[str, Any]) -> None:
        """Write `lab.json` and the entry in the list of labs."""
        pid = os.getpid()
        record = {
            "pid": pid,
            "start_ticks": members.start_ticks_of(pid),
            "state_dir": str(self.path),
            **description,
        }
        text = json.dumps(record, indent=2)
        for target in (self.path / "lab.json", self.registry_entry):
            temporary = target.with_suffix(".tmp")
            temporary.write_text(text)
            temporary.replace(target)


def registry_folder() -> Path:
    """Return the folder with one file for each running lab of this user."""
    path = Path(tempfile.gettempdir()) / f"yarn-copilot-labs-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def running_labs() -> list[dict[str, Any]]:
    """List the descriptions of living labs; entries of dead ones are removed."""
    labs = []
    for path in sorted(registry_folder().glob("*.json")):
        record = _read(path)
        if _is_alive(record):
            labs.append(record)
        else:
            path.unlink(missing_ok=True)
    return labs


def _read(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _is_alive(record: dict[str, Any]) -> bool:
    pid = record.get("pid")
    ticks = record.get("start_ticks")
    return isinstance(pid, int) and ticks is not None and members.start_ticks_of(pid) == ticks
