# SPDX-License-Identifier: Apache-2.0
"""Choose Nodes and write orders on them, with the caller's own credentials.

Nothing here talks to the controller: an order is an annotation of the Node, and the controller sees it by its watch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from batch_resources.annotations.catalogue import ORDER_KEYS
from batch_resources.annotations.third_party import ThirdPartyError, read_third_party
from batch_resources.keys import CLAIM_COUNTER_ANNOTATION, ENTRY_NAME, THIRD_PARTY_ANNOTATION
from yarn_copilot.cli.errors import CommandError, UsageError
from yarn_copilot.config.selectors import SelectorError, parse_selector
from yarn_copilot.kube import kinds
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.credentials import find_credentials
from yarn_copilot.kube.errors import ForbiddenError, KubeAPIError, NotFoundError, PreconditionFailedError
from yarn_copilot.kube.model import Node

_TRIES: Final = 4
_FORBIDDEN: Final = (
    "your kubeconfig may not do that; orders need get, list and patch on nodes (the ClusterRole yarn-copilot-operator "
    "of deploy/kubernetes grants it)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Say which kubeconfig and context the caller chose; None: the usual ones."""

    kubeconfig: Path | None = None
    context: str | None = None

    def client(self, environ: Mapping[str, str]) -> KubeClient:
        """Make a client; errors show at its first call."""
        return KubeClient(find_credentials(environ, kubeconfig=self.kubeconfig, context=self.context))


class NodeStore(Protocol):
    """Read and write Nodes; `KubeClient` is one."""

    async def get_node(self, node_name: str) -> Node:
        """Read one."""

    async def patch_node_annotations(
        self, node_name: str, *, expected: Mapping[str, str | None], changed: Mapping[str, str | None]
    ) -> Node:
        """Write under a precondition."""


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn the API server's errors into sentences that say what to do.

    Args:
        what: what the calls are about: `node 'worker-1'`.
    """
    try:
        yield
    except NotFoundError as error:
        raise CommandError(f"there is no {what}; see `kubectl get nodes`") from error
    except ForbiddenError as error:
        raise CommandError(f"{error}; {_FORBIDDEN}") from error
    except KubeAPIError as error:
        raise CommandError(f"{what}: {error}") from error


async def choose_nodes(client: KubeClient, names: Sequence[str], selector: str | None) -> list[str]:
    """Give the names of the nodes meant: those named, or those that a label selector matches.

    Raises:
        UsageError: neither or both are given, or the selector is malformed.
        CommandError: nothing matches, or Nodes cannot be listed.
    """
    if bool(names) == (selector is not None):
        raise UsageError("name one or more nodes, or choose them by --selector KEY=VALUE, one of both")
    if selector is None:
        return list(dict.fromkeys(names))
    try:
        parse_selector(selector)
    except SelectorError as error:
        raise UsageError(f"--selector: {error}") from error
    chosen = [node.metadata.name for node in await list_nodes(client, selector)]
    if not chosen:
        raise CommandError(f"no node has the labels {selector!r}; see `kubectl get nodes --show-labels`")
    return chosen


async def list_nodes(client: KubeClient, selector: str = "") -> list[Node]:
    """List Nodes; those that cannot be decoded are left out.

    Raises:
        CommandError: Nodes cannot be listed.
    """
    found = []
    with told("nodes"):
        async for page in client.list_pages(kinds.NODES, label_selector=selector):
            found += [item for item in page.items if isinstance(item, Node)]
    return sorted(found, key=lambda node: node.metadata.name)


async def find_node(client: NodeStore, name: str) -> Node | None:
    """Read one Node; None if there is none of that name.

    Raises:
        CommandError: the call was refused, or the API server did not answer.
    """
    with told(f"node {name!r}"):
        try:
            return await client.get_node(name)
        except NotFoundError:
            return None


async def write_order(client: NodeStore, name: str, changed: Mapping[str, str | None]) -> Node | None:
    """Write or remove orders on one Node, whatever else changes there meanwhile.

    Args:
        client: the caller's.
        name: the Node.
        changed: text by annotation key; None removes it.

    Returns:
        The Node as stored; None when everything was as wanted already and nothing was written.

    Raises:
        CommandError: the Node is unknown, the call refused, or the API server did not answer.
    """
    with told(f"node {name!r}"):
        for _ in range(_TRIES):
            annotations = (await client.get_node(name)).metadata.annotations
            differing = {key: text for key, text in changed.items() if annotations.get(key) != text}
            if not differing:
                return None
            expected = {key: annotations.get(key) for key in differing}
            try:
                return await client.patch_node_annotations(name, expected=expected, changed=differing)
            except PreconditionFailedError:
                continue  # somebody else changed the same order in between
    raise CommandError(f"node {name!r}: its orders are being changed by somebody else all the time; try again")


def has_anything_of_ours(node: Node) -> bool:
    """Tell whether a Node carries our entry, our counter or an order."""
    annotations = node.metadata.annotations
    return has_entry(node) or any(key in annotations for key in (*ORDER_KEYS, CLAIM_COUNTER_ANNOTATION))


def has_entry(node: Node) -> bool:
    """Tell whether a Node carries our entry; a text that cannot be read counts when it names it."""
    text = node.metadata.annotations.get(THIRD_PARTY_ANNOTATION)
    try:
        return read_third_party(text).entry(ENTRY_NAME) is not None
    except ThirdPartyError:
        return text is not None and ENTRY_NAME in text


def is_given_back(node: Node) -> bool:
    """Tell whether nothing but orders is left of us on a Node."""
    return not has_entry(node) and CLAIM_COUNTER_ANNOTATION not in node.metadata.annotations
