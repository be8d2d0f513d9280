# SPDX-License-Identifier: Apache-2.0
"""Test decoding of pages and events, with objects in them that cannot be decoded."""

from __future__ import annotations

import json

import msgspec
import pytest

from yarn_copilot.kube.kinds import DECODE_ERRORS, LEASES, NODE_METRICS, NODES, PODS, Malformed, version_of
from yarn_copilot.kube.model import Node, Pod

_GOOD = {"metadata": {"name": "good", "resourceVersion": "5"}, "unknown": [1, {"x": None}]}
_BAD = {"metadata": {"name": "bad", "resourceVersion": "6", "annotations": {"a": 1}}}


def test_one_bad_object_of_a_page_costs_only_itself() -> None:
    body = json.dumps({"metadata": {"resourceVersion": "9", "continue": "next"}, "items": [_BAD, _GOOD, 7]}).encode()
    metadata, items = NODES.decode_page(body)
    bad, good, number = items
    assert (metadata.resourceVersion, metadata.continue_token) == ("9", "next")
    assert isinstance(bad, Malformed)
    assert (bad.key, bad.version) == ("bad", "6")
    assert "annotations" in bad.reason
    assert isinstance(good, Node)
    assert isinstance(number, Malformed)
    assert number.key == ""


def test_a_page_without_items_is_empty() -> None:
    metadata, items = PODS.decode_page(b'{"metadata":{"resourceVersion":"3"},"items":null}')
    assert metadata.resourceVersion == "3"
    assert list(items) == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"items":[]}', b'{"metadata":{},"items":{}}', b"\xff"])
def test_what_is_no_page_is_refused(body: bytes) -> None:
    with pytest.raises(DECODE_ERRORS):
        NODES.decode_page(body)


def test_an_event_gives_its_object() -> None:
    type_, item = NODES.decode_event(json.dumps({"type": "MODIFIED", "object": _GOOD}).encode())
    assert type_ == "MODIFIED"
    assert isinstance(item, Node)


def test_a_bad_object_in_an_event_is_named() -> None:
    pod = {"metadata": {"name": "p", "namespace": "ns", "resourceVersion": "8"}, "spec": {"containers": 5}}
    type_, item = PODS.decode_event(json.dumps({"type": "ADDED", "object": pod}).encode())
    assert type_ == "ADDED"
    assert isinstance(item, Malformed)
    assert (item.key, item.version) == ("ns/p", "8")


@pytest.mark.parametrize("type_", ["ERROR", "BOOKMARK"])
def test_control_events_give_raw_bytes(type_: str) -> None:
    line = json.dumps({"type": type_, "object": {"metadata": {"resourceVersion": "77"}, "code": 410}}).encode()
    found, item = NODES.decode_event(line)
    assert found == type_
    assert isinstance(item, msgspec.Raw)
    assert version_of(item) == "77"


@pytest.mark.parametrize("line", [b"x", b"{}", b'{"type":"ADDED"}', b'{"type":1,"object":{}}', b"\xff\xff"])
def test_what_is_no_event_is_refused(line: bytes) -> None:
    with pytest.raises(DECODE_ERRORS):
        NODES.decode_event(line)


def test_deep_nesting_is_a_decode_error_and_no_crash() -> None:
    with pytest.raises(DECODE_ERRORS):
        NODES.decode(b'{"metadata":{"name":"n"},"status":{"allocatable":{"a":' + b"[" * 100_000)


def test_paths_escape_names() -> None:
    assert NODES.object_path("a/b?c") == "/api/v1/nodes/a%2Fb%3Fc"
    assert LEASES.object_path("l", "ns") == "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l"
    assert NODE_METRICS.object_path("n") == "/apis/slo.koordinator.sh/v1alpha1/nodemetrics/n"


def test_keys_hold_the_namespace_of_namespaced_kinds() -> None:
    pod = PODS.decode(b'{"metadata":{"name":"p","namespace":"ns"}}')
    assert isinstance(pod, Pod)
    assert PODS.key_of(pod) == "ns/p"
    assert NODES.key_of(NODES.decode(b'{"metadata":{"name":"n"}}')) == "n"
