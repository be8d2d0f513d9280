# SPDX-License-Identifier: Apache-2.0
"""Hold whether this node's NodeManager is being drained; set by the supervisor, told to the controller."""

from __future__ import annotations

from enum import StrEnum


class DrainState(StrEnum):
    """Name the states of `GET /v1/state`."""

    ACTIVE = "active"
    DRAINING = "draining"
    DRAINED = "drained"


class Drain:
    """Hold the state; DRAINED is not set but follows from no container being left."""

    def __init__(self) -> None:
        self.is_requested = False

    def request(self) -> None:
        """Begin: no new work is wanted; what runs may end."""
        self.is_requested = True

    def withdraw(self) -> None:
        """Take it back."""
        self.is_requested = False

    def state(self, *, containers: int) -> DrainState:
        """Give the state.

        Args:
            containers: how many have processes or are live by the NodeManager's word.
        """
        if not self.is_requested:
            return DrainState.ACTIVE
        return DrainState.DRAINING if containers else DrainState.DRAINED
