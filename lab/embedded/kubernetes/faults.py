# SPDX-License-Identifier: Apache-2.0
"""Script what goes wrong: each fault matches some calls and does one thing to so many of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any


class Action(Enum):
    """Name what a fault does."""

    REFUSE = auto()
    LOSE_ANSWER = auto()
    CUT = auto()
    SILENCE = auto()
    DELAY = auto()
    BODY = auto()
    WATCH_LINES = auto()


@dataclass(slots=True, kw_only=True, eq=False)
class Fault:
    """Hold one fault; made by the methods of `Faults`.

    Attributes:
        action: what happens.
        verb, resource, key: which calls; None is any.
        left: how many calls are still hit; None: all until `Faults.clear`.
        hits: how many were.
    """

    action: Action
    verb: str | None = None
    resource: str | None = None
    key: str | None = None
    left: int | None = 1
    hits: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)

    def matches(self, verb: str, resource: str, key: str) -> bool:
        """Tell whether a call is hit."""
        wanted = ((self.verb, verb), (self.resource, resource), (self.key, key))
        return self.left != 0 and all(want is None or want == have for want, have in wanted)


class Faults:
    """Hold the script; of several matching faults the first added that is not used up acts.

    All methods take `verb`, `resource` (plural with subresource), `key` (name or namespace/name) and `times`
    (None: until cleared) to say which calls are hit.
    """

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def refuse(
        self,
        code: int,
        *,
        reason: str = "InternalError",
        message: str = "scripted",
        retry_after: int | None = None,
        **calls: Any,
    ) -> Fault:
        """Answer with a Status before anything is done."""
        return self._add(Action.REFUSE, calls, code=code, reason=reason, message=message, retry_after=retry_after)

    def lose_answer(self, **calls: Any) -> Fault:
        """Do what is asked, then cut the connection instead of answering."""
        return self._add(Action.LOSE_ANSWER, calls)

    def cut(self, **calls: Any) -> Fault:
        """Cut the connection before anything is done."""
        return self._add(Action.CUT, calls)

    def silence(self, **calls: Any) -> Fault:
        """Take the request and never answer; a watch is opened and then says nothing, not even bookmarks."""
        return self._add(Action.SILENCE, calls)

    def delay(self, seconds: float, **calls: Any) -> Fault:
        """Wait before doing what is asked."""
        return self._add(Action.DELAY, calls, seconds=seconds)

    def body(self, body: bytes, *, code: int = 200, **calls: Any) -> Fault:
        """Answer with these bytes, whatever was asked."""
        return self._add(Action.BODY, calls, body=body, code=code)

    def watch_lines(self, data: bytes, *, then_cut: bool = False, **calls: Any) -> Fault:
        """Send raw bytes at the start of a watch, then go on as usual or cut the connection at once."""
        return self._add(Action.WATCH_LINES, {"verb": "watch", **calls}, data=data, then_cut=then_cut)

    def clear(self) -> None:
        """Remove all faults."""
        self._faults.clear()

    def take(self, verb: str, resource: str, key: str) -> Fault | None:
        """Use up one hit of the first fault that matches a call."""
        for fault in self._faults:
            if fault.matches(verb, resource, key):
                fault.hits += 1
                if fault.left is not None:
                    fault.left -= 1
                return fault
        return None

    def _add(self, action: Action, calls: dict[str, Any], **details: Any) -> Fault:
        left = calls.pop("times", 1)
        fault = Fault(action=action, left=left, details=details, **calls)
        self._faults.append(fault)
        return fault
