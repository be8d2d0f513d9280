# SPDX-License-Identifier: Apache-2.0
"""Shape the answers of both APIs; field names are the wire's.

`ContainerInfo` has the fields of the protocol that Koordinator's Go bridge published, and more: a caller that ranks
victims needs use, start and whether it is an ApplicationMaster. Unknown values are left out.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import UNSET, Struct, UnsetType

from batch_resources.keys import BATCH_CPU, BATCH_MEMORY
from batch_resources.resources import ZERO_BATCH, BatchResources
from batch_resources.victims import ExecutionType
from nm_proxy.containers import NodeContainer
from nm_proxy.draining import DrainState
from nm_proxy.killing import Ended, RoomMade
from nm_proxy.lingering.tracking import Lingering, total_held
from nm_proxy.node_view import NodeManagerView

NAMESPACE: Final = "yarn"
_LABEL: Final = "yarn.hadoop.apache.org/"
T = TypeVar("T")


class Information(Struct, frozen=True):
    """Introduce this program to whoever walks the directory of sockets."""

    name: str = "yarn"
    version: str = "v1"


class Health(Struct, frozen=True, rename="camel"):
    """Say that this program works, and how the NodeManager answers it.

    The published server answers the text "ok" in its place; its client looks at the status alone.
    """

    status: str
    node_manager: str


class Problem(Struct, frozen=True):
    """Say in one sentence why not."""

    error: str


class Resources(Struct, frozen=True):
    """Hold requests and limits by resource name, as quantities; YARN has one amount for both."""

    requests: dict[str, str]
    limits: dict[str, str]


class Usage(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Hold what a container uses; pressure is PSI's average over ten seconds in percent (cgroup v2)."""

    processes: int = 0
    cpu_seconds: float | UnsetType = UNSET
    throttled_seconds: float | UnsetType = UNSET
    memory_bytes: int | UnsetType = UNSET
    memory_peak_bytes: int | UnsetType = UNSET
    memory_limit_bytes: int | UnsetType = UNSET
    oom_kills: int | UnsetType = UNSET
    pressure: dict[str, float] | UnsetType = UNSET


class ContainerInfo(Struct, frozen=True):
    """Hold one container.

    `priority`: 0 dies first: OPPORTUNISTIC 0, GUARANTEED 1, an ApplicationMaster 2.
    """

    name: str
    namespace: str
    uid: str
    labels: dict[str, str]
    annotations: dict[str, str]
    priority: int
    cgroupDir: str
    hostNetwork: bool
    resources: Resources
    state: str
    applicationID: str
    applicationMaster: bool
    executionType: str
    parented: bool
    usage: Usage
    createTimestamp: str | UnsetType = UNSET
    problem: str | UnsetType = UNSET


class Killed(Struct, frozen=True):
    """Say that one container was ended and its group seen empty; `items` is what the published protocol answers."""

    containerID: str
    processes: int
    items: list[ContainerInfo]


class Amount(Struct, frozen=True, rename="camel"):
    """Hold whole milli-cores and bytes."""

    cpu_milli: int
    memory_bytes: int


class Failure(Struct, frozen=True):
    """Say which container could not be ended in time, and why."""

    containerID: str
    reason: str


class KilledByResource(Struct, frozen=True):
    """Hold who was ended for room, what that freed and what is still lacking."""

    items: list[ContainerInfo]
    freed: dict[str, str]
    missing: dict[str, str]
    failed: list[Failure]


class KillAnswer(Struct, frozen=True):
    """Hold the same for the controller."""

    killed: list[str]
    freed: Amount
    missing: Amount
    failed: list[Failure]


class LingeringItem(Struct, frozen=True, rename="camel"):
    """Hold one container that lingers."""

    container_id: str
    why: str
    seconds: float
    processes: int
    cpu_milli: int
    memory_bytes: int


class LingeringState(Struct, frozen=True, rename="camel"):
    """Hold all that linger and the sum of what they hold."""

    containers: int
    cpu_milli: int
    memory_bytes: int
    items: list[LingeringItem]


class State(Struct, frozen=True, rename="camel"):
    """Be the answer of `GET /v1/state`.

    Attributes:
        drain: active, draining or drained.
        containers: how many have processes, or are live by the NodeManager's word.
        running: what the containers hold that have processes and do not linger.
        node_manager: how the NodeManager answers.
        node_id: host:port as the ResourceManager knows it; empty before the NodeManager said it.
    """

    drain: str
    containers: int
    lingering: LingeringState
    running: Amount
    node_manager: str
    node_id: str


