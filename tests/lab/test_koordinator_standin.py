# SPDX-License-Identifier: Apache-2.0
"""Check the stand-in for Koordinator against a real API server, by the rules seen on the real koord-manager."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from batch_resources.koordinator.strategy import Strategy
from lab.koordinator.api import read_kubeconfig
from lab.koordinator.stand_in import Pace, StandIn
from lab.kubernetes.binaries import ensure_binaries
from lab.kubernetes.bodies import BATCH_CPU, BATCH_MEMORY, ORIGIN_ANNOTATION, THIRD_PARTY_ANNOTATION, BatchPod, NodeSpec
from lab.kubernetes.control_plane import ControlPlane
from lab.processes.group import ProcessGroup
from lab.processes.progress import Progress
from lab.processes.state import StateFolder

pytestmark = pytest.mark.lab

_STRATEGY = Strategy(cpu_reclaim_percent=100, memory_reclaim_percent=100)
_RATIO = "node.koordinator.sh/cpu-normalization-ratio"
_GIB = 2**30
_DEADLINE_SECONDS = 15.0
_numbers = itertools.count()


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """Run a control plane whose nodes are this module's alone."""
    group = ProcessGroup(StateFolder(None))
    try:
        plane = ControlPlane(group, ensure_binaries(Progress()))
        plane.start()
        plane.objects().install_koordinator_kinds()
        yield plane
    finally:
        group.close()


@pytest.fixture
def node(control_plane: ControlPlane) -> Iterator[str]:
    """Make a node of 20 cores and 40 GiB without batch resources."""
    name = f"node-{next(_numbers)}"
    control_plane.objects().create_node(NodeSpec(name=name, cpu="20", memory="40Gi"))
    yield name
    control_plane.objects().delete_node(name)


