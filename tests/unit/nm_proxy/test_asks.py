# SPDX-License-Identifier: Apache-2.0
"""Test that whatever is not exactly understood is refused with its reason."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_resources.resources import BatchResources
from nm_proxy.copilot.asks import (
    MAX_BODY_BYTES,
    AskError,
    parse_kill,
    parse_kill_by_resource,
    parse_kill_container,
)
from tests.unit.nm_proxy.world import container_id

GIB = 1 << 30
LARGEST = BatchResources(cpu_milli=64_000, memory_bytes=256 * GIB)


@pytest.mark.parametrize(
    ("resources", "cpu_milli", "memory_bytes"),
    [
        ({"cpu": "4"}, 4000, 0),
        ({"cpu": 4}, 4000, 0),
        ({"cpu": "1500m"}, 1500, 0),
        ({"cpu": 1.5}, 1500, 0),
        ({"cpu": "0.0001"}, 1, 0),
        ({"memory": "8Gi"}, 0, 8 * GIB),
        ({"memory": "0.5"}, 0, 1),
        ({"kubernetes.io/batch-cpu": "4000", "kubernetes.io/batch-memory": "1Gi"}, 4000, GIB),
        ({"cpu": "0", "memory": 0}, 0, 0),
        ({"cpu": 64, "memory": "256Gi"}, 64_000, 256 * GIB),
    ],
)
def test_understands_amounts(resources: dict[str, object], cpu_milli: int, memory_bytes: int) -> None:
    asked = parse_kill_by_resource(json.dumps({"resources": resources}).encode(), LARGEST)
    assert asked == BatchResources(cpu_milli=cpu_milli, memory_bytes=memory_bytes)


REFUSED = [
    pytest.param(b"", "not JSON", id="empty"),
    pytest.param(b"{", "not JSON", id="cut"),
    pytest.param(b"\xff\xfe", "not JSON", id="not text"),
    pytest.param(b"[" * 100_000, "larger", id="deep and large"),
    pytest.param(b"[" * 60_000, "not JSON", id="deep"),
    pytest.param(b"[]", "object", id="a list"),
    pytest.param(b"null", "object", id="null"),
    pytest.param(b"{}", "missing", id="nothing named"),
    pytest.param(b'{"resources": {}}', "missing or empty", id="empty resources"),
    pytest.param(b'{"resources": []}', "missing or empty", id="a list of resources"),
    pytest.param(b'{"resources": "cpu"}', "missing or empty", id="a text of resources"),
    pytest.param(b'{"resource": {"cpu": 1}}', "'resource' is unknown", id="a misspelt field"),
    pytest.param(b'{"resources": {"cpu": 1}, "force": true}', "'force' is unknown", id="a field too many"),
    pytest.param(b'{"resources": {"cpu": 1}, "resources": {"cpu": 2}}', "twice", id="a field twice"),
    pytest.param(b'{"resources": {"cpu": 1, "cpu": 2}}', "twice", id="a resource twice"),
    pytest.param(b'{"resources": {"nvidia.com/gpu": 1}}', "'nvidia.com/gpu' is unknown", id="an unknown resource"),
    pytest.param(b'{"resources": {"CPU": 1}}', "'CPU' is unknown", id="a resource in capitals"),
    pytest.param(b'{"resources": {"cpu": 1, "kubernetes.io/batch-cpu": 1}}', "same resource", id="two names of one"),
    pytest.param(b'{"resources": {"cpu": -1}}', "negative", id="negative"),
    pytest.param(b'{"resources": {"memory": "-1Gi"}}', "negative", id="negative text"),
    pytest.param(b'{"resources": {"cpu": "many"}}', "malformed", id="a word"),
    pytest.param(b'{"resources": {"cpu": null}}', "no quantity", id="null amount"),
    pytest.param(b'{"resources": {"cpu": true}}', "no quantity", id="true"),
    pytest.param(b'{"resources": {"cpu": {"value": 1}}}', "cpu", id="an object as amount"),
    pytest.param(b'{"resources": {"cpu": NaN}}', "not a number", id="not a number"),
    pytest.param(b'{"resources": {"cpu": Infinity}}', "not a number", id="infinity"),
    pytest.param(b'{"resources": {"cpu": 64.001}}', "more than this node has", id="a bit more than the node"),
    pytest.param(b'{"resources": {"memory": "1Ei"}}', "more than this node has", id="an exbibyte"),
    pytest.param(b'{"resources": {"cpu": "1e400"}}', "exponent", id="an enormous exponent"),
    pytest.param(b'{"resources": {"cpu": ' + b"9" * 5000 + b"}}", "not JSON", id="an enormous number"),
    pytest.param(b'{"resources": {"cpu": "' + b"9" * 5000 + b'"}}', "longer than", id="an enormous text"),
]


@pytest.mark.parametrize(("body", "reason"), REFUSED)
def test_refuses_with_the_reason(body: bytes, reason: str) -> None:
    with pytest.raises(AskError, match=reason):
        parse_kill_by_resource(body, LARGEST)


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), st.lists).map(
        lambda document: json.dumps(document).encode()
    )
)
def test_any_other_body_is_refused_and_never_anything_worse(body: bytes) -> None:
    with pytest.raises(AskError):
        parse_kill_by_resource(body, LARGEST)


def test_bounds_the_body() -> None:
    with pytest.raises(AskError, match="larger"):
        parse_kill_container(b" " * (MAX_BODY_BYTES + 1))


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"containerID": ""}',
        b'{"containerID": 5}',
        b'{"containerID": "../x"}',
        b'{"containerID": "container_1"}',
    ],
)
def test_refuses_what_is_no_container(body: bytes) -> None:
    with pytest.raises(AskError, match="containerID"):
        parse_kill_container(body)


def test_understands_a_container() -> None:
    assert parse_kill_container(json.dumps({"containerID": container_id(2)}).encode()) == container_id(2)


def test_understands_the_controller() -> None:
    asked, seconds = parse_kill(b'{"resources": {"cpuMilli": 3000}, "timeoutSeconds": 2.5}', LARGEST, 10.0)
    assert asked == BatchResources(cpu_milli=3000, memory_bytes=0)
    assert seconds == 2.5
    assert parse_kill(b'{"resources": {"memoryBytes": 1}}', LARGEST, 10.0)[1] == 10.0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"resources": {"cpu": 1}}', "unknown"),
        (b'{"resources": {"cpuMilli": 1.5}}', "whole number"),
        (b'{"resources": {"cpuMilli": "1"}}', "whole number"),
        (b'{"resources": {"cpuMilli": true}}', "whole number"),
        (b'{"resources": {"memoryBytes": -1}}', "negative"),
        (b'{"resources": {"cpuMilli": 64001}}', "more than this node has"),
        (b'{"resources": {"cpuMilli": 1}, "timeoutSeconds": 0}', "timeoutSeconds"),
        (b'{"resources": {"cpuMilli": 1}, "timeoutSeconds": 11}', "timeoutSeconds"),
        (b'{"resources": {"cpuMilli": 1}, "timeoutSeconds": "x"}', "timeoutSeconds"),
        (b'{"resources": {"cpuMilli": 1}, "timeoutSeconds": []}', "timeoutSeconds"),
        (b'{"resources": {"cpuMilli": 1}, "timeoutSeconds": true}', "timeoutSeconds"),
        (b'{"resources": 5}', "missing"),
    ],
)
def test_refuses_the_controller_with_the_reason(body: bytes, reason: str) -> None:
    with pytest.raises(AskError, match=reason):
        parse_kill(body, LARGEST, 10.0)
