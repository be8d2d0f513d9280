# SPDX-License-Identifier: Apache-2.0
"""Whatever goes wrong with a call, no socket and no task is left over, over RPC and over REST."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import psutil
import pytest

from lab.embedded.yarn import EmbeddedYarn, EmbeddedYarnOptions, faults
from lab.embedded.yarn.web_service import EmbeddedWebService
from tests.contract.hadoop.backend import until
from tests.contract.hadoop.test_client import READ, client_of
from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.rest.authentication import WebIdentity
from yarn_copilot.hadoop.rest.client import RestResourceManagerClient
from yarn_copilot.hadoop.rest.transport import WebOptions, WebTransport

ROUNDS = 5
Ways = Callable[[EmbeddedYarn, EmbeddedWebService], Awaitable[None]]


async def over_rpc(yarn: EmbeddedYarn, _web: EmbeddedWebService) -> None:
    """Call with an answer that is cut, silent, for another call, from an HTTP server, too large, and fatal."""
    ways = [
        faults.cut_after(3), faults.silent(), faults.wrong_call_id(), faults.http_answer(), faults.oversize(1 << 30),
        faults.refusal("java.io.IOException", "no", is_fatal=True),
    ]  # fmt: skip
    for fault in ways:
        async with client_of(yarn, seconds=0.3) as client:
            yarn.faults.add(fault, method=READ)
            with contextlib.suppress(errors.HadoopRPCError):
                await client.get_cluster_nodes()
            yarn.faults.clear()


async def over_rest(_yarn: EmbeddedYarn, web: EmbeddedWebService) -> None:
    """Call with an answer that is late, and one that is too large."""
    for delay_seconds, limit_bytes in ((1.0, 1 << 20), (0.0, 10)):
        options = WebOptions(
            identity=WebIdentity(user="yarn"), call_timeout_seconds=0.2, max_response_bytes=limit_bytes
        )  # fmt: skip
        web.delay_seconds = delay_seconds
        async with RestResourceManagerClient(WebTransport([Address("127.0.0.1", web.port)], options)) as client:
            with pytest.raises(errors.HadoopRPCError):
                await client.get_cluster_nodes()
        web.delay_seconds = 0.0


@pytest.mark.parametrize("go_wrong", [over_rpc, over_rest], ids=["rpc", "rest"])
async def test_no_socket_and_no_task_is_left(go_wrong: Ways) -> None:
    async with EmbeddedYarn(EmbeddedYarnOptions(heartbeat_seconds=None)) as yarn, EmbeddedWebService(yarn) as web:
        yarn.add_node("nm-1")
        await go_wrong(yarn, web)
        await asyncio.sleep(0.1)
        before = open_things()
        for _ in range(ROUNDS):
            await go_wrong(yarn, web)
        # The servers' side of a connection ends a little later.
        await until(lambda: _are_at_most(open_things(), before))


def open_things() -> tuple[int, int]:
    """Count file descriptors and tasks."""
    return psutil.Process().num_fds(), len(asyncio.all_tasks())


async def _are_at_most(now: tuple[int, int], before: tuple[int, int]) -> bool:
    return now[0] <= before[0] and now[1] <= before[1]
