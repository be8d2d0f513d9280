# SPDX-License-Identifier: Apache-2.0
"""Start a worker process and talk to it; it ends when its standard input does, so also with this process."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from lab.errors import LabError

_REPOSITORY: Final = Path(__file__).resolve().parents[2]
_END_SECONDS: Final = 10.0
JsonObject = dict[str, Any]


class Worker:
    """Control one worker; use with `with`. One command at a time."""

    def __init__(self, name: str, *arguments: str) -> None:
        """Name the module in `benchmarks.workers` and its arguments; it starts on entering."""
        self._name = name
        self._argv = [sys.executable, "-m", f"benchmarks.workers.{name}", *arguments]
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._child = subprocess.Popen(
            self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=_REPOSITORY, start_new_session=True
        )
        try:
            self.read()  # it says that it is ready
        except BaseException:
            self._end(self._child)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        child, self._child = self._child, None
        if child is not None:
            self._end(child)

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._running().pid

    def ask(self, do: str, **arguments: Any) -> JsonObject:
        """Give a command and wait for its answer.

        Raises:
            LabError: the worker ended or could not do it.
        """
        self.begin(do, **arguments)
        return self.read()

    def begin(self, do: str, **arguments: Any) -> None:
        """Give a command; `read` takes what it answers."""
        stdin = self._running().stdin
        assert stdin is not None  # noqa: S101  # opened as a pipe
        stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
        stdin.flush()

    def read(self) -> JsonObject:
        """Wait for the next answer.

        Raises:
            LabError: the worker ended or could not do what it was told.
        """
        stdout = self._running().stdout
        assert stdout is not None  # noqa: S101  # opened as a pipe
        line = stdout.readline()
        if not line:
            raise LabError(f"benchmark worker {self._name} ended unexpectedly")
        answer: JsonObject = json.loads(line)
        if "error" in answer:
            raise LabError(f"benchmark worker {self._name}: {answer['error']}")
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            raise LabError(f"benchmark worker {self._name} was not started")
        return self._child

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        try:
            child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
