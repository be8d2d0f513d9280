# SPDX-License-Identifier: Apache-2.0
"""Count and measure what the agent does, and show what each container uses, in Prometheus' text format.

Events are ordinary prometheus-client metrics on a registry of their own. Figures per node and container are read from
the cgroup tree when somebody scrapes, by the callable given to `set_source`, so that they cost nothing in between.
Prefix: `yarn_copilot_node_`. Labels are closed sets, but for `container`, which is bounded by what runs on one node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from nm_proxy.cgroup.stats import Stats

LATENCY_BUCKETS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX: Final = "yarn_copilot_node_"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFigures:
    """Hold one container's figures for a scrape."""

    container_id: str
    stats: Stats
    vcores: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFigures:
    """Hold the figures of one scrape.

    Attributes:
        parent: YARN's directory as a whole; None where it does not exist.
        containers: each container that has a group.
        answering: the word for how the NodeManager answers, of `answering_words`.
        drain: the state of the drain, of `drain_words`.
        unsettled: containers that are not inside with their limits in force.
        lingering: containers that the NodeManager does not count any more and that have processes.
        lingering_memory_bytes: what those hold.
        lingering_cpu_milli: what those hold.
    """

    parent: Stats | None = None
    containers: Iterable[ContainerFigures] = ()
    answering: str = ""
    answering_words: tuple[str, ...] = ()
    drain: str = ""
    drain_words: tuple[str, ...] = ()
    unsettled: int = 0
    lingering: int = 0
    lingering_memory_bytes: int = 0
    lingering_cpu_milli: int = 0


@dataclass(frozen=True, slots=True)
class _Figure:
    name: str
    help: str
    read: Callable[[Stats], float | None]
    is_counter: bool = False


def _limit(stats: Stats) -> float | None:
    return stats.values.memory_bytes if stats.values else None


def _cpu_value(stats: Stats) -> float | None:
    return stats.values.cpu if stats.values else None


_FIGURES: Final = (
    _Figure("cpu_seconds", "Processor time used", lambda stats: stats.cpu_seconds, True),
    _Figure("cpu_value", "cpu.shares (cgroup v1) or cpu.weight (v2) in force", _cpu_value),
    _Figure(
        "throttled_periods", "Periods in which a cpu quota stopped it", lambda stats: stats.throttled_periods, True
    ),
    _Figure("throttled_seconds", "Time a cpu quota stopped it", lambda stats: stats.throttled_seconds, True),
    _Figure("memory_bytes", "Memory charged", lambda stats: stats.memory_bytes),
    _Figure("memory_peak_bytes", "Most memory that was charged", lambda stats: stats.memory_peak_bytes),
    _Figure("memory_limit_bytes", "Memory limit in force; absent without one", _limit),
    _Figure("memory_limit_hits", "Times the memory limit was met", lambda stats: stats.limit_hits, True),
    _Figure("oom_kills", "Processes killed by the kernel for memory", lambda stats: stats.oom_kills, True),
)


class AgentMetrics:
    """Hold every metric of the agent; methods are cheap and never raise."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._source: Callable[[], NodeFigures] = NodeFigures
        self._latency = Histogram(
            f"{_PREFIX}parenting_latency_seconds",
            "Time from a container's pid file to its limits in force with every process inside",
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        self._pass = Histogram(
            f"{_PREFIX}pass_seconds",
            "Duration of one pass over all containers",
            ["kind"],
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        self._repairs = Counter(
            f"{_PREFIX}repairs_total", "Values of ours that somebody else had changed", ["what"], registry=self.registry
        )
        self._kills = Counter(
            f"{_PREFIX}kills_total",
            "Containers ended, by who asked (api, controller, lingering, stop) and how it went (ended, failed)",
            ["asked_by", "result"],
            registry=self.registry,
        )
        self._errors = Counter(f"{_PREFIX}errors_total", "Steps that failed, by loop", ["loop"], registry=self.registry)
        self._adopted = Counter(f"{_PREFIX}adopted_containers_total", "Containers adopted", registry=self.registry)
        self._removed = Counter(f"{_PREFIX}removed_groups_total", "Empty groups removed", registry=self.registry)
        self.registry.register(_FigureCollector(lambda: self._source()))

    def set_source(self, source: Callable[[], NodeFigures]) -> None:
        """Give the callable that reads the figures; called once for each scrape."""
        self._source = source

    def observe_latency(self, seconds: float) -> None:
        """Record how long one container took from its pid file to its limits."""
        self._latency.observe(seconds)

    def observe_pass(self, kind: str, seconds: float) -> None:
        """Record one pass: `full` or `launch`."""
        self._pass.labels(kind).observe(seconds)

    def count_repairs(self, what: str, count: int) -> None:
        """Count repairs of a kind; `what` is a value of `parenting.planning.Repair`."""
        self._repairs.labels(what).inc(count)

    def count_kill(self, asked_by: str, *, ended: bool) -> None:
        """Count one container that was to be ended."""
        self._kills.labels(asked_by, "ended" if ended else "failed").inc()

    def count_error(self, loop: str, count: int = 1) -> None:
        """Count steps of a loop that failed."""
        self._errors.labels(loop).inc(count)

    def count_groups(self, *, adopted: int = 0, removed: int = 0) -> None:
        """Count containers that were adopted and groups that were removed."""
        self._adopted.inc(adopted)
        self._removed.inc(removed)

    def render(self) -> bytes:
        """Render everything in the text format 0.0.4; reads the tree, so call it off the event loop."""
        return generate_latest(self.registry)


class _FigureCollector(Collector):
    """Read figures when asked."""

    def __init__(self, source: Callable[[], NodeFigures]) -> None:
        self._source = source

    def describe(self) -> Iterable[Metric]:
        """Name nothing ahead, so that registering does not read the tree."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Read and hand out every family."""
        figures = self._source()
        containers = list(figures.containers)
        yield from _state_families(figures, len(containers))
        for figure in _FIGURES:
            yield _parent_family(figure, figures.parent)
            yield _container_family(figure, containers)
        yield from _pressure_families(figures.parent, containers)


