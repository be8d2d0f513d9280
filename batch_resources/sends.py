# SPDX-License-Identifier: Apache-2.0
"""Remember the capacity updates that may still change a node.

An update that was sent can land late, twice or never, and the answer of the ResourceManager says only that it was
queued. So a send stays *outstanding* until it was answered **and** read back, or until its message lifetime is over.
Reading another, newer value proves nothing about an older send. Values are tuples of frozen `Send`; every function
returns a new tuple. Times are monotonic seconds.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from batch_resources.resources import YarnResources


class Send(Struct, frozen=True, kw_only=True):
    """Hold one update.

    Attributes:
        resources: the total asked for.
        sent_at: when the call began.
        answered_at: when it was answered with success; None while it is in flight or after it was lost.
        is_lost: the call ended without an answer, so it may have landed, land later, or never.
        is_overtaken: a newer send was read back after both had been answered. One ResourceManager takes updates from
            one queue, so this one was worked off; it stays outstanding for rules that must not rely on the queue.
        is_confirmed: it was answered and read back; a copy of it may still be alive until its lifetime is over.
    """

    resources: YarnResources
    sent_at: float
    answered_at: float | None = None
    is_lost: bool = False
    is_overtaken: bool = False
    is_confirmed: bool = False


Sends = tuple[Send, ...]


def record_send(sends: Sends, resources: YarnResources, *, now: float) -> Sends:
    """Add an update whose call begins now."""
    return (*sends, Send(resources=resources, sent_at=now))


def mark_answered(sends: Sends, *, sent_at: float, now: float) -> Sends:
    """Note that the call that began at `sent_at` was answered with success."""
    return tuple(replace(send, answered_at=now) if send.sent_at == sent_at else send for send in sends)


def mark_lost(sends: Sends, *, sent_at: float) -> Sends:
    """Note that the call that began at `sent_at` ended without an answer: it may still land, and may be repeated."""
    return tuple(replace(send, is_lost=True) if send.sent_at == sent_at else send for send in sends)


def is_under_way(sends: Sends, resources: YarnResources) -> bool:
    """Tell whether the newest send asks for this very value and needs no repetition."""
    return bool(sends) and sends[-1].resources == resources and not sends[-1].is_lost


def mark_refused(sends: Sends, *, sent_at: float) -> Sends:
    """Drop the call that began at `sent_at`: the server said that it applied nothing."""
    return tuple(send for send in sends if send.sent_at != sent_at)


def confirm(sends: Sends, read: YarnResources, *, read_began_at: float) -> Sends:
    """Drop the answered sends that a later read shows as the node's value.

    Args:
        sends: what is outstanding.
        read: the node's total as the ResourceManager gave it.
        read_began_at: when that read was started; an answer that came after it proves nothing.
    """
    shown = [send.sent_at for send in sends if _is_shown(send, read, read_began_at)]
    if not shown:
        return sends
    newest = max(shown)
    return tuple(
        replace(send, is_overtaken=True) if _is_overtaken_by(send, newest) else send
        for send in sends
        if not _is_shown(send, read, read_began_at)
    )


def may_disturb_use(sends: Sends) -> bool:
    """Tell whether the moment in which the scheduler shows a use of zero may still lie ahead for one of the sends."""
    return any(not send.is_overtaken for send in sends)


def mark_confirmed(sends: Sends, read: YarnResources, *, read_began_at: float) -> Sends:
    """Note which answered sends a later read shows as the node's value, and keep them until their lifetime is over."""
    if not sends:
        return sends
    return tuple(
        replace(send, is_confirmed=True) if _is_shown(send, read, read_began_at) and not send.is_confirmed else send
        for send in sends
    )


def unconfirmed(sends: Sends) -> Sends:
    """Give the sends that may not have landed yet."""
    if not sends:
        return sends
    return tuple(send for send in sends if not send.is_confirmed)


def changes_value(sends: Sends, capacity: YarnResources | None, resources: YarnResources) -> bool:
    """Tell whether an update to this value would leave something else than what is there, or is on its way.

    An older update that may still land is no reason to repeat a newest one that was read back: should it land, the
    next read shows it. Repeated at every read until then, the value would never be proven.

    Args:
        sends: what is outstanding, confirmed or not.
        capacity: the value as last read; None when it is unknown.
        resources: what would be sent.
    """
    if sends and sends[-1].resources == resources and sends[-1].is_confirmed:
        return resources != capacity
    outstanding = unconfirmed(sends)
    return (resources != capacity or bool(outstanding)) and not is_under_way(outstanding, resources)


def all_show(sends: Sends, read: YarnResources) -> bool:
    """Tell whether nothing that may still land, or land again, would change a node that shows this value."""
    return all(send.is_confirmed and send.resources == read for send in sends)


def _is_shown(send: Send, read: YarnResources, read_began_at: float) -> bool:
    return send.resources == read and send.answered_at is not None and send.answered_at <= read_began_at


def _is_overtaken_by(send: Send, newest_shown_sent_at: float) -> bool:
    return send.answered_at is not None and send.answered_at <= newest_shown_sent_at


def expire(sends: Sends, *, now: float, lifetime_seconds: float) -> Sends:
    """Drop the sends whose message cannot be alive any more."""
    if not sends:
        return sends
    return tuple(send for send in sends if now - send.sent_at < lifetime_seconds)


def lowest_possible(read: YarnResources, sends: Sends) -> YarnResources:
    """Give the smallest capacity, per resource, that the node has or will have when an unconfirmed update lands."""
    for send in unconfirmed(sends):
        read = read.at_most(send.resources)
    return read


def highest_possible(read: YarnResources | None, sends: Sends) -> YarnResources | None:
    """Give the largest capacity, per resource, that the node has or may still get; None when nothing is known."""
    highest = read
    for send in sends:
        highest = send.resources if highest is None else highest.at_least(send.resources)
    return highest
