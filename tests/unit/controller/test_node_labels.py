# SPDX-License-Identifier: Apache-2.0
"""Partitions and attributes of YARN follow labels of Nodes, by differences only, and refusals stay with their nodes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.unit.controller.world import World, settings
from yarn_copilot.config.loading import parse_settings
from yarn_copilot.controller.clusters import ClusterPort
from yarn_copilot.controller.node_labels.plan import Labelled, LabelRules, plan_labels
from yarn_copilot.controller.program import Controller, Outside
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop.errors import RemoteCallError
from yarn_copilot.hadoop.model import AttributeOperation, NodeAttribute, NodeId

POOL, ZONE = "example.com/pool", "topology.kubernetes.io/zone"
RULES = LabelRules(partition_label=POOL, attributes={ZONE: "zone"})
NM = NodeId("nm-1", 8041)


def _plan(labels: dict[str, str], partitions: Mapping[NodeId, Any], attributes: Mapping[str, Any]) -> tuple[Any, ...]:
    changes = plan_labels(
        [Labelled(node="node-1", node_id=NM, labels=labels)], RULES, partitions=partitions, attributes=attributes
    )
    moved = {partition: [each.node_id for each in group] for partition, group in changes.partitions.items()}
    return moved, dict(changes.added), dict(changes.replaced), dict(changes.removed)


A, B, OTHER = NodeAttribute("zone", "a"), NodeAttribute("zone", "b"), NodeAttribute("other", "x")
REPORTED = NodeAttribute("zone", "a", "nm.yarn.io")


@pytest.mark.parametrize(
    ("labels", "partitions", "attributes", "expected"),
    [
        pytest.param({}, {}, {}, ({}, {}, {}, {}), id="nothing"),
        pytest.param({POOL: "gpu", ZONE: "a"}, {}, {}, ({"gpu": [NM]}, {"nm-1": [A]}, {}, {}), id="new"),
        pytest.param({POOL: "gpu", ZONE: "a"}, {NM: ("gpu",)}, {"nm-1": (A,)}, ({}, {}, {}, {}), id="in step"),
        pytest.param({POOL: "gpu"}, {NodeId("nm-1", 0): ("gpu",)}, {}, ({}, {}, {}, {}), id="whole host"),
        pytest.param({}, {NM: ("gpu",)}, {"nm-1": (A, OTHER)}, ({"": [NM]}, {}, {}, {"nm-1": [A]}), id="taken away"),
        pytest.param({POOL: ""}, {NM: ("gpu",)}, {}, ({"": [NM]}, {}, {}, {}), id="empty label"),
        pytest.param({POOL: "cpu"}, {NM: ("gpu",)}, {}, ({"cpu": [NM]}, {}, {}, {}), id="another partition"),
        pytest.param({ZONE: "b"}, {}, {"nm-1": (A,)}, ({}, {}, {"nm-1": [B]}, {}), id="new value"),
        pytest.param(
            {ZONE: "b"}, {}, {"nm-1": (A, OTHER, REPORTED)}, ({}, {}, {"nm-1": [OTHER, B]}, {}),
            id="new value beside attributes of others",
        ),
        pytest.param({ZONE: "a"}, {}, {"nm-1": (OTHER,)}, ({}, {"nm-1": [A]}, {}, {}), id="new beside another"),
        pytest.param({}, {}, {"nm-1": (REPORTED, OTHER)}, ({}, {}, {}, {}), id="attributes of others"),
    ],
)  # fmt: skip
def test_only_what_differs_is_changed(
    labels: dict[str, str], partitions: Any, attributes: Any, expected: tuple[Any, ...]
) -> None:
    assert _plan(labels, partitions, attributes) == expected


class FakeKeeper:
    """Hold labels and attributes as a ResourceManager does, and record every write."""

    def __init__(self, partitions: Iterable[str]) -> None:
        self.known = set(partitions)
        self.labels: dict[NodeId, tuple[str, ...]] = {}
        self.attributes: dict[str, dict[str, str]] = {}
        self.writes: list[str] = []

    async def get_nodes_to_labels(self) -> Mapping[NodeId, tuple[str, ...]]:
        return {node_id: labels for node_id, labels in self.labels.items() if labels}

    async def get_nodes_to_attributes(self) -> Mapping[str, tuple[NodeAttribute, ...]]:
        return {host: tuple(NodeAttribute(*item) for item in held.items()) for host, held in self.attributes.items()}

    async def replace_labels_on_nodes(
        self, labels: Mapping[NodeId, Iterable[str]], *, fail_on_unknown_nodes: bool = True
    ) -> None:
        wanted = {node_id: tuple(names) for node_id, names in labels.items()}
        self.writes.append(f"partition {sorted(map(str, wanted))}")
        if unknown := {name for names in wanted.values() for name in names} - self.known:
            raise RemoteCallError("java.io.IOException", f"no such labels {unknown}", method="replaceLabelsOnNodes")
        self.labels.update(wanted)

    async def map_attributes_to_nodes(
        self,
        operation: AttributeOperation,
        attributes: Mapping[str, Iterable[NodeAttribute]],
        *,
        fail_on_unknown_nodes: bool = True,
    ) -> None:
        self.writes.append(f"{operation.name} {sorted(attributes)}")
        for host, given in attributes.items():
            held = self.attributes.setdefault(host, {})
            if operation is AttributeOperation.REPLACE:
                held.clear()
            for each in given:
                if operation is AttributeOperation.REMOVE:
                    held.pop(each.name, None)
                else:
                    held.setdefault(each.name, each.value)  # an addition does not change a value


class LabelWorld(World):
    """Give each cluster a keeper of labels."""

    def __init__(self, *, clusters: tuple[str, ...] = ("default",), **more: Any) -> None:
        self.keepers = {id_: FakeKeeper(["gpu", "cpu"]) for id_ in clusters}
        labels = {"partition_label": POOL, "attributes": {ZONE: "zone"}}
        super().__init__(settings(node_labels=labels, **more), clusters=clusters)

    def _controller(self) -> Controller:
        ports = {
            id_: ClusterPort(
                resource_manager=rm, addresses=("rm:8032",), heartbeat_seconds=1.0, labels=self.keepers[id_]
            )
            for id_, rm in self.rms.items()
        }
        return Controller(
            self.settings,
            Outside(
                kubernetes=self.kube,
                clusters=ports,
                leadership=self.leadership,
                events=self.events,
                clock=self.clock,
                metrics=self.metrics,
            ),
        )

    def label(self, name: str, **labels: str) -> None:
        """Replace the labels of a Node; `pool` and `zone` are short for the mapped keys."""
        body = json.loads(json.dumps(self.kube.objects["nodes"][name]))
        body["metadata"]["labels"] = {{"pool": POOL, "zone": ZONE}[key]: value for key, value in labels.items()}
        self.kube.put("nodes", name, body)


async def test_labels_are_kept_in_step_and_nothing_is_written_at_rest() -> None:
    world = LabelWorld()
    first, second = world.manager(1), world.manager(2)
    keeper = world.keepers["default"]
    async with world:
        world.label("node-1", pool="gpu", zone="a")
        world.label("node-2", pool="gpu")
        await world.advance(11)
        assert keeper.labels == {first: ("gpu",), second: ("gpu",)}
        assert keeper.attributes == {"nm-1": {"zone": "a"}}
        assert keeper.writes == ["partition ['nm-1:8041', 'nm-2:8041']", "ADD ['nm-1']"]
        await world.advance(60)
        assert len(keeper.writes) == 2
        keeper.labels.clear()  # a ResourceManager that lost its store
        world.label("node-1", zone="b")
        await world.advance(11)
        assert keeper.labels == {second: ("gpu",)}
        assert keeper.attributes == {"nm-1": {"zone": "b"}}
        world.label("node-1")
        await world.advance(11)
        assert keeper.attributes == {"nm-1": {}}


async def test_an_unknown_partition_is_told_once_and_holds_up_its_own_node_only() -> None:
    world = LabelWorld()
    world.manager(1)
    good = world.manager(2)
    async with world:
        world.label("node-1", pool="nowhere")
        world.label("node-2", pool="cpu")
        await world.advance(60)
        assert world.keepers["default"].labels == {good: ("cpu",)}
        assert world.events.reasons("node-1").count("NodeLabelRefused") == 1
        message = next(event[3] for event in world.events.of_nodes if event[2] == "NodeLabelRefused")
        assert "partition 'nowhere'" in message
        assert POOL in message
        world.keepers["default"].known.add("nowhere")
        await world.advance(11)
        assert len(world.keepers["default"].labels) == 2


async def test_each_cluster_has_its_own_labels_and_paused_nodes_and_standbys_write_none() -> None:
    world = LabelWorld(clusters=("a", "b"))
    in_a, in_b = world.manager(1, cluster="a"), world.manager(1, cluster="b")
    world.manager(2, cluster="a")
    world.leadership.is_leader = False
    async with world:
        world.label("node-1", pool="gpu")
        world.label("node-2", pool="gpu")
        world.kube.annotate("node-2", **{"yarn-copilot/pause": "true"})
        await world.advance(30)
        assert world.keepers["a"].writes == world.keepers["b"].writes == []
        world.lead(True)
        await world.advance(11)
        assert world.keepers["a"].labels == {in_a: ("gpu",)}
        assert world.keepers["b"].labels == {in_b: ("gpu",)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("node_labels: {partition_label: 'a b'}", "node_labels.partition_label"),
        ("node_labels: {attributes: {zone: 'a.b'}}", "attribute name"),
        ("node_labels: {attributes: {a: x, b: x}}", "two labels to one attribute"),
        ("{node_labels: {partition_label: a}, hadoop: {transport: rest}}", "needs hadoop.transport rpc"),
    ],
)
def test_a_mapping_that_cannot_work_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_settings(text.encode(), "config.yaml")
