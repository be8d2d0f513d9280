# SPDX-License-Identifier: Apache-2.0
"""Count and measure what the controller does, in Prometheus' text format.

Loop and call figures are ordinary prometheus-client metrics on a registry of our own. Figures per node are not kept
here: `set_table_source` gives a callable that is asked at scrape time (see `table` and `exposition`).
All methods are cheap, never raise and belong to the event loop's thread.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, generate_latest

from yarn_copilot.observability.demand import DemandMetrics
from yarn_copilot.observability.exposition import render_table
from yarn_copilot.observability.table import Amount, MetricsTable, TableSource

CYCLE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Hold every metric of one controller process.

    Label values are small closed sets: `loop` one of the controller's loops, `error` an exception's class name,
    `target` kubernetes or yarn, `result` applied, unchanged, conflict, refused, failed, `kind` a Kubernetes kind.
    """

    def __init__(
        self, registry: CollectorRegistry | None = None, *, wall_clock: Callable[[], float] = time.time
    ) -> None:
        """Create the metrics on a registry of their own unless one is given."""
        self.registry = registry or CollectorRegistry()
        self._wall_clock = wall_clock
        self._table_source: TableSource = MetricsTable
        self._create_loop_metrics()
        self._create_write_metrics()
        self._create_outside_metrics()
        self._create_own_metrics()
        ProcessCollector(registry=self.registry)

    def _create_loop_metrics(self) -> None:
        self._cycle = Histogram(
            "yarn_copilot_loop_cycle_seconds",
            "Duration of one cycle of a loop",
            ["loop"],
            buckets=CYCLE_BUCKETS,
            registry=self.registry,
        )
        self._cycle_last = Gauge(
            "yarn_copilot_loop_last_success_timestamp_seconds",
            "Unix time at which a loop last finished a cycle without an error",
            ["loop"],
            registry=self.registry,
        )
        self._errors = Counter(
            "yarn_copilot_loop_errors_total",
            "Cycles or steps that failed, by class of error",
            ["loop", "error"],
            registry=self.registry,
        )
        self._propagation = Histogram(
            "yarn_copilot_capacity_propagation_seconds",
            "Time from seeing a change on a Node to a stage of the update: sent to the RM, or read back as applied",
            ["stage"],
            buckets=CYCLE_BUCKETS,
            registry=self.registry,
        )

    def _create_write_metrics(self) -> None:
        self._writes = Counter(
            "yarn_copilot_writes_total",
            "Write calls by target (kubernetes, yarn) and result",
            ["target", "result"],
            registry=self.registry,
        )
        self._events = Counter(
            "yarn_copilot_events_total",
            "Kubernetes Events recorded, by type and reason",
            ["type", "reason"],
            registry=self.registry,
        )

    def _create_outside_metrics(self) -> None:
        self._cluster_reachable = Gauge(
            "yarn_copilot_cluster_reachable",
            "1 while a YARN cluster's ResourceManager answers, else 0",
            ["cluster"],
            registry=self.registry,
        )
        self._cluster_age = Gauge(
            "yarn_copilot_cluster_read_age_seconds",
            "Time since a cluster's node list was last read",
            ["cluster"],
            registry=self.registry,
        )
        self._cluster_pending = Gauge(
            "yarn_copilot_cluster_pending_updates",
            "Updates that were sent to a cluster and are not confirmed yet",
            ["cluster"],
            registry=self.registry,
        )
        self.demand = DemandMetrics(self.registry)
        self._watch_age = Gauge(
            "yarn_copilot_watch_silence_seconds",
            "Time since the API server last said anything about a kind",
            ["kind"],
            registry=self.registry,
        )
        self._watch_lag = Gauge(
            "yarn_copilot_watch_lag_seconds",
            "How far the watch of Nodes was behind lately, by versions known from patches and reads of our own",
            registry=self.registry,
        )
        self._relists = Counter(
            "yarn_copilot_watch_relists_total",
            "Complete lists of a kind, the first one included",
            ["kind"],
            registry=self.registry,
        )
        self._malformed = Counter(
            "yarn_copilot_watch_malformed_objects_total",
            "Objects of a kind that could not be decoded",
            ["kind"],
            registry=self.registry,
        )

    def _create_own_metrics(self) -> None:
        self._leader = Gauge("yarn_copilot_leader", "1 on the replica that writes, else 0", registry=self.registry)
        self._term = Gauge("yarn_copilot_leader_term", "Times this process has become leader", registry=self.registry)
        self._ready = Gauge(
            "yarn_copilot_ready", "1 after the first complete view of all sides, else 0", registry=self.registry
        )
        self._reload_ok = Gauge(
            "yarn_copilot_config_last_reload_successful",
            "1 if the configuration file as it is now was accepted, 0 while the last good one stays in force",
            registry=self.registry,
        )
        self._reload_when = Gauge(
            "yarn_copilot_config_last_reload_timestamp_seconds",
            "Unix time of the last accepted configuration",
            registry=self.registry,
        )
        self._needs_restart = Gauge(
            "yarn_copilot_config_fields_needing_restart",
            "Fields whose new value waits for a restart",
            registry=self.registry,
        )
        self._config = Info("yarn_copilot_config", "Hash of the configuration in force", registry=self.registry)
        self._build = Info("yarn_copilot_build", "Version of the program", registry=self.registry)

    def set_table_source(self, source: TableSource) -> None:
        """Give the callable that hands out the rows per node; called once for each scrape."""
        self._table_source = source

    def observe_cycle(self, loop: str, seconds: float) -> None:
        """Record one cycle that ended well and took `seconds`."""
        self._cycle.labels(loop).observe(seconds)
        self._cycle_last.labels(loop).set(self._wall_clock())

    def count_error(self, loop: str, error: str | BaseException) -> None:
        """Count one failure of a loop; an exception counts under its class name."""
        name = error if isinstance(error, str) else type(error).__name__
        self._errors.labels(loop, name).inc()

    def observe_propagation(self, stage: str, seconds: float) -> None:
        """Record how long a change of a Node took to a stage: `sent` or `applied`."""
        self._propagation.labels(stage).observe(seconds)

    def count_write(self, target: str, result: str, count: int = 1) -> None:
        """Count `count` write calls to `kubernetes` or `yarn` by result."""
        self._writes.labels(target, result).inc(count)

    def count_event(self, type: str, reason: str) -> None:
        """Count one Kubernetes Event; type is Normal or Warning."""
        self._events.labels(type, reason).inc()

    def set_cluster(self, cluster: str, *, reachable: bool, age: float | None, pending_updates: int = 0) -> None:
        """Say how a cluster answers; `age` is in seconds, None before the first read (no sample then)."""
        self._cluster_reachable.labels(cluster).set(reachable)
        self._cluster_pending.labels(cluster).set(pending_updates)
        if age is not None:
            self._cluster_age.labels(cluster).set(age)

    def forget_cluster(self, cluster: str) -> None:
        """Drop the samples of a cluster that is not configured any more."""
        for gauge in (self._cluster_reachable, self._cluster_pending, self._cluster_age):
            with contextlib.suppress(KeyError):
                gauge.remove(cluster)
        self.demand.set_yarn(cluster, {})

    def set_yarn_demand(self, cluster: str, pending: Mapping[str, tuple[int, int]]) -> None:
        """Say what a cluster's partitions wait for, as (MiB, vcores); one that is missing has no sample."""
        self.demand.set_yarn(cluster, pending)

    def set_pod_demand(self, *, waiting: int, unserved: int, total: Amount) -> None:
        """Say how many pods wait, for how many nothing is moved, and what all of them ask for together."""
        self.demand.set_pods(waiting=waiting, unserved=unserved, total=total)

    def set_watch(self, kind: str, *, silence_seconds: float | None) -> None:
        """Say how long the API server has been silent about a kind; None before the first contact (no sample)."""
        if silence_seconds is not None:
            self._watch_age.labels(kind).set(silence_seconds)

    def set_watch_lag(self, seconds: float) -> None:
        """Say how far the watch of Nodes was behind lately."""
        self._watch_lag.set(seconds)

    def count_relist(self, kind: str) -> None:
        """Count one complete list of a kind."""
        self._relists.labels(kind).inc()

    def count_malformed(self, kind: str) -> None:
        """Count one object that could not be decoded."""
        self._malformed.labels(kind).inc()

    def set_leader(self, leader: bool, term: int) -> None:
        """Say whether this replica writes, and how often it has become leader."""
        self._leader.set(leader)
        self._term.set(term)

    def set_ready(self, ready: bool) -> None:
        """Say whether the first complete view exists."""
        self._ready.set(ready)

    def set_reload(self, ok: bool, config_hash: str = "", *, needs_restart: int = 0) -> None:
        """Say how the last look at the configuration file ended; the hash is that of the settings in force."""
        self._reload_ok.set(ok)
        if ok:
            self._reload_when.set(self._wall_clock())
            self._needs_restart.set(needs_restart)
            self._config.info({"hash": config_hash})

    def set_build(self, version: str) -> None:
        """Name the program's version."""
        self._build.info({"version": version})

    def chunks(self) -> Iterator[bytes]:
        """Render everything in the text format 0.0.4, piece by piece, the rows per node included."""
        yield generate_latest(self.registry)
        yield from render_table(self._table_source())

    def render(self) -> bytes:
        """Render everything at once."""
        return b"".join(self.chunks())
