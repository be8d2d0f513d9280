# SPDX-License-Identifier: Apache-2.0
"""Turn the settings into the values that planner and loops take.

The one place where configuration keys meet domain names; used at start and at every reload.
"""

from __future__ import annotations

from batch_resources.dips import DipTimes
from batch_resources.giving_way import Stages
from batch_resources.planner.policy import Boundary, Minimum, Mode, Policy
from batch_resources.resources import BatchResources, YarnResources
from batch_resources.units import UnitModel
from yarn_copilot.config.settings import CapacitySettings, GivingWaySettings, Settings, StrictSettings
from yarn_copilot.controller.cluster_view.poller import PollSettings
from yarn_copilot.controller.manager_reports import BookSettings
from yarn_copilot.controller.node_agents.loop import AgentSettings
from yarn_copilot.controller.node_labels.plan import LabelRules
from yarn_copilot.controller.state.selectors import LabelSelector


def to_policy(settings: Settings) -> Policy:
    """Give the planner's policy."""
    capacity, yarn = settings.capacity, settings.yarn
    return Policy(
        units=UnitModel(milli_cores_per_vcore=capacity.milli_cores_per_vcore),
        floor=YarnResources(memory_mib=yarn.floor_memory_mib, vcores=yarn.floor_vcores),
        reserve_percent_cpu=capacity.reserve.cpu_percent,
        reserve_percent_memory=capacity.reserve.memory_percent,
        reserve_absolute=BatchResources(
            cpu_milli=capacity.reserve.cpu_milli, memory_bytes=capacity.reserve.memory_bytes
        ),
        dead_band=YarnResources(memory_mib=capacity.dead_band_memory_mib, vcores=capacity.dead_band_vcores),
        origin_max_age_seconds=capacity.origin_max_age_seconds,
        require_node_metric=capacity.require_node_metric,
        growth_window_seconds=capacity.growth_window_seconds,
        mode=Mode(capacity.default_mode.value),
        observes=capacity.observes,
        boundary=_to_boundary(capacity.strict),
        giving_way=_to_stages(capacity.giving_way),
        dips=_to_dips(capacity),
    )


def _to_dips(capacity: CapacitySettings) -> DipTimes:
    dips, window = capacity.dips, capacity.growth_window_seconds

    def recovery(seconds: float | None) -> float:
        return window if seconds is None else seconds

    return DipTimes(
        zero_hold_seconds=dips.zero_hold_seconds,
        degraded_recovery_seconds=recovery(dips.degraded_recovery_seconds),
        absent_recovery_seconds=recovery(dips.absent_recovery_seconds),
        malformed_recovery_seconds=recovery(dips.malformed_recovery_seconds),
    )


def _to_boundary(strict: StrictSettings) -> Boundary:
    return Boundary(
        yarn_weight=strict.yarn_weight,
        kubernetes_weight=strict.kubernetes_weight,
        kubernetes_minimum=Minimum(
            absolute=BatchResources(
                cpu_milli=strict.kubernetes_minimum_cpu_milli, memory_bytes=strict.kubernetes_minimum_memory_bytes
            ),
            percent_cpu=strict.kubernetes_minimum_cpu_percent,
            percent_memory=strict.kubernetes_minimum_memory_percent,
        ),
        yarn_minimum=Minimum(
            absolute=BatchResources(
                cpu_milli=strict.yarn_minimum_cpu_milli, memory_bytes=strict.yarn_minimum_memory_bytes
            ),
            percent_cpu=strict.yarn_minimum_cpu_percent,
            percent_memory=strict.yarn_minimum_memory_percent,
        ),
        force_publication=strict.force_publication,
        settle_seconds=strict.settle_seconds,
        fresh_read_seconds=strict.fresh_read_seconds,
        nudge_seconds=strict.nudge_seconds,
    )


def _to_stages(giving_way: GivingWaySettings) -> Stages:
    return Stages(
        graded=giving_way.graded,
        grace_seconds=giving_way.grace_seconds,
        preemption_seconds=giving_way.preemption_timeout_seconds,
        forced=giving_way.forced,
        forced_after_seconds=giving_way.forced_after_seconds,
    )


def to_agent_settings(settings: Settings) -> AgentSettings:
    """Give how the agents beside NodeManagers are asked."""
    return AgentSettings(
        interval_seconds=settings.node_agents.interval_seconds,
        parallel=settings.node_agents.parallel,
        kill_deadline_seconds=settings.capacity.giving_way.forced_deadline_seconds,
    )


def to_book_settings(settings: Settings) -> BookSettings:
    """Give the book's times and weights."""
    return BookSettings(
        lost_hold_seconds=settings.yarn.lost_hold_seconds,
        message_lifetime_seconds=settings.yarn.message_lifetime_seconds,
        foreign_hold_seconds=settings.capacity.foreign_writer_hold_seconds,
        default_cluster=settings.node_managers.default_cluster,
        cluster_weights=settings.node_managers.cluster_weights,
        drains_cordoned=settings.node_managers.drain_cordoned_nodes,
        settle_seconds=settings.capacity.strict.settle_seconds,
        default_mode=Mode(settings.capacity.default_mode.value),
        cluster_modes={id_: Mode(mode.value) for id_, mode in settings.capacity.cluster_modes.items()},
    )


def to_label_rules(settings: Settings) -> LabelRules:
    """Give what is mapped from labels of Nodes to partitions and attributes."""
    labels = settings.node_labels
    return LabelRules(partition_label=labels.partition_label, attributes=labels.attributes)


def to_node_modes(settings: Settings) -> list[tuple[LabelSelector, Mode]]:
    """Give the modes that labels of Nodes ask for."""
    modes = settings.capacity.node_modes
    return [(LabelSelector.parse(text), Mode(mode.value)) for text, mode in modes.items()]


def to_poll_settings(settings: Settings) -> PollSettings:
    """Give the times between two reads of a cluster."""
    return PollSettings(
        interval_seconds=settings.yarn.poll_interval_seconds,
        confirm_interval_seconds=settings.yarn.confirm_interval_seconds,
    )
