# SPDX-License-Identifier: Apache-2.0
"""Start programs that end with this process, also where a timeout ends it without a chance to clean up."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from lab.processes.group import death_signal_wrapper


async def start_python(*arguments: str, **options: Any) -> asyncio.subprocess.Process:
    """Start this Python with arguments; call it from the main thread, with whose end the kernel kills the program.

    Args:
        arguments: for example `-m`, `yarn_copilot.cli.main`, `run`.
        options: see `asyncio.create_subprocess_exec`.
    """
    return await asyncio.create_subprocess_exec(*death_signal_wrapper(), sys.executable, *arguments, **options)
