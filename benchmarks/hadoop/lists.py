# SPDX-License-Identifier: Apache-2.0
"""Measure reading the node list: how long the ResourceManager takes, how long decoding does, and what it costs."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, Final

import aiohttp
import msgspec

from benchmarks.hadoop.place import Place
from lab.errors import LabError
from yarn_copilot.hadoop import connection
from yarn_copilot.hadoop.model import NodeReport
from yarn_copilot.hadoop.protocols import application_client
from yarn_copilot.hadoop.protocols.node_reports import NodeReportDecoder
from yarn_copilot.hadoop.rest import answers, decoding, node_list

REPEATS: Final = 7
_MIB: Final = 1 << 20


def median_cpu_seconds(action: Callable[[], object]) -> float:
    """Give the median time of some runs, each after a collection of garbage.

    Time of this thread on a core: what else runs on the machine does not count.
    """
    samples = []
    for _ in range(REPEATS):
        gc.collect()
        began = time.thread_time()
        action()
        samples.append(time.thread_time() - began)
    return statistics.median(samples)


def memory_mib(action: Callable[[], object]) -> tuple[float, float]:
    """Give what stays in memory after an action, and the most that it held meanwhile."""
    gc.collect()
    tracemalloc.start()
    try:
        kept = action()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del kept
    return held / _MIB, peak / _MIB


async def measure_rpc_list(place: Place) -> tuple[dict[str, float], list[NodeReport]]:
    """Read over RPC.

    Returns:
        Figures, and the reports for whoever goes on.
    """
    request = application_client.encode_get_cluster_nodes()
    address = place.cluster.client_addresses[0]
    link = await connection.open_connection(address, protocol=application_client.PROTOCOL, options=place.options)
    try:
        body = b""
        samples = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            body = await link.call(application_client.GET_CLUSTER_NODES, request, timeout_seconds=place.timeout_seconds)
            samples.append(time.perf_counter() - began)
    finally:
        await link.aclose()
    decoder = NodeReportDecoder()
    reports = decoder.decode(body)
    if len(reports) != place.nodes:
        raise LabError(f"the ResourceManager lists {len(reports)} of {place.nodes} nodes")
    held, peak = memory_mib(lambda: _with_decoder(body))
    return {
        "list_answer_seconds": statistics.median(samples),
        "list_bytes": float(len(body)),
        "list_decode_first_cpu_seconds": median_cpu_seconds(lambda: NodeReportDecoder().decode(body)),
        "list_decode_unchanged_cpu_seconds": median_cpu_seconds(lambda: decoder.decode(body)),
        "list_memory_mib": held,
        "list_peak_memory_mib": peak,
    }, reports


def _with_decoder(body: bytes) -> tuple[NodeReportDecoder, list[NodeReport]]:
    """Keep the decoder too: what it remembers is part of the price."""
    decoder = NodeReportDecoder()
    return decoder, decoder.decode(body)


async def measure_rest_list(place: Place) -> dict[str, float]:
    """Read the same over the web service."""
    url = f"http://{place.cluster.web_addresses[0]}/ws/v1/cluster/nodes"
    samples = []
    body = b""
    async with aiohttp.ClientSession(trust_env=False) as session:
        for _ in range(3):
            began = time.perf_counter()
            async with session.get(url, headers={"Accept": "application/json"}) as response:
                body = await response.read()
            answers.check(response.status, response.headers, body, what=f"GET {url}", known=())
            samples.append(time.perf_counter() - began)

    def decode_tolerantly() -> tuple[Any, list[NodeReport]]:
        document = msgspec.json.decode(body)
        return document, decoding.node_reports(document)

    reports = node_list.decode_node_list(body)
    if len(reports) != place.nodes or reports != decode_tolerantly()[1]:
        raise LabError("the web service lists other nodes, or the two ways of decoding differ")
    _held, peak = memory_mib(lambda: node_list.decode_node_list(body))
    return {
        "rest_list_answer_seconds": statistics.median(samples),
        "rest_list_bytes": float(len(body)),
        "rest_list_decode_cpu_seconds": median_cpu_seconds(lambda: node_list.decode_node_list(body)),
        "rest_list_tolerant_decode_cpu_seconds": median_cpu_seconds(decode_tolerantly),
        "rest_list_peak_memory_mib": peak,
    }
