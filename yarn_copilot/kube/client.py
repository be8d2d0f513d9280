# SPDX-License-Identifier: Apache-2.0
"""Offer the calls to the API server that the bridge makes, in its own types.

Bytes are decoded by `kinds`; connections and credentials are `transport`'s. Reads are tried again on errors that may
pass, within the deadline of the call; writes never are, because after a lost answer it is unknown whether the server
acted: the caller reads and decides again.
Source: Kubernetes API concepts (list paging, watch, resource versions) and RFC 6902 for patches.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, TypeVar

import msgspec
import tenacity

from yarn_copilot.config.settings import KubernetesSettings
from yarn_copilot.kube import json_patch, kinds
from yarn_copilot.kube.clock import Clock, SystemClock
from yarn_copilot.kube.credentials import CredentialSource, find_credentials
from yarn_copilot.kube.errors import KubeAPIError, KubeProtocolError, KubeTimeoutError, PreconditionFailedError, cut
from yarn_copilot.kube.kinds import DECODE_ERRORS, ListMeta, Malformed, ResourceKind
from yarn_copilot.kube.model import Lease, Node, Pod
from yarn_copilot.kube.transport import ByteStream, Request, Transport

T = TypeVar("T")

USER_AGENT: Final = "yarn-copilot"
LIST_TIMEOUT_SECONDS: Final = 30.0
"""Deadline of one page: it is larger than a single object and fences nothing."""
POOL_RESERVE: Final = 16
"""Connections beside patches and fresh reads of nodes: watches, lists, lease, events. The lease must never wait for a
connection behind thousands of nodes: that would cost the leadership in the middle of the largest change."""
READ_TRIES: Final = 3
PATCH_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Page:
    """Hold one page of a list; the items are decoded while iterating, once."""

    metadata: ListMeta
    items: Iterator[Any]


class KubeClient:
    """Call the API server; satisfies `NodeAnnotationWriter` and `NodeReader` of the controller's ports.

    Args:
        source: where address and identity come from.
        settings: deadlines and page size.
        clock: injected time.

    One instance serves one event loop; close it with `aclose` or `async with`.
    """

    def __init__(
        self, source: CredentialSource, settings: KubernetesSettings | None = None, *, clock: Clock | None = None
    ) -> None:
        self.settings = settings or KubernetesSettings()
        self.clock: Clock = clock or SystemClock()
        self._transport = Transport(
            source,
            clock=self.clock,
            pool_size=2 * self.settings.parallel_patches + POOL_RESERVE,
            user_agent=USER_AGENT,
        )

    @classmethod
    def from_settings(
        cls, settings: KubernetesSettings, environ: Mapping[str, str], *, clock: Clock | None = None
    ) -> KubeClient:
        """Build a client with credentials found as the settings and the environment say.

        Raises (at the first call): ConfigError where there are none.
        """
        source = find_credentials(environ, kubeconfig=settings.kubeconfig, context=settings.context)
        return cls(source, settings, clock=clock)

    async def __aenter__(self) -> KubeClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    async def get_node(self, node_name: str) -> Node:
        """Read a Node from storage (a GET without resourceVersion is never answered from a cache).

        Raises:
            NotFoundError: there is no such Node.
            KubeAPIError: otherwise, after three tries within the deadline.
        """
        return await self.get(kinds.NODES, node_name)

    async def get(self, kind: ResourceKind[T], name: str, namespace: str = "") -> T:
        """Read one object of any kind from storage; raises as `get_node` does."""
        request = self._request("GET", kind.object_path(name, namespace))
        return _decoded(request, kind, await self._read(request))

    async def patch_node_annotations(
        self, node_name: str, *, expected: Mapping[str, str | None], changed: Mapping[str, str | None]
    ) -> Node:
        """Write annotations of a Node if the expected ones still have their text.

        Args:
            node_name: `metadata.name`.
            expected: text of each annotation as last read; None: it must be absent.
            changed: text to write; None removes the annotation.

        Returns:
            The Node as stored, with its new resourceVersion.

        Raises:
            PreconditionFailedError: an expected text differs; nothing was written.
            InvalidObjectError: the API server's validation refuses the result; nothing was written.
            KubeConnectionError, ServerError, KubeProtocolError: unknown whether it was written.
            KubeAPIError: refused; nothing was written.

        All of it ends within one call deadline, also where several requests are needed.
        """
        seconds = self.settings.request_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._patch_annotations(node_name, expected, changed)
        except TimeoutError as error:
            raise KubeTimeoutError(f"PATCH {kinds.NODES.object_path(node_name)}: not done in {seconds:g} s") from error

    async def _patch_annotations(
        self, node_name: str, expected: Mapping[str, str | None], changed: Mapping[str, str | None]
    ) -> Node:
        request = self._patch(node_name, json_patch.annotations_patch(expected=expected, changed=changed))
        try:
            return _decoded(request, kinds.NODES, await self._transport.call(request))
        except PreconditionFailedError as error:
            # An object without any annotation fails every test, also the one for absence.
            if any(text is not None for text in expected.values()):
                raise
            failed = error
        return await self._patch_without_map(node_name, expected, changed, failed)

    async def _patch_without_map(
        self,
        node_name: str,
        expected: Mapping[str, str | None],
        changed: Mapping[str, str | None],
        failed: PreconditionFailedError,
    ) -> Node:
        for _ in range(PATCH_TRIES):
            node = await self.get_node(node_name)
            if any(key in node.metadata.annotations for key in expected):
                raise failed
            bare = not node.metadata.annotations
            body = json_patch.annotations_patch(expected=expected, changed=changed, create_map=bare)
            request = self._patch(node_name, body)
            try:
                return _decoded(request, kinds.NODES, await self._transport.call(request))
            except PreconditionFailedError as error:
                failed = error  # somebody created or removed the last annotation in between
        raise failed

    async def list_pages(
        self, kind: ResourceKind[T], *, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[Page]:
        """Read a collection page by page; every page shows the same state.

        `Page.items` gives objects, or `Malformed` for those that cannot be decoded; use each page up before the next,
        so that only one is in memory.

        Raises:
            GoneError: the continue token became too old; the caller starts again.
            KubeAPIError: otherwise, after three tries of the page.
        """
        token = ""
        while True:
            params = {
                "limit": str(self.settings.list_page_size),
                "labelSelector": label_selector,
                "fieldSelector": field_selector,
                "continue": token,
            }
            request = Request(method="GET", path=kind.path, params=params, timeout_seconds=LIST_TIMEOUT_SECONDS)
            body = await self._read(request)
            try:
                metadata, items = kind.decode_page(body)
            except DECODE_ERRORS as error:
                raise KubeProtocolError(f"{request.what}: not a list: {cut(str(error))}") from error
            del body
            yield Page(metadata, items)
            token = metadata.continue_token
            if not token:
                return

    async def list_node_pods(self, node_name: str) -> list[Pod]:
        """List the pods bound to a node from the API server's storage.

        Raises:
            KubeProtocolError: a pod cannot be decoded, so the list would not be complete.
            KubeAPIError: otherwise, after three tries.
        """
        found: list[Pod] = []
        async for page in self.list_pages(kinds.PODS, field_selector=f"spec.nodeName={node_name}"):
            for item in page.items:
                if not isinstance(item, Pod):
                    raise KubeProtocolError(f"a pod on node {node_name} cannot be decoded")
                found.append(item)
        return found

    @asynccontextmanager
    async def watch(
        self,
        kind: ResourceKind[T],
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int = 300,
    ) -> AsyncIterator[ByteStream]:
        """Open a watch with bookmarks and give its raw bytes; `reflector` cuts and decodes them.

        Args:
            kind: what to watch.
            resource_version: version after which changes are wanted.
            label_selector: as in a list.
            field_selector: as in a list.
            timeout_seconds: the server ends the watch after so long.

        Raises:
            KubeAPIError: the watch is refused, cut, or silent for `watch_silence_timeout_seconds`.
        """
        params = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        silence = self.settings.watch_silence_timeout_seconds
        request = Request(method="GET", path=kind.path, params=params, timeout_seconds=silence)
        async with self._transport.stream(request) as stream:
            yield stream

    async def get_lease(self, name: str, namespace: str) -> Lease:
        """Read a Lease from storage; raises NotFoundError."""
        return await self.get(kinds.LEASES, name, namespace)

    async def create_lease(self, lease: Lease) -> Lease:
        """Create a Lease; raises ConflictError where it exists already."""
        path = kinds.LEASES.object_path("", lease.metadata.namespace).rstrip("/")
        request = self._request("POST", path, _lease_body(lease))
        return _decoded(request, kinds.LEASES, await self._transport.call(request))

    async def replace_lease(self, lease: Lease) -> Lease:
        """Write a Lease; raises ConflictError unless its resourceVersion is still the stored one."""
        path = kinds.LEASES.object_path(lease.metadata.name, lease.metadata.namespace)
        request = self._request("PUT", path, _lease_body(lease))
        return _decoded(request, kinds.LEASES, await self._transport.call(request))

    async def create_event(self, namespace: str, event: Mapping[str, Any]) -> None:
        """Create a core/v1 Event."""
        path = f"/api/v1/namespaces/{namespace}/events"
        await self._transport.call(self._request("POST", path, msgspec.json.encode(event)))

    async def patch_event(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """Merge a patch (RFC 7386) into a core/v1 Event; raises NotFoundError where it has expired."""
        request = self._request(
            "PATCH",
            f"/api/v1/namespaces/{namespace}/events/{name}",
            msgspec.json.encode(patch),
            content_type="application/merge-patch+json",
        )
        await self._transport.call(request)

    def _request(
        self, method: str, path: str, body: bytes | None = None, *, content_type: str = "application/json"
    ) -> Request:
        return Request(
            method=method,
            path=path,
            body=body,
            content_type=content_type,
            timeout_seconds=self.settings.request_timeout_seconds,
        )

    def _patch(self, node_name: str, body: bytes) -> Request:
        return self._request("PATCH", kinds.NODES.object_path(node_name), body, content_type=json_patch.CONTENT_TYPE)

    async def _read(self, request: Request) -> bytes:
        """Try a GET up to three times while its deadline lasts."""
        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(READ_TRIES),
            wait=_wait_before_next_try,
            retry=tenacity.retry_if_exception(_may_pass),
            sleep=self.clock.sleep,
            reraise=True,
        )
        call: Callable[[Request], Awaitable[bytes]] = self._transport.call
        try:
            async with asyncio.timeout(request.timeout_seconds):
                return await retrying(call, request)
        except TimeoutError as error:
            raise KubeTimeoutError(f"{request.what}: no answer within {request.timeout_seconds:g} s") from error


_exponential: Final = tenacity.wait_random_exponential(multiplier=0.1, max=1.0)


def _may_pass(error: BaseException) -> bool:
    # 410 needs a new list, 401 was tried twice, a timeout used up the deadline.
    return (
        isinstance(error, KubeAPIError)
        and error.retryable
        and not isinstance(error, KubeTimeoutError)
        and error.status not in (401, 410)
    )


def _wait_before_next_try(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after_seconds if isinstance(error, KubeAPIError) else None
    return max(_exponential(state), asked or 0.0)


def _decoded(request: Request, kind: ResourceKind[T], body: bytes) -> T:
    try:
        return kind.decode(body)
    except DECODE_ERRORS as error:
        raise KubeProtocolError(f"{request.what}: answer is not a {kind.plural} object: {cut(str(error))}") from error


def _lease_body(lease: Lease) -> bytes:
    metadata: dict[str, Any] = {"name": lease.metadata.name, "namespace": lease.metadata.namespace}
    for part in ("resourceVersion", "labels", "annotations"):  # a PUT would remove what it leaves out
        if value := getattr(lease.metadata, part):
            metadata[part] = value
    return msgspec.json.encode(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": lease.spec}
    )


__all__ = ["KubeClient", "Malformed", "Page"]
