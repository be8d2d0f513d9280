# SPDX-License-Identifier: Apache-2.0
"""Go through a log and find every growth that sold what was sold already. Pure.

A violation is K or Y growing while K + P + Y > O as published. Two kinds of such growths are reported apart. One
rests on a permission that is older than a fall of O: what is handed out still fits into the origin before the fall, the
log shows no time since in which all that was permitted fitted into the new one, and the fall is recent. The other
cannot be decided: Kubernetes' side was told to have made room so closely (`order_seconds`) after YARN grew that it may
have been stored before, since versions are dated when they are told. Where the API server was away, all that was stored
since it was last heard is told after its return, and the order of that time is open in both directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from batch_resources.resources import BatchResources
from lab.judge.books import NodeBooks, Origins
from lab.judge.events import (
    CapacityEvent,
    ContainerEvent,
    Event,
    Finding,
    NodeVersion,
    PodVersion,
    Silence,
    Told,
    Verdict,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Say how exact the log is, in seconds.

    Attributes:
        order_seconds: the watch tells a version at most so long after it was stored.
        flight_seconds: a permission may be on its way for so long before the log shows it.
        fall_seconds: a growth so long after a fall of origin is laid to somebody else.
        claim_seconds: a claim may stay below use for so long; a time in which nothing was told does not count.
    """

    order_seconds: float = 0.25
    flight_seconds: float = 1.0
    fall_seconds: float = 10.0
    claim_seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class _Growth:
    """Be a growth that is looked at again when the order of events is out of doubt."""

    finding: Finding
    is_excused: bool


def judge(events: Iterable[Event], node_of: Mapping[str, str], tolerance: Tolerance | None = None) -> Verdict:
    """Judge a log.

    Args:
        events: in any order; they are sorted by time, versions of Kubernetes by resourceVersion.
        node_of: the node of each NodeManager, by node id; events of others are left out.
        tolerance: how exact the log is.
    """
    ordered = in_order(events)
    silences = [event for event in ordered if isinstance(event, Silence)]
    court = _Court(node_of, tolerance or Tolerance(), silences)
    for event in ordered:
        court.take(event)
    return court.verdict(ordered[-1].at if ordered else 0.0)


def in_order(events: Iterable[Event]) -> list[Event]:
    """Sort by time, where no version of Kubernetes is dated before one that it follows."""
    events = list(events)
    versions = [event for event in events if isinstance(event, NodeVersion | PodVersion)]
    others = [event for event in events if not isinstance(event, NodeVersion | PodVersion)]
    dated: list[tuple[float, int, Event]] = []
    latest = float("-inf")
    # A version of one kind may be told a little before an older one of the other kind: the newer one waits for it.
    for version in sorted(versions, key=lambda each: each.version):
        latest = max(latest, version.at)
        dated.append((latest, version.version, version))
    dated.extend((event.at, -1, event) for event in others)
    return [event for _, _, event in sorted(dated, key=lambda each: each[:2])]


