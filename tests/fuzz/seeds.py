# SPDX-License-Identifier: Apache-2.0
"""Give each target good inputs to start from; from nothing it would take long to find the way in."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Final

from lab.embedded.yarn import wire
from tests.unit.hadoop.configuration_corpus import CASES
from tests.unit.hadoop.sasl import recordings
from yarn_copilot.hadoop.proto import rpc_pb2, yarn_pb2

_CHALLENGE: Final = b'realm="default",nonce="n",qop="auth,auth-int,auth-conf",charset=utf-8,algorithm=md5-sess'
_NODES: Final = (
    b'{"nodes":{"node":[{"id":"nm:1","state":"RUNNING","usedMemoryMB":1,"usedVirtualCores":1,"numContainers":1,'
    b'"totalResource":{"memory":4096,"vCores":4,"resourceInformations":{"resourceInformation":'
    b'[{"name":"gpu","value":1,"units":""}]}},"nodeLabels":["a"]}]}}'
)
_QUEUES: Final = (
    b'{"scheduler":{"schedulerInfo":{"type":"capacityScheduler","queueName":"root","capacity":100.0,"queues":{"queue":'
    b'[{"queueName":"a","capacities":{"queueCapacitiesByPartition":[{"partitionName":"x","capacity":1.0}]},'
    b'"resources":{"resourceUsagesByPartition":[{"partitionName":"x","pending":{"memory":1,"vCores":1}}]}}]}}}}'
)


def seeds(target: str) -> list[bytes]:
    """Give the good inputs of a target of `tests.fuzz`."""
    match target:
        case "framing":
            return [*_recorded(), wire.success(wire.Request(1, b"c", 0), b"body")]
        case "sasl":
            return [*_recorded(), _handshake()]
        case "challenge":
            return [_CHALLENGE]
        case "token":
            return [base64.urlsafe_b64encode(b"\x01i\x01p\x13RM_DELEGATION_TOKEN\x0610.0.1")]
        case "reports":
            return [_reports()]
        case "rest":
            failed = b'{"RemoteException":{"exception":"E","message":"m","javaClassName":"java.lang.E"}}'
            page = b"<title>x</title><th>MESSAGE:</th><td>GSSException: no</td>"
            return [b"\x00" + _NODES, b"\x00" + _QUEUES, b"\x05" + failed, b"\x02" + page, b"\x01http://rm:1/x"]
        case _:
            return [content for case in CASES for name, content in case.files.items() if name == "yarn-site.xml"]


def write_seeds(target: str, folder: Path) -> Path:
    """Put them into files, one each, as libFuzzer wants them."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(seeds(target)):
        (folder / f"seed-{number}").write_bytes(content)
    return folder


def _recorded() -> list[bytes]:
    return [recordings.stream(recordings.load(name), "server") for name in recordings.NAMES]


def _handshake() -> bytes:
    """Say what a server says to a token that it knows."""
    auth = rpc_pb2.RpcSasl.Auth(method="TOKEN", mechanism="DIGEST-MD5", protocol="", server_id="default")
    offer = rpc_pb2.RpcSasl(state=rpc_pb2.RpcSasl.NEGOTIATE, auths=[auth])
    offer.auths[0].challenge = _CHALLENGE
    return wire.sasl(offer) + wire.sasl(rpc_pb2.RpcSasl(state=rpc_pb2.RpcSasl.SUCCESS, token=b"rspauth=0"))


def _reports() -> bytes:
    node_id = yarn_pb2.NodeId(host="nm", port=1).SerializeToString()
    size = yarn_pb2.Resource(memory_mib=1, virtual_cores=1).SerializeToString()
    parts = yarn_pb2.NodeReportParts(
        encoded_node_id=node_id, encoded_capability=size, encoded_used=size, http_address="nm:2", rack_name="/r"
    )
    return yarn_pb2.GetClusterNodesResponse(encoded_node_reports=[parts.SerializeToString()]).SerializeToString()
