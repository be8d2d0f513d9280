# SPDX-License-Identifier: Apache-2.0
"""Space out the tries for a NodeManager that the ResourceManager does not know."""

from __future__ import annotations

from typing import Final

from yarn_copilot.controller.memory import ManagerMemory

FIRST_WAIT_SECONDS: Final = 0.25
"""Short, since a ResourceManager that has just become active knows its NodeManagers a moment later."""


def note_unrecognized(manager: ManagerMemory, *, now: float, longest_seconds: float) -> float:
    """Postpone the next try: `FIRST_WAIT_SECONDS`, then twice as long each time.

    Returns:
        The seconds until the next try.
    """
    seconds = min(FIRST_WAIT_SECONDS * 2.0 ** min(manager.unrecognized_count, 20), longest_seconds)
    manager.unrecognized_count += 1
    manager.retry_at = now + seconds
    return seconds


def note_recognized(manager: ManagerMemory) -> None:
    """Forget the back-off: the node was accepted, or is listed again after it was missing."""
    manager.unrecognized_count = 0
    manager.retry_at = 0.0
