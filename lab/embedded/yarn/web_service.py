# SPDX-License-Identifier: Apache-2.0
"""Serve the ResourceManager's web services of an embedded cluster, with scripted oddities.

Shapes are those of the JSON of Hadoop 3.5.0; a test compares them with a real ResourceManager. The POST of a resource
does what the real one does, a body of another shape included: it sets the node to 0/0.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from aiohttp import web

from lab.embedded.yarn.resource_manager import RMNode
from lab.embedded.yarn.server import EmbeddedYarn
from yarn_copilot.hadoop.model import NodeId, NodeResourceUpdate, Resource

_STARTED_ON = 1_700_000_000_000

Oddity = Callable[[web.Request], web.StreamResponse | None]
"""Answer in place of the service, or None to let it answer."""


class EmbeddedWebService:
    """Be one ResourceManager's web port on loopback; use with `async with`.

    Attributes:
        calls: `METHOD path` to number of calls.
        requests: headers and query of each call, in order.
        bodies: the JSON body of each POST, in order.
        oddities: asked one after the other, one for each call; `always` is asked first and for every call.
        properties: what `/conf?name=` tells.
        delay_seconds: how long every answer takes.
        version: what `/ws/v1/cluster/info` tells.
    """

    def __init__(self, yarn: EmbeddedYarn, *, tls: ssl.SSLContext | None = None, version: str = "3.5.0") -> None:
        """Prepare; nothing listens yet."""
        self._yarn = yarn
        self._tls = tls
        self.version = version
        self.calls: Counter[str] = Counter()
        self.requests: list[tuple[dict[str, str], dict[str, str]]] = []
        self.bodies: list[Any] = []
        self.oddities: deque[Oddity] = deque()
        self.always: Oddity | None = None
        self.properties: dict[str, str] = {}
        self.delay_seconds = 0.0
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> EmbeddedWebService:
        application = web.Application(middlewares=[self._script])
        application.add_routes(
            [
                web.get("/ws/v1/cluster/info", self._info),
                web.get("/ws/v1/cluster/metrics", self._metrics),
                web.get("/ws/v1/cluster/nodes", self._nodes),
                web.get("/ws/v1/cluster/nodes/{node}", self._one_node),
                web.get("/ws/v1/cluster/scheduler", self._scheduler),
                web.get("/ws/v1/cluster/apps", self._apps),
                web.post("/ws/v1/cluster/nodes/{node}/resource", self._update),
                web.get("/conf", self._conf),
                web.get("/isActive", self._is_active),
            ]
        )
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._tls)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _script(self, request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
        self.calls[f"{request.method} {request.path}"] += 1
        self.requests.append((dict(request.headers), dict(request.query)))
        for oddity in (self.always, self.oddities.popleft() if self.oddities else None):
            answer = oddity(request) if oddity is not None else None
            if answer is not None:
                return answer
        if self.delay_seconds:
            await asyncio.sleep(self.delay_seconds)
        response: web.StreamResponse = await handler(request)
        return response

    async def _info(self, _: web.Request) -> web.Response:
        info = {"id": _STARTED_ON, "startedOn": _STARTED_ON, "state": "STARTED", "haState": "ACTIVE"}
        return _json({"clusterInfo": {**info, "resourceManagerVersion": self.version}})

    async def _is_active(self, _: web.Request) -> web.Response:
        return web.Response(text="I am Active!")

    async def _conf(self, request: web.Request) -> web.Response:
        key = request.query.get("name", "")
        if key not in self.properties:
            return web.Response(status=404)
        return _json({"property": {"key": key, "value": self.properties[key], "isFinal": False, "resource": "x"}})

    async def _metrics(self, _: web.Request) -> web.Response:
        state = self._yarn.state
        nodes = (*state.nodes.values(), *state.inactive.values())
        counts = Counter(node.state.name for node in nodes)
        names = ("UNHEALTHY", "DECOMMISSIONING", "DECOMMISSIONED", "LOST", "REBOOTED", "SHUTDOWN")
        figures = {f"{name.lower()}Nodes": counts[name] for name in names}
        return _json({"clusterMetrics": {"totalNodes": len(nodes), "activeNodes": counts["RUNNING"], **figures}})

    async def _nodes(self, _: web.Request) -> web.Response:
        state, now = self._yarn.state, self._yarn.now()
        nodes = [_node(node, now) for node in (*state.nodes.values(), *state.inactive.values())]
        return _json({"nodes": {"node": nodes} if nodes else {}})

    async def _one_node(self, request: web.Request) -> web.Response:
        text = request.match_info["node"]
        for known in (*self._yarn.state.nodes.values(), *self._yarn.state.inactive.values()):
            if str(known.node_id) == text:
                return _json({"node": _node(known, self._yarn.now())})
        return _remote(404, "org.apache.hadoop.yarn.webapp.NotFoundException", f"nodeId, {text}, is not found")

    async def _scheduler(self, _: web.Request) -> web.Response:
        root = {"type": "capacityScheduler", "queueName": "root", "capacity": 100.0, "maxCapacity": 100.0}
        leaf = {"type": "capacitySchedulerLeafQueueInfo", "queueName": "default", "state": "RUNNING"}
        return _json({"scheduler": {"schedulerInfo": {**root, "queues": {"queue": [{**leaf, "capacity": 100.0}]}}}})

    async def _apps(self, _: web.Request) -> web.Response:
        return _json({"apps": {}})

    async def _update(self, request: web.Request) -> web.Response:
        body = json.loads(await request.text())
        self.bodies.append(body)
        try:
            node_id = NodeId.parse(request.match_info["node"])
        except ValueError as error:
            return _remote(400, "java.lang.IllegalArgumentException", str(error))
        if node_id in self._yarn.state.inactive:
            text = f"Resource update get failed on all nodes due to change resource on an unrecognized node: {node_id}"
            return _remote(500, "org.apache.hadoop.yarn.exceptions.YarnRuntimeException", text)
        if node_id not in self._yarn.state.nodes:
            return _remote(404, "org.apache.hadoop.yarn.webapp.NotFoundException", f"nodeId, {node_id}, is not found")
        wanted = body.get("resource") if isinstance(body, dict) else None
        memory, vcores = (wanted.get("memory", 0), wanted.get("vCores", 0)) if isinstance(wanted, dict) else (0, 0)
        update = NodeResourceUpdate(node_id, Resource(memory, vcores), body.get("overCommitTimeout", 0))
        self._yarn.take([update], request.query.get("user.name", "dr.who"))
        return _json({"resourceInfo": {"memory": memory, "vCores": vcores}})


def _json(document: object) -> web.Response:
    return web.json_response(document)


def _remote(status: int, class_name: str, message: str) -> web.Response:
    """Give an error body as GenericExceptionHandler writes it."""
    name = class_name.rpartition(".")[2]
    body = {"RemoteException": {"exception": name, "message": message, "javaClassName": class_name}}
    return web.json_response(body, status=status)


def _vector(resource: Resource) -> dict[str, Any]:
    entries = [("memory-mb", resource.memory_mib, "Mi"), ("vcores", resource.vcores, "")]
    entries += [(entry.name, entry.value, entry.units) for entry in resource.custom]
    information = [{"name": name, "value": value, "units": units} for name, value, units in entries]
    return {
        "memory": resource.memory_mib,
        "vCores": resource.vcores,
        "resourceInformations": {"resourceInformation": information},
    }


def _node(node: RMNode, now: float) -> dict[str, Any]:
    used, containers = node.scheduler.visible_use(now)
    node_id = node.node_id
    return {
        "rack": "/default-rack",
        "state": node.state.name,
        "id": str(node_id),
        "nodeHostName": node_id.host,
        "nodeHTTPAddress": f"{node_id.host}:8042",
        "lastHealthUpdate": 1_700_000_000_000,
        "version": "3.5.0",
        "healthReport": "",
        "numContainers": containers,
        "usedMemoryMB": used.memory_mib,
        "availMemoryMB": node.scheduler.total.memory_mib - used.memory_mib,
        "usedVirtualCores": used.vcores,
        "availableVirtualCores": node.scheduler.total.vcores - used.vcores,
        # What a NodeManager measures moves with every heartbeat; here the heartbeat's moment stands for it.
        "resourceUtilization": {"nodePhysicalMemoryMB": round(node.last_heartbeat * 1000)},
        "usedResource": _vector(used),
        "totalResource": _vector(node.capability),
    }
