# SPDX-License-Identifier: Apache-2.0
"""Read origin, whatever stands there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_resources import quantities
from batch_resources.annotations.origin import OriginState, read_origin, write_origin
from batch_resources.keys import BATCH_CPU, BATCH_MEMORY, ORIGIN_ANNOTATION
from batch_resources.resources import ZERO_BATCH, BatchResources
from tests.unit.batch_resources import vectors

PRESENT = {BATCH_CPU: "0", BATCH_MEMORY: "0"}
int64 = st.integers(min_value=0, max_value=2**63 - 1)


def of_key(group: str) -> list[Any]:
    return [parameter for parameter in vectors.group(group) if parameter.values[0]["key"] == ORIGIN_ANNOTATION]


def origin_text(cpu: object, memory: object, **others: object) -> str:
    return json.dumps({"resources": {BATCH_CPU: cpu, BATCH_MEMORY: memory, **others}})


@pytest.mark.parametrize("vector", of_key("annotation_parse"))
def test_reads_what_the_vectors_say(vector: dict[str, Any]) -> None:
    reading = read_origin(vector["text"], PRESENT)
    if vector["error"]:
        assert reading.state is OriginState.MALFORMED
    elif vector["expected"] is None:
        assert reading.state is OriginState.ABSENT
    else:
        expected = vector["expected"]
        assert reading.resources == BatchResources(cpu_milli=expected[BATCH_CPU], memory_bytes=expected[BATCH_MEMORY])
        assert reading.state is OriginState.KNOWN


@pytest.mark.parametrize("vector", of_key("annotation_write"))
def test_writes_what_the_vectors_say(vector: dict[str, Any]) -> None:
    values = vector["values"]
    resources = BatchResources(cpu_milli=values[BATCH_CPU], memory_bytes=values[BATCH_MEMORY])
    assert write_origin(vector["before"], resources) == vector["expected_text"]


@pytest.mark.parametrize("vector", vectors.group("yarn_copilot", "node_batch_resource"))
def test_the_annotation_counts_and_the_status_does_not(vector: dict[str, Any]) -> None:
    written = vector["origin_annotation"]
    text = origin_text(*written) if written else None if written is None else '{"resources":{}}'
    reading = read_origin(text, PRESENT)
    if written:
        assert reading.resources == BatchResources(cpu_milli=written[0], memory_bytes=written[1])
        assert written == vector["expected"]
    else:
        # The Go bridge reads an unknown origin from the status or as zero; here it stays unknown.
        assert (reading.state, reading.resources) == (OriginState.ABSENT, None)


@pytest.mark.parametrize(
    ("allocatable", "state"),
    [
        ({}, OriginState.DEGRADED),
        ({"cpu": "4"}, OriginState.DEGRADED),
        (PRESENT, OriginState.KNOWN),
        ({BATCH_CPU: "0"}, OriginState.KNOWN),
        ({BATCH_MEMORY: "0"}, OriginState.KNOWN),
    ],
    ids=str,
)
def test_zero_is_degraded_only_where_the_node_lost_both_keys(allocatable: dict[str, Any], state: OriginState) -> None:
    reading = read_origin(origin_text("0", "0"), allocatable)
    assert (reading.state, reading.resources) == (state, ZERO_BATCH)
    assert bool(reading.detail) is (state is OriginState.DEGRADED)


@pytest.mark.parametrize("text", [origin_text("1", "0"), origin_text("0", "1")])
def test_an_origin_that_is_not_zero_is_known_without_the_keys(text: str) -> None:
    assert read_origin(text, {}).state is OriginState.KNOWN


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("null", f"{BATCH_CPU} and {BATCH_MEMORY}"),
        ("{}", BATCH_CPU),
        ('{"resources":null}', BATCH_CPU),
        ('{"resources":{"kubernetes.io/mid-cpu":"1"}}', BATCH_CPU),
        ('{"resources":{"kubernetes.io/batch-cpu":"1"}}', BATCH_MEMORY),
        ('{"resources":{"kubernetes.io/batch-memory":"1"}}', BATCH_CPU),
    ],
)
def test_an_annotation_that_names_no_amount_is_absent(text: str, missing: str) -> None:
    reading = read_origin(text, {})
    assert (reading.state, reading.resources) == (OriginState.ABSENT, None)
    assert missing in reading.detail


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("", "not JSON"),
        ("bad-format", "not JSON"),
        ("[]", "array"),
        ('{"resources":[]}', "resources is of kind array"),
        ('{"resources":"x"}', "resources is of kind string"),
        ('{"resources":7}', "resources is of kind number"),
        ('{"Resources":{}}', "only in case"),
        ('{"resources":{},"resources":{}}', "occurs twice"),
        ('{"resources":{"kubernetes.io/batch-cpu":"1","kubernetes.io/batch-cpu":"2"}}', "occurs twice"),
        (origin_text("-1", "1Gi"), f"{BATCH_CPU}: '-1' is outside"),
        (origin_text("1", "-1Gi"), f"{BATCH_MEMORY}: '-1Gi' is outside"),
        (origin_text("-1m", "1Gi"), "outside"),
        (origin_text("9223372036854775808", "1"), "outside"),
        (origin_text("1", "8Ei"), "outside"),
        (origin_text(2**63, 1), "an integer beyond 64 bits"),
        (origin_text(10**60, 1), "outside"),
        (origin_text(10**300, 1), "longer than 128"),
        (origin_text("1e99", 1), "outside"),
        (origin_text("1e1000", 1), "exponent"),
        (origin_text("many", "1"), f"{BATCH_CPU}: quantity 'many' is malformed"),
        (origin_text(True, 1), "bool"),
        (origin_text({}, 1), "dict"),
        (origin_text("1", ["1"]), "list"),
        (origin_text("", "1"), "malformed"),
        (origin_text("\u0661", "1"), "malformed"),
        (origin_text(float("nan"), "1"), "NaN is not a number"),
        (origin_text("1", "1" * 200_000), "longer than 128"),
        (origin_text("1", "1" * 20_000_000), "characters, the limit"),
    ],
    ids=lambda value: repr(value[:60]),
)
def test_a_malformed_origin_says_what_is_wrong(text: str, detail: str) -> None:
    reading = read_origin(text, PRESENT)
    assert (reading.state, reading.resources) == (OriginState.MALFORMED, None)
    assert detail in reading.detail
    assert len(reading.detail) < 300


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [
        ("1999m", "1.5Ki", (1, 1536)),
        ("0.9", "1023.99", (0, 1023)),
        (1.9, 2e3, (1, 2000)),
        (None, None, (0, 0)),
        (" 50k ", "120Gi", (50000, 120 << 30)),
        ("5e4", "1E3", (50000, 1000)),
        (2**63 - 1, "9223372036854775807", (2**63 - 1, 2**63 - 1)),
        ("9223372036854775807900m", "1", (2**63 - 1, 1)),
    ],
)
def test_amounts_are_rounded_down(cpu: object, memory: object, expected: tuple[int, int]) -> None:
    reading = read_origin(origin_text(cpu, memory, other="anything"), PRESENT)
    assert reading.state is OriginState.KNOWN
    assert reading.resources == BatchResources(cpu_milli=expected[0], memory_bytes=expected[1])


@given(st.text(), st.booleans())
def test_no_text_raises(text: str, has_keys: bool) -> None:
    assert read_origin(text, PRESENT if has_keys else {}).state is not OriginState.KNOWN


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["resources", BATCH_CPU, BATCH_MEMORY, "x"]), inner, max_size=4)
        ),
        max_leaves=12,
    )
)
def test_no_json_raises_and_only_amounts_are_known(value: object) -> None:
    reading = read_origin(json.dumps(value), PRESENT)
    assert (reading.resources is not None) is (reading.state is OriginState.KNOWN)


@given(int64, int64)
def test_what_is_written_is_read_as_the_same(cpu_milli: int, memory_bytes: int) -> None:
    resources = BatchResources(cpu_milli=cpu_milli, memory_bytes=memory_bytes)
    assert read_origin(write_origin(None, resources), PRESENT).resources == resources


def test_writing_keeps_other_resources_and_replaces_an_unreadable_text() -> None:
    one = BatchResources(cpu_milli=1, memory_bytes=1)
    kept = write_origin('{"resources":{"kubernetes.io/mid-cpu":7,"kubernetes.io/batch-cpu":"9"}}', one)
    assert json.loads(kept)["resources"] == {BATCH_CPU: "1", BATCH_MEMORY: "1", "kubernetes.io/mid-cpu": 7}
    fresh = write_origin(None, one)
    for before in ("", "bad-format", '{"resources":3}', "[]", "null", "{}"):
        assert write_origin(before, one) == fresh


def test_nothing_beyond_64_bits_is_written() -> None:
    with pytest.raises(quantities.QuantityError):
        write_origin(None, BatchResources(cpu_milli=2**63, memory_bytes=0))
