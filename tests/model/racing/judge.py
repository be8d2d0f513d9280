# SPDX-License-Identifier: Apache-2.0
"""Judge every state of the racing world, per node and resource, by the rule of the search over small worlds.

What is booked and used may never exceed H (see `highest_origin`), and no update may offer more than it leaves at the
moment it is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from batch_resources.resources import BatchResources
from tests.model.highest_origin import highest_after

Pick = Callable[[BatchResources], int]
RESOURCES: tuple[tuple[str, Pick], ...] = (
    ("milli-cores", lambda amount: amount.cpu_milli),
    ("bytes", lambda amount: amount.memory_bytes),
)


class SoldTwiceError(AssertionError):
    """Say which node was sold twice, and how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Hold one node: origin, what is booked and used, and the most that either side is permitted."""

    origin: BatchResources
    booked: BatchResources
    used: BatchResources
    permitted_kubernetes: BatchResources
    permitted_yarn: BatchResources


class Judge:
    """Remember H of every node."""

    def __init__(self) -> None:
        """Begin with nothing permitted."""
        self.highest: dict[tuple[str, str], int] = {}
        self.states = 0
        self.closest: dict[str, float] = {}
        """The largest share of H that was held at once, by resource; 1 is the limit."""

    def look(self, node: str, sides: Sides) -> None:
        """Judge a state.

        Raises:
            SoldTwiceError: more is booked and used than origin ever allowed.
        """
        self.states += 1
        for resource, pick in RESOURCES:
            origin, key = pick(sides.origin), (node, resource)
            permitted = pick(sides.permitted_kubernetes) + pick(sides.permitted_yarn)
            high = self.highest[key] = highest_after(origin, permitted, self.highest.get(key, origin))
            held = pick(sides.booked) + pick(sides.used)
            if high:
                self.closest[resource] = max(self.closest.get(resource, 0.0), held / high)
            if held > high:
                raise SoldTwiceError(
                    f"{node}: {pick(sides.booked)} booked and {pick(sides.used)} used of {high} {resource}"
                )

    def judge_offer(self, node: str, sides: Sides, before: BatchResources, after: BatchResources) -> None:
        """Judge an update as it is sent.

        Args:
            node: the node.
            sides: the node at that moment, which may be later than the last look at it.
            before: the most that YARN was offered before.
            after: the same with this update.

        Raises:
            SoldTwiceError: the growth is wrong already.
        """
        for resource, pick in RESOURCES:
            # An origin that rose since the last look counts already; nothing else may raise H.
            high, booked = max(self.highest[(node, resource)], pick(sides.origin)), pick(sides.booked)
            if pick(after) > pick(before) and booked + pick(after) > high:
                raise SoldTwiceError(f"{node}: {booked} booked, {pick(after)} offered of {high} {resource}")