def container_info(container: NodeContainer) -> ContainerInfo:
    """Shape one container."""
    created = UNSET if container.started_at is None else _rfc3339(container.started_at)
    return ContainerInfo(
        name=container.container_id,
        namespace=NAMESPACE,
        uid=container.container_id,
        labels=_labels(container),
        annotations={},
        priority=_priority(container),
        createTimestamp=created,
        cgroupDir=f"/{container.path}",
        hostNetwork=True,
        resources=Resources(requests=quantities(container.holds), limits=quantities(container.holds)),
        state=container.report.state if container.report else "UNKNOWN",
        applicationID=container.application_id,
        applicationMaster=container.is_application_master,
        executionType=container.execution_type.value,
        parented=container.is_done,
        usage=_usage(container),
        problem=container.error or UNSET,
    )


def killed(ended: Ended) -> Killed:
    """Shape the end of one container."""
    return Killed(
        containerID=ended.container.container_id,
        processes=ended.processes,
        items=[container_info(ended.container)],
    )


def killed_by_resource(room: RoomMade) -> KilledByResource:
    """Shape how an ask over the socket went."""
    return KilledByResource(
        items=[container_info(one.container) for one in room.ended],
        freed=quantities(room.freed),
        missing=quantities(room.missing),
        failed=_failures(room),
    )


def kill_answer(room: RoomMade) -> KillAnswer:
    """Shape how an ask over the port went."""
    return KillAnswer(
        killed=[one.container.container_id for one in room.ended],
        freed=_amount(room.freed),
        missing=_amount(room.missing),
        failed=_failures(room),
    )


def state(
    drain: DrainState,
    containers: Sequence[NodeContainer],
    lingering: Mapping[str, Lingering],
    view: NodeManagerView,
    *,
    now: float,
) -> State:
    """Shape the state of the node."""
    return State(
        drain=drain.value,
        containers=len(containers),
        running=_running(containers, lingering),
        lingering=_lingering(lingering.values(), now),
        node_manager=view.answering.value,
        node_id=view.info.node_id if view.info else "",
    )


def _running(containers: Iterable[NodeContainer], lingering: Mapping[str, Lingering]) -> Amount:
    total = ZERO_BATCH
    for container in containers:
        if container.processes and container.container_id not in lingering:
            total = total + container.holds
    return _amount(total)


def quantities(amount: BatchResources) -> dict[str, str]:
    """Write an amount under the plain and the batch names, all digits."""
    return {
        "cpu": f"{amount.cpu_milli}m",
        "memory": str(amount.memory_bytes),
        BATCH_CPU: str(amount.cpu_milli),
        BATCH_MEMORY: str(amount.memory_bytes),
    }


def _lingering(lingering: Iterable[Lingering], now: float) -> LingeringState:
    every = list(lingering)
    total = total_held(every)
    items = [
        LingeringItem(
            container_id=one.container_id,
            why=one.why.value,
            seconds=round(now - one.since, 3),
            processes=one.processes,
            cpu_milli=one.holds.cpu_milli,
            memory_bytes=one.holds.memory_bytes,
        )
        for one in every
    ]
    return LingeringState(
        containers=len(every), cpu_milli=total.cpu_milli, memory_bytes=total.memory_bytes, items=items
    )


def _labels(container: NodeContainer) -> dict[str, str]:
    return {
        f"{_LABEL}application-id": container.application_id,
        f"{_LABEL}application-master": "true" if container.is_application_master else "false",
        f"{_LABEL}execution-type": container.execution_type.value,
    }


def _priority(container: NodeContainer) -> int:
    if container.is_application_master:
        return 2
    return 0 if container.execution_type is ExecutionType.OPPORTUNISTIC else 1


def _usage(container: NodeContainer) -> Usage:
    stats = container.stats
    if stats is None:
        return Usage(processes=container.processes)
    limit = stats.values.memory_bytes if stats.values else None
    return Usage(
        processes=container.processes,
        cpu_seconds=_known(stats.cpu_seconds),
        throttled_seconds=_known(stats.throttled_seconds),
        memory_bytes=_known(stats.memory_bytes),
        memory_peak_bytes=_known(stats.memory_peak_bytes),
        memory_limit_bytes=_known(limit),
        oom_kills=_known(stats.oom_kills),
        pressure={kind: one.some_average10 for kind, one in stats.pressure.items()} or UNSET,
    )


def _known(value: T | None) -> T | UnsetType:
    return UNSET if value is None else value


def _failures(room: RoomMade) -> list[Failure]:
    return [Failure(containerID=one.container.container_id, reason=one.error) for one in room.failed]


def _amount(amount: BatchResources) -> Amount:
    return Amount(cpu_milli=amount.cpu_milli, memory_bytes=amount.memory_bytes)


def _rfc3339(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="milliseconds")
