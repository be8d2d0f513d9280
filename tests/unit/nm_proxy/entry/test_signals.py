# SPDX-License-Identifier: Apache-2.0
"""Signals are heard while the loop runs, and end nothing afterwards; in a process of its own, whose they are."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, os, signal, sys, threading
from nm_proxy.supervisor.signals import HEARD, Signals

async def work(number):
    heard = asyncio.Event()
    signals = Signals()
    signals.on(number, heard.set)
    # From a thread, while the loop waits without an end: nothing but the signal wakes it.
    threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
    await heard.wait()
    signals.close()
    print("heard", flush=True)

asyncio.run(work(signal.Signals(int(sys.argv[1]))))
for number in HEARD:
    os.kill(os.getpid(), number)
print("alive", flush=True)
"""


@pytest.mark.parametrize("number", [1, 2, 3, 15])
def test_a_signal_is_heard_by_a_waiting_loop_and_ignored_once_the_loop_is_closed(number: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(number)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["heard", "alive"]), done.stderr
