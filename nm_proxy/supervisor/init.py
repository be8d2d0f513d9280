# SPDX-License-Identifier: Apache-2.0
"""Be PID 1 of the container: reap every orphan, keep the supervisor running, hand signals on, end with its code.

Run as `python -m nm_proxy.supervisor.init -- COMMAND...`. It imports next to nothing and does next to nothing, because
its death is the death of every process in its PID namespace. It is also a child subreaper, so that with hostPID or as
a test, where it is not PID 1, a NodeManager whose supervisor died still becomes its child.

Signals are blocked and taken one by one, so there is no handler that could run at a bad moment. No failure of the
kernel leaves the loop: a supervisor that cannot be started (no process left below pids.max, no memory) is tried again
for ever, and words that cannot be written are lost.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Final

from nm_proxy.exit_codes import ExitCode
from nm_proxy.supervisor.restarting import Restarts

FORWARDED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
CHECKED: Final = signal.SIGUSR1
"""The supervisor sends it once its checks are passed and the configuration is rendered."""
SWALLOWED: Final = (signal.SIGUSR1, signal.SIGUSR2)
"""From anybody else they mean nothing here, and would end this process or a Java that has no handler."""
INIT_VARIABLE: Final = "YARN_COPILOT_INIT_PID"
"""How the supervisor knows that its parent is an init, which waits for `CHECKED`."""
STOPPING: Final = (signal.SIGTERM, signal.SIGINT)
STOP_SINCE_OPTION: Final = "--stop-since"
"""How a supervisor that is started anew during a stop learns when the stop began (monotonic seconds)."""

RESTART_MIN_SECONDS: Final = 0.2
RESTART_MAX_SECONDS: Final = 10.0
STABLE_SECONDS: Final = 60.0
FINAL_CODES: Final = frozenset(int(code) for code in ExitCode if code is not ExitCode.FAILED)
"""Codes with which the supervisor says that there is no point in starting it again.

They count until it was at work once. After that tasks may live, which this process's end would end, and what is wrong
with the node now (a name server that is away, a file that is being edited) may pass.
"""

STDERR: Final = 2

_PR_SET_CHILD_SUBREAPER: Final = 36


def final_code(status: int, *, was_at_work: bool = False) -> int | None:
    """Give the code to end with when the supervisor has ended; None where it is to be started again.

    Args:
        status: as of waitpid.
        was_at_work: it has passed its checks before, and nobody has asked for a stop.
    """
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    if was_at_work:
        return code if code == ExitCode.OK else None
    return code if code in FINAL_CODES else None


def restarts() -> Restarts:
    """Give how long to wait before the supervisor is started again."""
    return Restarts(min_seconds=RESTART_MIN_SECONDS, max_seconds=RESTART_MAX_SECONDS, stable_seconds=STABLE_SECONDS)


class Init:
    """Hold the one loop; single threaded, never returns before the supervisor is done."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._restarts = restarts()
        self._child: int | None = None
        self._started_at = 0.0
        self._start_at: float | None = 0.0
        self._stop_since: float | None = None
        self._was_checked = False

    def run(self) -> int:
        """Work until the supervisor is done.

        Returns:
            The code to end with.
        """
        waited_for = {signal.SIGCHLD, *FORWARDED, *SWALLOWED}
        signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
        become_subreaper()
        while True:
            try:
                code = self._step(waited_for)
            except Exception as error:  # whatever it is, the tasks must not die of it
                _tell(f"an unexpected error ({error!r}); going on")
                time.sleep(RESTART_MIN_SECONDS)
                continue
            if code is not None:
                return code

    def _step(self, waited_for: set[signal.Signals]) -> int | None:
        """Start what is due and take one signal; give the code to end with, None to go on."""
        if self._child is None and self._start_at is not None and time.monotonic() >= self._start_at:
            self._start()
        left = None if self._start_at is None else max(self._start_at - time.monotonic(), 0.0)
        arrived = signal.sigwaitinfo(waited_for) if left is None else signal.sigtimedwait(waited_for, left)
        if arrived is None:
            return None
        if arrived.si_signo == signal.SIGCHLD:
            return self._reap()
        if arrived.si_signo in FORWARDED:
            self._hand_on(arrived.si_signo)
        if arrived.si_signo == CHECKED and arrived.si_pid == self._child:
            self._was_checked = True
        return None

    def _start(self) -> None:
        command = list(self._command)
        if self._stop_since is not None:
            command += [STOP_SINCE_OPTION, str(self._stop_since)]
        try:
            self._child = os.posix_spawn(
                command[0],
                command,
                {**os.environ, INIT_VARIABLE: str(os.getpid())},
                setsigmask=(),
                setsigdef=(signal.SIGPIPE, *FORWARDED),
            )
        except (OSError, MemoryError) as error:
            wait = self._restarts.ended(0.0)
            self._start_at = time.monotonic() + wait
            _tell(f"the supervisor cannot be started ({error}); trying again in {wait:g} s")
            return
        self._started_at, self._start_at = time.monotonic(), None

    def _reap(self) -> int | None:
        """Take every dead child off the kernel's list; one signal may stand for many."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == 0:
                return None
            if pid != self._child:
                continue
            self._child = None
            code = final_code(status, was_at_work=self._was_checked and self._stop_since is None)
            if code is not None:
                return code
            now = time.monotonic()
            wait = self._restarts.ended(now - self._started_at)
            self._start_at = now + wait  # before the words, which may fail
            _tell(f"the supervisor {_how(status)}; starting it again in {wait:g} s")

    def _hand_on(self, number: int) -> None:
        if number in STOPPING and self._stop_since is None:
            self._stop_since = time.monotonic()
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, number)  # not reaped yet, so the number is still its


def become_subreaper() -> None:
    """Ask the kernel to make orphans below this process its children (prctl(2))."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _tell(words: str) -> None:
    """Write a line if that is possible; unbuffered, so that nothing is left to fail at the end."""
    with contextlib.suppress(OSError, ValueError):
        os.write(STDERR, f"nm-proxy init: {words}\n".encode("utf-8", "replace"))


def _how(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"was killed by signal {os.WTERMSIG(status)}"
    return f"ended with code {os.WEXITSTATUS(status)}"


def main(arguments: Sequence[str]) -> int:
    """Run the command behind `--`."""
    if len(arguments) < 2 or arguments[0] != "--":
        print("usage: python -m nm_proxy.supervisor.init -- COMMAND...", file=sys.stderr)
        return int(ExitCode.CONFIGURATION)
    return Init(arguments[1:]).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
