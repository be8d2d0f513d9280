# SPDX-License-Identifier: Apache-2.0
"""Hold the rules that join several fields, in one place.

A rule returns what is wrong with which key and why it matters, in words; None where it holds. The deadlines' order
is what fencing rests on: a deposed leader must have no call in flight when the next one starts to write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from yarn_copilot.config.selectors import SelectorError, parse_selector
from yarn_copilot.config.settings import CpuUnit, Settings, Transport

RULE_SENTENCES: Final[tuple[str, ...]] = (
    "`kubernetes.request_timeout_seconds` and `hadoop.call_timeout_seconds` are below "
    "`leader_election.renew_deadline_seconds`: a replica that loses the lease has no call in flight any more.",
    "In `leader_election`, `retry_period_seconds` is below `renew_deadline_seconds`, and that is below "
    "`lease_duration_seconds`.",
    "`leader_election.lease_duration_seconds` has room for the longest call and two retry periods.",
    "`hadoop.connect_timeout_seconds` is at most `hadoop.call_timeout_seconds`.",
    "`capacity.kubernetes_max_silence_seconds` is at least `kubernetes.watch_silence_timeout_seconds`: a healthy "
    "watch may be quiet for so long.",
    "`yarn.message_lifetime_seconds` is at least `hadoop.call_timeout_seconds`.",
    "Where mode strict is used, `yarn.message_lifetime_seconds` is above `hadoop.call_timeout_seconds`: an update "
    "may wait in the ResourceManager after its call has ended.",
    "Where mode strict is used, `yarn.lost_hold_seconds` is at least `yarn.message_lifetime_seconds`: an update may "
    "still reach a NodeManager that comes back.",
    "`capacity.strict.fresh_read_seconds` is above `capacity.batch_interval_seconds`: a read has to be younger "
    "than that when the plan made of it is sent.",
    "In `capacity.strict`, `yarn_weight` or `kubernetes_weight` is above 0.",
    "`capacity.strict.fresh_read_seconds` is below `capacity.strict.settle_seconds`.",
    "`capacity.strict.force_publication` is off with `capacity.cpu_unit: physical`, which counts vcores by the "
    "annotation that it removes for a moment.",
    "With `capacity.giving_way.forced`, `node_agents` are enabled, with `tls` and a `token_file`.",
    "`yarn.confirm_interval_seconds` is at most `yarn.poll_interval_seconds`.",
    "Label keys of `node_labels` are Kubernetes label keys, attribute names have letters, digits, '-' and '_'; "
    "labels and attributes need `hadoop.transport: rpc` for every cluster.",
    "Selectors have the equality form: `key=value` or `key!=value`, comma separated.",
    "Weights of `node_managers.cluster_weights` are from 1 to 1000000.",
    "`leader_election.lease_name` and `leader_election.namespace` are Kubernetes names.",
)
"""Say the rules for the reference page, where the functions below say them for one broken value."""

_ATTRIBUTE_NAME: Final = re.compile(r"^[0-9a-zA-Z][0-9a-zA-Z_-]{0,254}$")
_DNS_NAME: Final = re.compile(r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")
_DNS_LABEL: Final = re.compile(r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")


class Problem(NamedTuple):
    """Name the key that should be changed and say what is wrong."""

    path: str
    message: str


def broken_rules(settings: Settings) -> list[Problem]:
    """List every rule that does not hold, in the order of the file's sections."""
    return [problem for rule in _RULES for problem in rule(settings)]


def _deadlines(settings: Settings) -> Iterator[Problem]:
    election = settings.leader_election
    renew = election.renew_deadline_seconds
    for path, value in (
        ("kubernetes.request_timeout_seconds", settings.kubernetes.request_timeout_seconds),
        ("hadoop.call_timeout_seconds", settings.hadoop.call_timeout_seconds),
    ):
        if value >= renew:
            yield Problem(
                path,
                f"is {value:g} but must be below leader_election.renew_deadline_seconds ({renew:g}), so that a replica "
                "that loses the lease has no call in flight any more",
            )
    if settings.hadoop.connect_timeout_seconds > settings.hadoop.call_timeout_seconds:
        yield Problem(
            "hadoop.connect_timeout_seconds",
            f"is {settings.hadoop.connect_timeout_seconds:g} but must be at most hadoop.call_timeout_seconds "
            f"({settings.hadoop.call_timeout_seconds:g}), because connecting is part of a call",
        )


