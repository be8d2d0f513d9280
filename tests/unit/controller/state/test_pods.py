# SPDX-License-Identifier: Apache-2.0
"""Test the sums of booked pods."""

from __future__ import annotations

from random import Random

from batch_resources.resources import ZERO_BATCH, BatchResources
from yarn_copilot.controller.state.pods import IRRELEVANT, PodLedger, PodRecord, PodReducer
from yarn_copilot.controller.state.selectors import LabelSelector
from yarn_copilot.kube.model import Container, ObjectMeta, Pod, PodSpec, PodStatus, ResourceRequirements

REDUCE = PodReducer(LabelSelector.parse("role=nm"))


def pod(name: str, *, node: str = "n", cpu: str | None = None, phase: str = "Running", manager: bool = False) -> Pod:
    requests = {} if cpu is None else {"kubernetes.io/batch-cpu": cpu, "kubernetes.io/batch-memory": "1Mi"}
    return Pod(
        ObjectMeta(name=name, namespace="a", labels={"role": "nm"} if manager else {}),
        PodSpec(nodeName=node, containers=[Container(ResourceRequirements(requests))]),
        PodStatus(phase=phase),
    )


class Ledger(PodLedger):
    """Keep what it marks."""

    def __init__(self, *, count: bool = True) -> None:
        self.marked: list[str] = []
        self.managers_changed: list[str] = []
        super().__init__(
            self.marked.append, count_node_manager_pod=count, on_managers_changed=self.managers_changed.append
        )

    def take(self, taken: Pod) -> None:
        """Take a pod as the watch delivers it."""
        self.upserted(f"a/{taken.metadata.name}", REDUCE(taken))


def test_pods_that_book_nothing_are_not_kept() -> None:
    assert REDUCE(pod("plain")) is IRRELEVANT
    assert REDUCE(pod("done", cpu="5", phase="Succeeded")) is IRRELEVANT
    assert REDUCE(pod("pending", node="", cpu="5")) is IRRELEVANT


def test_a_sum_follows_every_change_of_its_pods() -> None:
    ledger = Ledger()
    ledger.take(pod("one", cpu="500"))
    ledger.take(pod("two", cpu="1500m"))
    assert ledger.requested("n") == BatchResources(cpu_milli=502, memory_bytes=2 << 20)
    ledger.take(pod("one", cpu="600"))
    ledger.take(pod("two", cpu="2", phase="Failed"))
    assert ledger.requested("n") == BatchResources(cpu_milli=600, memory_bytes=1 << 20)
    ledger.removed("a/one")
    assert ledger.requested("n") == ZERO_BATCH
    ledger.removed("a/one")
    assert ledger.requested("n") == ZERO_BATCH


def test_an_equal_version_marks_nothing() -> None:
    ledger = Ledger()
    ledger.take(pod("one", cpu="500"))
    ledger.marked.clear()
    ledger.take(pod("one", cpu="500"))
    ledger.take(pod("plain"))
    assert ledger.marked == []


def test_a_pod_that_changes_its_node_is_booked_there_and_marks_both() -> None:
    ledger = Ledger()
    ledger.take(pod("one", cpu="500"))
    ledger.marked.clear()
    ledger.take(pod("one", node="m", cpu="500"))
    assert (ledger.requested("n"), ledger.requested("m")) == (
        ZERO_BATCH,
        BatchResources(cpu_milli=500, memory_bytes=1 << 20),
    )
    assert sorted(ledger.marked) == ["m", "n"]


def test_a_list_drops_what_it_lacks() -> None:
    ledger = Ledger()
    ledger.take(pod("one", cpu="500"))
    ledger.take(pod("nm", cpu="100", manager=True))
    ledger.replaced({"a/three": REDUCE(pod("three", cpu="7"))})
    assert ledger.requested("n") == BatchResources(cpu_milli=7, memory_bytes=1 << 20)
    assert list(ledger.managers("n")) == []
    assert list(ledger.nodes_with_managers()) == []


def test_one_uncountable_pod_makes_the_sum_unknown_until_it_is_gone() -> None:
    ledger = Ledger()
    ledger.take(pod("one", cpu="500"))
    ledger.take(pod("odd", cpu="lots"))
    assert ledger.requested("n") is None
    assert "a/odd" in next(iter(ledger.unreadable("n")))
    ledger.take(pod("odd", cpu="1"))
    assert ledger.requested("n") == BatchResources(cpu_milli=501, memory_bytes=2 << 20)
    assert list(ledger.unreadable("n")) == []


def test_node_manager_pods_may_be_left_out_and_taken_back_in() -> None:
    ledger = Ledger()
    ledger.take(pod("one", cpu="500"))
    ledger.take(pod("nm", cpu="100", manager=True))
    ledger.take(pod("odd-nm", cpu="lots", manager=True))
    ledger.marked.clear()
    ledger.managers_changed.clear()
    ledger.set_count_node_manager_pod(False)
    assert ledger.requested("n") == BatchResources(cpu_milli=500, memory_bytes=1 << 20)
    assert (ledger.marked, ledger.managers_changed) == (["n"], [])
    ledger.removed("a/odd-nm")
    ledger.set_count_node_manager_pod(True)
    assert ledger.requested("n") == BatchResources(cpu_milli=600, memory_bytes=2 << 20)
    ledger.removed("a/nm")
    ledger.removed("a/one")
    assert ledger.requested("n") == ZERO_BATCH


def test_managers_are_told_apart_from_ordinary_pods() -> None:
    ledger = Ledger()
    ledger.take(pod("nm", manager=True))
    ledger.take(pod("job", cpu="1"))
    assert [manager.key for manager in ledger.managers("n")] == ["a/nm"]
    assert ledger.managers_changed == ["n"]


def test_undecodable_pods_and_refused_lists_leave_the_sums_alone() -> None:
    ledger = Ledger()
    ledger.take(pod("one", cpu="500"))
    ledger.malformed("a/one", "broken")
    ledger.unavailable("403")
    assert ledger.requested("n") == BatchResources(cpu_milli=500, memory_bytes=1 << 20)


def test_sums_equal_a_recount_after_any_history() -> None:
    random = Random(4)
    ledger, alive = Ledger(), dict[str, PodRecord]()
    for _ in range(3000):
        name = f"p{random.randrange(40)}"
        if random.random() < 0.3:
            alive.pop(f"a/{name}", None)
            ledger.removed(f"a/{name}")
            continue
        cpu = random.choice(["1", "250", "bad", "1500m"])
        phase = random.choice(["Running", "Running", "Succeeded"])
        record = REDUCE(pod(name, node=random.choice("xyz"), cpu=cpu, phase=phase, manager=random.random() < 0.2))
        alive[f"a/{name}"] = record
        ledger.upserted(f"a/{name}", record)
        if random.random() < 0.05:
            ledger.set_count_node_manager_pod(random.random() < 0.5)
        if random.random() < 0.02:
            ledger.replaced(dict(alive))
    ledger.set_count_node_manager_pod(True)
    for node in "xyz":
        records = [record for record in alive.values() if record.node == node]
        total: BatchResources | None = ZERO_BATCH
        for record in records:
            total = None if total is None or record.request is None else total + record.request
        assert ledger.requested(node) == total
