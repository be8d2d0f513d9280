# SPDX-License-Identifier: Apache-2.0
"""Keep H, the origin against which a sale is judged."""

from __future__ import annotations


def highest_after(origin: int, permitted: int, before: int) -> int:
    """Give H of a state: the highest origin since the last state in which all that was permitted fitted into origin.

    A sale made from a permission that was given before origin fell cannot be avoided, so it is no violation.

    Args:
        origin: O as published; 0 while it is unknown.
        permitted: the most that both sides may still hand out by what they have been told, together.
        before: H of the state before.
    """
    return origin if permitted <= origin or origin > before else before
