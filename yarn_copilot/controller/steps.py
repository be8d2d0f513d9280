# SPDX-License-Identifier: Apache-2.0
"""Name the steps of a transfer, for whoever wants to be told of each as it is taken.

A step is told before the loop goes on, so a listener that ends the process ends it exactly there. The product itself
listens to none; tests interrupt transfers at each.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Step(StrEnum):
    """Be a step of a transfer, in the order in which a unit that goes to YARN passes them."""

    CLAIM_SENDING = "claim-sending"
    CLAIM_LANDED = "claim-landed"
    READ_BEGUN = "read-begun"
    READ_DONE = "read-done"
    UPDATE_SENDING = "update-sending"
    UPDATE_ANSWERED = "update-answered"
    UPDATE_CONFIRMED = "update-confirmed"


StepListener = Callable[[Step, str], None]
"""Take a step and the name of the node; for an update of several nodes it is called for each."""


def ignore(step: Step, node: str) -> None:
    """Listen to nothing."""
