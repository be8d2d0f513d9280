# SPDX-License-Identifier: Apache-2.0
"""Record what real ResourceManagers answer to the main calls: `python -m lab.hadoop.call_recording DIR`.

Each file holds one version's calls on a pair, one connection each: the bytes of both sides, without authentication.
Tests decode the answers and make the same requests again, byte by byte.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lab.hadoop.jars import VERSIONS
from lab.hadoop.pair import Pair
from lab.hadoop.recording import Recorder
from yarn_copilot.hadoop import connection, errors
from yarn_copilot.hadoop.model import NodeId, NodeResourceUpdate, Resource
from yarn_copilot.hadoop.protocols import administration, application_client, ha_service

SECONDS: Final = 20.0
UNKNOWN: Final = NodeId("never-seen", 8041)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Describe one call of a recording; `standby` goes to the one that is not active."""

    name: str
    protocol: str
    method: str
    request: bytes
    user: str = "yarn"
    is_client_port: bool = False
    standby: bool = False


def calls(node_id: NodeId) -> list[Call]:
    """List what is recorded; `node_id` is a registered node."""
    accepted = administration.encode_update_node_resource([NodeResourceUpdate(node_id, Resource(2048, 2))])
    refused = administration.encode_update_node_resource([NodeResourceUpdate(UNKNOWN, Resource(2048, 2))])
    update: dict[str, Any] = {"protocol": administration.PROTOCOL, "method": administration.UPDATE_NODE_RESOURCE}
    read: dict[str, Any] = {"protocol": application_client.PROTOCOL, "is_client_port": True}
    status: dict[str, Any] = {"protocol": ha_service.PROTOCOL, "method": ha_service.GET_SERVICE_STATUS}
    asked = ha_service.encode_get_service_status()
    nodes, queue = application_client.encode_get_cluster_nodes(), application_client.encode_get_queue_info("root")
    return [
        Call(name="nodes", method=application_client.GET_CLUSTER_NODES, request=nodes, **read),
        Call(name="queues", method=application_client.GET_QUEUE_INFO, request=queue, **read),
        Call(name="update", request=accepted, **update),
        Call(name="update-of-unknown-node", request=refused, **update),
        Call(name="update-by-no-administrator", request=accepted, user="bob", **update),
        Call(name="update-on-standby", request=accepted, standby=True, **update),
        Call(name="status-of-active", request=asked, **status),
        Call(name="status-of-standby", request=asked, standby=True, **status),
    ]


async def converse(port: int, call: Call) -> list[dict[str, str]]:
    """Make one call through a recorder and give what both sides sent."""
    recorder = Recorder(port)
    options = connection.ConnectionOptions(
        user=call.user, connect_timeout_seconds=SECONDS, max_response_bytes=1_000_000
    )
    async with recorder.listening() as address:
        link = await connection.open_connection(address, protocol=call.protocol, options=options)
        try:
            await link.call(call.method, call.request, timeout_seconds=SECONDS)
        except errors.RemoteCallError as error:
            print(f"{call.name}: {error}")
        await link.aclose()
        await asyncio.sleep(0.05)
    return recorder.chunks


def record(pair: Pair, version: str) -> dict[str, Any]:
    """Make every call and give the recording."""
    node_id = NodeId.parse(pair.node_managers[0].node_id)
    active = pair.active()
    standby = next(rm_id for rm_id in pair.resource_managers if rm_id != active)
    recorded = {}
    for call in calls(node_id):
        rm_id = standby if call.standby else active
        port = (pair.client_address(rm_id) if call.is_client_port else pair.admin_address(rm_id)).port
        chunks = asyncio.run(converse(port, call))
        request = {"user": call.user, "protocol": call.protocol, "method": call.method, "body": call.request.hex()}
        recorded[call.name] = {**request, "chunks": chunks}
    return {"hadoop": version, "node_id": str(node_id), "calls": recorded}


def main() -> None:
    """Record every version into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hadoop", nargs="*", default=list(VERSIONS))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for version in arguments.hadoop:
        with Pair(zookeeper=False, version=version) as pair:
            path = arguments.folder / f"{version}.json"
            path.write_text(json.dumps(record(pair, version), indent=1) + "\n")
            print(path)


if __name__ == "__main__":
    main()
