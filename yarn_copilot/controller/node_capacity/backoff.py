# SPDX-License-Identifier: Apache-2.0
"""Space out the tries for a NodeManager that the ResourceManager does not know."""

from __future__ import annotations

from yarn_copilot.controller.memory import ManagerMemory


def note_unrecognized(manager: ManagerMemory, *, now: float, longest_seconds: float) -> float:
    """Postpone the next try: one second, then twice as long each time.

    Returns:
        The seconds until the next try.
    """
    seconds = min(2.0 ** min(manager.unrecognized_count, 20), longest_seconds)
    manager.unrecognized_count += 1
    manager.retry_at = now + seconds
    return seconds


def note_recognized(manager: ManagerMemory) -> None:
    """Forget the back-off: the node was accepted."""
    manager.unrecognized_count = 0
    manager.retry_at = 0.0
