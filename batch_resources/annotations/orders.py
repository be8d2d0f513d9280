# SPDX-License-Identifier: Apache-2.0
"""Read and write an operator's orders for a node: the annotations drain, pause, cap and fix.

An order is a list of `name=value` parts, separated by semicolons; drain and pause may also be the word `true` alone:

    yarn-copilot/drain: deadline=2026-12-02T03:00:00Z; reason=new disk
    yarn-copilot/cap: cpu=4; memory=8Gi

`cpu` is in cores and `memory` in bytes, both as Kubernetes quantities; a time is RFC 3339 with an offset. A text
that breaks this grammar is an error with a sentence, never a guess. Moments are wall-clock seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from msgspec import Struct

from batch_resources.annotations.catalogue import ORDER_KEYS
from batch_resources.keys import CAP_ANNOTATION, DRAIN_ANNOTATION, FIX_ANNOTATION, PAUSE_ANNOTATION
from batch_resources.quantities import INT64_MAX, QuantityError, format_binary, parse_quantity
from batch_resources.resources import BatchResources

MAX_TEXT_LENGTH: Final = 1024
"""Longest order read, characters."""

MAX_REASON_LENGTH: Final = 256

_ALLOWED: Final[Mapping[str, tuple[str, ...]]] = {
    DRAIN_ANNOTATION: ("deadline", "release", "reason"),
    PAUSE_ANNOTATION: ("until", "reason"),
    CAP_ANNOTATION: ("cpu", "memory", "until", "reason"),
    FIX_ANNOTATION: ("cpu", "memory", "until", "reason"),
}
_REMEMBERED: Final = 4096


class OrderError(ValueError):
    """Say which annotation cannot be read, why, and what is allowed."""


class Drain(Struct, frozen=True, kw_only=True):
    """Order that YARN leaves the node.

    Attributes:
        deadline: moment at which waiting for containers ends; None: no end.
        releases: give back our entry too, once the node is empty.
        reason: for people.
    """

    deadline: float | None = None
    releases: bool = False
    reason: str = ""


class Pause(Struct, frozen=True, kw_only=True):
    """Order that nothing is written; void from `until` on."""

    until: float | None = None
    reason: str = ""


class Limit(Struct, frozen=True, kw_only=True):
    """Hold an amount of which a resource may be left open (None); as an order void from `until` on."""

    cpu_milli: int | None = None
    memory_bytes: int | None = None
    until: float | None = None
    reason: str = ""

    def of(self, amount: BatchResources) -> BatchResources:
        """Give the limit, with the amount's own value for what is left open."""
        return BatchResources(
            cpu_milli=amount.cpu_milli if self.cpu_milli is None else self.cpu_milli,
            memory_bytes=amount.memory_bytes if self.memory_bytes is None else self.memory_bytes,
        )


class Orders(Struct, frozen=True, kw_only=True):
    """Hold all orders for one node; None where there is none.

    Attributes:
        errors: a sentence for each order that cannot be read.
        is_overdue: the deadline of the drain is over; set by `at`.
    """

    drain: Drain | None = None
    pause: Pause | None = None
    cap: Limit | None = None
    fix: Limit | None = None
    errors: tuple[str, ...] = ()
    is_overdue: bool = False

    def at(self, moment: float) -> Orders:
        """Leave out what is void at a moment, and judge the deadline."""
        if self.next_end is None:
            return self
        return Orders(
            drain=self.drain,
            pause=None if self.pause is None or _is_over(self.pause.until, moment) else self.pause,
            cap=None if self.cap is None or _is_over(self.cap.until, moment) else self.cap,
            fix=None if self.fix is None or _is_over(self.fix.until, moment) else self.fix,
            errors=self.errors,
            is_overdue=self.drain is not None and _is_over(self.drain.deadline, moment),
        )

    @property
    def next_end(self) -> float | None:
        """Give the first moment at which time alone changes an order; None where it never does."""
        return min(self._ends(), default=None)

    def next_moment(self, moment: float) -> float | None:
        """Give the first such moment after this one."""
        return min((end for end in self._ends() if end > moment), default=None)

    def _ends(self) -> list[float]:
        if self is NO_ORDERS:
            return []
        ends = [end_of(order) for order in (self.drain, self.pause, self.cap, self.fix) if order is not None]
        return [end for end in ends if end is not None]

    @property
    def releases(self) -> bool:
        """Tell whether our entry is to go as well."""
        return self.drain is not None and self.drain.releases


NO_ORDERS: Final = Orders()


def end_of(order: Drain | Pause | Limit) -> float | None:
    """Give the moment that an order names: a drain's deadline, or the one from which another order is void."""
    return order.deadline if isinstance(order, Drain) else order.until


def _is_over(until: float | None, moment: float) -> bool:
    return until is not None and moment >= until


def read_orders(annotations: Mapping[str, str]) -> Orders:
    """Read a Node's orders; texts that cannot be read are named in `errors`."""
    texts = tuple(annotations.get(key) for key in ORDER_KEYS)
    return NO_ORDERS if not any(text is not None for text in texts) else _read_remembered(texts)


