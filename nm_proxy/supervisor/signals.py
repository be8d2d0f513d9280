# SPDX-License-Identifier: Apache-2.0
"""Hear signals while the event loop runs, and ignore them from its end until the process is gone.

An event loop gives the signals that it was told of back to their default when it is closed, and the default of these
ends the process: a second SIGTERM right after everything was stopped in order would make it look like a crash. So the
handlers are set beside the loop, which is only woken for them, and are never set back to the default.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from typing import Final

HEARD: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_READ_BYTES: Final = 4096


class Signals:
    """Hold what each signal does; of the main thread and its running loop."""

    def __init__(self) -> None:
        self._reading, self._writing = socket.socketpair()
        self._reading.setblocking(False)
        self._writing.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._reading, self._woken)
        # The kernel may pick any thread; only this wakes the one that runs handlers, wherever it waits.
        signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)

    def on(self, number: signal.Signals, act: Callable[[], object]) -> None:
        """Do something whenever a signal arrives."""
        signal.signal(number, lambda *_: act())

    def close(self) -> None:
        """Ignore all of them from now on, also those that nobody asked for."""
        for number in HEARD:
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        self._loop.remove_reader(self._reading)
        self._reading.close()
        self._writing.close()

    def _woken(self) -> None:
        """Take what woke the loop off; the handlers have run, or run next."""
        self._reading.recv(_READ_BYTES)
