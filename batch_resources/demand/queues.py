# SPDX-License-Identifier: Apache-2.0
"""Hold the pods that wait, by what they have in common, and number the placements that they ask for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from batch_resources.demand.placement import Placement
from batch_resources.demand.rooms import Shape
from batch_resources.resources import BatchResources


@dataclass(slots=True)
class Queue:
    """Hold the pods of one shape that are not served, in the order in which they came.

    Attributes:
        looks_everywhere: every node has to be looked at for them.
        is_over_share: they fit, but YARN waits too and Kubernetes has its share.
    """

    pods: dict[str, None] = field(default_factory=dict)
    looks_everywhere: bool = True
    is_over_share: bool = False


class Placements:
    """Give each placement in use a number, so that shapes compare quickly."""

    def __init__(self) -> None:
        """Begin empty."""
        self._numbers: dict[Placement, int] = {}
        self._used: dict[int, tuple[Placement, int]] = {}
        self._next = 0

    def take(self, placement: Placement, request: BatchResources) -> Shape:
        """Count one more pod with a placement and give its shape."""
        number = self._numbers.get(placement)
        if number is None:
            number = self._numbers[placement] = self._next
            self._next += 1
        count = self._used.get(number, (placement, 0))[1]
        self._used[number] = (placement, count + 1)
        return Shape(request, number)

    def give_back(self, shape: Shape) -> None:
        """Count one pod less; a placement that nobody asks for is forgotten."""
        placement, count = self._used[shape.placement]
        if count > 1:
            self._used[shape.placement] = (placement, count - 1)
        else:
            del self._used[shape.placement], self._numbers[placement]

    def of(self, shape: Shape) -> Placement:
        """Give a shape's placement."""
        return self._used[shape.placement][0]

    def __iter__(self) -> Iterator[Placement]:
        """Give the placements in use."""
        return iter(self._numbers)
