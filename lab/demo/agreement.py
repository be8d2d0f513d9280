# SPDX-License-Identifier: Apache-2.0
"""Say, for each mode, when a node is as its rule wants it. Pure.

Mode `shared`: capacity is what origin leaves beside pods, the claim is use. Mode `strict`: the claim is all that YARN
may take, the rest of origin is published for Kubernetes, and capacity is what the controller means it to be. Where the
boundary goes is the controller's choice, so that one figure is asked of it; that it was reached is seen outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from batch_resources.resources import BatchResources, YarnResources
from batch_resources.units import UnitModel
from lab.demo.ledger import NodeLedger

UNITS: Final = UnitModel(milli_cores_per_vcore=1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """Hold what the controller means to do on a node, and the origin for which it decided that."""

    origin: BatchResources
    capacity: YarnResources


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Hold one node as both sides show it.

    Attributes:
        ledger: Kubernetes' side.
        capacity: C.
        used: Y.
        floor: m.
    """

    ledger: NodeLedger
    capacity: YarnResources
    used: YarnResources
    floor: YarnResources


def expected_capacity(origin: BatchResources, held: BatchResources, floor: YarnResources) -> YarnResources:
    """Convert what origin leaves beside pods, at least the floor."""
    return UNITS.to_yarn((origin - held).floored()).at_least(floor)


def expected_claim(sides: Sides, *, strict: bool) -> BatchResources:
    """Give the claim that the rule asks for: all that YARN may take (strict) or what it uses, at least the floor."""
    held = sides.used.at_least(sides.floor)
    return UNITS.to_batch(held.at_least(sides.capacity) if strict else held)


def wrong_capacity(sides: Sides, aim: Aim | None, *, strict: bool) -> str:
    """Say what is not as it should be; empty when all is.

    Args:
        sides: the node.
        aim: what the controller means to do; used in mode strict only.
        strict: which mode's rule holds.
    """
    ledger = sides.ledger
    if not strict:
        wanted = expected_capacity(ledger.origin, ledger.held, sides.floor)
        return "" if sides.capacity == wanted else f"has {sides.capacity} and should have {wanted}"
    if aim is None or aim.origin != ledger.origin:
        return "was not looked at since its origin changed"
    if sides.capacity != aim.capacity:
        return f"has {sides.capacity} and the controller means {aim.capacity}"
    left = (ledger.origin - expected_claim(sides, strict=True)).floored()
    return "" if ledger.offered == left else f"offers {ledger.offered} to Kubernetes where {left} is left"
