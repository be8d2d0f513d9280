# SPDX-License-Identifier: Apache-2.0
"""Serve each pod that is not scheduled on one node, so that the boundary moves there and not a little everywhere.

A pod stays where it was put while it waits and fits, so nothing goes back and forth. Nodes that have the room already
are filled first; then those whose boundary is to move anyway, so that pods which come one after another share a move;
then those where it has to move least, by name where several are equal to a tenth. Where YARN waits too, pods get moves
only until they hold their weight's share of what is free; the pod that passes it is still served, so that one larger
than the share of any single node is not held off for ever.

Work follows what changed: pods of a new kind look at all nodes once, a changed node is looked at by the kinds that
wait. No clock, no I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from batch_resources.demand.placement import Placement, may_run, named_nodes
from batch_resources.demand.queues import Placements, Queue
from batch_resources.demand.rooms import Room, Shape
from batch_resources.demand.share import Share
from batch_resources.resources import ZERO_BATCH, BatchResources

NODES_PER_TURN = 20_000
"""Looks at a node in one call of `settle`, about 30 ms; what is left waits for the next one."""

_PARTS = 10
"""Distances are compared in tenths of what a node could give; koord-manager publishes steps of that size at once."""


_Candidate = tuple[bool, int, str]
"""Whether the node's boundary is at rest, how many parts it has to move, the name; the least is taken first.