class _Clock:
    """Be a wall clock that a test can set forward."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


def _stand_in(plane: ControlPlane, node: str, **options: Any) -> StandIn:
    options = {"strategy": _STRATEGY, "covers": lambda name: name == node, **options}
    return StandIn(read_kubeconfig(plane.kubeconfig), **options)


async def _until(condition: Callable[[], bool]) -> None:
    deadline = asyncio.get_running_loop().time() + _DEADLINE_SECONDS
    while not await asyncio.to_thread(condition):
        assert asyncio.get_running_loop().time() < deadline, "the expected state did not come"
        await asyncio.sleep(0.02)


async def _read(plane: ControlPlane, node: str) -> dict[str, Any]:
    return await asyncio.to_thread(plane.objects().node, node)


def _batch(node: dict[str, Any], part: str = "allocatable") -> tuple[str | None, str | None]:
    quantities = node["status"][part]
    return quantities.get(BATCH_CPU), quantities.get(BATCH_MEMORY)


def _origin(node: dict[str, Any]) -> tuple[str, str]:
    resources = json.loads(node["metadata"]["annotations"][ORIGIN_ANNOTATION])["resources"]
    return resources[BATCH_CPU], resources[BATCH_MEMORY]


def _third_party(cpu: str, memory: str) -> str:
    entry = {"name": "hadoop-yarn", "priority": "koord-batch", "resources": {BATCH_CPU: cpu, BATCH_MEMORY: memory}}
    return json.dumps({"allocations": [entry]})


async def _publish(plane: ControlPlane, stand_in: StandIn, node: str, cpu_milli: int) -> dict[str, Any]:
    """Play a load that leaves so much batch-cpu and 36Gi, and wait until it is there."""
    stand_in.set_load(node, 20_000 - cpu_milli, 4 * _GIB)
    await stand_in.wait_published(lambda made: made.origin.cpu_milli == cpu_milli, timeout_seconds=_DEADLINE_SECONDS)
    return await _read(plane, node)


async def _claim(plane: ControlPlane, node: str, text: str | None) -> None:
    await asyncio.to_thread(plane.objects().annotate_node, node, {THIRD_PARTY_ANNOTATION: text})


async def _nudge(plane: ControlPlane, node: str) -> None:
    """Make a Node event that changes nothing koord-manager computes with."""
    await asyncio.to_thread(plane.objects().annotate_node, node, {"example.com/nudge": str(next(_numbers))})


async def test_publishes_annotation_capacity_and_allocatable_in_one_version(
    control_plane: ControlPlane, node: str
) -> None:
    async with _stand_in(control_plane, node) as stand_in:
        found = await _publish(control_plane, stand_in, node, 18_000)

        assert _origin(found) == ("18k", "36Gi")
        assert _batch(found) == _batch(found, "capacity") == ("18k", "36Gi")
        newest = stand_in.publications[-1]
        assert newest.resource_version == found["metadata"]["resourceVersion"]
        assert newest.sent_at <= newest.answered_at


async def test_a_node_without_a_report_gets_a_zero_origin_at_once(control_plane: ControlPlane, node: str) -> None:
    async with _stand_in(control_plane, node) as stand_in:
        await stand_in.wait_published(lambda made: made.allocatable is None, timeout_seconds=_DEADLINE_SECONDS)

        found = await _read(control_plane, node)

        assert _origin(found) == ("0", "0")
        assert _batch(found) == (None, None)


async def test_a_claim_is_subtracted_at_once_and_origin_stays(control_plane: ControlPlane, node: str) -> None:
    async with _stand_in(control_plane, node) as stand_in:
        await _publish(control_plane, stand_in, node, 18_000)

        await _claim(control_plane, node, _third_party("8k", "16Gi"))
        await _until(lambda: _batch(control_plane.objects().node(node)) == ("10k", "20Gi"))

        assert _origin(await _read(control_plane, node)) == ("18k", "36Gi")


async def test_exactly_ten_percent_is_not_published_and_a_hair_more_is(control_plane: ControlPlane, node: str) -> None:
    async with _stand_in(control_plane, node) as stand_in:
        await _publish(control_plane, stand_in, node, 18_000)
        count = len(stand_in.publications)

        await _claim(control_plane, node, _third_party("1800", "0"))
        await _nudge(control_plane, node)
        await _claim(control_plane, node, _third_party("1801", "0"))
        await _until(lambda: _batch(control_plane.objects().node(node))[0] == "16199")

        assert len(stand_in.publications) == count + 1


async def test_a_small_change_is_published_by_the_first_event_after_the_threshold(
    control_plane: ControlPlane, node: str
) -> None:
    # 300 s become 1 s; reports, which would trigger too, stay away.
    pace = Pace(time_scale=300.0, report_interval_seconds=1e9)
    strategy = replace(_STRATEGY, degrade_seconds=1e9)
    async with _stand_in(control_plane, node, pace=pace, strategy=strategy) as stand_in:
        await _publish(control_plane, stand_in, node, 18_000)
        await _claim(control_plane, node, _third_party("1k", "0"))
        count = len(stand_in.publications)

        await asyncio.sleep(1.5)
        assert len(stand_in.publications) == count
        await _nudge(control_plane, node)

        await _until(lambda: _batch(control_plane.objects().node(node))[0] == "17k")


async def test_the_clock_alone_degrades_nothing_and_the_next_event_does(control_plane: ControlPlane, node: str) -> None:
    clock = _Clock()
    async with _stand_in(control_plane, node, now=clock) as stand_in:
        await _publish(control_plane, stand_in, node, 18_000)
        await _claim(control_plane, node, _third_party("8k", "16Gi"))
        await _until(lambda: _batch(control_plane.objects().node(node))[0] == "10k")
        stand_in.stop_reporting(node)
        count = len(stand_in.publications)

        clock.ahead = timedelta(minutes=15, seconds=5)
        await asyncio.sleep(0.5)
        assert len(stand_in.publications) == count
        await _nudge(control_plane, node)
        await _until(lambda: _batch(control_plane.objects().node(node)) == (None, None))

        found = await _read(control_plane, node)
        assert _origin(found) == ("0", "0")
        assert found["metadata"]["annotations"][THIRD_PARTY_ANNOTATION] == _third_party("8k", "16Gi")
        stand_in.resume_reporting(node)
        await _until(lambda: _batch(control_plane.objects().node(node))[0] == "10k")


async def test_disabling_takes_the_resources_away_and_enabling_brings_them_back(
    control_plane: ControlPlane, node: str
) -> None:
    async with _stand_in(control_plane, node) as stand_in:
        await _publish(control_plane, stand_in, node, 18_000)

        stand_in.disable(node)
        await _until(lambda: _batch(control_plane.objects().node(node)) == (None, None))
        assert _origin(await _read(control_plane, node)) == ("0", "0")
        stand_in.enable(node)

        await _until(lambda: _batch(control_plane.objects().node(node)) == ("18k", "36Gi"))


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        pytest.param("nonsense", "18k", id="malformed subtracts nothing"),
        pytest.param(_third_party("8 k", "0"), "18k", id="bad quantity subtracts nothing"),
        pytest.param(_third_party("8000500m", "0"), "9999500m", id="a fraction stays a fraction"),
        pytest.param(_third_party("-9k", "0"), "27k", id="a negative claim raises the offer above origin"),
        pytest.param(_third_party("99999999999999999999", "0"), "0", id="a huge claim takes everything"),
    ],
)
async def test_odd_claims_have_the_effect_seen_on_koord_manager(
    control_plane: ControlPlane, node: str, claim: str, expected: str
) -> None:
    async with _stand_in(control_plane, node) as stand_in:
        await _publish(control_plane, stand_in, node, 18_000)
        await _claim(control_plane, node, _third_party("6k", "0"))
        await _until(lambda: _batch(control_plane.objects().node(node))[0] == "12k")

        await _claim(control_plane, node, claim)

        await _until(lambda: _batch(control_plane.objects().node(node))[0] == expected)
        assert _origin(await _read(control_plane, node)) == ("18k", "36Gi")


async def test_a_fall_behind_a_full_claim_shows_when_the_ratio_annotation_is_removed(
    control_plane: ControlPlane, node: str
) -> None:
    async with _stand_in(control_plane, node) as stand_in:
        stand_in.set_normalization_ratio(node, Fraction(1))
        await _publish(control_plane, stand_in, node, 18_000)
        await _claim(control_plane, node, _third_party("18k", "36Gi"))
        await _until(lambda: _batch(control_plane.objects().node(node)) == ("0", "0"))
        stand_in.set_load(node, 9_000, 4 * _GIB)
        await _nudge(control_plane, node)
        await asyncio.sleep(0.5)
        assert _origin(await _read(control_plane, node)) == ("18k", "36Gi")

        await asyncio.to_thread(control_plane.objects().annotate_node, node, {_RATIO: None})

        await _until(lambda: _origin(control_plane.objects().node(node)) == ("11k", "36Gi"))
        assert (await _read(control_plane, node))["metadata"]["annotations"][_RATIO] == "1.00"


async def test_a_claim_written_in_between_is_honoured_and_never_lost(control_plane: ControlPlane, node: str) -> None:
    objects = control_plane.objects()
    async with _stand_in(control_plane, node) as stand_in:
        await _publish(control_plane, stand_in, node, 18_000)

        for index in range(40):
            stand_in.set_load(node, 2_000 if index % 2 else 8_000, 4 * _GIB)
            await _claim(control_plane, node, _third_party(str(1_000 + 100 * index), "0"))
            annotations = (await _read(control_plane, node))["metadata"]["annotations"]
            assert annotations[THIRD_PARTY_ANNOTATION] == _third_party(str(1_000 + 100 * index), "0")
        stand_in.set_load(node, 8_000, 4 * _GIB)
        await _claim(control_plane, node, _third_party("10k", "0"))

        await _until(lambda: _batch(objects.node(node))[0] == "2k")


async def test_kube_scheduler_binds_a_pod_when_the_claim_falls(control_plane: ControlPlane, node: str) -> None:
    objects = control_plane.objects()
    async with _stand_in(control_plane, node) as stand_in:
        await _publish(control_plane, stand_in, node, 18_000)
        await _claim(control_plane, node, _third_party("18k", "36Gi"))
        await _until(lambda: _batch(objects.node(node)) == ("0", "0"))
        pod = BatchPod(
            name=f"pod-{node}", cpu_milli=4_000, memory_bytes=_GIB, node_selector={"kubernetes.io/hostname": node}
        )
        await asyncio.to_thread(objects.create_batch_pod, pod)

        await _claim(control_plane, node, _third_party("14k", "35Gi"))

        await _until(lambda: objects.node_of_pod("default", pod.name) == node)


async def test_the_process_plays_a_trace_and_ends_on_sigterm(
    control_plane: ControlPlane, node: str, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(f"seconds,node,cpu_milli,memory_bytes\n0,{node},2000,{4 * _GIB}\n0.5,{node},8000,{4 * _GIB}\n")
    config = tmp_path / "stand-in.yaml"
    config.write_text(
        f"load: {{trace: {trace}}}\nstrategy: {{cpu_reclaim_percent: 100, memory_reclaim_percent: 100}}\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "lab.koordinator",
        "--kubeconfig",
        str(control_plane.kubeconfig),
        "--config",
        str(config),
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await _until(lambda: _batch(control_plane.objects().node(node)) == ("12k", "36Gi"))
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), _DEADLINE_SECONDS) == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
