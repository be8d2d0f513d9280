# SPDX-License-Identifier: Apache-2.0
"""Hold one resource of one node as mode `strict` looks at it: whole numbers in one unit, whatever it stands for.

The rules (`strict_rules`) know nothing of milli-cores, bytes or MiB. `strict` makes these values for cpu and for memory
of a real node; the search for counter-examples makes them for a node of a few units. All values are frozen and
hashable, so decisions can be tabulated.
"""

from __future__ import annotations

from msgspec import Struct


class ManagerAmounts(Struct, frozen=True, kw_only=True):
    """Hold one NodeManager.

    Attributes:
        capacity: C as last read; None when the ResourceManager does not know the node.
        used: Y, the highest that may still be real.
        floor: m, what it registers with.
        unconfirmed: values of the updates that may not have landed yet, oldest first.
        alive: values of all updates whose message lifetime is not over, confirmed ones included.
        proven: the larger of capacity and use that is proven to be in force; None when nothing is.
        may_send: updates may go out: it can be told, and a read has begun since the messages of earlier leaders died.
        is_read: a read has begun since then, whether or not it can be told something now.
        goal: C as the boundary between the two sides would have it.
    """

    capacity: int | None
    used: int
    floor: int = 0
    unconfirmed: tuple[int, ...] = ()
    alive: tuple[int, ...] = ()
    proven: int | None = None
    may_send: bool = True
    is_read: bool = True
    goal: int = 0

    @property
    def held(self) -> int:
        """Give what it may hold at worst, now or by a message that is still on its way."""
        highest = max(self.capacity or 0, self.used, self.floor)
        if not self.unconfirmed and not self.alive:
            return highest
        return max(highest, *self.unconfirmed, *self.alive)

    @property
    def lowest(self) -> int:
        """Give the capacity above which an update is a growth."""
        capacity = self.capacity or 0
        return min(capacity, *self.unconfirmed) if self.unconfirmed else capacity


class NodeAmounts(Struct, frozen=True, kw_only=True):
    """Hold the node.

    Attributes:
        origin: O; None when it is unknown.
        others: P; None when it cannot be read.
        reserve: R, withheld from YARN.
        claimed: T as the Node shows it, zero without an entry of ours.
        allocatable: A as published, zero where its keys are missing.
        requested: K by a read that is fresh enough for a growth; None without one.
        is_settled: no fall of A within the settle time.
        counter_is_ours: the Node's newest counter was written in this term of office.
        has_outstanding_patch: a patch of ours may still land.
        managers: the NodeManagers of the node, whatever their clusters.
    """

    origin: int | None
    others: int | None = 0
    reserve: int = 0
    claimed: int
    allocatable: int
    requested: int | None = None
    is_settled: bool = False
    counter_is_ours: bool = False
    has_outstanding_patch: bool = False
    managers: tuple[ManagerAmounts, ...] = ()


class Decision(Struct, frozen=True, kw_only=True):
    """Hold what the rules say of one resource.

    Attributes:
        claim: T as it should be written; equal to the present one when nothing changes.
        capacities: C that a message to each NodeManager may carry, the present one included; None where none may go.
        wants_counter: the next step is a growth, and it needs a write of the claim, even of an equal one.
        wants_fresh_read: the next step needs a fresh read of the Node and its pods.
        waits_for_publication: the claim is on the Node as it should be, and its effect is not published yet.
        waits_for_settling: published, but an earlier permission may still turn into a bind.
        waits_for_proof: the claim is larger than needed and its fall is not proven yet.
    """

    claim: int
    capacities: tuple[int | None, ...] = ()
    wants_counter: bool = False
    wants_fresh_read: bool = False
    waits_for_publication: bool = False
    waits_for_settling: bool = False
    waits_for_proof: bool = False
