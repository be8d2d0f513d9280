# SPDX-License-Identifier: Apache-2.0
"""Test that what is malformed on one node holds that node, says so, and disturbs no other."""

from __future__ import annotations

import pytest

from tests.unit.controller.world import World, origin_text, third_text
from yarn_copilot.hadoop.model import Resource

USED = Resource(8192, 8)
CLAIM = (8000, 8192)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("{broken", "OriginMalformed", id="no JSON"),
        pytest.param(origin_text("-5", "1Gi"), "OriginMalformed", id="negative"),
        pytest.param(origin_text("1e30", "1Gi"), "OriginMalformed", id="beyond 64 bits"),
        pytest.param(origin_text("lots", "1Gi"), "OriginMalformed", id="no number"),
        pytest.param("[]", "OriginMalformed", id="no object"),
        pytest.param(None, "OriginAbsent", id="absent"),
    ],
)
async def test_a_bad_origin_holds_its_node_only(text: str | None, reason: str) -> None:
    world = World()
    first, second = world.manager(1, used=USED), world.manager(2, used=USED)
    async with world:
        world.kube.annotate("node-1", origin=text)
        world.kube.annotate("node-2", origin=origin_text(30_000, "64Gi"))
        await world.advance(2)
        assert world.rm.capacity(first) == USED
        assert world.rm.capacity(second).vcores == 30
        assert world.claim() == CLAIM
        assert world.events.reasons("node-1") == [reason]
        assert world.events.reasons("node-2") == []


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [
        pytest.param("20500m", "64Gi", Resource(65536, 0), id="fractional"),
        pytest.param(
            9223372036854775807, 9223372036854775807, Resource((1 << 63) // (1 << 20) - 1, 2147483647), id="limits"
        ),
    ],
)
async def test_odd_but_legal_origins_are_followed(cpu: object, memory: object, expected: Resource) -> None:
    world = World()
    node_id = world.manager()
    async with world:
        world.kube.annotate("node-1", origin=origin_text(cpu, memory))
        await world.advance(2)
        capacity = world.rm.capacity(node_id)
        assert capacity.memory_mib == expected.memory_mib
        assert capacity.vcores == max(expected.vcores, 1)


@pytest.mark.parametrize(
    "text",
    ["{broken", third_text("x", "1Gi", name="other"), third_text("1", "nonsense"), '{"allocations": 3}'],
    ids=["no JSON", "foreign quantity", "our quantity", "wrong shape"],
)
async def test_malformed_third_parties_hold_the_node_and_are_left_as_they_are(text: str) -> None:
    world = World()
    first, second = world.manager(1, used=USED), world.manager(2, used=USED)
    async with world:
        world.kube.annotate("node-1", third=text)
        for index in (1, 2):
            world.kube.annotate(f"node-{index}", origin=origin_text(30_000, "64Gi"))
        await world.advance(5)
        assert world.kube.annotation("node-1") == text
        assert world.rm.capacity(first) == USED
        assert world.rm.capacity(second).vcores == 30
        assert world.events.reasons("node-1") == ["ThirdPartyAllocationsMalformed"]


@pytest.mark.parametrize("quantity", ["-1000", "none", "1" * 500], ids=["negative", "word", "endless"])
async def test_a_pod_that_cannot_be_counted_holds_its_node_and_is_named(quantity: str) -> None:
    world = World()
    first, second = world.manager(1, used=USED), world.manager(2)
    async with world:
        world.pod("odd", cpu=quantity, memory="1Gi")
        world.pod("even", "node-2", cpu="1500m", memory="1Gi")
        await world.advance(2)
        assert world.rm.capacity(first) == USED
        assert world.rm.capacity(second) == Resource(63 << 10, 19)  # 1.5 milli-cores are counted as 2
        ((_, _, reason, message),) = world.events.of_nodes
        assert reason == "PodRequestMalformed"
        assert "yarn/odd" in message
        world.kube.delete("pods", "yarn/odd")
        await world.advance(2)
        assert world.rm.capacity(first).vcores == 20
        assert not world.controller.notices.of("node-1")


async def test_a_node_that_cannot_be_decoded_keeps_its_last_facts() -> None:
    world = World()
    first, second = world.manager(1, used=USED), world.manager(2)
    async with world:
        body = world.kube.objects["nodes"]["node-1"]
        body["status"]["addresses"] = "nonsense"
        world.kube.put("nodes", "node-1", body)
        world.kube.annotate("node-2", origin=origin_text(30_000, "64Gi"))
        await world.advance(2)
        assert world.rm.capacity(second).vcores == 30
        assert world.rm.capacity(first).vcores == 20
        assert world.claim() == CLAIM


async def test_a_node_id_annotation_that_is_no_node_id_leaves_the_pod_unmatched() -> None:
    world = World()
    world.node()
    world.pod("nm-1", manager=True, annotations={"yarn.hadoop.apache.org/node-id": "no-port"})
    world.rm.add("nm-1:8041")
    second = world.manager(2)
    async with world:
        assert world.events.reasons("node-1") == ["NodeManagerNotMatched"]
        assert "no-port" in world.events.of_nodes[0][3]
        assert world.rm.capacity(second).vcores == 20


async def test_more_booked_than_there_is_leaves_the_floor_and_says_so() -> None:
    world = World()
    node_id = world.manager()
    world.pod("job", cpu="25000", memory="8Gi")
    async with world:
        assert world.rm.capacity(node_id) == Resource(56 << 10, 1)
        assert world.claim() == (1000, 1024)
        assert world.events.reasons("node-1") == ["FloorExceedsOrigin"]
