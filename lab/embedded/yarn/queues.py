# SPDX-License-Identifier: Apache-2.0
"""Keep the queue tree and count what each queue holds and waits for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lab.embedded.yarn.containers import Ask, EmbeddedContainer
from yarn_copilot.hadoop.model import Resource
from yarn_copilot.hadoop.proto import yarn_pb2


@dataclass(frozen=True, slots=True)
class QueueDefinition:
    """Name a queue, its share of the parent (0..1) and the queues below it."""

    name: str
    capacity: float = 1.0
    children: tuple[QueueDefinition, ...] = ()


DEFAULT_QUEUES = QueueDefinition(
    "root",
    1.0,
    (
        QueueDefinition("batch", 0.6, (QueueDefinition("etl", 0.7), QueueDefinition("adhoc", 0.3))),
        QueueDefinition("interactive", 0.4),
    ),
)
"""The queues of the real ResourceManager in the lab (`lab/hadoop/conf.py`)."""


class QueueTree:
    """Answer questions about queues by path (`root.batch.etl`) or, for unique names, by the name alone."""

    def __init__(self, root: QueueDefinition) -> None:
        """Index the tree by path."""
        self._by_path = dict(_walk(root, ""))

    def path_of(self, queue: str) -> str | None:
        """Find the full path; None for an unknown or ambiguous name."""
        if queue in self._by_path:
            return queue
        matches = [path for path in self._by_path if path.rpartition(".")[2] == queue]
        return matches[0] if len(matches) == 1 else None

    def leaf_path(self, queue: str) -> str:
        """Find the full path of a queue that takes applications.

        Raises:
            ValueError: there is no such queue, or it has queues below it.
        """
        path = self.path_of(queue)
        if path is None or self._by_path[path].children:
            raise ValueError(f"{queue!r} is no leaf queue")
        return path

    def describe(
        self,
        path: str,
        *,
        containers: Iterable[EmbeddedContainer],
        asks: Iterable[Ask],
        cluster: Resource,
        depth: int,
    ) -> yarn_pb2.QueueInfo:
        """Write QueueInfo.

        Args:
            path: full path of the queue.
            containers: running containers of the cluster.
            asks: open asks of the cluster.
            cluster: sum of the nodes' totals.
            depth: levels of queues below to include.
        """
        containers, asks = list(containers), list(asks)
        definition = self._by_path[path]
        info = yarn_pb2.QueueInfo(
            queue_name=definition.name,
            queue_path=path,
            capacity=definition.capacity,
            maximum_capacity=1.0,
            state=yarn_pb2.Q_RUNNING,
        )
        mine = [container for container in containers if _is_within(container.queue, path)]
        open_asks = [ask for ask in asks if _is_within(ask.queue, path)]
        _fill_statistics(info.queue_statistics, mine, open_asks, cluster)
        info.current_capacity = _share(mine, cluster) / self._absolute_capacity(path)
        if depth > 0:
            for child in definition.children:
                info.child_queues.append(
                    self.describe(
                        f"{path}.{child.name}", containers=mine, asks=open_asks, cluster=cluster, depth=depth - 1
                    )
                )
        return info

    def _absolute_capacity(self, path: str) -> float:
        capacity = 1.0
        while path:
            capacity *= self._by_path[path].capacity
            path = path.rpartition(".")[0]
        return capacity


def _walk(queue: QueueDefinition, parent: str) -> Iterator[tuple[str, QueueDefinition]]:
    path = f"{parent}.{queue.name}" if parent else queue.name
    yield path, queue
    for child in queue.children:
        yield from _walk(child, path)


def _is_within(path: str, ancestor: str) -> bool:
    return path == ancestor or path.startswith(f"{ancestor}.")


def _fill_statistics(
    statistics: yarn_pb2.QueueStatistics, containers: list[EmbeddedContainer], asks: list[Ask], cluster: Resource
) -> None:
    statistics.allocated_memory_mib = sum(container.resource.memory_mib for container in containers)
    statistics.allocated_vcores = sum(container.resource.vcores for container in containers)
    statistics.allocated_containers = len(containers)
    statistics.pending_memory_mib = sum(ask.resource.memory_mib * ask.count for ask in asks)
    statistics.pending_vcores = sum(ask.resource.vcores * ask.count for ask in asks)
    statistics.pending_containers = sum(ask.count for ask in asks)
    statistics.available_memory_mib = max(0, cluster.memory_mib - statistics.allocated_memory_mib)
    statistics.available_vcores = max(0, cluster.vcores - statistics.allocated_vcores)
    statistics.applications_running = len({container.application for container in containers})
    statistics.applications_pending = 0


def _share(containers: list[EmbeddedContainer], cluster: Resource) -> float:
    """Give the dominant share of the cluster."""
    if not containers or not cluster.memory_mib or not cluster.vcores:
        return 0.0
    memory_mib = sum(container.resource.memory_mib for container in containers)
    vcores = sum(container.resource.vcores for container in containers)
    return max(memory_mib / cluster.memory_mib, vcores / cluster.vcores)
