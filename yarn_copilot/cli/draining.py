# SPDX-License-Identifier: Apache-2.0
"""Wait until nodes are drained, by what the controller's API says, and show the containers that are left."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from yarn_copilot.cli.api_client import APIClient
from yarn_copilot.cli.errors import CommandError
from yarn_copilot.cli.listing import some
from yarn_copilot.cli.progress import Progress

_POLL_SECONDS: Final = 1.0
_DONE: Final = frozenset({"drained", "released"})
_OVER: Final = "overdue"
_UNSEEN_SECONDS: Final = 60.0
"""A controller at work sees an order within a second or two; so long without means that it is not the one, or stuck."""


def wait_drained(
    client: APIClient, names: Sequence[str], *, progress: Progress, sleep: Callable[[float], None] = time.sleep
) -> list[str]:
    """Wait until each node is drained or its deadline is over.

    Args:
        client: reads the controller.
        names: the nodes.
        progress: where the state is shown.
        sleep: seconds; injected by tests.

    Returns:
        The nodes that still run containers after their deadline.

    Raises:
        CommandError: the controller cannot be read or does not see an order, or one was taken back while we waited.
    """
    seen: set[str] = set()
    waited_seconds = 0.0
    try:
        while True:
            drains = {name: _drain(client, name) for name in names}
            seen |= {name for name, drain in drains.items() if drain is not None}
            gone = [name for name in seen if drains[name] is None]
            if gone:
                raise CommandError(f"the order to drain {gone[0]} was taken back, so it is not waited for any more")
            states = {name: _words(drain) for name, drain in drains.items()}
            progress.show(states, _summary(drains))
            if all(drain is not None and drain["state"] in _DONE | {_OVER} for drain in drains.values()):
                return [name for name, drain in drains.items() if drain is not None and drain["state"] == _OVER]
            unseen = [name for name in names if name not in seen]
            if unseen and waited_seconds >= _UNSEEN_SECONDS:
                raise CommandError(
                    f"the controller does not see the order on {some(unseen)} after {_UNSEEN_SECONDS:g} s; the order "
                    "is written and stays. See `yarn-copilot status`: is it ready, and does --url name the controller "
                    "of this Kubernetes cluster?"
                )
            sleep(_POLL_SECONDS)
            waited_seconds += _POLL_SECONDS
    finally:
        progress.end()


def containers_left(client: APIClient, name: str) -> str:
    """Say in words how a drain goes on, for whoever waits for something else; empty where nobody can tell."""
    try:
        return _words(_drain(client, name))
    except CommandError:
        return ""


def _drain(client: APIClient, name: str) -> Mapping[str, Any] | None:
    node = client.get_node(name)["node"]
    drain: Mapping[str, Any] | None = node.get("drain")
    ordered = any(order["order"] == "drain" for order in node.get("orders", ()))
    return drain if ordered else None


def _words(drain: Mapping[str, Any] | None) -> str:
    if drain is None:
        return "waiting for the controller to see the order"
    containers = drain["containers"]
    count = "an unknown number of containers" if containers is None else f"{containers} containers"
    match drain["state"]:
        case "drained" | "released" as state:
            return str(state)
        case "overdue":
            return f"deadline over, {count} left"
        case _:
            return f"draining, {count} left"


def _summary(drains: Mapping[str, Mapping[str, Any] | None]) -> str:
    done = sum(drain is not None and drain["state"] in _DONE for drain in drains.values())
    left = [drain["containers"] for drain in drains.values() if drain is not None and drain["state"] not in _DONE]
    count = "?" if any(containers is None for containers in left) else str(sum(left))
    return f"{done} of {len(drains)} nodes drained, {count} containers left"
