# SPDX-License-Identifier: Apache-2.0
"""Test how Nodes are reduced and which of their versions count."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from batch_resources.annotations.origin import OriginState
from batch_resources.resources import ZERO_BATCH, BatchResources
from tests.unit.controller.kubernetes import ORIGIN, THIRD
from tests.unit.controller.world import origin_text, third_text
from yarn_copilot.controller.state.nodes import NodeFacts, NodeReducer, NodeTable
from yarn_copilot.controller.state.selectors import LabelSelector
from yarn_copilot.kube.model import Node, NodeAddress, NodeStatus, ObjectMeta

RATIO = "node.koordinator.sh/cpu-normalization-ratio"


def node(version: str = "5", *, uid: str = "u", labels: dict[str, str] | None = None, **annotations: str) -> Node:
    texts = {
        {"origin": ORIGIN, "third": THIRD, "ratio": RATIO}.get(key, key): text for key, text in annotations.items()
    }
    return Node(
        ObjectMeta(name="n", uid=uid, resourceVersion=version, annotations=texts, labels=labels or {}),
        status=NodeStatus(
            allocatable={"kubernetes.io/batch-cpu": "1500m", "kubernetes.io/batch-memory": "1Ki"},
            addresses=[NodeAddress("InternalIP", "10.0.0.1")],
        ),
    )


def reduced(taken: Node, *, physical: bool = False, selector: str | None = None) -> NodeFacts:
    host = None if selector is None else LabelSelector.parse(selector)
    return NodeReducer(host, physical_cpu=physical)(taken)


class Table(NodeTable):
    """Keep what it tells."""

    def __init__(self) -> None:
        self.told: list[tuple[int | None, int | None]] = []
        super().__init__(lambda a, b: self.told.append((a.version if a else None, b.version if b else None)))


def test_annotations_become_values_and_amounts_round_up() -> None:
    facts = reduced(node(origin=origin_text(10, 20), third=third_text(3, 4)))
    assert facts.origin.resources == BatchResources(cpu_milli=10, memory_bytes=20)
    assert facts.claimed == BatchResources(cpu_milli=3, memory_bytes=4)
    assert facts.others == ZERO_BATCH
    assert facts.allocatable == BatchResources(cpu_milli=2, memory_bytes=1024)
    assert facts.addresses == ("10.0.0.1",)


def test_a_bare_node_is_unknown_not_zero() -> None:
    facts = reduced(Node(ObjectMeta(name="n")))
    assert facts.origin.state is OriginState.ABSENT
    assert facts.claimed is None
    assert facts.allocatable is None
    assert facts.version == 0


def test_unreadable_third_parties_hide_both_shares_and_say_why() -> None:
    facts = reduced(node(third="{"))
    assert (facts.others, facts.claimed) == (None, None)
    assert facts.third_party_error


def test_allocatable_that_cannot_be_read_is_unknown() -> None:
    broken = Node(
        ObjectMeta(name="n"),
        status=NodeStatus(allocatable={"kubernetes.io/batch-cpu": "x", "kubernetes.io/batch-memory": "1"}),
    )
    assert reduced(broken).allocatable is None


def test_the_normalization_ratio_counts_for_physical_cores_only() -> None:
    assert reduced(node(ratio="1.20")).normalization_ratio is None
    assert reduced(node(ratio="1.20"), physical=True).normalization_ratio == Fraction(6, 5)
    assert reduced(node(ratio="0.5"), physical=True).normalization_ratio is None


def test_the_selector_of_host_daemons_decides() -> None:
    labelled: dict[str, Any] = {"labels": {"yarn": "host"}}
    assert reduced(node(**labelled), selector="yarn=host").host_daemon
    assert not reduced(node(**labelled), selector="yarn=pod").host_daemon
    assert not reduced(node(**labelled)).host_daemon


def test_a_version_older_than_the_known_one_is_dropped() -> None:
    table = Table()
    for version in ("7", "6", "7", "8"):
        table.upserted("n", reduced(node(version)))
    assert table.told == [(None, 7), (7, 7), (7, 8)]


def test_another_node_under_the_name_counts_whatever_its_version() -> None:
    table = Table()
    table.upserted("n", reduced(node("7")))
    table.upserted("n", reduced(node("3", uid="other")))
    assert table.told[-1] == (7, 3)


def test_a_list_older_as_a_whole_comes_from_a_restored_store_and_counts() -> None:
    table = Table()
    table.upserted("n", reduced(node("700")))
    table.replaced({"n": reduced(node("30"))})
    assert table.told[-1] == (700, 30)
    table.upserted("n", reduced(node("31")))
    assert table.told[-1] == (30, 31)


def test_a_list_that_holds_newer_nodes_does_not_bring_back_an_older_version() -> None:
    table = Table()
    table.upserted("n", reduced(node("700")))
    table.replaced({"n": reduced(node("650")), "m": reduced(node("710"))})
    assert table.told[1:] == [(None, 710)]
    facts = table.get("n")
    assert facts is not None
    assert facts.version == 700


def test_a_list_removes_what_it_lacks_once() -> None:
    table = Table()
    table.upserted("n", reduced(node("7")))
    table.replaced({})
    table.removed("n")
    assert table.told == [(None, 7), (7, None)]
    assert len(table) == 0
    assert list(table.all()) == []


def test_undecodable_nodes_and_refused_lists_keep_the_last_facts() -> None:
    table = Table()
    table.upserted("n", reduced(node("7")))
    table.malformed("n", "broken")
    table.unavailable("403")
    assert table.get("n") is not None
