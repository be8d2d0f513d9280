# SPDX-License-Identifier: Apache-2.0
"""Run a reflector that mirrors one annotation of each Node, for tests of what it survives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from lab.embedded.kubernetes import EmbeddedKubernetes
from tests.contract.kube.sinks import RecordingSink
from yarn_copilot.kube.model import Node
from yarn_copilot.kube.reflector import Reflector, ReflectorOptions

QUICK = ReflectorOptions(random=lambda: 0.0, unavailable_retry_seconds=0.05, patience_seconds=0.0)
Sink = RecordingSink[str | None]


def annotation(node: Node) -> str | None:
    """Reduce a Node to what is mirrored."""
    return node.metadata.annotations.get("k")


def set_annotation(server: EmbeddedKubernetes, name: str, text: str) -> None:
    """Change what is mirrored."""
    server.objects.merge("nodes", name, {"metadata": {"annotations": {"k": text}}})


@asynccontextmanager
async def running(reflector: Reflector[Any, Any]) -> AsyncIterator[None]:
    """Run a reflector; leave the block and it is gone."""
    task = asyncio.ensure_future(reflector.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
