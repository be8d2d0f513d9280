# SPDX-License-Identifier: Apache-2.0
"""Fence our writes of the claim by a counter that every one of them tests and changes.

A patch whose call ended without an answer may land much later. Testing the text of the claim alone does not stop it:
the text may be the same again. The counter never repeats, so once any newer value is on the Node, every patch that
tested an older one is dead. The annotation's text is `<number>.<term>`, the term naming one leader's time in office.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

_GRAMMAR: Final = re.compile(r"([0-9]{1,18})\.([A-Za-z0-9_-]{1,64})")


class Counter(Struct, frozen=True):
    """Hold the counter of a Node: its number, and whose write it was (empty: nobody's, or not readable)."""

    number: int = 0
    term: str = ""

    def text(self) -> str:
        """Give the annotation's text."""
        return f"{self.number}.{self.term}"

    def next(self, term: str) -> Counter:
        """Give the value that a write of `term` puts in place of this one."""
        return Counter(self.number + 1, term)


def read_counter(text: str | None) -> Counter:
    """Read the annotation; what is absent or not ours to read is number 0 of nobody."""
    match = _GRAMMAR.fullmatch(text) if text is not None else None
    return Counter() if match is None else Counter(int(match[1]), match[2])


class CounterMemory(Struct, frozen=True, kw_only=True):
    """Hold what this term knows of its own writes to one Node.

    Attributes:
        seen: the counter of the newest version seen.
        tested: the counter that our unresolved patches tested; None when none is unresolved.
    """

    seen: Counter = Counter()
    tested: Counter | None = None

    @property
    def has_outstanding_patch(self) -> bool:
        """Tell whether a patch of ours may still land."""
        return self.tested is not None

    def is_of_term(self, term: str) -> bool:
        """Tell whether the newest write was made by `term`, so that every patch before it is dead."""
        return bool(term) and self.seen.term == term


def note_patch_issued(memory: CounterMemory) -> CounterMemory:
    """Note that a patch which tests the newest counter is about to be sent."""
    return replace(memory, tested=memory.seen)


def note_patch_refused(memory: CounterMemory, *, others_are_unresolved: bool) -> CounterMemory:
    """Note that a patch was refused, so it changed nothing and never will.

    Args:
        memory: what was known before.
        others_are_unresolved: an earlier patch that tested the same counter may still land.
    """
    return memory if others_are_unresolved else replace(memory, tested=None)


def observe_counter(memory: CounterMemory, counter: Counter) -> CounterMemory:
    """Take the counter of the Node's next version into account: a new value ends all patches that tested the old."""
    tested = memory.tested if memory.tested == counter else None
    return memory if counter == memory.seen and tested == memory.tested else CounterMemory(seen=counter, tested=tested)
