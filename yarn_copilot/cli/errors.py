# SPDX-License-Identifier: Apache-2.0
"""Say what a command could not do, for a person at a terminal."""

from __future__ import annotations

from typing import Final

from yarn_copilot.errors import YarnCopilotError

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
"""Leave with this for a wrong command line or a wrong configuration file."""


class CommandError(YarnCopilotError):
    """Carry one message for stderr: what failed and what to do; no traceback is shown."""
