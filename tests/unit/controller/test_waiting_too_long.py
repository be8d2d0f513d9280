# SPDX-License-Identifier: Apache-2.0
"""Mode strict under load: what a step rests on may have gone by when its turn comes; then the node is planned again.

Nothing else happens on the nodes meanwhile, so a step that is dropped without another plan would never be made up for.
"""

from __future__ import annotations

import pytest

from tests.unit.controller.strict_world import StrictWorld
from tests.unit.controller.world import GIB, origin_text
from yarn_copilot.hadoop.model import NodeId, Resource

CONVERGED = 30.0
LONGER_THAN_A_READ_COUNTS = 8.0
LOWERED = Resource(31 * 1024, 7)


def lower(world: StrictWorld, name: str) -> None:
    """Let origin fall so far that YARN, which uses nothing, keeps more than its floor: that needs a fresh read."""
    world.kube.annotate(name, origin=origin_text(8000, 32 * GIB))
    world.report(name)


async def converged() -> tuple[StrictWorld, list[NodeId]]:
    """Give a world, still to be left, in which YARN has its part of two nodes and all is quiet."""
    world = StrictWorld()
    node_ids = [world.manager(1), world.manager(2)]
    await world.start()
    await world.advance(CONVERGED)
    assert [world.rm.capacity(node_id) for node_id in node_ids] == [Resource(63 * 1024, 19)] * 2
    return world, node_ids


async def test_an_update_that_waited_for_a_long_call_is_sent_after_another_read() -> None:
    world, node_ids = await converged()
    world.rm.gate.clear()
    lower(world, "node-1")
    await world.advance(1)
    assert len(world.rm.batches[-1]) == 1, "the call that hangs is about the first node"
    lower(world, "node-2")
    await world.advance(LONGER_THAN_A_READ_COUNTS)
    world.rm.gate.set()
    await world.advance(3)
    assert [world.rm.capacity(node_id) for node_id in node_ids] == [LOWERED] * 2
    await world.stop()


async def test_a_read_whose_node_changes_meanwhile_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world, node_ids = await converged()
    list_node_pods = world.kube.list_node_pods

    async def slowly(node_name: str) -> object:
        pods = await list_node_pods(node_name)
        await world.clock.sleep(1.0)
        return pods

    monkeypatch.setattr(world.kube, "list_node_pods", slowly)
    lower(world, "node-1")
    await world.advance(0.5)
    # The watch falls silent while the read goes on, and says at its end something newer than what was read.
    world.kube.silent = True
    world.kube.annotate("node-1", origin=origin_text(8100, 32 * GIB))
    await world.advance(0.75)
    world.kube.annotate("node-1", origin=origin_text(8000, 32 * GIB))
    world.kube.release_held()
    await world.advance(4)
    assert world.rm.capacity(node_ids[0]) == LOWERED
    await world.stop()


async def test_a_read_that_was_not_allowed_for_a_moment_is_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    world, node_ids = await converged()
    gate = world.controller.gate
    with monkeypatch.context() as patch:
        patch.setattr(gate, "why_not_yarn", lambda: "the API server has been silent")
        lower(world, "node-1")
        await world.advance(2)
    await world.advance(4)
    assert world.rm.capacity(node_ids[0]) == LOWERED
    await world.stop()


async def test_a_claim_that_was_planned_while_the_answer_to_the_last_one_was_on_its_way_is_written() -> None:
    world, _ = await converged()
    assert world.claim() == (19_000, 63 * 1024)
    world.kube.answer_gate.clear()
    world.kube.annotate("node-1", origin=origin_text(30_000, 64 * GIB))
    world.report()
    await world.advance(1)
    assert world.claim() == (29_000, 63 * 1024), "stored, and told by the watch; the answer has not come"
    world.kube.annotate("node-1", origin=origin_text(40_000, 64 * GIB))
    world.report()
    await world.advance(1)
    world.kube.answer_gate.set()
    await world.advance(2)
    assert world.claim() == (39_000, 63 * 1024)
    await world.stop()
