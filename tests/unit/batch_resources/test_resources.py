# SPDX-License-Identifier: Apache-2.0
"""Calculate with the two vectors."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batch_resources.resources import ZERO_BATCH, ZERO_YARN, BatchResources, YarnResources

batch = st.builds(BatchResources, cpu_milli=st.integers(), memory_bytes=st.integers())
yarn = st.builds(YarnResources, memory_mib=st.integers(), vcores=st.integers())


@given(batch, batch)
def test_batch_resources_add_and_subtract_per_resource(one: BatchResources, other: BatchResources) -> None:
    assert one + other - other == one
    assert one + ZERO_BATCH == one
    assert (one + other).cpu_milli == one.cpu_milli + other.cpu_milli


@given(batch, batch)
def test_batch_bounds_are_taken_per_resource(one: BatchResources, other: BatchResources) -> None:
    assert one.fits_in(one.at_least(other))
    assert one.at_most(other).fits_in(one)
    assert one.at_least(other) + one.at_most(other) == one + other
    assert ZERO_BATCH.fits_in(one.floored())


@given(yarn, yarn)
def test_yarn_bounds_are_taken_per_resource(one: YarnResources, other: YarnResources) -> None:
    assert one.fits_in(one.at_least(other))
    assert one.at_most(other).fits_in(one)
    assert one.at_least(other) + one.at_most(other) == one + other
    assert one + ZERO_YARN == one


def test_a_vector_fits_only_if_every_resource_does() -> None:
    assert not BatchResources(cpu_milli=2, memory_bytes=1).fits_in(BatchResources(cpu_milli=1, memory_bytes=9))
    assert not BatchResources(cpu_milli=1, memory_bytes=9).fits_in(BatchResources(cpu_milli=2, memory_bytes=1))
    assert not YarnResources(vcores=2, memory_mib=1).fits_in(YarnResources(vcores=1, memory_mib=9))
    assert not YarnResources(vcores=1, memory_mib=9).fits_in(YarnResources(vcores=2, memory_mib=1))
