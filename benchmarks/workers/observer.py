# SPDX-License-Identifier: Apache-2.0
"""Look at both servers from outside of the product: the ResourceManager's node list, bare lists and bare watches."""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import aiohttp

from benchmarks.workers.api import RawApi, open_api
from benchmarks.workers.serving import JsonObject, say, serve
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.configuration import read_clusters
from yarn_copilot.hadoop.model import NodeId, NodeResourceUpdate, Resource

_CONTINUE: Final = re.compile(rb'"continue":"([^"]+)"')
_VERSION: Final = re.compile(rb'"resourceVersion":"(\d+)"')
_EDGE_BYTES: Final = 2048
_CALL_TIMEOUT_SECONDS: Final = 30.0


class Observer:
    """Hold the commands."""

    def __init__(self, api: RawApi, resource_manager: ResourceManagerClient) -> None:
        """Take both servers' open clients."""
        self._api = api
        self._resource_manager = resource_manager

    async def expect(
        self, *, targets: Mapping[str, tuple[int, int]], timeout_seconds: float, interval_seconds: float
    ) -> JsonObject:
        """Read the node list until every node has its target (MiB, vcores).

        Returns:
            `seen_at`: monotonic time of the end of the first reading that showed it, by node id; `missing`: ids of
            nodes that never did; `reads`.
        """
        waiting = {NodeId.parse(text): Resource(*target) for text, target in targets.items()}
        seen_at: dict[str, float] = {}
        reads = 0
        deadline = time.monotonic() + timeout_seconds
        say({"ready": True})
        while waiting and time.monotonic() < deadline:
            reports = await self._resource_manager.get_cluster_nodes()
            now = time.monotonic()
            reads += 1
            for report in reports:
                if waiting.get(report.node_id) == report.capability:
                    seen_at[str(report.node_id)] = now
                    del waiting[report.node_id]
            if waiting:
                await asyncio.sleep(interval_seconds)
        return {"seen_at": seen_at, "missing": [str(node_id) for node_id in waiting], "reads": reads}

    async def update(self, *, targets: Mapping[str, tuple[int, int]]) -> JsonObject:
        """Send one bare updateNodeResource for all nodes; how long the call took."""
        updates = [
            NodeResourceUpdate(node_id=NodeId.parse(text), resource=Resource(*target))
            for text, target in targets.items()
        ]
        began = time.monotonic()
        await self._resource_manager.update_node_resource(updates)
        return {"began_at": began, "seconds": time.monotonic() - began}

    async def read_nodes(self, *, times: int) -> JsonObject:
        """Read the node list some times; how long the fastest took, decoding included."""
        took = []
        for _ in range(times):
            began = time.monotonic()
            await self._resource_manager.get_cluster_nodes()
            took.append(time.monotonic() - began)
        return {"seconds": min(took)}

    async def list(self, *, path: str, page_size: int) -> JsonObject:
        """Read a collection page by page without looking at it."""
        began, size, pages, token = time.monotonic(), 0, 0, ""
        while True:
            body = await self._api.get(f"{path}?limit={page_size}" + (f"&continue={token}" if token else ""))
            size, pages = size + len(body), pages + 1
            # The metadata is at the beginning; of a custom resource, whose keys are sorted, at the end.
            found = _CONTINUE.search(body, 0, _EDGE_BYTES) or _CONTINUE.search(body, max(len(body) - _EDGE_BYTES, 0))
            if found is None:
                return {"seconds": time.monotonic() - began, "bytes": size, "pages": pages}
            token = found[1].decode()

    async def watch(self, *, path: str, events: int, timeout_seconds: float) -> JsonObject:
        """Watch a collection from now on and count so many events without decoding them."""
        head = await self._api.get(f"{path}?limit=1")
        version = _VERSION.search(head)
        assert version is not None  # noqa: S101  # every list has one
        url = f"{self._api.server}{path}?watch=1&resourceVersion={version[1].decode()}&timeoutSeconds=600"
        timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        count, last_at = 0, 0.0
        async with self._api.session.get(url, ssl=self._api.tls, timeout=timeout) as response:
            say({"ready": True})
            while count < events and (chunk := await response.content.readany()):
                count += chunk.count(b"\n")
                last_at = time.monotonic()
        return {"events": count, "last_at": last_at}


async def _main(arguments: argparse.Namespace) -> None:
    cluster: Any = next(iter(read_clusters(arguments.hadoop_conf_dir).values()))
    async with (
        open_api(arguments.kubeconfig, parallel=2) as api,
        ResourceManagerClient(
            cluster, user=arguments.user, call_timeout_seconds=_CALL_TIMEOUT_SECONDS
        ) as resource_manager,
    ):
        observer = Observer(api, resource_manager)
        await serve(
            {
                "expect": observer.expect,
                "update": observer.update,
                "read_nodes": observer.read_nodes,
                "list": observer.list,
                "watch": observer.watch,
            }
        )


if __name__ == "__main__":
    _parser = argparse.ArgumentParser()
    _parser.add_argument("--kubeconfig", type=Path, required=True)
    _parser.add_argument("--hadoop-conf-dir", type=Path, required=True)
    _parser.add_argument("--user", required=True)
    asyncio.run(_main(_parser.parse_args()))
