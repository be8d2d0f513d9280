# SPDX-License-Identifier: Apache-2.0
"""Die by SIGKILL at a step of a transfer, as a file says.

The file holds `<step> <number> <delay in milliseconds>`: the process dies so long after it has taken the step so many
times. An empty or missing file lets it live. It is read once, at the start.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import NamedTuple

from yarn_copilot.controller.steps import Step


class Death(NamedTuple):
    """Say when to die."""

    step: Step
    number: int
    delay_millis: int

    def text(self) -> str:
        """Write it as the file holds it."""
        return f"{self.step} {self.number} {self.delay_millis}"


def read_death(path: Path) -> Death | None:
    """Read the file."""
    words = path.read_text(encoding="utf-8").split() if path.exists() else []
    return Death(Step(words[0]), int(words[1]), int(words[2])) if words else None


class DyingListener:
    """Count steps and die."""

    def __init__(self, death: Death | None) -> None:
        """Take when to die; None: never."""
        self._death = death
        self._seen = 0

    def __call__(self, step: Step, node: str) -> None:
        """Take a step."""
        death = self._death
        if death is None or step is not death.step:
            return
        self._seen += 1
        if self._seen != death.number:
            return
        if death.delay_millis:
            asyncio.get_running_loop().call_later(death.delay_millis / 1000, _die)
        else:
            _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