A bare tuple: one is made for every node that a kind of pods looks at.
"""


class Assignment:
    """Hold which waiting pod is served where; belongs to one event loop."""

    def __init__(self, *, yarn_weight: int = 1, kubernetes_weight: int = 1) -> None:
        """Take the weights that count where both sides wait; begin without nodes and pods."""
        self.share = Share(yarn_weight=yarn_weight, kubernetes_weight=kubernetes_weight)
        self._placements = Placements()
        self._rooms: dict[str, Room] = {}
        self._shapes: dict[str, Shape] = {}
        self._places: dict[str, str] = {}
        self._guests: dict[str, dict[str, None]] = {}
        self._loads: dict[str, BatchResources] = {}
        self._queues: dict[Shape, Queue] = {}
        self._touched: dict[str, None] = {}
        self._changed: set[str] = set()
        self.total = ZERO_BATCH
        """What all waiting pods need together."""

    # What comes in

    def add(self, pod: str, request: BatchResources, placement: Placement) -> None:
        """Take a pod that waits; one that is known and unchanged keeps its place."""
        known = self._shapes.get(pod)
        if known is not None and known.request == request and self._placements.of(known) == placement:
            return
        self.remove(pod)
        shape = self._shapes[pod] = self._placements.take(placement, request)
        self.total = self.total + request
        self._wait(pod, shape)

    def remove(self, pod: str) -> None:
        """Forget a pod: it was bound, or is gone."""
        shape = self._shapes.pop(pod, None)
        if shape is None:
            return
        self.total = self.total - shape.request
        if not self._leave(pod, shape):
            queue = self._queues[shape]
            del queue.pods[pod]
            if not queue.pods:
                del self._queues[shape]
        self._placements.give_back(shape)

    def set_room(self, name: str, room: Room | None) -> None:
        """Take what a node could give; None for one that can give nothing."""
        before = self._rooms.get(name)
        if before == room:
            return
        self.share.replace(before, room, self.load(name))
        if room is None:
            del self._rooms[name]
        else:
            self._rooms[name] = room
        self._send_away(name, room)
        self._touched[name] = None

    # What comes out

    def load(self, name: str) -> BatchResources:
        """Give what the pods that are served on a node need."""
        return self._loads.get(name, ZERO_BATCH)

    def place(self, pod: str) -> str | None:
        """Name the node on which a pod is served; None while it is served nowhere."""
        return self._places.get(pod)

    def pods_on(self, name: str) -> Collection[str]:
        """Name the pods that are served on a node, in the order in which they were put there."""
        return self._guests.get(name, {}).keys()

    def __len__(self) -> int:
        """Count the pods that wait."""
        return len(self._shapes)

    def unserved(self) -> int:
        """Count the pods that fit nowhere, or have to wait because YARN waits too."""
        return len(self._shapes) - len(self._places)

    @property
    def has_changes(self) -> bool:
        """Tell whether a node changed since the last call of `settle`; a quick look."""
        return bool(self._touched or self._changed)

    @property
    def has_work(self) -> bool:
        """Tell whether `settle` has something to do or to tell."""
        if self.has_changes:
            return True
        return any(self._wants_a_look(shape, queue) for shape, queue in self._queues.items())

    def settle(self) -> set[str]:
        """Serve what can be served.

        Returns:
            The nodes whose load changed since the last call.
        """
        touched, self._touched = list(self._touched), {}
        left = NODES_PER_TURN
        for shape, queue in list(self._queues.items()):
            everywhere = self._wants_a_look(shape, queue)
            if left <= 0:
                queue.looks_everywhere = everywhere or bool(touched)
                continue
            names: Collection[str] = touched
            if everywhere:
                names = self._where(shape)
                queue.looks_everywhere = queue.is_over_share = False
            left -= len(names)
            self._serve(shape, queue, names)
        changed, self._changed = self._changed, set()
        return changed

    # How it is done

    def _wants_a_look(self, shape: Shape, queue: Queue) -> bool:
        return queue.looks_everywhere or (queue.is_over_share and self.share.has_some_left(shape.request))

    def _where(self, shape: Shape) -> Collection[str]:
        named = named_nodes(self._placements.of(shape))
        return self._rooms.keys() if named is None else named

    def _serve(self, shape: Shape, queue: Queue, names: Iterable[str]) -> None:
        fitting = sorted(self._candidates(shape, names))
        if not fitting:
            return
        pods = list(queue.pods)[::-1]  # the first to come is the last of the list, where it is cheap to take off
        for moves in (False, True):
            for _, _, name in fitting:
                for pod in self._fill(shape, queue, name, pods, moves=moves):
                    del queue.pods[pod]
                if not pods:
                    del self._queues[shape]
                    return

    def _fill(self, shape: Shape, queue: Queue, name: str, pods: list[str], *, moves: bool) -> Iterator[str]:
        """Take pods of a shape off the list and put them on a node, up to what it has, or what a move would give it."""
        room = self._rooms[name]
        while pods:
            load = self.load(name) + shape.request
            if not load.fits_in(room.most):
                return
            if not load.fits_in(room.now):
                if not moves:
                    return
                if room.is_contested and not self.share.has_some_left(shape.request):
                    queue.is_over_share = True
                    return
            pod = pods.pop()
            self._places[pod] = name
            self._guests.setdefault(name, {})[pod] = None
            self._set_load(name, load)
            yield pod

    def _candidates(self, shape: Shape, names: Iterable[str]) -> Iterator[_Candidate]:
        """Give the nodes on which one pod of a shape fits, and what serving it there costs."""
        placement = self._placements.of(shape)
        cpu, memory = shape.request.cpu_milli, shape.request.memory_bytes
        for name in names:
            room = self._rooms.get(name)
            if room is None:
                continue
            load, now, most = self._loads.get(name, ZERO_BATCH), room.now, room.most
            if load.cpu_milli + cpu > most.cpu_milli or load.memory_bytes + memory > most.memory_bytes:
                continue
            if may_run(placement, room.host):
                cpu_free, memory_free = now.cpu_milli - load.cpu_milli, now.memory_bytes - load.memory_bytes
                parts = _parts(cpu, cpu_free, most.cpu_milli) + _parts(memory, memory_free, most.memory_bytes)
                yield cpu_free >= 0 and memory_free >= 0, parts, name

    def _leave(self, pod: str, shape: Shape) -> bool:
        """Take a pod off the node on which it is served; False where it is not served."""
        name = self._places.pop(pod, None)
        if name is None:
            return False
        guests = self._guests[name]
        del guests[pod]
        if not guests:
            del self._guests[name]
        self._set_load(name, self.load(name) - shape.request)
        self._touched[name] = None
        return True

    def _set_load(self, name: str, load: BatchResources) -> None:
        self.share.grant(self._rooms.get(name), load - self.load(name))
        if load == ZERO_BATCH:
            self._loads.pop(name, None)
        else:
            self._loads[name] = load
        self._changed.add(name)

    def _send_away(self, name: str, room: Room | None) -> None:
        """Let pods wait again that a node can serve no longer, the newest first."""
        for pod in reversed(list(self.pods_on(name))):
            shape = self._shapes[pod]
            fits = room is not None and self.load(name).fits_in(room.most)
            if fits and room is not None and may_run(self._placements.of(shape), room.host):
                continue
            self._leave(pod, shape)
            self._wait(pod, shape)

    def _wait(self, pod: str, shape: Shape) -> None:
        queue = self._queues.setdefault(shape, Queue())
        queue.pods[pod] = None
        queue.looks_everywhere = True


def _parts(asked: int, free: int, most: int) -> int:
    """Give how much further the boundary has to move for one resource, in parts of what the node could give."""
    short = asked - free if free > 0 else asked
    return 0 if short <= 0 else -(-short * _PARTS // most)
