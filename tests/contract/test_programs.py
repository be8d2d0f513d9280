# SPDX-License-Identifier: Apache-2.0
"""A test run that is killed leaves none of its programs behind."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
_RUN = """
import asyncio, os
from tests.contract.programs import start_python

async def main():
    program = "import time; print('up', flush=True); time.sleep(600)"
    child = await start_python("-c", program, stdout=asyncio.subprocess.PIPE)
    await child.stdout.readline()  # only now is it certain that the kernel knows of the signal
    print(child.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_a_program_dies_with_a_test_run_that_is_killed() -> None:
    run = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _RUN, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )  # fmt: skip
    assert run.stdout is not None
    child = psutil.Process(int(await run.stdout.readline()))
    try:
        run.send_signal(signal.SIGKILL)
        await run.wait()
        await asyncio.to_thread(child.wait, 10)
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    assert not child.is_running()
