# SPDX-License-Identifier: Apache-2.0
"""Test which versions may be written to, and that the guard holds updates back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from yarn_copilot.hadoop import errors, versions
from yarn_copilot.hadoop.guarding import REREAD_SECONDS, UnsafeVersionError, VersionGuard
from yarn_copilot.hadoop.model import ClusterMetrics, NodeId, NodeReport, NodeResourceUpdate, QueueInfo, Resource

UPDATE = NodeResourceUpdate(NodeId("nm", 1), Resource(1, 1))


@pytest.mark.parametrize(
    ("text", "may_write", "missing"),
    [
        pytest.param("3.5.0", True, 0, id="current"),
        pytest.param("3.3.1", True, 0, id="first safe one"),
        pytest.param("3.10.0-SNAPSHOT", True, 0, id="two digits"),
        pytest.param("3.3.0", False, 0, id="race, but all guarantees"),
        pytest.param("3.2.4", False, 3, id="no timeouts"),
        pytest.param(" 3.1.1.7.1.8.0-801", False, 3, id="distribution"),
        pytest.param("2.10.2", False, 3, id="hadoop 2"),
    ],
)
def test_version_decides(text: str, may_write: bool, missing: int) -> None:
    version = versions.parse_version(text)
    assert (not versions.why_not_to_write(version)) is may_write
    assert len(versions.missing_guarantees(version)) == missing


@pytest.mark.parametrize("text", ["", "3", "3.3", "v3.3.6", "3.3.x", "3.3.99999", "unknown"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no Hadoop version"):
        versions.parse_version(text)


class Inner:
    """Count what reaches the ResourceManager."""

    def __init__(self) -> None:
        self.sent: list[Sequence[NodeResourceUpdate]] = []
        self.is_closed = False

    async def get_cluster_nodes(self) -> Sequence[NodeReport]:
        return []

    async def get_cluster_metrics(self) -> ClusterMetrics:
        return ClusterMetrics(0, 0, 0, 0, 0, 0, 0, 0)

    async def get_queue_info(self, queue: str) -> QueueInfo:
        raise errors.RemoteCallError("", queue)

    async def update_node_resource(self, updates: Sequence[NodeResourceUpdate]) -> None:
        self.sent.append(updates)

    async def aclose(self) -> None:
        self.is_closed = True


class Guarded:
    """Be a guard with a ResourceManager that tells what a test wants."""

    def __init__(self, answer: str | errors.HadoopRPCError | None, *, is_forced: bool = False) -> None:
        self.inner = Inner()
        self.answer = answer
        self.reads = 0
        self.now = 100.0
        self.guard = VersionGuard(
            self.inner, read_version=None if answer is None else self.read, is_forced=is_forced, clock=self
        )

    def monotonic(self) -> float:
        return self.now

    async def read(self) -> str:
        self.reads += 1
        if isinstance(self.answer, errors.HadoopRPCError):
            raise self.answer
        assert self.answer is not None
        return self.answer


async def test_an_old_resource_manager_is_read_but_not_written() -> None:
    guarded = Guarded("3.2.1")
    await guarded.guard.get_cluster_nodes()
    with pytest.raises(UnsafeVersionError, match=r"3\.2\.1 is older than 3\.3\.1.*allow_unsafe_version") as caught:
        await guarded.guard.update_node_resource([UPDATE])
    assert guarded.inner.sent == []
    assert not caught.value.may_have_been_applied
    assert await guarded.guard.get_cluster_nodes() == []
    assert (await guarded.guard.get_cluster_metrics()).active == 0
    with pytest.raises(errors.RemoteCallError):
        await guarded.guard.get_queue_info("root")


async def test_force_sends_all_the_same_and_says_what_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    guarded = Guarded("3.2.1", is_forced=True)
    await guarded.guard.get_cluster_nodes()
    await guarded.guard.update_node_resource([UPDATE])
    assert len(guarded.inner.sent) == 1
    assert "over-commit timeouts are ignored" in caplog.text
    assert "sent all the same" in caplog.text


@pytest.mark.parametrize(
    "answer", [None, errors.ConnectError("closed"), "custom build"], ids=["no address", "closed", "odd version"]
)
async def test_an_unknown_version_is_not_an_old_one_and_is_told_once(
    answer: str | errors.HadoopRPCError | None, caplog: pytest.LogCaptureFixture
) -> None:
    guarded = Guarded(answer)
    for _ in range(3):
        await guarded.guard.get_cluster_nodes()
        await guarded.guard.update_node_resource([UPDATE])
        guarded.now += REREAD_SECONDS
    assert len(guarded.inner.sent) == 3
    assert caplog.text.count("version is not known") == 1


async def test_the_version_is_read_again_after_a_while_and_stays_known_when_that_fails() -> None:
    guarded = Guarded("3.2.1")
    for _ in range(2):
        await guarded.guard.get_cluster_nodes()
        with pytest.raises(UnsafeVersionError):
            await guarded.guard.update_node_resource([UPDATE])
    assert guarded.reads == 1
    guarded.now += REREAD_SECONDS
    guarded.answer = errors.ConnectError("gone")
    await guarded.guard.get_cluster_nodes()
    with pytest.raises(UnsafeVersionError):
        await guarded.guard.update_node_resource([UPDATE])
    guarded.now += REREAD_SECONDS
    guarded.answer = "3.5.0"
    await guarded.guard.get_cluster_nodes()
    await guarded.guard.update_node_resource([UPDATE])
    assert guarded.reads == 3


async def test_an_update_never_waits_for_the_version() -> None:
    guarded = Guarded("3.2.1")
    await guarded.guard.update_node_resource([UPDATE])
    assert (guarded.reads, len(guarded.inner.sent)) == (0, 1)


async def test_closing_the_guard_closes_all() -> None:
    inner, closed = Inner(), []

    async def close() -> None:
        closed.append(True)

    guard = VersionGuard(inner, read_version=None, is_forced=False, clock=Guarded(None), close=close)
    await guard.aclose()
    assert inner.is_closed
    assert closed == [True]
