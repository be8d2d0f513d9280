# SPDX-License-Identifier: Apache-2.0
"""Say where ResourceManager versions behave differently, in one table; everything else is the same in all of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """Hold what depends on the version.

    Attributes:
        tells_queue_paths: QueueInfo carries the queue's path. Without it the path is what was asked by, and a leaf
            that was asked by its short name has no other path.
    """

    tells_queue_paths: bool = True


NEWEST = Behaviour()

BEHAVIOURS = {
    "3.3.6": Behaviour(tells_queue_paths=False),
    "3.4.3": NEWEST,
    "3.5.0": NEWEST,
}
"""Real versions; a test holds that these are the tested ones."""

EMBEDDED = NEWEST
"""The embedded ResourceManager is of the newest version."""
