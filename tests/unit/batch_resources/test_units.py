# SPDX-License-Identifier: Apache-2.0
"""Convert both ways and never gain anything."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_resources.resources import BatchResources, YarnResources
from batch_resources.units import BYTES_PER_MIB, MAX_VCORES, UnitModel, parse_normalization_ratio
from tests.unit.batch_resources import vectors

WHOLE_CORES = UnitModel(milli_cores_per_vcore=1000)

amounts = st.builds(
    BatchResources,
    cpu_milli=st.integers(min_value=0, max_value=2**40),
    memory_bytes=st.integers(min_value=0, max_value=2**63 - 1),
)
models = st.builds(UnitModel, milli_cores_per_vcore=st.integers(min_value=1, max_value=1_000_000))
ratios = st.none() | st.decimals(min_value="1.01", max_value="9.99", places=2).map(Fraction)


def test_a_fully_used_node_comes_back_as_what_was_offered() -> None:
    origin = BatchResources(cpu_milli=60646, memory_bytes=245976973438)
    offered = WHOLE_CORES.to_yarn(origin)
    assert offered == YarnResources(vcores=60, memory_mib=234581)
    assert WHOLE_CORES.to_batch(offered) == BatchResources(cpu_milli=60000, memory_bytes=245976006656)


@pytest.mark.parametrize("vector", vectors.group("yarn_copilot", "calculate"))
def test_offers_the_right_values_of_the_vectors(vector: dict[str, Any]) -> None:
    batch = BatchResources(cpu_milli=vector["batch_cpu_milli"], memory_bytes=vector["batch_memory_bytes"])
    assert WHOLE_CORES.to_yarn(batch) == YarnResources(
        vcores=vector["correct_floor_vcores"], memory_mib=vector["correct_floor_memory_mib"]
    )


@pytest.mark.parametrize("vector", vectors.group("yarn_copilot", "set_allocated"))
def test_converts_use_like_the_vectors(vector: dict[str, Any]) -> None:
    used = YarnResources(vcores=vector["vcores"], memory_mib=vector["memory_mib"])
    assert WHOLE_CORES.to_batch(used) == BatchResources(
        cpu_milli=vector["expected_batch_cpu"], memory_bytes=vector["expected_batch_memory"]
    )


@pytest.mark.parametrize("vector", vectors.group("yarn_copilot", "two_way_split"))
def test_splits_a_node_both_ways_like_the_vectors(vector: dict[str, Any]) -> None:
    cpu_milli, memory_bytes = vector["origin_batch"]
    origin = BatchResources(cpu_milli=cpu_milli, memory_bytes=memory_bytes)
    cpu_milli, memory_bytes = vector["k8s_batch_requested"]
    left = origin - BatchResources(cpu_milli=cpu_milli, memory_bytes=memory_bytes)
    assert WHOLE_CORES.to_yarn(left) == YarnResources(
        vcores=vector["expected_yarn_vcores"], memory_mib=vector["expected_yarn_memory_mib"]
    )
    cpu_milli, memory_bytes = vector["yarn_requested"]
    allocatable = (origin - BatchResources(cpu_milli=cpu_milli, memory_bytes=memory_bytes)).floored()
    assert [allocatable.cpu_milli, allocatable.memory_bytes] == vector["expected_k8s_allocatable"]


@given(amounts, models, ratios)
def test_down_and_up_again_is_never_above_origin(
    origin: BatchResources, model: UnitModel, ratio: Fraction | None
) -> None:
    offered = model.to_yarn(origin, normalization_ratio=ratio)
    claimed = model.to_batch(offered, normalization_ratio=ratio)
    assert claimed.fits_in(origin)
    # ... and no whole unit is lost on the way, below the limit of int32
    assert origin.memory_bytes - claimed.memory_bytes < BYTES_PER_MIB
    one_more = YarnResources(vcores=offered.vcores + 1, memory_mib=offered.memory_mib)
    assert offered.vcores == MAX_VCORES or not model.to_batch(one_more, normalization_ratio=ratio).fits_in(origin)


@given(st.integers(0, MAX_VCORES), st.integers(0, 2**43 - 1), models, ratios)
def test_up_and_down_again_is_the_same(vcores: int, memory_mib: int, model: UnitModel, ratio: Fraction | None) -> None:
    used = YarnResources(vcores=vcores, memory_mib=memory_mib)
    assert model.to_yarn(model.to_batch(used, normalization_ratio=ratio), normalization_ratio=ratio) == used


def test_negative_capacity_is_none() -> None:
    below = BatchResources(cpu_milli=-1, memory_bytes=-(2**63))
    assert WHOLE_CORES.to_yarn(below) == YarnResources(vcores=0, memory_mib=0)


def test_an_absurd_origin_still_fits_into_the_message() -> None:
    absurd = BatchResources(cpu_milli=2**63 - 1, memory_bytes=2**63 - 1)
    assert WHOLE_CORES.to_yarn(absurd) == YarnResources(vcores=2**31 - 1, memory_mib=2**43 - 1)


@pytest.mark.parametrize("milli_cores", [0, -1000])
def test_a_vcore_of_nothing_is_refused(milli_cores: int) -> None:
    with pytest.raises(ValueError, match="the smallest is 1"):
        UnitModel(milli_cores_per_vcore=milli_cores)


def test_physical_vcores_are_counted_before_normalisation() -> None:
    normalized = BatchResources(cpu_milli=30000, memory_bytes=0)
    ratio = parse_normalization_ratio("1.20")
    assert WHOLE_CORES.to_yarn(normalized, normalization_ratio=ratio).vcores == 25
    assert WHOLE_CORES.to_batch(YarnResources(vcores=25, memory_mib=0), normalization_ratio=ratio).cpu_milli == 30000


@pytest.mark.parametrize(
    ("text", "ratio"),
    [
        (None, None),
        ("", None),
        ("1", None),
        ("1.00", None),
        ("0.80", None),
        ("0", None),
        ("-1.2", None),
        ("1.2.3", None),
        ("1,2", None),
        ("1e3", None),
        ("NaN", None),
        ("inf", None),
        ("6/5", None),
        ("\u0661.\u0662", None),
        ("1_0.5", None),
        ("1." + "2" * 10_000_000, None),
        ("9" * 10_000_000, None),
        ("1.20", Fraction(6, 5)),
        (" 1.2 ", Fraction(6, 5)),
        ("1.01", Fraction(101, 100)),
        ("2", Fraction(2)),
    ],
    ids=lambda value: repr(value)[:12],
)
def test_reads_a_ratio_above_one_or_nothing(text: str | None, ratio: Fraction | None) -> None:
    assert parse_normalization_ratio(text) == ratio