class _Court:
    """Hold the books of all nodes."""

    def __init__(self, node_of: Mapping[str, str], tolerance: Tolerance, silences: Sequence[Silence]) -> None:
        self._node_of = node_of
        self._tolerance = tolerance
        self._silences = silences
        self._books: dict[str, NodeBooks] = {}
        self._doubtful: list[_Growth] = []
        self._violations: list[Finding] = []
        self._after_falls: list[Finding] = []
        self._undecided: list[Finding] = []
        self._below: list[str] = []
        self._growths = {"kubernetes": 0, "yarn": 0}
        self._oversold_since: dict[str, float] = {}
        self._oversold_seconds = 0.0

    def take(self, event: Event) -> None:
        self._settle_doubts(event.at)
        match event:
            case Silence():
                return
            case NodeVersion():
                books = self._of(event.node)
                books.version = event
                books.origins.publish(event.origin, event.at)
            case PodVersion():
                books = self._of(event.node)
                self._take_pod(books, event)
            case ContainerEvent():
                node = self._node_of.get(event.manager)
                if node is None:
                    return
                books = self._of(node)
                self._take_container(node, books, event)
            case CapacityEvent():
                node = self._node_of.get(event.manager)
                if node is None:
                    return
                books = self._of(node)
                books.capacities[event.manager] = event.capacity
        self._close(event, books)

    def _of(self, node: str) -> NodeBooks:
        known = self._books.get(node)
        if known is None:
            tolerance = self._tolerance
            origins = Origins(tolerance.flight_seconds, tolerance.fall_seconds)
            longest = max((silence.at - silence.since for silence in self._silences), default=0.0)
            known = self._books[node] = NodeBooks(origins, longest + 2 * tolerance.order_seconds)
        return known

    def _take_pod(self, books: NodeBooks, event: PodVersion) -> None:
        before = books.pods.get(event.pod)
        if event.request is None:
            books.pods.pop(event.pod, None)
            return
        books.pods[event.pod] = event.request
        if before is None:
            self._growths["kubernetes"] += 1
            self._look(event.node, books, event.at, side="kubernetes", what=event.pod)

    def _take_container(self, node: str, books: NodeBooks, event: ContainerEvent) -> None:
        if event.size is None:
            books.containers.pop(event.container, None)
            return
        is_known = event.container in books.containers
        books.containers[event.container] = event.size
        if not is_known:
            self._growths["yarn"] += books.version is not None
            self._look(node, books, event.at, side="yarn", what=event.container)

    def _look(self, node: str, books: NodeBooks, at: float, *, side: str, what: str) -> None:
        """Look at a growth right after it was booked."""
        origin = books.origins.current
        if origin is None:
            return
        finding = Finding(
            at=at,
            node=node,
            side=side,
            what=what,
            requested=books.requested,
            used=books.used,
            others=books.others,
            origin=origin,
        )
        in_use = _sum(finding)
        if not in_use.fits_in(origin):
            self._doubtful.append(_Growth(finding, books.origins.excuse(in_use, at)))

    def _settle_doubts(self, now: float) -> None:
        waiting = []
        for growth in self._doubtful:
            if now < self._told_until(growth.finding.at):
                waiting.append(growth)
            else:
                self._sort_in(growth)
        self._doubtful = waiting

    def _sort_in(self, growth: _Growth) -> None:
        finding = growth.finding
        if growth.is_excused:
            self._after_falls.append(finding)
        elif self._may_have_been_room(finding):
            self._undecided.append(finding)
        else:
            self._violations.append(finding)

    def _may_have_been_room(self, finding: Finding) -> bool:
        """Tell whether the other side may have made room before this growth, by all that is told too late.

        Versions come late, never early. So what made room for YARN may be told after it grew; and a pod that is told
        late may have been bound when YARN held less.
        """
        books = self._books[finding.node]
        if finding.side == "kubernetes":
            shown = books.shown_between(self._stored_since(finding.at), finding.at)
            return any((finding.requested + finding.others + each.used).fits_in(finding.origin) for each in shown)
        shown = books.shown_between(finding.at, self._told_until(finding.at))
        return any(each.origin is not None and (each.taken + finding.used).fits_in(each.origin) for each in shown)

    def _told_until(self, at: float) -> float:
        """Give the moment by which all that was stored before a moment has been told."""
        ends = [silence.at for silence in self._silences if silence.since <= at <= silence.at]
        return max(ends, default=at) + self._tolerance.order_seconds

    def _stored_since(self, at: float) -> float:
        """Give the first moment at which something may have been stored that was told at a moment of the log.

        Outside of silences that is the moment itself: nothing that YARN gave back before is forgotten.
        """
        order = self._tolerance.order_seconds
        begins = [silence.since for silence in self._silences if silence.since <= at <= silence.at + order]
        return min(begins, default=at)

    def _close(self, event: Told, books: NodeBooks) -> None:
        books.note(event.at)
        node = event.node if isinstance(event, NodeVersion | PodVersion) else self._node_of[event.manager]
        origin = books.origins.current
        is_oversold = origin is not None and not (books.requested + books.used + books.others).fits_in(origin)
        began_at = self._oversold_since.get(node)
        if is_oversold and began_at is None:
            self._oversold_since[node] = event.at
        elif not is_oversold and began_at is not None:
            self._oversold_seconds += event.at - self._oversold_since.pop(node)
        self._note_claim(node, books, event.at)

    def _note_claim(self, node: str, books: NodeBooks, at: float) -> None:
        is_covered = books.version is None or books.used.fits_in(books.version.claimed)
        if not is_covered:
            books.uncovered_since = at if books.uncovered_since is None else books.uncovered_since
        elif books.uncovered_since is not None:
            self._end_gap(node, books, at)

    def _end_gap(self, node: str, books: NodeBooks, at: float) -> None:
        since, books.uncovered_since = books.uncovered_since, None
        if since is None:
            return
        silent = sum(max(min(at, each.at) - max(since, each.since), 0.0) for each in self._silences)
        if at - since - silent > self._tolerance.claim_seconds:
            self._below.append(f"{node}: from {since:.3f} to {at:.3f} less was claimed than used")

    def verdict(self, now: float) -> Verdict:
        self._settle_doubts(float("inf"))
        for node, books in self._books.items():
            self._end_gap(node, books, now)
        oversold = self._oversold_seconds + sum(now - since for since in self._oversold_since.values())
        return Verdict(
            violations=tuple(self._violations),
            after_falls=tuple(self._after_falls),
            undecided=tuple(self._undecided),
            claims_below_use=tuple(self._below),
            growths=dict(self._growths),
            oversold_seconds=round(oversold, 3),
        )


def _sum(finding: Finding) -> BatchResources:
    return finding.requested + finding.used + finding.others
