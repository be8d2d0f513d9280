# SPDX-License-Identifier: Apache-2.0
"""Bring moving sets of processes into their groups completely.

A process that is moved takes no children along that it forked before; those that it forks afterwards are born
inside. The kernel excludes forks while it moves (cgroup_threadgroup_rwsem), so once a write returned, every
child that was born outside can be seen in /proc. Hence: look, move, look again, until a look finds nobody outside.
All groups share each look, because a look at all processes is what costs most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from nm_proxy.cgroup.errors import CgroupError
from nm_proxy.cgroup.tree import CgroupTree

MAX_ROUNDS: Final = 64
"""A fork bomb can win every round; the next pass goes on with it."""

UNSURE_ROUNDS: Final = 2
"""On a busy node some process vanishes during every look; so many looks without anybody outside are believed."""


class Look(Protocol):
    """Be one look at all processes."""

    @property
    def is_sure(self) -> bool:
        """Tell whether nobody vanished while being looked at; else somebody may have been missed."""

    def belonging(self, path: str, inside: frozenset[int]) -> frozenset[int]:
        """Tell who belongs to a group, given who is inside now."""


@dataclass(slots=True)
class Gathered:
    """Hold how gathering one group ended, or where it stands.

    Attributes:
        pids: who belonged at the last look.
        writes: moves made, counting each hierarchy.
        rounds: looks taken.
        brought: processes that were outside of some hierarchy and are inside now.
        is_settled: a sure look found nobody outside.
        moved_at: when somebody was moved last, by the clock `now`; None: nobody was. Once settled, everyone who belongs
            has been inside since then.
        error: what stopped it; the other groups went on.
    """

    pids: frozenset[int] = frozenset()
    writes: int = 0
    rounds: int = 0
    brought: frozenset[int] = frozenset()
    is_settled: bool = False
    moved_at: float | None = None
    error: CgroupError | None = None
    _unsure: int = 0
    _strays: frozenset[int] = frozenset()


def gather(
    tree: CgroupTree,
    paths: Iterable[str],
    look: Callable[[], Look],
    *,
    is_complete: bool = False,
    begun: Mapping[str, Gathered] | None = None,
    max_rounds: int = MAX_ROUNDS,
    now: Callable[[], float] = time.time,
) -> dict[str, Gathered]:
    """Move everyone who belongs into their groups, in all hierarchies, until a sure look finds nobody outside.

    Args:
        tree: the cgroup tree.
        paths: existing groups.
        look: takes a look at all processes.
        is_complete: check every hierarchy in each round. Without it only the last one is checked, which is enough
            for processes that this function moved: it enters the last hierarchy last, so whoever is in that one is
            in all, and so are the children born since.
        begun: what `move_first` gave for some of the paths.
        max_rounds: when to stop although it goes on.
        now: the clock for `Gathered.moved_at`.

    Returns:
        How it ended, for each path.
    """
    results = {path: (begun or {}).get(path) or Gathered() for path in paths}
    open_paths = [path for path, result in results.items() if result.error is None]
    for _ in range(max_rounds):
        if not open_paths:
            break
        seen = look()
        for path in open_paths:
            if _step(tree, path, seen, results[path], is_complete=is_complete):
                results[path].moved_at = now()
        open_paths = [path for path in open_paths if not results[path].is_settled and results[path].error is None]
    return results


def move_first(tree: CgroupTree, path: str, pids: frozenset[int], *, now: Callable[[], float] = time.time) -> Gathered:
    """Move processes that are known to belong and to be outside, before the first look: then one look is mostly enough.

    Returns:
        Where it stands, for `gather` to go on with.
    """
    result = Gathered()
    try:
        result.writes = tree.move(path, pids, {})
        result._strays = pids
        result.moved_at = now()
    except CgroupError as error:
        result.error = error
    return result


def _step(tree: CgroupTree, path: str, look: Look, result: Gathered, *, is_complete: bool) -> bool:
    """Look at one group, and tell whether anybody was moved."""
    result.rounds += 1
    writes = result.writes
    try:
        present = tree.members(path) if is_complete else tree.last_members(path)
        inside = frozenset[int]().union(*present.values())
        result.pids = look.belonging(path, inside)
        wanted = result.pids | {pid for pid in inside if pid > 0}
        if is_complete and _outside(wanted, present):
            # The lists of two hierarchies are of two moments; who was born in between is missing from the first.
            present = tree.members(path)
        strays = _outside(wanted, present)
        if strays:
            result._strays |= strays
            result.writes += tree.move(path, strays, present)
            result._unsure = 0
        elif look.is_sure or result._unsure >= UNSURE_ROUNDS:
            result.is_settled = True
            result.brought = result._strays & inside
        else:
            result._unsure += 1
    except CgroupError as error:
        result.error = error
    return result.writes > writes


def _outside(wanted: frozenset[int], present: Mapping[str, frozenset[int]]) -> frozenset[int]:
    return frozenset().union(*(wanted - members for members in present.values()))
