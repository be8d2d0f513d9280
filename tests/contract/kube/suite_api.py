# SPDX-License-Identifier: Apache-2.0
"""Say what the product relies on in an API server; runs against the embedded and against a real one.

Import the functions into a test module whose conftest gives `kube_backend`.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

from tests.contract.kube.backend import JSON_PATCH, KubeBackend
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.credentials import StaticCredentials
from yarn_copilot.kube.errors import (
    ConflictError,
    InvalidObjectError,
    NotFoundError,
    PreconditionFailedError,
    UnauthorizedError,
)
from yarn_copilot.kube.kinds import NODES
from yarn_copilot.kube.model import Lease, LeaseSpec, ObjectMeta

KEY = "node.koordinator.sh/thirdPartyAllocations"
TEST_REFUSED = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "the server rejected our request due to an error in our request",
    "reason": "Invalid",
    "details": {},
    "code": 422,
}
ABSENT_MAP: dict[str, Any] = {"op": "test", "path": "/metadata/annotations", "value": None}
ABSENT_KEY: dict[str, Any] = {"op": "test", "path": "/metadata/annotations/k", "value": None}


async def test_a_patch_whose_test_fails_is_answered_422_without_naming_it(kube_backend: KubeBackend) -> None:
    name = await kube_backend.create_node("a", annotations={"k": "1"})
    answer = await kube_backend.json_patch(
        f"/api/v1/nodes/{name}",
        {"op": "test", "path": "/metadata/annotations/k", "value": "2"},
        {"op": "add", "path": "/metadata/annotations/k", "value": "3"},
    )
    assert (answer.code, answer.body) == (422, TEST_REFUSED)


@pytest.mark.parametrize(
    ("annotations", "test", "code"),
    [
        pytest.param({"x": "y"}, ABSENT_KEY, 200, id="null passes for an absent key"),
        pytest.param({"k": "1"}, ABSENT_KEY, 422, id="null fails for a present key"),
        pytest.param({"k": ""}, ABSENT_KEY, 422, id="null fails for an empty text"),
        pytest.param(None, ABSENT_KEY, 422, id="null fails without the map"),
        pytest.param(None, ABSENT_MAP, 200, id="null passes for the absent map"),
        pytest.param({"x": "y"}, ABSENT_MAP, 422, id="null fails for a present map"),
        pytest.param({"x": "y"}, {"op": "remove", "path": "/metadata/annotations/k"}, 422, id="nothing to remove"),
    ],
)
async def test_tests_for_absence(
    kube_backend: KubeBackend, annotations: dict[str, str] | None, test: dict[str, Any], code: int
) -> None:
    more = {"annotations": annotations} if annotations else {}
    name = await kube_backend.create_node("a", **more)
    answer = await kube_backend.json_patch(f"/api/v1/nodes/{name}", test)
    assert answer.code == code


async def test_an_empty_annotations_map_is_not_stored(kube_backend: KubeBackend) -> None:
    name = await kube_backend.create_node("a", annotations={"k": "1"})
    path = f"/api/v1/nodes/{name}"
    await kube_backend.json_patch(path, {"op": "remove", "path": "/metadata/annotations/k"})
    assert "annotations" not in (await kube_backend.call("GET", path)).body["metadata"]


async def test_an_invalid_annotation_key_is_answered_422_with_causes(kube_backend: KubeBackend) -> None:
    name = await kube_backend.create_node("a", annotations={"k": "1"})
    answer = await kube_backend.json_patch(
        f"/api/v1/nodes/{name}", {"op": "add", "path": "/metadata/annotations/a b", "value": "x"}
    )
    assert answer.code == 422
    assert answer.body["details"]["causes"][0]["field"] == "metadata.annotations"


async def test_a_patch_that_changes_nothing_makes_no_new_version(kube_backend: KubeBackend) -> None:
    name = await kube_backend.create_node("a", annotations={"k": "1"})
    path = f"/api/v1/nodes/{name}"
    before = (await kube_backend.call("GET", path)).body["metadata"]["resourceVersion"]
    answer = await kube_backend.json_patch(path, {"op": "add", "path": "/metadata/annotations/k", "value": "1"})
    assert answer.code == 200
    assert answer.body["metadata"]["resourceVersion"] == before


async def test_a_patch_with_an_old_version_in_it_is_a_conflict(kube_backend: KubeBackend) -> None:
    name = await kube_backend.create_node("a", annotations={"k": "1"})
    answer = await kube_backend.merge(
        f"/api/v1/nodes/{name}", {"metadata": {"resourceVersion": "1", "annotations": {"k": "2"}}}
    )
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert answer.body["details"] == {"name": name, "kind": "nodes"}


@pytest.mark.parametrize(
    ("content_type", "body", "code"),
    [
        pytest.param(JSON_PATCH, {"op": "add"}, 400, id="no array"),
        pytest.param("text/plain", [], 415, id="unknown patch type"),
    ],
)
async def test_what_is_no_patch_is_refused(kube_backend: KubeBackend, content_type: str, body: Any, code: int) -> None:
    name = await kube_backend.create_node("a")
    answer = await kube_backend.call("PATCH", f"/api/v1/nodes/{name}", body, content_type=content_type)
    assert answer.code == code


async def test_status_is_written_only_through_its_subresource(kube_backend: KubeBackend) -> None:
    name = await kube_backend.create_node("a")
    path = f"/api/v1/nodes/{name}"
    await kube_backend.merge(path, {"status": {"allocatable": {"kubernetes.io/batch-cpu": "7"}}})
    assert "allocatable" not in (await kube_backend.call("GET", path)).body["status"]
    patch = {"status": {"allocatable": {"kubernetes.io/batch-cpu": "100000", "kubernetes.io/batch-memory": "1Gi"}}}
    answer = await kube_backend.merge(f"{path}/status", patch)
    assert answer.body["status"]["allocatable"] == {
        "kubernetes.io/batch-cpu": "100k",
        "kubernetes.io/batch-memory": "1Gi",
    }


async def test_objects_that_exist_or_do_not_are_named(kube_backend: KubeBackend) -> None:
    name = await kube_backend.create_node("a")
    again = await kube_backend.call("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    missing = kube_backend.name("missing")
    absent = await kube_backend.call("GET", f"/api/v1/nodes/{missing}")
    assert (again.code, again.body["reason"], again.body["message"]) == (
        409,
        "AlreadyExists",
        f'nodes "{name}" already exists',
    )
    assert (absent.code, absent.body["message"]) == (404, f'nodes "{missing}" not found')


async def test_a_kind_that_is_not_served_is_a_plain_404(kube_backend: KubeBackend) -> None:
    answer = await kube_backend.call("GET", "/apis/nothing.example/v1/things")
    assert answer.code == 404
    assert answer.body == "404 page not found\n"


async def test_selectors_that_make_no_sense_are_refused(kube_backend: KubeBackend) -> None:
    answer = await kube_backend.call("GET", "/api/v1/pods?fieldSelector=spec.foo%3Dbar")
    assert (answer.code, answer.body["message"]) == (400, "field label not supported: spec.foo")


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("app=a", "a"),
        ("app==a", "a"),
        ("app!=a", "bc"),
        ("app in (a, b)", "ab"),
        ("app notin (a,b)", "c"),
        ("app", "ab"),
        ("!app", "c"),
        ("app=a,tier=x", "a"),
        ("app in (a,b),tier!=x", "b"),
        ("app=", ""),
    ],
)
async def test_label_selectors(kube_backend: KubeBackend, selector: str, selected: str) -> None:
    common = {"of": kube_backend.prefix}
    await kube_backend.create_node("a", labels={"app": "a", "tier": "x", **common})
    await kube_backend.create_node("b", labels={"app": "b", **common})
    await kube_backend.create_node("c", labels=common)
    query = quote(f"of={kube_backend.prefix},{selector}")
    answer = await kube_backend.call("GET", f"/api/v1/nodes?labelSelector={query}")
    assert [item["metadata"]["name"][-1] for item in answer.body["items"]] == list(selected)


@pytest.mark.parametrize(
    ("operations", "code", "annotations"),
    [
        pytest.param([("add", "/metadata/annotations/b", "2")], 200, {"a": "1", "b": "2"}, id="add"),
        pytest.param([("replace", "/metadata/annotations/a", "2")], 200, {"a": "2"}, id="replace"),
        pytest.param(
            [("replace", "/metadata/annotations/b", "2")], 200, {"a": "1", "b": "2"}, id="replace what is absent"
        ),
        pytest.param([("remove", "/metadata/annotations/a", None)], 200, {}, id="remove"),
        pytest.param([("remove", "/metadata/annotations/b", None)], 422, {"a": "1"}, id="remove what is absent"),
        pytest.param([("add", "/metadata/nothing/b", "2")], 422, {"a": "1"}, id="add below what is absent"),
        pytest.param([("add", "/metadata/annotations", {"d/e": "3"})], 200, {"d/e": "3"}, id="the whole map"),
        pytest.param(
            [("add", "/metadata/annotations/b", "2"), ("test", "/metadata/annotations/a", "9")],
            422,
            {"a": "1"},
            id="all or nothing",
        ),
        pytest.param(
            [("add", "/metadata/annotations/b", ""), ("remove", "/metadata/annotations/b", None)],
            200,
            {"a": "1"},
            id="add and remove",
        ),
    ],
)
async def test_json_patch_operations(
    kube_backend: KubeBackend, operations: list[tuple[str, str, Any]], code: int, annotations: dict[str, str]
) -> None:
    name = await kube_backend.create_node("a", annotations={"a": "1"})
    path = f"/api/v1/nodes/{name}"
    answer = await kube_backend.json_patch(
        path, *({"op": op, "path": pointer, "value": value} for op, pointer, value in operations)
    )
    assert answer.code == code
    assert (await kube_backend.call("GET", path)).body["metadata"].get("annotations", {}) == annotations


async def test_a_merge_patch_removes_with_null_and_keeps_the_rest(kube_backend: KubeBackend) -> None:
    name = await kube_backend.create_node("a", annotations={"a": "1", "b": "2"})
    path = f"/api/v1/nodes/{name}"
    answer = await kube_backend.merge(path, {"metadata": {"annotations": {"a": None, "c": "3"}}})
    assert answer.body["metadata"]["annotations"] == {"b": "2", "c": "3"}


async def test_all_pages_show_the_state_of_the_first(kube_backend: KubeBackend) -> None:
    names = {await kube_backend.create_node(f"n{number}", labels={"of": kube_backend.prefix}) for number in range(5)}
    path = f"/api/v1/nodes?labelSelector=of%3D{kube_backend.prefix}&limit=2"
    page = (await kube_backend.call("GET", path)).body
    await kube_backend.create_node("n00", labels={"of": kube_backend.prefix})
    seen, versions = [], set()
    while True:
        seen += [item["metadata"]["name"] for item in page["items"]]
        versions.add(page["metadata"]["resourceVersion"])
        if not page["metadata"].get("continue"):
            break
        page = (await kube_backend.call("GET", f"{path}&continue={page['metadata']['continue']}")).body
    assert seen == sorted(names)
    assert len(versions) == 1


async def test_pods_are_bound_once_and_selected_by_node(kube_backend: KubeBackend) -> None:
    node = await kube_backend.create_node("a")
    pods = "/api/v1/namespaces/default/pods"
    pod = kube_backend.name("p")
    spec = {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "x"}]}
    await kube_backend.call("POST", pods, {"metadata": {"name": pod}, "spec": spec})
    binding = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
    first = await kube_backend.call("POST", f"{pods}/{pod}/binding", binding)
    second = await kube_backend.call("POST", f"{pods}/{pod}/binding", binding)
    selected = await kube_backend.call("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}")
    await kube_backend.call("DELETE", f"{pods}/{pod}?gracePeriodSeconds=0")
    after = await kube_backend.call("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}")
    assert (first.code, second.code, second.body["reason"]) == (201, 409, "Conflict")
    assert [item["metadata"]["name"] for item in selected.body["items"]] == [pod]
    assert selected.body["items"][0]["status"]["phase"] == "Pending"
    assert after.body["items"] == []


async def test_the_client_writes_annotations_under_a_precondition(kube_backend: KubeBackend) -> None:
    name = await kube_backend.create_node("a")
    client = kube_backend.client
    first = await client.patch_node_annotations(name, expected={KEY: None}, changed={KEY: "1"})
    second = await client.patch_node_annotations(name, expected={KEY: "1"}, changed={KEY: "2", "other": "x"})
    assert first.metadata.annotations == {KEY: "1"}
    assert second.metadata.annotations == {KEY: "2", "other": "x"}
    assert await client.get_node(name) == second
    third = await client.patch_node_annotations(name, expected={KEY: "2"}, changed={KEY: None, "absent": None})
    assert third.metadata.annotations == {"other": "x"}


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({KEY: "2"}, {KEY: "1"}, id="other text"),
        pytest.param({KEY: "2"}, {KEY: None}, id="present"),
        pytest.param({"x": "y"}, {KEY: "1"}, id="absent"),
        pytest.param(None, {KEY: "1"}, id="no annotations"),
        pytest.param({"x": "y"}, {KEY: None, "x": None}, id="one of two"),
    ],
)
async def test_the_client_writes_nothing_when_the_precondition_fails(
    kube_backend: KubeBackend, annotations: dict[str, str] | None, expected: dict[str, str | None]
) -> None:
    more = {"annotations": annotations} if annotations else {}
    name = await kube_backend.create_node("a", **more)
    before = await kube_backend.client.get_node(name)
    with pytest.raises(PreconditionFailedError):
        await kube_backend.client.patch_node_annotations(name, expected=expected, changed={KEY: "3"})
    assert await kube_backend.client.get_node(name) == before


async def test_of_many_first_writers_exactly_one_wins(kube_backend: KubeBackend) -> None:
    name = await kube_backend.create_node("a")

    async def write(number: int) -> bool:
        try:
            await kube_backend.client.patch_node_annotations(
                name, expected={KEY: None}, changed={KEY: f"{number}", f"writer-{number}": "x"}
            )
        except (PreconditionFailedError, ConflictError):
            return False
        return True

    won = await asyncio.gather(*(write(number) for number in range(20)))
    annotations = (await kube_backend.client.get_node(name)).metadata.annotations
    assert won.count(True) == 1
    assert annotations == {KEY: f"{won.index(True)}", f"writer-{won.index(True)}": "x"}


async def test_the_client_tells_what_is_wrong(kube_backend: KubeBackend) -> None:
    name = await kube_backend.create_node("a", annotations={"k": "1"})
    with pytest.raises(NotFoundError, match="not found"):
        await kube_backend.client.get_node(kube_backend.name("missing"))
    with pytest.raises(NotFoundError, match="not found"):
        await kube_backend.client.patch_node_annotations(kube_backend.name("missing"), expected={}, changed={"k": "1"})
    with pytest.raises(InvalidObjectError, match="is invalid"):
        await kube_backend.client.patch_node_annotations(name, expected={}, changed={"a b": "1"})


async def test_the_client_pages_through_a_collection(kube_backend: KubeBackend) -> None:
    wanted = [
        await kube_backend.create_node(f"n{number:03}", labels={"of": kube_backend.prefix}) for number in range(120)
    ]
    pages = []
    async for page in kube_backend.client.list_pages(NODES, label_selector=f"of={kube_backend.prefix}"):
        pages.append([node.metadata.name for node in page.items])
    assert [len(page) for page in pages] == [50, 50, 20]
    assert [name for page in pages for name in page] == wanted


async def test_leases_are_created_once_and_replaced_only_by_who_knows_the_version(kube_backend: KubeBackend) -> None:
    metadata = ObjectMeta(kube_backend.name("lease"), "default", labels={"keep": "me"})
    spec = LeaseSpec(
        holderIdentity="a",
        leaseDurationSeconds=10,
        acquireTime="2026-01-02T03:04:05.000006Z",
        renewTime="2026-01-02T03:04:05.000007Z",
        leaseTransitions=1,
    )
    client = kube_backend.client
    created = await client.create_lease(Lease(metadata, spec))
    assert created.spec == spec
    with pytest.raises(ConflictError):
        await client.create_lease(Lease(metadata, spec))
    released = LeaseSpec(holderIdentity="", leaseDurationSeconds=1)
    replaced = await client.replace_lease(Lease(created.metadata, released))
    assert replaced.spec.holderIdentity == ""
    assert replaced.metadata.labels == {"keep": "me"}
    with pytest.raises(ConflictError):
        await client.replace_lease(Lease(created.metadata, spec))
    assert await client.get_lease(metadata.name, "default") == replaced


async def test_a_lease_needs_its_namespace(kube_backend: KubeBackend) -> None:
    with pytest.raises(NotFoundError, match='namespaces "nowhere" not found'):
        await kube_backend.client.create_lease(Lease(ObjectMeta(kube_backend.name("l"), "nowhere"), LeaseSpec()))


async def test_a_wrong_token_is_refused_without_being_told(kube_backend: KubeBackend) -> None:
    async with KubeClient(StaticCredentials(kube_backend.url, "not-a-token", kube_backend.tls)) as client:
        with pytest.raises(UnauthorizedError) as refusal:
            await client.get_node("any")
    assert "not-a-token" not in str(refusal.value)


__all__ = [name for name in dir() if name.startswith("test_")]
