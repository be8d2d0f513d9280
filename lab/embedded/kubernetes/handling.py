# SPDX-License-Identifier: Apache-2.0
"""Answer HTTP requests: who asks, what is meant, which fault applies, do it, count it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from aiohttp import web

from lab.embedded.kubernetes import statuses
from lab.embedded.kubernetes.calls import Call, CallLog
from lab.embedded.kubernetes.faults import Action, Fault, Faults
from lab.embedded.kubernetes.listing import Lister
from lab.embedded.kubernetes.resource_types import SERVICE_ACCOUNTS, ResourceTypes, Target
from lab.embedded.kubernetes.statuses import Refusal
from lab.embedded.kubernetes.store import Store
from lab.embedded.kubernetes.watching import Watch
from lab.embedded.kubernetes.writing import Writer, decode

_WRITE_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_VERSION: Final = {"major": "1", "minor": "37", "gitVersion": "v1.37.2+embedded", "platform": "linux/amd64"}
_HEALTH: Final = ("/readyz", "/livez", "/healthz")
_NO_FAULT: Final = Fault(action=Action.DELAY, details={"seconds": 0})


@dataclass(slots=True)
class Access:
    """Hold who is known and what is forbidden.

    Attributes:
        users: token to user name.
        forbidden: pairs of verb (None: any) and plural.
    """

    users: dict[str, str] = field(default_factory=dict)
    forbidden: set[tuple[str | None, str]] = field(default_factory=set)

    def user_of(self, request: web.BaseRequest) -> str:
        """Give the name behind the bearer token; raises Refusal 401."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        user = self.users.get(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise statuses.unauthorized()
        return user

    def check(self, user: str, verb: str, target: Target) -> None:
        """Raise Refusal 403 where the call is forbidden."""
        if {(verb, target.type.plural), (None, target.type.plural)} & self.forbidden:
            raise statuses.forbidden(target.type, user, verb, target.namespace)


