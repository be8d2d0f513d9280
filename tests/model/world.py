# SPDX-License-Identifier: Apache-2.0
"""Name what can be late, lost or doubled in the small world, and its bounds.

The world is one node, one resource and a few units. Everything runs at once unless its kind of lateness is switched
on. A kind stands for behaviour that the real systems show; the settle time and the message lifetime are assumptions
about them, built in as guards: a settle time ends only when kube-scheduler has seen the Node as it was when the clock
started and the binds begun before are over, a lifetime only when no copy of the message is on its way.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Late(StrEnum):
    """Name the kinds of lateness, loss and change."""

    ORIGIN = "origin"
    """koord-manager publishes another origin; `unknown` (batch keys gone) is one of them."""
    PUBLICATION = "publication"
    """koord-manager publishes a changed claim later, or never."""
    SCHEDULER = "scheduler"
    """kube-scheduler decides from older versions of the Node."""
    BIND = "bind"
    """A bind takes time and may fail."""
    WATCH = "watch"
    """The bridge sees versions of the Node later, or misses them and lists anew."""
    PATCH = "patch"
    """A patch of the claim lands late or never; its call ends without an answer."""
    MESSAGE = "message"
    """An update lands late; its answer comes late."""
    LOSS = "loss"
    """An update or its answer is lost, so its call times out."""
    DOUBLE = "double"
    """An update lands a second time."""
    ZERO = "zero"
    """The ResourceManager shows no use for a while after an update."""
    ALLOCATION = "allocation"
    """The ResourceManager's scheduler learns a new total later than its node list."""
    HEARTBEAT = "heartbeat"
    """The NodeManager adopts a new total later, and the ResourceManager may fail over before."""
    ANSWER = "answer"
    """As `heartbeat`, and the answer to a report may be lost after the report was taken: the total comes later."""
    RESTART = "restart"
    """The NodeManager restarts with its configured capacity."""
    READ = "read"
    """The answer to a read of the node list is old when it arrives."""
    PLAN = "plan"
    """Time passes between a fresh read and the update that is sent because of it."""
    OTHER = "other"
    """The other resource of the node moves, so equal claims and capacities are written too."""
    CRASH = "crash"
    """The bridge crashes, or another replica takes over, with everything of the first still on its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Fix one small world.

    Attributes:
        late: what can be late in it.
        units: O at the start and its upper bound.
        floor: m, and what a restarted NodeManager registers with.
        managers: NodeManagers on the node, of as many clusters.
        reserve: R.
        binds_outlive_settling: the settle time is shorter than the longest bind.
        publishes_on_events_only: koord-manager, late, publishes a change only after a write of ours, or not even then.
        most_messages: updates on their way at once, per NodeManager.
        most_sends: updates that the bridge remembers, per NodeManager.
        most_versions: versions of the Node on their way to the bridge.
        most_binds: binds under way at once.
    """

    late: frozenset[Late] = frozenset()
    units: int = 2
    floor: int = 0
    managers: int = 1
    reserve: int = 0
    binds_outlive_settling: bool = False
    publishes_on_events_only: bool = False
    most_messages: int = 2
    most_sends: int = 2
    most_versions: int = 2
    most_binds: int = 2
