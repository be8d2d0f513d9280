# SPDX-License-Identifier: Apache-2.0
"""Test that nothing the kernel refuses ends init, for its end is that of every task."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

INIT = (
    "import errno, os, sys, time\n"
    "from nm_proxy.supervisor import init\n"
    "real, tries = os.posix_spawn, []\n"
    "def spawn(*words, **options):\n"
    "    tries.append(1)\n"
    "    if len(tries) in (REFUSED):\n"
    "        raise ERROR\n"
    "    return real(*words, **options)\n"
    "os.posix_spawn = spawn\n"
    "init.RESTART_MIN_SECONDS = 0.01\n"
    "init.RESTART_MAX_SECONDS = 0.02\n"
    "sys.exit(init.main(['--', '/bin/sh', '-c', sys.argv[1], 'sh']))\n"
)


def run_init(script: str, *, refused: str = "", error: str = "OSError()", stderr: int | None = subprocess.PIPE) -> str:
    """Run init in a process of its own, whose kernel refuses what is said; it has to end with code 0."""
    program = INIT.replace("REFUSED", refused).replace("ERROR", error)
    done = subprocess.run([sys.executable, "-c", program, script], stderr=stderr, timeout=4, check=False)
    assert done.returncode == 0
    return (done.stderr or b"").decode()


def crash_once(folder: Path) -> str:
    return f"test -e {folder}/x || {{ touch {folder}/x; exit 1; }}"


def test_a_supervisor_that_cannot_be_started_is_tried_again(tmp_path: Path) -> None:
    said = run_init(crash_once(tmp_path), refused="2, 3, 4", error="BlockingIOError(errno.EAGAIN, 'no process')")
    assert said.count("cannot be started") == 3
    assert "no process" in said


def test_short_memory_at_the_first_start_is_waited_out() -> None:
    said = run_init("exit 0", refused="1, 2", error="OSError(errno.ENOMEM, 'no memory')")
    assert said.count("cannot be started") == 2


def test_an_error_that_nobody_thought_of_does_not_end_init(tmp_path: Path) -> None:
    assert "unexpected" in run_init(crash_once(tmp_path), refused="2,", error="RuntimeError('odd')")


def test_words_that_cannot_be_written_are_lost(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        run_init(crash_once(tmp_path), stderr=writer)
    finally:
        os.close(writer)
    (tmp_path / "x").unlink()
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        run_init(crash_once(tmp_path), stderr=full)
    finally:
        os.close(full)
