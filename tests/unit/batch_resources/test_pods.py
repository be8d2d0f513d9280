# SPDX-License-Identifier: Apache-2.0
"""Book pods as kube-scheduler does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_resources.keys import BATCH_CPU, BATCH_MEMORY
from batch_resources.pods import PodRequestError, is_booked, pod_batch_request
from batch_resources.resources import ZERO_BATCH, BatchResources
from tests.unit.batch_resources import vectors


@dataclass(frozen=True)
class Requirements:
    requests: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Container:
    resources: Requirements = Requirements()
    restartPolicy: str | None = None


@dataclass(frozen=True)
class Spec:
    containers: list[Container] = field(default_factory=list)
    initContainers: list[Container] = field(default_factory=list)
    overhead: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pod:
    spec: Spec


def container(requests: object, *, is_sidecar: bool = False, key: str = BATCH_CPU) -> Container:
    listed = {} if requests in (None, "") else {key: requests}
    return Container(Requirements(listed), "Always" if is_sidecar else None)


@pytest.mark.parametrize("key", [BATCH_CPU, BATCH_MEMORY])
@pytest.mark.parametrize("vector", vectors.group("pod_request_scheduler"))
def test_books_what_the_vectors_say(vector: dict[str, Any], key: str) -> None:
    pod = Pod(
        Spec(
            [container(request, key=key) for request in vector["containers"]],
            [
                container(init["request"], is_sidecar=init["kind"] == "sidecar", key=key)
                for init in vector["init_containers"]
            ],
            {key: vector["overhead"]},
        )
    )
    booked = pod_batch_request(pod)
    assert (booked.cpu_milli, booked.memory_bytes)[key == BATCH_MEMORY] == vector["expected"]
    assert (booked.memory_bytes, booked.cpu_milli)[key == BATCH_MEMORY] == 0


@pytest.mark.parametrize("made", vectors.read("golden/pod_requests.json"), ids=lambda made: str(made["expected"]))
def test_books_what_component_helpers_book(made: dict[str, Any]) -> None:
    pod = Pod(
        Spec(
            [container(each["request"]) for each in made["containers"]],
            [container(each["request"], is_sidecar=each.get("sidecar", False)) for each in made["init"]],
            {BATCH_CPU: made["overhead"]} if made["overhead"] else {},
        )
    )
    assert pod_batch_request(pod) == BatchResources(cpu_milli=made["expected"], memory_bytes=0)


def test_counts_both_resources_and_no_others() -> None:
    requests = {BATCH_CPU: "2k", BATCH_MEMORY: "3Gi", "cpu": "8", "kubernetes.io/mid-cpu": "99", "nonsense": "x y z"}
    pod = Pod(Spec([Container(Requirements(requests)), container(None)]))
    assert pod_batch_request(pod) == BatchResources(cpu_milli=2000, memory_bytes=3 << 30)


def test_a_pod_without_containers_books_nothing() -> None:
    assert pod_batch_request(Pod(Spec())) == ZERO_BATCH


def test_fractions_are_rounded_once_for_the_whole_pod() -> None:
    assert pod_batch_request(Pod(Spec([container("1500m"), container("1500m")]))).cpu_milli == 3
    assert pod_batch_request(Pod(Spec([container("1500m"), container("1")]))).cpu_milli == 3


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (Spec([container("1"), container("8 cores")]), r"spec\.containers\[1\]\.resources\.requests: .*'8 cores'"),
        (Spec([], [container("-5")]), r"spec\.initContainers\[0\].*'-5' is outside"),
        (Spec([], [], {BATCH_CPU: "x"}), r"spec\.overhead: kubernetes.io/batch-cpu: quantity 'x' is malformed"),
        (Spec([container("-1m")]), r"containers\[0\].*'-1m' is outside"),
        (Spec([container("9223372036854775808")]), r"containers\[0\].*is outside"),
        (Spec([container(2**63)]), "an integer beyond 64 bits is outside"),
        (Spec([container(1.5)]), "float"),
        (Spec([container(True)]), "bool"),
        (Spec([container("9" * 10_000_000)]), "longer than 128"),
        (Spec([Container(Requirements({BATCH_MEMORY: "1GiB"}))]), r"batch-memory: quantity '1GiB'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_unreadable_request_names_container_and_text(spec: Spec, message: str) -> None:
    with pytest.raises(PodRequestError, match=message):
        pod_batch_request(Pod(spec))


def test_the_largest_requests_add_up_without_wrapping() -> None:
    pod = Pod(Spec([container(2**63 - 1), container(2**63 - 1)]))
    assert pod_batch_request(pod).cpu_milli == 2**64 - 2


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 10**6), st.booleans()), max_size=5),
)
def test_a_pod_never_books_less_than_what_runs_at_any_time(main: list[int], init: list[tuple[int, bool]]) -> None:
    pod = Pod(Spec([container(each) for each in main], [container(each, is_sidecar=side) for each, side in init]))
    booked = pod_batch_request(pod).cpu_milli
    sidecars = 0
    moments = []
    for amount, is_sidecar in init:
        moments.append(sidecars + amount)
        sidecars += amount if is_sidecar else 0
    moments.append(sum(main) + sidecars)
    assert booked == max(moments)


@pytest.mark.parametrize(
    ("node", "phase", "booked"),
    [
        ("n1", "Pending", True),
        ("n1", "Running", True),
        ("n1", "Unknown", True),
        ("n1", "", True),
        ("n1", "Succeeded", False),
        ("n1", "Failed", False),
        ("", "Pending", False),
        ("", "Running", False),
    ],
)
def test_bound_pods_count_until_they_have_ended(node: str, phase: str, booked: bool) -> None:
    assert is_booked(node, phase) is booked
