# SPDX-License-Identifier: Apache-2.0
"""Make the objects of a benchmark and change them, as fast as the API server takes it or spread over a time."""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.scale import objects
from benchmarks.workers.api import JSON_PATCH, MERGE, Call, RawApi, open_api
from benchmarks.workers.serving import JsonObject, serve
from lab.kubernetes.objects import NODE_METRICS

_COMPACT = (",", ":")


class Driver:
    """Hold the commands; each returns when all of its requests were answered."""

    def __init__(self, api: RawApi, parallel: int) -> None:
        """Take an open API with so many connections."""
        self._api = api
        self._parallel = parallel

    async def create(self, *, nodes: int, pods: int) -> JsonObject:
        """Create nodes, pods (those of NodeManagers among them) and NodeMetrics."""
        began = time.monotonic()
        steps = objects.creation_steps(nodes=nodes, pods=pods)
        requests = 0
        for step in steps:
            calls = [_post_or_patch(each) for each in step]
            requests += len(calls)
            await self._api.send_all(calls, parallel=self._parallel)
        return {"seconds": time.monotonic() - began, "requests": requests}

    async def annotate(self, *, key: str, texts: Mapping[str, str]) -> JsonObject:
        """Set an annotation of many nodes; `answered_at` has when the API server had taken each, by node."""
        calls = [
            Call("PATCH", f"/api/v1/nodes/{node}", _json({"metadata": {"annotations": {key: text}}}), MERGE)
            for node, text in texts.items()
        ]
        return await self._timed(list(texts), calls)

    async def claim(self, *, key: str, text: str, nodes: Sequence[str]) -> JsonObject:
        """Write an annotation that must be absent, by JSON patch: what writing all claims costs the API server."""
        path = f"/metadata/annotations/{key.replace('~', '~0').replace('/', '~1')}"
        body = _json([{"op": "test", "path": path, "value": None}, {"op": "add", "path": path, "value": text}])
        return await self._timed(nodes, [Call("PATCH", f"/api/v1/nodes/{node}", body, JSON_PATCH) for node in nodes])

    async def refresh(self, *, nodes: Sequence[str]) -> JsonObject:
        """Update every NodeMetric at once: making all objects may take longer than a report is believed."""
        return await self._timed(nodes, [_report(node) for node in nodes])

    async def report(self, *, nodes: Sequence[str], seconds: float) -> JsonObject:
        """Update every NodeMetric once, spread evenly over a time."""
        began = time.monotonic()
        for number, node in enumerate(nodes):
            due = began + seconds * number / len(nodes)
            if (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            await self._api.send(_report(node))
        return {"seconds": time.monotonic() - began}

    async def _timed(self, nodes: Sequence[str], calls: Sequence[Call]) -> JsonObject:
        began = time.monotonic()
        answered_at = await self._api.send_all(calls, parallel=self._parallel)
        return {
            "began_at": began,
            "seconds": time.monotonic() - began,
            "answered_at": dict(zip(nodes, answered_at, strict=True)),
        }


def _post_or_patch(request: objects.Creation) -> Call:
    if request.patch:
        return Call("PATCH", request.path, _json(request.body), MERGE)
    return Call("POST", request.path, _json(request.body))


def _report(node: str) -> Call:
    return Call("PATCH", f"{NODE_METRICS}/{node}/status", _json({"status": objects.metric_status()}), MERGE)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=_COMPACT).encode()


async def _main(arguments: argparse.Namespace) -> None:
    async with open_api(arguments.kubeconfig, parallel=arguments.parallel) as api:
        driver = Driver(api, arguments.parallel)
        await serve(
            {
                "create": driver.create,
                "annotate": driver.annotate,
                "claim": driver.claim,
                "refresh": driver.refresh,
                "report": driver.report,
            }
        )


if __name__ == "__main__":
    _parser = argparse.ArgumentParser()
    _parser.add_argument("--kubeconfig", type=Path, required=True)
    _parser.add_argument("--parallel", type=int, default=32)
    asyncio.run(_main(_parser.parse_args()))
