# SPDX-License-Identifier: Apache-2.0
"""Test that nothing the kernel refuses ends init, for its end is that of every task."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from nm_proxy.cli.supervise import tell_init
from nm_proxy.supervisor.init import INIT_VARIABLE

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


def run_init(
    script: str, *, refused: str = "", error: str = "OSError()", stderr: int | None = subprocess.PIPE, code: int = 0
) -> str:
    """Run init in a process of its own, whose kernel refuses what is said; it has to end with a code."""
    program = INIT.replace("REFUSED", refused).replace("ERROR", error)
    done = subprocess.run([sys.executable, "-c", program, script], stderr=stderr, timeout=120, check=False)
    assert done.returncode == code
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


CHECKED = "kill -USR1 $YARN_COPILOT_INIT_PID; sleep 0.2; "


def test_what_the_checks_find_is_final_until_the_supervisor_was_at_work_once(tmp_path: Path) -> None:
    run_init("exit 22", code=22)
    count = f"n=$(cat {tmp_path}/n 2>/dev/null || echo 0); echo $((n + 1)) >{tmp_path}/n; "
    # At work, then a name server that is away twice, then stopped in order.
    said = run_init(count + f"case $n in 0) {CHECKED} kill -9 $$ ;; 1|2) exit 22 ;; *) exit 0 ;; esac")
    assert (tmp_path / "n").read_text() == "4\n"
    assert said.count("ended with code 22; starting it again") == 2


def test_nobody_but_the_supervisor_says_that_the_checks_are_passed() -> None:
    run_init("sh -c 'kill -USR1 $YARN_COPILOT_INIT_PID' & wait; sleep 0.2; exit 22", code=22)


def test_during_a_stop_every_code_is_final_again(tmp_path: Path) -> None:
    first = f"touch {tmp_path}/x; {CHECKED} kill -TERM $PPID; sleep 0.2; kill -9 $$"
    said = run_init(f"if test -e {tmp_path}/x; then exit 22; fi; {first}", code=22)
    assert "starting it again" in said


def test_the_supervisor_tells_its_init_and_nobody_else(tmp_path: Path) -> None:
    tell = f"exec {sys.executable} -c 'import os; from nm_proxy.cli.supervise import tell_init; tell_init(os.environ)"
    said = run_init(f"test -e {tmp_path}/x && exit 0; touch {tmp_path}/x; {tell}; os._exit(22)'")
    assert "ended with code 22; starting it again" in said
    tell_init({})
    tell_init({INIT_VARIABLE: "1"})  # neither ends this process, whose parent is no init