@lru_cache(maxsize=_REMEMBERED)
def _read_remembered(texts: tuple[str | None, ...]) -> Orders:
    given = {key: text for key, text in zip(ORDER_KEYS, texts, strict=True) if text is not None}
    errors = []
    orders: dict[str, Drain | Pause | Limit] = {}
    for key, text in given.items():
        try:
            orders[key] = parse_order(key, text)
        except OrderError as problem:
            errors.append(str(problem))
    drain, pause = orders.get(DRAIN_ANNOTATION), orders.get(PAUSE_ANNOTATION)
    cap, fix = orders.get(CAP_ANNOTATION), orders.get(FIX_ANNOTATION)
    return Orders(
        drain=drain if isinstance(drain, Drain) else None,
        pause=pause if isinstance(pause, Pause) else None,
        cap=cap if isinstance(cap, Limit) else None,
        fix=fix if isinstance(fix, Limit) else None,
        errors=tuple(errors),
    )


def parse_order(key: str, text: str) -> Drain | Pause | Limit:
    """Read one annotation.

    Raises:
        OrderError: the text breaks the grammar of its key.
    """
    return _order(key, _parts(key, text))


def _parts(key: str, text: str) -> dict[str, str]:
    allowed = _ALLOWED[key]
    if len(text) > MAX_TEXT_LENGTH:
        raise OrderError(f"annotation {key} has {len(text)} characters, allowed are {MAX_TEXT_LENGTH}")
    if text.strip() == "true" and "cpu" not in allowed:
        return {}
    parts: dict[str, str] = {}
    for part in text.split(";"):
        name, separator, value = (piece.strip() for piece in part.partition("="))
        if not separator or name not in allowed or not value:
            word = "" if "cpu" in allowed else "the word true alone, or "
            raise OrderError(
                f"annotation {key} has the part {part.strip()[:64]!r}; allowed is {word}name=value separated by "
                f"semicolons, with the names {', '.join(allowed)} (to take the order back, remove the annotation)"
            )
        if name in parts:
            raise OrderError(f"annotation {key} names {name} twice; give it once")
        parts[name] = value
    return parts


def _order(key: str, parts: Mapping[str, str]) -> Drain | Pause | Limit:
    reason = parts.get("reason", "")[:MAX_REASON_LENGTH]
    if key == DRAIN_ANNOTATION:
        if parts.get("release", "true") != "true":
            raise OrderError(f"annotation {key} has release={parts['release'][:64]!r}; allowed is release=true")
        return Drain(deadline=_moment(key, "deadline", parts), releases="release" in parts, reason=reason)
    if key == PAUSE_ANNOTATION:
        return Pause(until=_moment(key, "until", parts), reason=reason)
    if "cpu" not in parts and "memory" not in parts:
        raise OrderError(
            f"annotation {key} names no amount: give cpu=CORES, memory=BYTES or both, as cpu=4; memory=8Gi"
        )
    return Limit(
        cpu_milli=_amount(key, "cpu", parts, scale=1000),
        memory_bytes=_amount(key, "memory", parts, scale=1),
        until=_moment(key, "until", parts),
        reason=reason,
    )


def _amount(key: str, name: str, parts: Mapping[str, str], *, scale: int) -> int | None:
    text = parts.get(name)
    if text is None:
        return None
    unit = "whole milli-cores (4, 3500m)" if scale == 1000 else "whole bytes (8Gi, 8192Mi)"
    try:
        value = parse_quantity(text) * scale
    except QuantityError as problem:
        raise OrderError(f"annotation {key} has {name}={text[:64]!r}, which is no quantity: {problem}") from problem
    if value.denominator != 1 or not 0 <= value <= INT64_MAX:
        raise OrderError(f"annotation {key} has {name}={text[:64]!r}; allowed are {unit} from 0 on")
    return int(value)


def _moment(key: str, name: str, parts: Mapping[str, str]) -> float | None:
    text = parts.get(name)
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise OrderError(f"annotation {key} has {name}={text[:64]!r}; allowed is a time such as 2026-12-02T03:00:00Z")
    return moment.timestamp()


def write_order(order: Drain | Pause | Limit) -> str:
    """Write an order as `parse_order` reads it.

    Raises:
        OrderError: the reason holds a semicolon or a line break, or is too long.
    """
    parts = []
    if isinstance(order, Limit):
        if order.cpu_milli is not None:
            whole, rest = divmod(order.cpu_milli, 1000)
            parts.append(f"cpu={order.cpu_milli}m" if rest else f"cpu={whole}")
        if order.memory_bytes is not None:
            parts.append(f"memory={format_binary(order.memory_bytes)}")
    ends = end_of(order)
    if ends is not None:
        name = "deadline" if isinstance(order, Drain) else "until"
        parts.append(f"{name}={datetime.fromtimestamp(int(ends), UTC):%Y-%m-%dT%H:%M:%SZ}")
    if isinstance(order, Drain) and order.releases:
        parts.append("release=true")
    if order.reason:
        if len(order.reason) > MAX_REASON_LENGTH or any(char in order.reason for char in ";\r\n"):
            raise OrderError(f"the reason may have {MAX_REASON_LENGTH} characters and no semicolon or line break")
        parts.append(f"reason={order.reason}")
    return "; ".join(parts) or "true"
