# SPDX-License-Identifier: Apache-2.0
"""Throw any HTTP answer and any JSON document at the REST side: an answer or one of our errors, never anything else."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.rest import answers, decoding, node_list, queues, scheduler

fuzz = settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "100")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
KNOWN = (Address("rm1", 8088), Address("rm2", 8088))
NAMES = st.sampled_from(
    [
        *("nodes", "node", "id", "state", "totalResource", "memory", "vCores", "resourceInformations", "usedResource"),
        *("resourceInformation", "name", "value", "units", "clusterMetrics", "totalNodes", "scheduler", "queues"),
        *("schedulerInfo", "queue", "queueName", "capacities", "queueCapacitiesByPartition", "partitionName", "type"),
        *("childQueues", "rootQueue", "resources", "resourceUsagesByPartition", "used", "pending", "nodeLabels"),
        *("RemoteException", "message", "javaClassName", "exception", "usedMemoryMB", "availMemoryMB"),
    ]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(["RUNNING", "nm:1", "fairScheduler", "capacityScheduler", "1e400", "-0", "٣"])
)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=4), inner, max_size=5),
    max_leaves=20,
)
BODIES = st.binary(max_size=120) | DOCUMENTS.map(msgspec.json.encode) | st.text(alphabet="<>/thtitledMESSAGE: x").map(
    str.encode
)  # fmt: skip
LOCATIONS = st.text(max_size=30) | st.text(alphabet="htps:/[]@%.0123456789rm", max_size=30) | st.just(
    "http://rm1:99999999/"
)  # fmt: skip


def first_of(document: Any) -> Any:
    """Read a queue tree and what it says by partition."""
    queues.partition_use(document)
    return queues.queue_tree(document)


READERS: list[Callable[[Any], Any]] = [
    decoding.node_reports,
    lambda document: node_list.decode_node_list(msgspec.json.encode(document)),
    decoding.cluster_metrics,
    first_of,
    lambda document: scheduler.parse_node(document, "x"),
]


@pytest.mark.parametrize("read", READERS, ids=["nodes", "nodes by bytes", "metrics", "queues", "node"])
@fuzz
@given(document=DOCUMENTS)
def test_any_document_is_read_or_a_violation(read: Callable[[Any], Any], document: Any) -> None:
    wrapped = [document, {"nodes": {"node": document}}, {"clusterMetrics": document}, {"node": document}]
    for candidate in (*wrapped, {"scheduler": {"schedulerInfo": document}}):
        with contextlib.suppress(errors.ProtocolViolationError):
            read(candidate)


@fuzz
@given(status=st.sampled_from([200, 204, 301, 307, 400, 401, 403, 404, 500, 503]), body=BODIES, location=LOCATIONS)
def test_any_answer_is_good_or_an_error_of_ours(status: int, body: bytes, location: str) -> None:
    headers = {"Location": location, "WWW-Authenticate": location, "Content-Type": "application/json"}
    with contextlib.suppress(errors.HadoopRPCError):
        answers.check(status, headers, body, what="GET http://rm1/ws/v1/cluster/nodes", known=KNOWN)


@fuzz
@given(body=BODIES)
def test_what_is_told_of_a_strangers_answer_is_short(body: bytes) -> None:
    with pytest.raises(errors.HadoopRPCError) as caught:
        answers.check(500, {}, body * 50, what="GET x", known=KNOWN)
    assert len(str(caught.value)) < 1000