class Handler:
    """Answer requests from a store.

    Args:
        store: the state.
        types: what is served.
        access: who may.
        faults: what goes wrong.
        calls: where calls are counted.
    """

    def __init__(self, store: Store, types: ResourceTypes, access: Access, faults: Faults, calls: CallLog) -> None:
        self.bookmark_seconds = 60.0
        self.lister = Lister(store)
        self.watches: set[Watch] = set()
        self._store = store
        self._types = types
        self._access = access
        self._faults = faults
        self._calls = calls
        self._writer = Writer(store, types)

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; aiohttp calls this."""
        if request.path in _HEALTH:
            return web.Response(text="ok")
        try:
            user = self._access.user_of(request)
            if request.path == "/version":
                return web.json_response(_VERSION)
            target = self._types.target_or_none(request.rel_url.raw_path)
            if target is None:
                return web.Response(status=404, text="404 page not found\n")
            return await self._answer(request, user, target)
        except Refusal as refusal:
            return _refused(refusal)
        except _CutError:
            return web.Response()  # goes nowhere

    async def _answer(self, request: web.BaseRequest, user: str, target: Target) -> web.StreamResponse:
        query = request.rel_url.query
        verb = _verb(request, target, query)
        body = await request.read()
        key = target.key if target.name else ""
        fault = self._faults.take(verb, target.resource, key) or _NO_FAULT
        code = 0
        try:
            self._access.check(user, verb, target)
            scripted = await self._before(request, fault, is_watch=verb == "watch")
            if verb == "watch" and scripted is None:
                # Counted when it opens: it may stay open for long.
                self._calls.record(Call(verb, target.resource, key, 200, user, body))
                return await self._watch(request, target, query, fault)
            response: web.StreamResponse = scripted or self._do(request, verb, target, query, body)
            code = response.status
        except Refusal as refusal:
            code = refusal.code
            response = _refused(refusal)
        finally:
            if code or verb != "watch":
                self._calls.record(Call(verb, target.resource, key, code, user, body))
        if fault.action is Action.LOSE_ANSWER:
            _cut(request)
        return response

    async def _before(self, request: web.BaseRequest, fault: Fault, *, is_watch: bool) -> web.Response | None:
        details = fault.details
        match fault.action:
            case Action.REFUSE:
                raise Refusal(
                    details["code"],
                    details["reason"],
                    details["message"],
                    retry_after_seconds=details["retry_after"],
                )
            case Action.CUT:
                _cut(request)
            case Action.SILENCE if not is_watch:
                await asyncio.Event().wait()  # until the client leaves or the server stops
            case Action.DELAY if details["seconds"]:
                await asyncio.sleep(details["seconds"])
            case Action.BODY:
                return web.Response(body=details["body"], status=details["code"], content_type="application/json")
            case _:
                pass
        return None

    def _do(
        self, request: web.BaseRequest, verb: str, target: Target, query: Mapping[str, str], body: bytes
    ) -> web.Response:
        collection = self._store.collection(target.type)
        match verb:
            case "list":
                return _json(self.lister.page(collection, target.namespace, query))
            case "get":
                return _json(self._store.get(target.type, target.key).body)
            case "create" if target.subresource == "binding":
                self._writer.bind(target, body)
                return _success(201)
            case "create" if target.type is SERVICE_ACCOUNTS and target.subresource == "token":
                return _json(self._issue_token(target, body), 201)
            case "create" if not target.name:
                return _json(self._writer.create(target, body).body, 201)
            case "update" if target.name:
                return _json(self._writer.replace(target, body).body)
            case "patch" if target.name:
                content_type = request.headers.get("Content-Type", "").partition(";")[0].strip()
                return _json(self._writer.patch(target, content_type, body).body)
            case "delete" if target.name:
                stored, gone = self._writer.delete(target, query, body)
                return _success(200) if gone and target.type.plural != "pods" else _json(stored.body)
        raise Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")

    async def _watch(
        self, request: web.BaseRequest, target: Target, query: Mapping[str, str], fault: Fault
    ) -> web.StreamResponse:
        watch = Watch(self._store, self._store.collection(target.type), target.namespace, query, self.bookmark_seconds)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        silent = fault.action is Action.SILENCE
        if fault.action is Action.WATCH_LINES:
            await response.write(fault.details["data"])
            if fault.details["then_cut"] and request.transport is not None:
                request.transport.close()
                return response
        self.watches.add(watch)
        try:
            await watch.serve(response, lambda: silent)
            await response.write_eof()
        except ConnectionError:
            pass  # the client left
        finally:
            self.watches.discard(watch)
        return response

    def _issue_token(self, target: Target, body: bytes) -> bytes:
        self._store.get(target.type, target.key)
        token = secrets.token_hex(16)
        self._access.users[token] = f"system:serviceaccount:{target.namespace}:{target.name}"
        answer: dict[str, Any] = decode(target.type, body)
        answer["status"] = {"token": token}
        return msgspec.json.encode(answer)


def _verb(request: web.BaseRequest, target: Target, query: Mapping[str, str]) -> str:
    if request.method in _WRITE_VERBS:
        return _WRITE_VERBS[request.method]
    if target.name:
        return "get"
    return "watch" if query.get("watch") in ("1", "true", "True") else "list"


class _CutError(Exception):
    """Leave the handler after the connection was cut on purpose."""


def _cut(request: web.BaseRequest) -> None:
    """Send what is buffered and close the socket in the middle of the answer."""
    if request.transport is not None:
        request.transport.close()
    raise _CutError


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")


def _success(code: int) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}
    return _json(msgspec.json.encode(status), code)


def _refused(refusal: Refusal) -> web.Response:
    response = _json(refusal.body(), refusal.code)
    if refusal.retry_after_seconds is not None:
        response.headers["Retry-After"] = str(refusal.retry_after_seconds)
    return response
