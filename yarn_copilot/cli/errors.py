# SPDX-License-Identifier: Apache-2.0
"""Say what a command could not do, for a person at a terminal."""

from __future__ import annotations

from typing import Final

from yarn_copilot.errors import YarnCopilotError

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
"""Leave with this for a wrong command line or a wrong configuration file."""
EXIT_NOT_DONE: Final = 4
"""Leave with this when what was waited for did not come about in time."""


class CommandError(YarnCopilotError):
    """Carry one message for stderr: what failed and what to do; no traceback is shown."""


class UsageError(CommandError):
    """Say what is wrong with the command line and what is allowed."""