def _family(name: str, help: str, labels: list[str], *, is_counter: bool) -> GaugeMetricFamily | CounterMetricFamily:
    kind = CounterMetricFamily if is_counter else GaugeMetricFamily
    return kind(_PREFIX + name, help, labels=labels)


def _parent_family(figure: _Figure, parent: Stats | None) -> Metric:
    family = _family(f"yarn_{figure.name}", f"{figure.help}: all containers", [], is_counter=figure.is_counter)
    value = figure.read(parent) if parent else None
    if value is not None:
        family.add_metric([], value)
    return family


def _container_family(figure: _Figure, containers: list[ContainerFigures]) -> Metric:
    name = f"container_{figure.name}"
    family = _family(name, f"{figure.help}: one container", ["container"], is_counter=figure.is_counter)
    for one in containers:
        value = figure.read(one.stats)
        if value is not None:
            family.add_metric([one.container_id], value)
    return family


def _pressure_families(parent: Stats | None, containers: list[ContainerFigures]) -> Iterator[Metric]:
    labels = ["resource", "kind"]
    whole = _family("yarn_pressure_seconds", "Stalled time (PSI): all containers", labels, is_counter=True)
    single = _family(
        "container_pressure_seconds", "Stalled time (PSI): one container", ["container", *labels], is_counter=True
    )
    for resource, kind, seconds in _pressures(parent):
        whole.add_metric([resource, kind], seconds)
    for one in containers:
        for resource, kind, seconds in _pressures(one.stats):
            single.add_metric([one.container_id, resource, kind], seconds)
    yield whole
    yield single


def _pressures(stats: Stats | None) -> Iterator[tuple[str, str, float]]:
    for resource, pressure in (stats.pressure if stats else {}).items():
        yield resource, "some", pressure.some_seconds
        if pressure.full_seconds is not None:
            yield resource, "full", pressure.full_seconds


def _state_families(figures: NodeFigures, containers: int) -> Iterator[Metric]:
    for name, help, value in (
        ("containers", "Containers that have a cgroup", containers),
        ("unsettled_containers", "Containers that are not inside with their limits in force", figures.unsettled),
        ("lingering_containers", "Containers that outlive what the NodeManager says", figures.lingering),
        ("lingering_memory_bytes", "Memory that lingering containers hold", figures.lingering_memory_bytes),
        ("lingering_cpu_cores", "Cores that lingering containers hold", figures.lingering_cpu_milli / 1000),
    ):
        family = _family(name, help, [], is_counter=False)
        family.add_metric([], value)
        yield family
    yield _word_family(
        "manager_answering", "1 for how the NodeManager answers", "how", figures.answering_words, figures.answering
    )
    yield _word_family("drain_state", "1 for the drain state that holds", "state", figures.drain_words, figures.drain)


def _word_family(name: str, help: str, label: str, words: tuple[str, ...], holds: str) -> Metric:
    family = _family(name, help, [label], is_counter=False)
    for word in words:
        family.add_metric([word], 1.0 if word == holds else 0.0)
    return family
