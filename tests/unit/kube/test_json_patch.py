# SPDX-License-Identifier: Apache-2.0
"""Test the JSON patches for annotations: their bytes, and what they do by the rules of the API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.embedded.kubernetes.patching import json_patch as apply_patch
from lab.embedded.kubernetes.statuses import Refusal
from yarn_copilot.kube.json_patch import annotations_patch, escape


def _applied(annotations: dict[str, str] | None, patch: bytes) -> Any:
    metadata: dict[str, Any] = {"name": "n"}
    if annotations is not None:
        metadata["annotations"] = annotations
    return apply_patch({"metadata": metadata}, json.loads(patch))["metadata"].get("annotations")


def test_tests_come_before_changes() -> None:
    patch = json.loads(annotations_patch(expected={"a": "1", "b": None}, changed={"a": "2"}))
    assert patch == [
        {"op": "test", "path": "/metadata/annotations/a", "value": "1"},
        {"op": "test", "path": "/metadata/annotations/b", "value": None},
        {"op": "add", "path": "/metadata/annotations/a", "value": "2"},
    ]


@pytest.mark.parametrize(
    ("key", "token"),
    [
        pytest.param("node.koordinator.sh/thirdPartyAllocations", "node.koordinator.sh~1thirdPartyAllocations", id="/"),
        pytest.param("a~b/c", "a~0b~1c", id="tilde before slash"),
        pytest.param("plain", "plain", id="nothing to do"),
    ],
)
def test_keys_are_escaped_as_json_pointer_tokens(key: str, token: str) -> None:
    assert escape(key) == token


@pytest.mark.parametrize(
    ("before", "expected", "changed", "after"),
    [
        pytest.param({"k": "1"}, {"k": "1"}, {"k": "2"}, {"k": "2"}, id="replace"),
        pytest.param({"x": "y"}, {"k": None}, {"k": "1"}, {"x": "y", "k": "1"}, id="first write"),
        pytest.param({"k": "1"}, {"k": "1"}, {"k": None}, {}, id="remove expected"),
        pytest.param({"k": "1"}, {}, {"k": None}, {}, id="remove what is there, unseen"),
        pytest.param({"x": "y"}, {}, {"k": None}, {"x": "y"}, id="remove what is absent, unseen"),
        pytest.param({"x": "y"}, {"k": None}, {"k": None}, {"x": "y"}, id="remove what is known absent"),
        pytest.param({"a/b": "1"}, {"a/b": "1"}, {"c~d": "2"}, {"a/b": "1", "c~d": "2"}, id="escaped"),
    ],
)
def test_a_patch_that_holds_changes_only_what_is_named(
    before: dict[str, str], expected: dict[str, str | None], changed: dict[str, str | None], after: dict[str, str]
) -> None:
    assert _applied(before, annotations_patch(expected=expected, changed=changed)) == after


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param({"k": "2"}, {"k": "1"}, id="other text"),
        pytest.param({"x": "y"}, {"k": "1"}, id="absent"),
        pytest.param({"k": "1"}, {"k": None}, id="present"),
        pytest.param(None, {"k": None}, id="no annotations at all"),
    ],
)
def test_a_patch_whose_test_fails_is_refused(before: dict[str, str] | None, expected: dict[str, str | None]) -> None:
    with pytest.raises(Refusal) as refusal:
        _applied(before, annotations_patch(expected=expected, changed={"k": "3"}))
    assert refusal.value.code == 422


def test_the_map_is_created_only_where_there_is_none() -> None:
    patch = annotations_patch(expected={"k": None}, changed={"k": "1", "gone": None}, create_map=True)
    assert _applied(None, patch) == {"k": "1"}
    with pytest.raises(Refusal):
        _applied({"x": "y"}, patch)
