# SPDX-License-Identifier: Apache-2.0
"""Die by SIGKILL at a step of a transfer, as a file says.

The file holds `<step> <number> <delay in milliseconds>`: the first process that has taken the step so many times since
the file was there removes it and dies so long after. Without the file all live.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import NamedTuple, Self

from yarn_copilot.controller.steps import Step


class Death(NamedTuple):
    """Say when to die."""

    step: Step
    number: int
    delay_millis: int

    def write(self, path: Path) -> None:
        """Write the file in one step."""
        temporary = path.with_suffix(".tmp")
        temporary.write_text(f"{self.step} {self.number} {self.delay_millis}", encoding="utf-8")
        temporary.replace(path)

    @classmethod
    def read_or_none(cls, path: Path) -> Self | None:
        """Read the file; None where there is none."""
        try:
            step, number, delay = path.read_text(encoding="utf-8").split()
        except FileNotFoundError:
            return None
        return cls(Step(step), int(number), int(delay))


class DyingListener:
    """Count steps and die."""

    def __init__(self, path: Path) -> None:
        """Take the file that says when."""
        self._path = path
        self._seen = 0

    def __call__(self, step: Step, node: str) -> None:
        """Take a step."""
        death = Death.read_or_none(self._path)
        if death is None:
            self._seen = 0
            return
        self._seen += step is death.step
        if self._seen < death.number:
            return
        self._path.unlink(missing_ok=True)
        if death.delay_millis:
            asyncio.get_running_loop().call_later(death.delay_millis / 1000, _die)
        else:
            _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