def _election(settings: Settings) -> Iterator[Problem]:
    election = settings.leader_election
    if election.retry_period_seconds >= election.renew_deadline_seconds:
        yield Problem(
            "leader_election.retry_period_seconds",
            f"is {election.retry_period_seconds:g} but must be below renew_deadline_seconds "
            f"({election.renew_deadline_seconds:g}), so that a failed renewal is tried again in time",
        )
    if election.renew_deadline_seconds >= election.lease_duration_seconds:
        yield Problem(
            "leader_election.renew_deadline_seconds",
            f"is {election.renew_deadline_seconds:g} but must be below lease_duration_seconds "
            f"({election.lease_duration_seconds}), so that a leader stops before a standby takes over",
        )
    longest = max(settings.kubernetes.request_timeout_seconds, settings.hadoop.call_timeout_seconds)
    least = longest + 2 * election.retry_period_seconds
    if election.lease_duration_seconds < least:
        yield Problem(
            "leader_election.lease_duration_seconds",
            f"is {election.lease_duration_seconds} but must be at least {least:g}: the longest call ({longest:g}) and "
            "two retry periods, so that a leader can both renew and end its calls in time",
        )


def _yarn(settings: Settings) -> Iterator[Problem]:
    yarn, call = settings.yarn, settings.hadoop.call_timeout_seconds
    if yarn.message_lifetime_seconds < call:
        yield Problem(
            "yarn.message_lifetime_seconds",
            f"is {yarn.message_lifetime_seconds:g} but must be at least hadoop.call_timeout_seconds ({call:g}), "
            "because an update may still arrive while its call is open",
        )
    if yarn.confirm_interval_seconds > yarn.poll_interval_seconds:
        yield Problem(
            "yarn.confirm_interval_seconds",
            f"is {yarn.confirm_interval_seconds:g} but must be at most poll_interval_seconds "
            f"({yarn.poll_interval_seconds:g}): confirming is the faster of the two",
        )


def _silence(settings: Settings) -> Iterator[Problem]:
    limit, watch = settings.capacity.kubernetes_max_silence_seconds, settings.kubernetes.watch_silence_timeout_seconds
    if limit < watch:
        yield Problem(
            "capacity.kubernetes_max_silence_seconds",
            f"is {limit:g} but must be at least kubernetes.watch_silence_timeout_seconds ({watch:g}): a watch of a "
            "quiet cluster says nothing for up to a minute, and that must not stop the updates to YARN",
        )


def _strict(settings: Settings) -> Iterator[Problem]:
    strict, yarn, call = settings.capacity.strict, settings.yarn, settings.hadoop.call_timeout_seconds
    if settings.capacity.is_strict_somewhere and yarn.message_lifetime_seconds == call:
        yield Problem(
            "yarn.message_lifetime_seconds",
            f"is {call:g} but must be above hadoop.call_timeout_seconds in mode strict, because an update may wait in "
            "the ResourceManager's queue after its call has ended",
        )
    if settings.capacity.is_strict_somewhere and yarn.lost_hold_seconds < yarn.message_lifetime_seconds:
        yield Problem(
            "yarn.lost_hold_seconds",
            f"is {yarn.lost_hold_seconds:g} but must be at least message_lifetime_seconds "
            f"({yarn.message_lifetime_seconds:g}) in mode strict, because an update may still reach a NodeManager that "
            "comes back",
        )
    if strict.fresh_read_seconds <= settings.capacity.batch_interval_seconds:
        yield Problem(
            "capacity.strict.fresh_read_seconds",
            f"is {strict.fresh_read_seconds:g} but must be above capacity.batch_interval_seconds "
            f"({settings.capacity.batch_interval_seconds:g}), or a read is always too old when its plan is made",
        )
    if strict.yarn_weight + strict.kubernetes_weight == 0:
        yield Problem(
            "capacity.strict.yarn_weight", "is 0 as kubernetes_weight is: one of them must be above 0 to share anything"
        )
    if strict.force_publication and settings.capacity.cpu_unit is CpuUnit.PHYSICAL:
        yield Problem(
            "capacity.strict.force_publication",
            "is true but must be false with capacity.cpu_unit physical: vcores are counted by the annotation "
            "cpu-normalization-ratio, which it removes for a moment",
        )
    if strict.fresh_read_seconds >= strict.settle_seconds:
        yield Problem(
            "capacity.strict.fresh_read_seconds",
            f"is {strict.fresh_read_seconds:g} but must be below settle_seconds ({strict.settle_seconds:g}): what a "
            "growth rests on has to be younger than what it waited for",
        )


