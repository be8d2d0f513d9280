# SPDX-License-Identifier: Apache-2.0
"""Test waiting for nodes to be given back, on nodes that come and go."""

from __future__ import annotations

from typing import Any, cast

import pytest

from batch_resources.keys import CLAIM_COUNTER_ANNOTATION, DRAIN_ANNOTATION
from yarn_copilot.cli.errors import CommandError
from yarn_copilot.cli.progress import Progress
from yarn_copilot.cli.releasing import ControllerState, Lease, Release
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.errors import KubeAPIError, NotFoundError
from yarn_copilot.kube.model import Node, ObjectMeta

_LEASE = Lease(name="yarn-copilot", namespace="default")


class Cluster:
    """Hold Nodes with our counter, and no Lease that could be read."""

    def __init__(self, *names: str) -> None:
        self.annotations: dict[str, dict[str, str]] = {name: {CLAIM_COUNTER_ANNOTATION: "7"} for name in names}
        self.error: KubeAPIError | None = None

    async def get_node(self, name: str) -> Node:
        if self.error is not None:
            raise self.error
        if name not in self.annotations:
            raise NotFoundError(f"nodes {name!r} not found")
        return Node(metadata=ObjectMeta(name=name, annotations=dict(self.annotations[name])))

    async def get_lease(self, *_: str) -> Any:
        raise NotFoundError("no such lease")

    async def patch_node_annotations(self, name: str, *, expected: Any, changed: dict[str, str | None]) -> Node:
        del expected
        kept = {**self.annotations[name], **changed}
        self.annotations[name] = {key: text for key, text in kept.items() if text is not None}
        return await self.get_node(name)


def _release(cluster: Cluster, *steps: Any) -> Release:
    left = list(steps)

    async def sleep(_: float) -> None:
        left.pop(0)()

    client = cast(KubeClient, cluster)
    return Release(client, _LEASE, progress=Progress(), describe=lambda _: "", sleep=sleep)


async def test_a_node_that_is_deleted_meanwhile_does_not_end_the_wait_for_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = Cluster("worker-1", "worker-2")
    release = _release(
        cluster,
        lambda: cluster.annotations.pop("worker-1"),
        lambda: cluster.annotations["worker-2"].pop(CLAIM_COUNTER_ANNOTATION),
    )
    await release.order(["worker-1", "worker-2"], deadline=None, reason="")
    outcome = await release.wait(["worker-1", "worker-2"], deadline=None)

    assert (outcome.deleted, outcome.ordered, outcome.left) == (["worker-1"], ["worker-2"], [])
    assert outcome.controller is ControllerState.UNKNOWN
    assert "worker-1: the node was deleted" in capsys.readouterr().out
    assert DRAIN_ANNOTATION in cluster.annotations["worker-2"]
    await release.clear(outcome)
    assert cluster.annotations == {"worker-2": {}}
    assert outcome.clean == ["worker-2"]


async def test_an_api_server_that_refuses_ends_the_wait_and_keeps_the_orders() -> None:
    cluster = Cluster("worker-1")
    release = _release(cluster)
    await release.order(["worker-1"], deadline=None, reason="")
    cluster.error = KubeAPIError("the server is busy")

    with pytest.raises(CommandError, match="the orders stay, run the same command again"):
        await release.wait(["worker-1"], deadline=None)
    assert DRAIN_ANNOTATION in cluster.annotations["worker-1"]
