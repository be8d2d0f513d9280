# SPDX-License-Identifier: Apache-2.0
"""Each fault of a ResourceManager is found and explained; a healthy one gives none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.doctor.seen import NM1, NOW, TOLD, cluster, facts, manager, problems, report
from yarn_copilot.cli.doctor import command, manager_checks
from yarn_copilot.cli.doctor.facts import Role, SchedulerFile
from yarn_copilot.cli.doctor.findings import Check, Severity, exit_code
from yarn_copilot.config.settings import Transport
from yarn_copilot.hadoop import configuration_defaults as keys
from yarn_copilot.hadoop.configuration import SecurityConfiguration
from yarn_copilot.hadoop.errors import (
    AccessDeniedError,
    AuthenticationError,
    ConnectError,
    CredentialsError,
    ServerIdentityError,
    WrongPortError,
)
from yarn_copilot.hadoop.model import Resource, ResourceInformation


def test_a_healthy_cluster_gives_no_problem_and_every_check_speaks() -> None:
    found = [finding for check in command.CHECKS for finding in check(facts())]
    assert [finding for finding in found if finding.severity is not Severity.OK] == []
    assert exit_code(found) == 0
    assert {finding.check for finding in found} >= {
        Check.REACHABLE, Check.ADMIN_ACL, Check.VERSION, Check.CLOCK, Check.CALCULATOR, Check.MINIMUM,
        Check.REGISTERED, Check.NAMES, Check.MATCHING,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("error", "check", "text"),
    [
        pytest.param(ConnectError("connection refused"), Check.REACHABLE, "refused", id="nobody listens"),
        pytest.param(WrongPortError("HTTP answered"), Check.PORT, "HTTP answered", id="wrong port"),
        pytest.param(
            AccessDeniedError(
                "org.apache.hadoop.security.AccessControlException", "User u doesn't have permission to call"
            ),
            Check.ADMIN_ACL, "doesn't have permission", id="not an administrator",
        ),
        pytest.param(
            AccessDeniedError("x", "SIMPLE authentication is not enabled.  Available:[KERBEROS]"),
            Check.AUTHENTICATION, "SIMPLE authentication", id="not authenticated",
        ),
    ],
)  # fmt: skip
def test_a_resource_manager_that_fails_is_an_error_of_its_kind(error: Any, check: Check, text: str) -> None:
    seen = facts(managers=(manager(role=Role.FAILED, error=error),), reports=None, read_error=error)
    (finding,) = problems(manager_checks.reachable, seen)
    assert (finding.check, finding.severity) == (check, Severity.ERROR)
    assert text in finding.found


@pytest.mark.parametrize(
    ("error", "why", "fix"),
    [
        pytest.param(CredentialsError("no tickets"), "credentials of our own", "kinit -k -t", id="no tickets"),
        pytest.param(ServerIdentityError("is hdfs/x"), "another server", "yarn.resourcemanager.principal", id="server"),
        pytest.param(AuthenticationError("asks for none"), "do not agree", "hadoop.security.auth", id="method"),
        pytest.param(AccessDeniedError("x", "GSS"), "does not accept who we say we are", "keytab", id="refused"),
    ],
)
def test_which_side_does_not_accept_the_other_is_told(error: Any, why: str, fix: str) -> None:
    seen = facts(managers=(manager(role=Role.FAILED, error=error),), reports=None, read_error=error)
    (finding,) = problems(manager_checks.reachable, seen)
    assert finding.check is Check.AUTHENTICATION
    assert why in finding.why
    assert fix in finding.fix


def test_a_web_service_that_does_not_prove_who_it_is_is_no_matter_of_rpc_principals() -> None:
    down = manager(role=Role.FAILED, error=ServerIdentityError("the web service did not prove that it is HTTP/rm1"))
    (finding,) = problems(manager_checks.reachable, facts(managers=(down,), transport=Transport.REST))
    assert "its answer is not believed" in finding.why
    assert "HTTP/<host>" in finding.fix
    assert "yarn.resourcemanager.principal" not in finding.fix


def test_an_unknown_version_of_one_that_is_down_is_no_news_of_its_own() -> None:
    down = manager(role=Role.FAILED, error=ConnectError("refused"), version=None)
    (finding,) = problems(manager_checks.version, facts(managers=(down,), reports=None))
    assert finding.severity is Severity.NOTE


def test_one_that_is_down_beside_an_active_one_is_a_warning() -> None:
    down = manager(rm_id="rm2", role=Role.FAILED, error=ConnectError("refused"))
    (finding,) = problems(manager_checks.reachable, facts(managers=(manager(), down)))
    assert finding.severity is Severity.WARNING
    assert finding.where.startswith("rm2")


def test_standbys_only_and_two_active_ones_are_told() -> None:
    standby = manager(role=Role.STANDBY)
    (finding,) = problems(manager_checks.reachable, facts(managers=(standby, standby)))
    assert (finding.severity, finding.found) == (Severity.ERROR, "every ResourceManager is on standby")
    (finding,) = problems(manager_checks.reachable, facts(managers=(manager(), manager())))
    assert finding.severity is Severity.WARNING
    assert problems(manager_checks.reachable, facts(managers=(standby, manager()))) == []


def test_a_client_port_that_does_not_answer_is_told_beside_an_admin_port_that_does() -> None:
    (finding,) = problems(manager_checks.reachable, facts(reports=None, read_error=ConnectError("refused")))
    assert finding.severity is Severity.ERROR
    assert "8032" in finding.where


@pytest.mark.parametrize(
    "told", [{keys.ADMIN_ACL: "*", keys.ACL_ENABLED: "true"}, {keys.ADMIN_ACL: "yarn", keys.ACL_ENABLED: "false"}]
)
def test_an_admin_port_open_to_everybody_is_a_warning(told: dict[str, str]) -> None:
    (finding,) = problems(manager_checks.admin_acl, facts(managers=(manager(properties=told),)))
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("version", "is_forced", "severity"),
    [
        pytest.param("3.2.1", False, Severity.ERROR, id="old"),
        pytest.param("3.3.0", False, Severity.ERROR, id="race"),
        pytest.param("3.2.1", True, Severity.WARNING, id="forced"),
        pytest.param("custom", False, Severity.WARNING, id="odd"),
        pytest.param(None, False, Severity.WARNING, id="unknown"),
    ],
)
def test_a_version_that_may_crash_or_is_unknown_is_told(
    version: str | None, is_forced: bool, severity: Severity
) -> None:
    seen = facts(managers=(manager(version=version, web_error=ConnectError("closed")),), is_forced=is_forced)
    (finding,) = problems(manager_checks.version, seen)
    assert finding.severity is severity


def test_what_an_old_version_lacks_is_said() -> None:
    (finding,) = problems(manager_checks.version, facts(managers=(manager(version="3.1.4"),)))
    assert "over-commit timeouts are ignored" in finding.why


@pytest.mark.parametrize(
    ("ahead", "kerberos", "severity"),
    [
        pytest.param(30.0, False, Severity.WARNING, id="ahead"),
        pytest.param(-30.0, True, Severity.WARNING, id="behind"),
        pytest.param(-400.0, True, Severity.ERROR, id="kerberos refuses"),
        pytest.param(400.0, False, Severity.WARNING, id="no kerberos"),
    ],
)
def test_clock_skew_is_told(ahead: float, kerberos: bool, severity: Severity) -> None:
    security = SecurityConfiguration(authentication="kerberos" if kerberos else "simple")
    seen = facts(managers=(manager(clock_ahead_seconds=ahead),), cluster=cluster(security=security))
    (finding,) = problems(manager_checks.clock, seen)
    assert finding.severity is severity
    assert ("ahead of" if ahead > 0 else "behind") in finding.found


def test_node_managers_from_the_future_are_told() -> None:
    late = report(NM1, last_health_report_millis=int((NOW + 60) * 1000))
    (finding,) = problems(manager_checks.clock, facts(reports=(late,)))
    assert str(NM1) in finding.where


@pytest.mark.parametrize(
    "calculator",
    [
        pytest.param(None, id="not set"),
        pytest.param("org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator", id="default"),
    ],
)
def test_a_calculator_that_ignores_vcores_is_an_error(calculator: str | None) -> None:
    file = SchedulerFile(path=Path("/conf/capacity-scheduler.xml"), calculator=calculator)
    (finding,) = problems(manager_checks.calculator, facts(scheduler_file=file))
    assert (finding.severity, finding.where) == (Severity.ERROR, "/conf/capacity-scheduler.xml")


def test_a_calculator_that_cannot_be_seen_is_a_note() -> None:
    (finding,) = problems(manager_checks.calculator, facts(scheduler_file=None))
    assert finding.severity is Severity.NOTE
    fair = manager(properties={**TOLD, keys.SCHEDULER_CLASS: "org.apache.hadoop.x.FairScheduler"})
    (finding,) = problems(manager_checks.calculator, facts(managers=(fair,)))
    assert "FairScheduler" in finding.found


def test_the_limits_of_rest_are_stated_and_nodes_with_custom_types_named() -> None:
    gpu = report(NM1, capability=Resource(1024, 1, (ResourceInformation("yarn.io/gpu", 1),)))
    limits, custom = problems(manager_checks.transport, facts(transport=Transport.REST, reports=(gpu,)))
    assert limits.severity is Severity.WARNING
    assert "no admin ACL" in limits.why
    assert (custom.severity, custom.where) == (Severity.ERROR, str(NM1))
    assert problems(manager_checks.transport, facts(reports=(gpu,))) == []
