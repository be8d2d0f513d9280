# SPDX-License-Identifier: Apache-2.0
"""Carry out the commands that write orders: choose nodes, write annotations, wait where that was asked for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TypeVar

import typer

from batch_resources.annotations.orders import Drain, Limit, OrderError, Pause, parse_order
from batch_resources.annotations.orders import write_order as order_text
from batch_resources.keys import CAP_ANNOTATION, DRAIN_ANNOTATION, FIX_ANNOTATION, PAUSE_ANNOTATION
from yarn_copilot.cli import draining, node_orders
from yarn_copilot.cli.api_client import APIClient
from yarn_copilot.cli.durations import parse_duration
from yarn_copilot.cli.errors import EXIT_NOT_DONE, CommandError, UsageError
from yarn_copilot.cli.listing import some
from yarn_copilot.cli.progress import Progress
from yarn_copilot.cli.releasing import ControllerState, Lease, Outcome, Release
from yarn_copilot.kube.client import KubeClient

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Hold which nodes are meant and with whose credentials."""

    names: tuple[str, ...]
    selector: str | None
    access: node_orders.Access
    environ: Mapping[str, str]

    @classmethod
    def of(
        cls,
        names: Sequence[str] | None,
        selector: str | None,
        kubeconfig: Path | None,
        context: str | None,
        environ: Mapping[str, str],
    ) -> Self:
        """Make one of a command's options."""
        access = node_orders.Access(kubeconfig=kubeconfig, context=context)
        return cls(names=tuple(names or ()), selector=selector, access=access, environ=environ)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseWish:
    """Hold the options of `release`."""

    all_nodes: bool
    yes: bool
    deadline: str | None
    stopped: bool
    reason: str
    lease: str
    url: str


