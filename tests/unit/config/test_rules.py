# SPDX-License-Identifier: Apache-2.0
"""Rules that join several fields say which key to change, what is allowed, and why."""

from __future__ import annotations

import pytest

from yarn_copilot.config.loading import parse_settings
from yarn_copilot.config.rules import broken_rules
from yarn_copilot.config.settings import Settings
from yarn_copilot.errors import ConfigError


def test_the_defaults_break_no_rule() -> None:
    assert broken_rules(Settings()) == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param(
            "hadoop: {call_timeout_seconds: 6}",
            ["conf.yaml:1: hadoop.call_timeout_seconds: is 6", "below leader_election.renew_deadline_seconds (6)"],
            id="an RPC outlives the lease",
        ),
        pytest.param(
            "kubernetes: {request_timeout_seconds: 8}",
            ["kubernetes.request_timeout_seconds: is 8", "no call in flight"],
            id="an API call outlives the lease",
        ),
        pytest.param(
            "hadoop: {connect_timeout_seconds: 5}",
            ["hadoop.connect_timeout_seconds: is 5", "at most hadoop.call_timeout_seconds (4)"],
            id="connecting takes longer than a call",
        ),
        pytest.param(
            "leader_election: {retry_period_seconds: 6}",
            ["leader_election.retry_period_seconds: is 6", "below renew_deadline_seconds (6)"],
            id="retry is not below renew",
        ),
        pytest.param(
            "leader_election: {lease_duration_seconds: 6}",
            ["leader_election.renew_deadline_seconds: is 6", "below lease_duration_seconds (6)"],
            id="renew is not below the lease",
        ),
        pytest.param(
            "leader_election: {lease_duration_seconds: 6, renew_deadline_seconds: 5.5}",
            ["leader_election.lease_duration_seconds: is 6 but must be at least 7", "two retry periods"],
            id="no time for a renewal and a call",
        ),
        pytest.param(
            "{capacity: {mode: strict}, yarn: {message_lifetime_seconds: 4}}",
            ["yarn.message_lifetime_seconds: is 4 but must be above hadoop.call_timeout_seconds"],
            id="strict: a message dies with its call",
        ),
        pytest.param(
            "capacity: {strict: {yarn_weight: 0, kubernetes_weight: 0}}",
            ["capacity.strict.yarn_weight: is 0", "above 0"],
            id="strict: nobody has a share",
        ),
        pytest.param(
            "capacity: {strict: {fresh_read_seconds: 10}}",
            ["capacity.strict.fresh_read_seconds: is 10", "below settle_seconds (10)"],
            id="strict: a fresh read as old as the wait",
        ),
        pytest.param(
            "capacity: {mode: strict, batch_interval_seconds: 2}",
            ["capacity.strict.fresh_read_seconds: is 2", "batch_interval_seconds (2)"],
            id="strict: a fresh read too old for its plan",
        ),
        pytest.param(
            "{capacity: {mode: shared, cluster_modes: {a: strict}}, yarn: {lost_hold_seconds: 9}}",
            ["yarn.lost_hold_seconds: is 9", "message_lifetime_seconds (10)"],
            id="strict somewhere: a lost NodeManager forgotten before its last update is dead",
        ),
        pytest.param(
            "capacity: {node_modes: {'pool in (a)': shared}}",
            ["capacity.node_modes.pool in (a)", "key=value"],
            id="mode by a selector of another form",
        ),
        pytest.param(
            "yarn: {message_lifetime_seconds: 3}",
            ["yarn.message_lifetime_seconds: is 3", "at least hadoop.call_timeout_seconds (4)"],
            id="a message dies before its call ends",
        ),
        pytest.param(
            "capacity: {kubernetes_max_silence_seconds: 30}",
            ["capacity.kubernetes_max_silence_seconds: is 30", "kubernetes.watch_silence_timeout_seconds (70)"],
            id="quiet-watch",
        ),
        pytest.param(
            "yarn: {confirm_interval_seconds: 2}",
            ["yarn.confirm_interval_seconds: is 2", "at most poll_interval_seconds (1)"],
            id="confirming is slower than polling",
        ),
        pytest.param(
            "node_managers: {pod_selector: 'app in (a, b)'}",
            ["node_managers.pod_selector: 'app in (a' is not of the form key=value"],
            id="set-based selector",
        ),
        pytest.param(
            "node_managers: {host_node_selector: 'bad key=1'}",
            ["node_managers.host_node_selector: 'bad key' is not a label key"],
            id="selector with a wrong key",
        ),
        pytest.param(
            "node_managers: {pod_selector: 'a=b c'}",
            ["node_managers.pod_selector: 'b c' is not a label value"],
            id="selector with a wrong value",
        ),
        pytest.param(
            "node_managers: {cluster_weights: {blue: 0}}",
            ["node_managers.cluster_weights.blue: is 0", "from 1 to 1000000"],
            id="weight of zero",
        ),
        pytest.param(
            "leader_election: {lease_name: Yarn}",
            ["leader_election.lease_name: is 'Yarn'", "lower-case letters"],
            id="lease name",
        ),
        pytest.param(
            "leader_election: {namespace: a.b}",
            ["leader_election.namespace: is 'a.b'", "must be a namespace"],
            id="namespace",
        ),
    ],
)
def test_a_broken_rule_names_key_limit_and_reason(text: str, parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(text.encode(), "conf.yaml")
    for part in parts:
        assert part in str(caught.value)
