# SPDX-License-Identifier: Apache-2.0
"""Outlive the lab's process and clean up after it.

Run as a script: `python watchdog.py STATE_DIR REMOVE REGISTRY_ENTRY` with the reading end of a pipe as standard
input. Only the lab holds the writing end, so end-of-file means that the lab has ended, however it ended. Then all
members of the state folder are killed, the folder is removed (REMOVE = 1), and the entry in the list of labs too.
Signals from a terminal are ignored: the watchdog must be the last to go.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.processes import members


def main(state_dir: Path, remove: bool, registry_entry: Path) -> int:
    """Wait for the end of standard input, then clean up; 0 when nothing is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    left = members.kill_members(state_dir, timeout_seconds=30)
    if remove:
        shutil.rmtree(state_dir, ignore_errors=True)
    registry_entry.unlink(missing_ok=True)
    return 1 if left else 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), sys.argv[2] == "1", Path(sys.argv[3])))
