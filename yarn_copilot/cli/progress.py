# SPDX-License-Identifier: Apache-2.0
"""Show how a long command goes on: one line that changes on a terminal, one line for each change when piped."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TextIO


class Progress:
    """Tell how far each of several nodes is."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Write to stdout unless another stream is given."""
        self._stream = stream or sys.stdout
        self._is_terminal = self._stream.isatty()
        self._told: dict[str, str] = {}
        self._width = 0

    def show(self, states: Mapping[str, str], summary: str) -> None:
        """Show the present state.

        Args:
            states: what is to be said of each node.
            summary: all of it in a few words, for a terminal's single line.
        """
        if self._is_terminal:
            self._stream.write("\r" + summary.ljust(self._width))
            self._width = len(summary)
            self._stream.flush()
            return
        for name, state in states.items():
            if self._told.get(name) != state:
                self._told[name] = state
                print(f"{name}: {state}", file=self._stream, flush=True)

    def end(self) -> None:
        """Leave the changing line."""
        if self._is_terminal and self._width:
            print(file=self._stream)