def split_amounts(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """Tell nodes from amounts, which hold an equals sign.

    Raises:
        UsageError: amounts are given twice.
    """
    amounts = [text for text in arguments if "=" in text]
    if len(amounts) > 1:
        raise UsageError(f"give all amounts as one word, as cpu=4,memory=8Gi; there are {len(amounts)}: {amounts}")
    return [text for text in arguments if "=" not in text], amounts[0] if amounts else None


def drain(caller: Caller, *, undo: bool, waits_at: str | None, deadline: str | None, reason: str) -> int:
    """Write or take back orders to drain; wait at the controller's URL where one is given.

    Returns:
        The exit code.
    """
    if undo and (waits_at or deadline or reason):
        raise UsageError("--undo takes the order back; --wait, --deadline and --reason do not go with it")
    client = None if waits_at is None else APIClient(waits_at)
    text = None if undo else _text(Drain(deadline=_end("--deadline", deadline), reason=reason))
    names = _write(caller, {DRAIN_ANNOTATION: text}, done="drain taken back" if undo else "drain ordered")
    if client is None:
        return 0
    late = draining.wait_drained(client, names, progress=Progress())
    if late:
        print(
            f"the deadline is over and containers are left on {some(late)}; nothing is killed and the order stays: end "
            "their applications, or order again with a later --deadline",
            file=sys.stderr,
        )
    return EXIT_NOT_DONE if late else 0


def pause(caller: Caller, duration: str | None, reason: str) -> None:
    """Write orders to pause."""
    _write(caller, {PAUSE_ANNOTATION: _text(Pause(until=_end("--for", duration), reason=reason))}, done="paused")


def resume(caller: Caller) -> None:
    """Take orders to pause back."""
    _write(caller, {PAUSE_ANNOTATION: None}, done="resumed")


def cap(caller: Caller, amounts: str | None, *, clear: bool, duration: str | None, reason: str) -> None:
    """Write or take back limits."""
    text = _limit(CAP_ANNOTATION, amounts, clear=clear, duration=duration, reason=reason)
    _write(caller, {CAP_ANNOTATION: text}, done="cap cleared" if clear else "capped")


def fix(caller: Caller, amounts: str | None, *, clear: bool, duration: str | None, reason: str) -> None:
    """Write or take back exact shares."""
    text = _limit(FIX_ANNOTATION, amounts, clear=clear, duration=duration, reason=reason)
    _write(caller, {FIX_ANNOTATION: text}, done="fix cleared" if clear else "fixed")


def _limit(key: str, amounts: str | None, *, clear: bool, duration: str | None, reason: str) -> str | None:
    if clear:
        if amounts or duration or reason:
            raise UsageError("--clear takes the order back; amounts, --for and --reason do not go with it")
        return None
    if amounts is None:
        raise UsageError("no amount is given; say how much, as cpu=4,memory=8Gi, or --clear")
    try:
        order = parse_order(key, amounts.replace(",", ";"))
    except OrderError as error:
        raise UsageError(str(error)) from error
    if not isinstance(order, Limit) or order.until is not None or order.reason:
        raise UsageError("amounts are cpu and memory; use --for and --reason for the rest")
    until = _end("--for", duration)
    return _text(Limit(cpu_milli=order.cpu_milli, memory_bytes=order.memory_bytes, until=until, reason=reason))


def _text(order: Drain | Pause | Limit) -> str:
    try:
        return order_text(order)
    except OrderError as error:
        raise UsageError(f"--reason: {error}") from error


def _end(option: str, duration: str | None) -> float | None:
    if duration is None:
        return None
    try:
        return float(int(datetime.now(UTC).timestamp()) + parse_duration(duration))
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error


def _write(caller: Caller, changed: Mapping[str, str | None], *, done: str) -> list[str]:
    """Write on all nodes meant, and say what became of each."""

    async def work(client: KubeClient) -> list[str]:
        names = await node_orders.choose_nodes(client, caller.names, caller.selector)
        refused = []
        for name in names:
            try:
                stored = await node_orders.write_order(client, name, changed)
            except CommandError as error:
                refused.append(name)
                print(str(error), file=sys.stderr)
                continue
            print(f"{name}: {done if stored is not None else 'is so already'}")
        if refused:
            raise CommandError(f"{len(refused)} of {len(names)} nodes were not changed: {some(refused)}")
        return names

    return _with_client(caller, work)


def _with_client(caller: Caller, work: Callable[[KubeClient], Awaitable[T]]) -> T:
    async def run() -> T:
        async with caller.access.client(caller.environ) as client:
            return await work(client)

    return asyncio.run(run())


def release(caller: Caller, wish: ReleaseWish) -> int:
    """Release nodes, chosen by name or all, and wait for it.

    Returns:
        The exit code.
    """
    if bool(caller.names) == wish.all_nodes:
        raise UsageError("name the nodes to release, or give --all, one of both")
    namespace, slash, name = wish.lease.partition("/")
    if not slash or not namespace or not name:
        raise UsageError(f"--lease {wish.lease!r} is not NAMESPACE/NAME")
    lease, deadline = Lease(name=name, namespace=namespace), _end("--deadline", wish.deadline)
    api = APIClient(wish.url)

    async def work(client: KubeClient) -> int:
        names = list(dict.fromkeys(caller.names)) or [
            node.metadata.name
            for node in await node_orders.list_nodes(client)
            if node_orders.has_anything_of_ours(node)
        ]
        if not names:
            print("No node carries anything of ours.")
            return 0
        if not wish.yes and not _is_confirmed(names):
            return EXIT_NOT_DONE
        released = Release(
            client,
            lease,
            progress=Progress(),
            describe=lambda node: draining.containers_left(api, node),
        )
        await released.order(names, deadline=deadline, reason=wish.reason)
        outcome = await released.wait(names, deadline=deadline)
        if wish.stopped or outcome.controller is ControllerState.STOPPED:
            await released.clear(outcome)
        return _report(outcome, lease)

    return _with_client(caller, work)


def _is_confirmed(names: Sequence[str]) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked here; add --yes")
    return typer.confirm(f"Drain and leave {len(names)} nodes ({some(names)})?")


def _report(outcome: Outcome, lease: Lease) -> int:
    for name in outcome.clean:
        print(f"{name}: nothing of ours is left")
    for name in outcome.deleted:
        print(f"{name}: was deleted from Kubernetes meanwhile, and what was on it with it")
    for name in outcome.ordered:
        print(f"{name}: given back; the order yarn-copilot/drain stays, so that the controller leaves it alone")
    if outcome.ordered:
        again = "" if outcome.controller is ControllerState.RUNNING else f" with --stopped ({lease} cannot be read)"
        print(
            "note: the controller removes the order of a node that is without a NodeManager for long; to remove all "
            f"now, stop the controller and run this command again{again}",
            file=sys.stderr,
        )
    if not outcome.left:
        return 0
    why = (
        f"no controller runs that could give it back (nobody holds lease {lease}: start one, or name its --lease)"
        if outcome.controller is ControllerState.STOPPED
        else "the deadline is over (the order stays; run this again to wait longer)"
    )
    print(f"not given back, since {why}: {some(outcome.left)}", file=sys.stderr)
    return EXIT_NOT_DONE
