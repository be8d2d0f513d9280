# SPDX-License-Identifier: Apache-2.0
"""Play koord-manager, kube-scheduler, the API server and what the bridge has seen of them.

A state is a `KubernetesSide`; `successors` gives everything that can happen next without YARN's side. kube-scheduler's
cache is kept as the largest allocatable among the versions from the cached one on: it may decide by that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.bridge import Bridge
from tests.model.world import Late, World

UNKNOWN = -1


class Node(NamedTuple):
    """Be a version of the Node: O (-1 unknown), A, T, and whether this term of office wrote the counter."""

    origin: int
    allocatable: int
    claimed: int
    is_ours: bool


class Version(NamedTuple):
    """Be a version on its way to the bridge, with the news whether its counter is another one."""

    node: Node
    counter_changed: bool


class Patch(NamedTuple):
    """Be a patch on its way: T, whether this term sent it, and the T it tested (used by mutants alone)."""

    claim: int
    is_ours: bool
    tested: int


class KubernetesSide(NamedTuple):
    """Be everything on Kubernetes' side.

    `cached` is what kube-scheduler may still decide by, `since_clock` the largest A since the settle clock started
    (-1 when it has seen that moment), `old_binds` those of `binds` that began before it saw it. `call` is 0 without a
    patch, 1 with an open call, 2 when a call ended without an answer. `fresh` is K by a fresh read, -1 without.
    `is_due`: a write of ours may make koord-manager look at the Node.
    """

    node: Node
    cached: int
    since_clock: int
    bound: int
    binds: int
    old_binds: int
    versions: tuple[Version, ...]
    patches: tuple[Patch, ...]
    view: Node
    is_settled: bool
    call: int
    fresh: int
    is_due: bool = False


class Kubernetes:
    """Give the steps of Kubernetes' side in one world."""

    def __init__(self, world: World, bridge: Bridge) -> None:
        """Take the world and the bridge whose memory is kept up here."""
        self.world = world
        self.bridge = bridge
        self.late = world.late

    def initial(self) -> KubernetesSide:
        """Begin with the floors claimed and published, nothing bound, and a bridge that has just started."""
        claimed = self.world.floor * self.world.managers
        free = self.world.units - claimed
        node = Node(self.world.units, free, claimed, False)
        return self.crash(KubernetesSide(node, free, -1, 0, 0, 0, (), (), node, False, 0, -1))

    def successors(self, state: KubernetesSide) -> Iterator[KubernetesSide]:
        """Give all next states, equal ones included."""
        yield from self.calm(state)
        yield from self._origins(state)
        yield from self._pods(state)
        yield from self._troubles(state)

    def calm(self, state: KubernetesSide) -> Iterator[KubernetesSide]:
        """Give what happens when nothing is lost and nothing new comes: deliveries and ends of waiting times."""
        if Late.PUBLICATION in self.late and (state.is_due or not self.world.publishes_on_events_only):
            yield self._publish(state._replace(is_due=False), state.node.origin)
        if state.cached != state.node.allocatable or state.since_clock >= 0:
            yield self._catch_up(state, state.node.allocatable)
        if state.since_clock >= 0:
            yield self._catch_up(state, state.since_clock)
        if state.binds:
            yield from self._end_binds(state, landed=1)
        if state.versions:
            yield self._deliver(state._replace(versions=state.versions[1:]), state.versions[0])
        is_over = state.since_clock < 0 and (not state.old_binds or self.world.binds_outlive_settling)
        if not state.is_settled and is_over:
            yield state._replace(is_settled=True, fresh=-1)  # a read that began before is of no use to a growth
        for index, patch in enumerate(state.patches):
            yield self._land(state, index, patch)
        if Late.PLAN in self.late and not state.versions:
            yield state._replace(fresh=state.bound)
        if state.call == 1 and not any(patch.is_ours for patch in state.patches):
            yield state._replace(call=2)

    @staticmethod
    def _catch_up(state: KubernetesSide, cached: int) -> KubernetesSide:
        """Let kube-scheduler see newer versions; what it decided by older ones lands within the settle time too."""
        old = state.binds if state.since_clock >= 0 else state.old_binds
        return state._replace(cached=cached, since_clock=-1, old_binds=old)

    def _origins(self, state: KubernetesSide) -> Iterator[KubernetesSide]:
        if Late.ORIGIN in self.late:
            for origin in range(UNKNOWN, self.world.units + 1):
                if origin != state.node.origin:
                    yield self._publish(state, origin)

    def _pods(self, state: KubernetesSide) -> Iterator[KubernetesSide]:
        if state.bound + state.binds < state.cached:
            if Late.BIND not in self.late:
                yield state._replace(bound=state.bound + 1)
            elif state.binds < self.world.most_binds:
                yield state._replace(binds=state.binds + 1)
        if state.bound:
            yield state._replace(bound=state.bound - 1)

    def _end_binds(self, state: KubernetesSide, *, landed: int) -> Iterator[KubernetesSide]:
        ended = state._replace(binds=state.binds - 1, bound=state.bound + landed)
        if state.old_binds:
            yield ended._replace(old_binds=state.old_binds - 1)
        if state.binds > state.old_binds:
            yield ended

    def _troubles(self, state: KubernetesSide) -> Iterator[KubernetesSide]:
        if state.is_due:
            yield state._replace(is_due=False)  # its 300 s are not over
        if state.binds:
            yield from self._end_binds(state, landed=0)
        if state.versions:
            newest = Version(state.versions[-1].node, any(version.counter_changed for version in state.versions))
            yield self._deliver(state._replace(versions=()), newest, is_gap=True)
        if Late.PATCH in self.late:
            for index in range(len(state.patches)):
                yield state._replace(patches=state.patches[:index] + state.patches[index + 1 :])
            if state.call == 1:
                yield state._replace(call=2)

    def _publish(self, state: KubernetesSide, origin: int) -> KubernetesSide:
        allocatable = 0 if origin == UNKNOWN else max(origin - state.node.claimed, 0)
        node = state.node._replace(origin=origin, allocatable=allocatable)
        return state if node == state.node else self._write(state, Version(node, False))

    def _write(self, state: KubernetesSide, version: Version) -> KubernetesSide:
        allocatable = version.node.allocatable
        if Late.SCHEDULER in self.late:
            since = max(state.since_clock, allocatable) if state.since_clock >= 0 else -1
            state = state._replace(node=version.node, cached=max(state.cached, allocatable), since_clock=since)
        else:
            state = state._replace(node=version.node, cached=allocatable)
        if Late.WATCH not in self.late:
            return self._deliver(state, version)
        if len(state.versions) >= self.world.most_versions:
            state = self._deliver(state._replace(versions=state.versions[1:]), state.versions[0])
        return state._replace(versions=(*state.versions, version))

    def _deliver(self, state: KubernetesSide, version: Version, *, is_gap: bool = False) -> KubernetesSide:
        settled, restarted = self.bridge.see_version(
            state.view, version.node, is_settled=state.is_settled, is_gap=is_gap
        )
        outstanding = self.bridge.is_patch_outstanding(
            state.view.is_ours, version.node.is_ours, changed=version.counter_changed, outstanding=state.call > 0
        )
        state = state._replace(view=version.node, is_settled=settled, call=state.call if outstanding else 0, fresh=-1)
        return self._start_clock(state) if restarted else state

    def _start_clock(self, state: KubernetesSide) -> KubernetesSide:
        since = state.node.allocatable if Late.SCHEDULER in self.late else -1
        return state._replace(is_settled=False, since_clock=since, old_binds=state.binds)

    def _land(self, state: KubernetesSide, index: int, patch: Patch) -> KubernetesSide:
        others = state.patches[:index] + state.patches[index + 1 :]
        if not self.bridge.tests_counter:
            if patch.tested != state.node.claimed:
                return state._replace(patches=others)
        else:
            others = ()
        node = state.node._replace(claimed=patch.claim, is_ours=patch.is_ours)
        state = state._replace(patches=others, is_due=self.world.publishes_on_events_only)
        state = self._write(state, Version(node, True))
        return state if Late.PUBLICATION in self.late else self._publish(state, state.node.origin)

    def issue_patch(self, state: KubernetesSide, claim: int) -> KubernetesSide | None:
        """Send a patch of the claim made from the bridge's view; None where nothing comes of it."""
        if state.call == 1 or sum(patch.is_ours for patch in state.patches) >= 2:
            return None
        if self.bridge.tests_counter and any(version.counter_changed for version in state.versions):
            return None  # refused: the view is behind
        patch = Patch(claim, True, -1 if self.bridge.tests_counter else state.view.claimed)
        state = state._replace(call=1, patches=tuple(sorted({*state.patches, patch})))
        if Late.PATCH in self.late:
            return state
        return self._land(state, state.patches.index(patch), patch)

    def crash(self, state: KubernetesSide) -> KubernetesSide:
        """Start the bridge anew: it lists, knows nothing of its earlier patches, and they stay on their way."""
        node = state.node._replace(is_ours=False)
        # Of equal patches one is enough: whichever lands first ends the others.
        patches = tuple(sorted({patch._replace(is_ours=False) for patch in state.patches}))
        state = state._replace(node=node, view=node, versions=(), patches=patches, call=0, fresh=-1)
        return self._start_clock(state)
