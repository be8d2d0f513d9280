# SPDX-License-Identifier: Apache-2.0
"""Check the online load that the lab plays."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, pstdev

import pytest

from batch_resources.resources import BatchResources
from lab.load.day import DAY_SECONDS, OnlineDay
from lab.load.trace import Step, Trace, TraceError, read_csv

_CAPACITY = BatchResources(cpu_milli=64_000, memory_bytes=256 * 2**30)
_HOURS = [hour * 3_600.0 for hour in range(24)]


def test_the_same_seed_gives_the_same_day() -> None:
    nodes = {"a": _CAPACITY, "b": _CAPACITY}

    first = OnlineDay(seed=7).trace(nodes, duration_seconds=60, steps=48)

    assert first.steps == OnlineDay(seed=7).trace(nodes, duration_seconds=60, steps=48).steps
    assert first.steps != OnlineDay(seed=8).trace(nodes, duration_seconds=60, steps=48).steps


def test_cpu_is_lower_before_dawn_than_in_the_evening_on_every_node() -> None:
    day = OnlineDay(seed=1)

    for node in (f"node-{index}" for index in range(50)):
        dawn = day.load(node, _CAPACITY, 4 * 3_600).cpu_milli
        evening = day.load(node, _CAPACITY, 20 * 3_600).cpu_milli
        assert dawn * 2 < evening


def test_memory_hardly_moves_while_cpu_swings() -> None:
    day = OnlineDay(seed=3)
    loads = [day.load("node", _CAPACITY, second) for second in _HOURS]

    cpu = [load.cpu_milli for load in loads]
    memory = [load.memory_bytes for load in loads]

    assert pstdev(cpu) / mean(cpu) > 0.25
    assert pstdev(memory) / mean(memory) < 0.06


def test_nodes_do_not_move_in_step() -> None:
    day = OnlineDay(seed=1)

    assert [day.load("a", _CAPACITY, s) for s in _HOURS] != [day.load("b", _CAPACITY, s) for s in _HOURS]


def test_load_stays_within_the_node_all_day() -> None:
    day = OnlineDay(seed=5)

    loads = [day.load("node", _CAPACITY, float(second)) for second in range(0, int(DAY_SECONDS), 600)]

    assert all(load.fits_in(_CAPACITY) for load in loads)
    assert min(load.cpu_milli for load in loads) > 0


def test_the_day_joins_at_midnight() -> None:
    day = OnlineDay(seed=2)

    before = day.load("node", _CAPACITY, DAY_SECONDS - 1).cpu_milli
    after = day.load("node", _CAPACITY, DAY_SECONDS).cpu_milli

    assert abs(before - after) < _CAPACITY.cpu_milli // 100


def test_a_trace_gives_each_step_once() -> None:
    steps = [_step(3, "b"), _step(0, "a"), _step(1, "a")]
    trace = Trace(steps)

    assert trace.between(-1, 1) == (steps[1], steps[2])
    assert trace.between(1, 3) == (steps[0],)
    assert trace.duration_seconds == 3


def test_a_trace_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("seconds,node,cpu_milli,memory_bytes\n1.5,a,2000,1024\n\n0,b,0,0\n")

    assert read_csv(path).steps == (
        Step(at_seconds=0, node="b", load=BatchResources(cpu_milli=0, memory_bytes=0)),
        Step(at_seconds=1.5, node="a", load=BatchResources(cpu_milli=2_000, memory_bytes=1_024)),
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("", 1, id="empty"),
        pytest.param("time,node\n", 1, id="other header"),
        pytest.param("seconds,node,cpu_milli,memory_bytes\n1,a,2\n", 2, id="too few"),
        pytest.param("seconds,node,cpu_milli,memory_bytes\n1,a,2,3\n1,a,2.5,3\n", 3, id="no whole number"),
        pytest.param("seconds,node,cpu_milli,memory_bytes\n-1,a,2,3\n", 2, id="negative time"),
        pytest.param("seconds,node,cpu_milli,memory_bytes\nnan,a,2,3\n", 2, id="no time"),
        pytest.param("seconds,node,cpu_milli,memory_bytes\n1,a,-2,3\n", 2, id="negative load"),
        pytest.param("seconds,node,cpu_milli,memory_bytes\n1,,2,3\n", 2, id="no node"),
    ],
)
def test_a_bad_trace_file_is_refused_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)

    with pytest.raises(TraceError, match=rf"trace\.csv, line {line}: "):
        read_csv(path)


def _step(at_seconds: float, node: str) -> Step:
    return Step(at_seconds=at_seconds, node=node, load=_CAPACITY)
