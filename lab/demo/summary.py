# SPDX-License-Identifier: Apache-2.0
"""Hold what a play showed, and judge whether it may call itself a success. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

_RULES: Final = {
    "strict": "mode strict sells no unit twice",
    "shared": "mode shared offers free capacity to both schedulers",
}
_APPLIED: Final = {
    "strict": "boundary moved, published and applied by the RM",
    "shared": "applied by the RM",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Hold the figures of one play; the names are those of the JSON file.

    Attributes:
        backend: `real` or `embedded`.
        oversold_samples: Readings in which both sides held more than origin because one took too much.
        excess_after_fall_samples: Readings in which they did because origin fell below what they had.
        unsettled_claims: Claims that at the end were not as the mode's rule has them, one sentence each.
        unsettled_capacities: Capacities that at the end were not as the mode's rule has them, one sentence each.
        controller_trouble: What is wrong with the controller at the end; None when it is healthy.
        propagation_p50_seconds: From the API server having taken a change of origin to the RM having applied it.
        claim_p50_seconds: From the RM showing another use to the claim on the Node saying so.
        unusable_percent: Part of origin's cpu, over time, that was free and that nobody who waited could have.
        pod_wait_seconds: Mean time that a batch pod waited for a node, one that never got any included.
        container_wait_seconds: Mean time that a container waited.
        pending_changes: Changes of origin that were never seen applied.
    """

    backend: str
    mode: str
    growth_window_seconds: float
    settle_seconds: float
    seed: int
    nodes: int
    duration_seconds: float
    startup_seconds: float
    samples: int
    oversold_samples: int
    excess_after_fall_samples: int
    highest_held_over_origin: float
    highest_held_over_origin_node: str
    kubernetes_writes: int
    yarn_writes: int
    other_kubernetes_writes: dict[str, int] = field(default_factory=dict)
    origin_changes: int
    propagation_samples: int
    propagation_p50_seconds: float | None
    propagation_p99_seconds: float | None
    unusable_percent: float
    pod_wait_seconds: float | None
    container_wait_seconds: float | None
    claim_samples: int
    claim_p50_seconds: float | None
    claim_p99_seconds: float | None
    pending_changes: int
    pods_bound: int
    containers_started: int
    containers_killed: int
    unsettled_claims: tuple[str, ...] = ()
    unsettled_capacities: tuple[str, ...] = ()
    controller_trouble: str | None = None

    def failures(self) -> list[str]:
        """Say which conditions of a success do not hold, one sentence each."""
        checks = [
            (
                self.mode != "strict" or self.oversold_samples == 0,
                f"{self.oversold_samples} readings show more handed out than origin",
            ),
            (self.containers_killed == 0, f"{self.containers_killed} running containers were killed"),
            (
                not self.unsettled_claims,
                "claims did not settle: " + "; ".join(self.unsettled_claims),
            ),
            (
                not self.unsettled_capacities,
                "capacities did not settle: " + "; ".join(self.unsettled_capacities),
            ),
            (self.controller_trouble is None, f"the controller is not healthy: {self.controller_trouble}"),
            (self.propagation_samples > 0, "no change of origin was seen to reach the ResourceManager"),
            (self.pending_changes == 0, f"{self.pending_changes} changes of origin never reached the ResourceManager"),
            (self.pods_bound > 0, "no batch pod was bound to a node"),
            (self.containers_started > 0, "no YARN container ran"),
            (self.kubernetes_writes > 0, "the controller wrote no claim"),
            (self.yarn_writes > 0, "the controller changed no capacity"),
        ]
        return [sentence for holds, sentence in checks if not holds]

    def to_json(self) -> dict[str, Any]:
        """Give the content of the JSON file."""
        return {**asdict(self), "failures": self.failures()}

    def sentences(self) -> list[str]:
        """Say the same to a person, one line each."""
        other = ", ".join(f"{count} {what}" for what, count in sorted(self.other_kubernetes_writes.items()))
        settle = f" with settle time {self.settle_seconds:g} s" if self.mode == "strict" else ""
        highest_on = self.highest_held_over_origin_node or "-"
        p50, p99 = _seconds(self.propagation_p50_seconds), _seconds(self.propagation_p99_seconds)
        return [
            f"mode {self.mode}{settle}, growth window {self.growth_window_seconds:g} s, {self.nodes} nodes, "
            f"seed {self.seed}, {self.backend} servers (up in {self.startup_seconds:.1f} s), "
            f"{self.duration_seconds:.1f} s played",
            f"highest K + Y against O: {self.highest_held_over_origin:.1%} on {highest_on}; oversold samples: "
            f"{self.oversold_samples} of {self.samples}, and {self.excess_after_fall_samples} right after origin fell "
            f"below what both had ({_RULES[self.mode]})",
            f"writes: {self.kubernetes_writes} claims to Nodes, {self.yarn_writes} updateNodeResource calls"
            + (f" (besides: {other})" if other else ""),
            f"change of origin taken by the API server -> {_APPLIED[self.mode]}: p50 {p50}, p99 {p99} over "
            f"{self.propagation_samples} changes (of {self.origin_changes}; the others asked for no other capacity)",
            "change of what YARN holds shown by the RM -> claimed on the Node: "
            f"p50 {_seconds(self.claim_p50_seconds)}, p99 {_seconds(self.claim_p99_seconds)} over "
            f"{self.claim_samples} changes",
            f"free and of no use to anybody: {self.unusable_percent:.1f} % of origin; mean wait of a pod "
            f"{_seconds(self.pod_wait_seconds)}, of a container {_seconds(self.container_wait_seconds)}",
            f"{self.pods_bound} batch pods bound, {self.containers_started} YARN containers ran, "
            f"{self.containers_killed} killed",
        ]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f} s"
