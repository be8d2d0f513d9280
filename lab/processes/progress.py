# SPDX-License-Identifier: Apache-2.0
"""Show what takes long: a spinner with the elapsed time on a terminal, plain lines otherwise."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console

_REFRESH_SECONDS: Final = 0.5
_PLAIN_LINE_SECONDS: Final = 30.0


class Progress:
    """Tell steps on standard error, one at a time; steps of other threads are told as plain lines."""

    def __init__(self, console: Console | None = None, *, quiet: bool = False) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._quiet = quiet
        self._spinning = threading.Lock()

    def say(self, text: str) -> None:
        """Write one line."""
        if not self._quiet:
            self._console.print(text, markup=False)

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Tell that `text` is being done, and at the end how long it took."""
        began = time.monotonic()
        done = threading.Event()
        teller = threading.Thread(target=self._tell, args=(text, began, done), daemon=True)
        teller.start()
        try:
            yield
        finally:
            done.set()
            teller.join()
        self.say(f"{text}: {time.monotonic() - began:.1f} s")

    def _tell(self, text: str, began: float, done: threading.Event) -> None:
        if not self._quiet and self._console.is_terminal and self._spinning.acquire(blocking=False):
            try:
                self._spin(text, began, done)
            finally:
                self._spinning.release()
            return
        self.say(f"{text} ...")
        while not done.wait(_PLAIN_LINE_SECONDS):
            self.say(f"{text} ... {time.monotonic() - began:.0f} s")

    def _spin(self, text: str, began: float, done: threading.Event) -> None:
        with self._console.status(text) as status:
            while not done.wait(_REFRESH_SECONDS):
                status.update(f"{text} ({time.monotonic() - began:.0f} s)")