def _forced(settings: Settings) -> Iterator[Problem]:
    agents = settings.node_agents
    if settings.capacity.giving_way.forced and not (agents.enabled and agents.tls and agents.token_file):
        yield Problem(
            "capacity.giving_way.forced",
            "is true but needs node_agents.enabled, node_agents.tls and node_agents.token_file: an agent kills "
            "only for who shows its token over TLS",
        )


def _selectors(settings: Settings) -> Iterator[Problem]:
    managers = settings.node_managers
    named = [
        ("node_managers.pod_selector", managers.pod_selector),
        ("node_managers.host_node_selector", managers.host_node_selector),
        *((f"capacity.node_modes.{text}", text) for text in settings.capacity.node_modes),
    ]
    for path, text in named:
        if text is None:
            continue
        try:
            parse_selector(text)
        except SelectorError as error:
            yield Problem(path, str(error))


def _weights(settings: Settings) -> Iterator[Problem]:
    for cluster, weight in settings.node_managers.cluster_weights.items():
        if not 1 <= weight <= 1_000_000:
            yield Problem(
                f"node_managers.cluster_weights.{cluster}",
                f"is {weight} but must be a whole number from 1 to 1000000; to leave a cluster out, remove its "
                "yarn-site.xml",
            )


def _labels(settings: Settings) -> Iterator[Problem]:
    labels = settings.node_labels
    for path, key in (
        ("node_labels.partition_label", labels.partition_label),
        *((f"node_labels.attributes.{key}", key) for key in labels.attributes),
    ):
        try:
            if key is not None:
                parse_selector(f"{key}=x")
        except SelectorError as error:
            yield Problem(path, str(error))
    for key, name in labels.attributes.items():
        if not _ATTRIBUTE_NAME.match(name):
            yield Problem(
                f"node_labels.attributes.{key}",
                f"is {name[:64]!r} but must be an attribute name: letters, digits, '-' and '_'",
            )
    if len(set(labels.attributes.values())) < len(labels.attributes):
        yield Problem("node_labels.attributes", "maps two labels to one attribute; each needs a name of its own")
    transports = (settings.hadoop.transport, *settings.hadoop.cluster_transports.values())
    if (labels.partition_label or labels.attributes) and Transport.REST in transports:
        yield Problem("node_labels", "needs hadoop.transport rpc: the web services cannot write node attributes")


def _names(settings: Settings) -> Iterator[Problem]:
    election = settings.leader_election
    if not _DNS_NAME.match(election.lease_name):
        yield Problem(
            "leader_election.lease_name",
            f"is {election.lease_name[:64]!r} but must be a Kubernetes name: lower-case letters, digits, '-' and '.'",
        )
    if election.namespace is not None and not _DNS_LABEL.match(election.namespace):
        yield Problem(
            "leader_election.namespace",
            f"is {election.namespace[:64]!r} but must be a namespace: at most 63 lower-case letters, digits and '-'",
        )


_RULES: Final[tuple[Callable[[Settings], Iterator[Problem]], ...]] = (
    _deadlines,
    _yarn,
    _silence,
    _strict,
    _forced,
    _selectors,
    _weights,
    _labels,
    _election,
    _names,
)
