# SPDX-License-Identifier: Apache-2.0
"""Judge the ResourceManagers of a cluster: do they answer, let us write, and behave as we rely on."""

from __future__ import annotations

from collections.abc import Iterator

from yarn_copilot.cli.doctor.facts import ClusterFacts, ManagerFacts, Role
from yarn_copilot.cli.doctor.findings import Check, Finding, Severity
from yarn_copilot.cli.listing import some
from yarn_copilot.config.settings import Transport
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop import configuration_defaults as keys
from yarn_copilot.hadoop import errors, versions

CLOCK_WARNING_SECONDS = 5.0
CLOCK_ERROR_SECONDS = 300.0
"""Kerberos refuses tickets beyond five minutes."""

CAPACITY_SCHEDULER = "CapacityScheduler"
DEFAULT_CALCULATOR = "DefaultResourceCalculator"


def reachable(facts: ClusterFacts) -> Iterator[Finding]:
    """Check that one ResourceManager is active, and that no other is silent."""
    id_ = facts.cluster.id
    active = [manager for manager in facts.managers if manager.role is Role.ACTIVE]
    for manager in facts.managers:
        if manager.role is Role.FAILED and manager.error is not None:
            # One that is down beside an active one is what high availability is for.
            severity = Severity.WARNING if active else Severity.ERROR
            yield _failed(facts, manager, manager.error, severity)
    if len(active) > 1:
        yield Finding(
            check=Check.REACHABLE, severity=Severity.WARNING, cluster=id_,
            where=some(manager.address for manager in active), found=f"{len(active)} ResourceManagers claim to lead",
            why="until one of them is fenced, an update may go to the wrong one and is sent again later",
            fix="look at yarn rmadmin -getAllServiceState; shortly after a failover this ends by itself",
        )  # fmt: skip
    elif active:
        yield Finding(
            check=Check.REACHABLE, severity=Severity.OK, cluster=id_, where=active[0].address,
            found=f"the active ResourceManager answers{_standbys(facts)}",
        )  # fmt: skip
    elif facts.managers and all(manager.role is Role.STANDBY for manager in facts.managers):
        yield Finding(
            check=Check.REACHABLE, severity=Severity.ERROR, cluster=id_,
            where=some(manager.address for manager in facts.managers), found="every ResourceManager is on standby",
            why="nothing can be read or written until one is active",
            fix="look at the elector (ZooKeeper) or run yarn rmadmin -transitionToActive",
        )  # fmt: skip
    if active and facts.read_error is not None:
        yield _unread(facts, facts.read_error)


def _standbys(facts: ClusterFacts) -> str:
    count = sum(manager.role is Role.STANDBY for manager in facts.managers)
    return f", {count} on standby" if count else ""


def _failed(facts: ClusterFacts, manager: ManagerFacts, error: Exception, severity: Severity) -> Finding:
    id_ = facts.cluster.id
    where = f"{manager.rm_id} {manager.address}".strip()
    match error:
        case ConfigError():
            return Finding(
                check=Check.CONFIGURATION, severity=Severity.ERROR, cluster=id_, where=where, found=str(error),
                why="nothing can be asked of this cluster; the others are served", fix="mend the named key",
            )  # fmt: skip
        case errors.WrongPortError():
            return Finding(
                check=Check.PORT, severity=Severity.ERROR, cluster=id_, where=where, found=str(error),
                why="another protocol lives there, so no call can ever succeed",
                fix="yarn.resourcemanager.address is the client port (8032), .admin.address the admin port (8033), "
                ".webapp.address the web port (8088)",
            )  # fmt: skip
        case errors.FederationRouterError():
            return Finding(
                check=Check.PORT, severity=Severity.ERROR, cluster=id_, where=where, found=str(error),
                why="a Federation Router speaks for several ResourceManagers: over RPC it changes no node, and "
                "over REST it tells neither its version nor what queues wait for as they do",
                fix="give each sub-cluster a file of its own, <id>.yarn-site.xml, with the addresses of its "
                "ResourceManagers in place of the Router's",
            )  # fmt: skip
        case errors.AccessDeniedError() if _is_acl(error):
            return Finding(
                check=Check.ADMIN_ACL, severity=Severity.ERROR, cluster=id_, where=where, found=str(error),
                why="capacities cannot be changed, so YARN keeps what NodeManagers register with",
                fix=f"calls are made as {facts.user}: add the user that the ResourceManager takes this for to "
                "yarn.admin.acl (a blank separates users from groups) and run yarn rmadmin -refreshAdminAcls",
            )  # fmt: skip
        case errors.AccessDeniedError() | errors.AuthenticationError():
            why, fix = _why_not_authenticated(facts, error)
            return Finding(
                check=Check.AUTHENTICATION, severity=Severity.ERROR, cluster=id_, where=where, found=str(error),
                why=why, fix=fix,
            )  # fmt: skip
        case _:
            return Finding(
                check=Check.REACHABLE, severity=severity, cluster=id_, where=where, found=str(error),
                why="its nodes stay as they are while no ResourceManager answers",
                fix="check host name, port, network policy and whether the ResourceManager runs",
            )  # fmt: skip


def _why_not_authenticated(facts: ClusterFacts, error: Exception) -> tuple[str, str]:
    """Say which side does not accept the other, and what to do."""
    match error:
        case errors.ServerIdentityError() if facts.transport is Transport.REST:
            return (
                "this may be another server than the one that is meant, so its answer is not believed",
                "see whether a proxy before it takes WWW-Authenticate out of answers, and whether its keytab has "
                "HTTP/<host> with the host's canonical DNS name",
            )
        case errors.ServerIdentityError():
            return (
                "this may be another server than the one that is meant, so it was told nothing",
                "compare yarn.resourcemanager.principal (or .pattern) with the server's principal, and the DNS name of "
                "its host with both",
            )
        case errors.CredentialsError():
            return (
                "without valid credentials of our own no call can be made",
                "set hadoop.kerberos_principal and hadoop.kerberos_keytab; kinit -k -t KEYTAB PRINCIPAL tries them",
            )
    compare = (
        f"compare {_authentication_keys(facts)} here and there; with kerberos set hadoop.kerberos_principal and "
        "hadoop.kerberos_keytab"
    )
    if isinstance(error, errors.AccessDeniedError):
        return "the ResourceManager does not accept who we say we are", compare
    return "both sides do not agree on how to authenticate, so no call was made", compare


def _authentication_keys(facts: ClusterFacts) -> str:
    of_web = f" and {keys.HTTP_AUTHENTICATION}" if facts.transport is Transport.REST else ""
    return keys.AUTHENTICATION + of_web


def _is_acl(error: errors.AccessDeniedError) -> bool:
    return "doesn't have permission" in error.message


def _unread(facts: ClusterFacts, error: Exception) -> Finding:
    return Finding(
        check=Check.REACHABLE, severity=Severity.ERROR, cluster=facts.cluster.id,
        where=some(facts.cluster.client_addresses), found=f"the node list cannot be read: {error}",
        why="without it nothing is known of the NodeManagers, and nothing is written",
        fix="check yarn.resourcemanager.address (client port, 8032) and the network in between",
    )  # fmt: skip


def admin_acl(facts: ClusterFacts) -> Iterator[Finding]:
    """Check that we may change nodes, and whether everybody may."""
    id_, acl = facts.cluster.id, facts.told(keys.ADMIN_ACL)
    if facts.transport is Transport.RPC and any(manager.role is Role.ACTIVE for manager in facts.managers):
        yield Finding(
            check=Check.ADMIN_ACL, severity=Severity.OK, cluster=id_, where=keys.ADMIN_ACL,
            found=f"{facts.user} may change nodes",
        )  # fmt: skip
    enabled = (facts.told(keys.ACL_ENABLED) or "").strip().lower() == "true"
    if acl is not None and (acl.strip() == "*" or not enabled):
        yield Finding(
            check=Check.ADMIN_ACL, severity=Severity.WARNING, cluster=id_,
            where=f"{keys.ADMIN_ACL}, {keys.ACL_ENABLED}",
            found=f"{keys.ADMIN_ACL} = {acl.strip()!r}, {keys.ACL_ENABLED} = {str(enabled).lower()}",
            why="everybody who reaches the ResourceManager may change every node's capacity",
            fix=f"set {keys.ACL_ENABLED} to true and list administrators only in {keys.ADMIN_ACL}",
        )  # fmt: skip


def version(facts: ClusterFacts) -> Iterator[Finding]:
    """Check that updates cannot crash the ResourceManager, and that it keeps its promises."""
    known = [manager for manager in facts.managers if manager.version is not None]
    if not known:
        yield Finding(
            # Of one that answers nothing at all this is no news.
            check=Check.VERSION, severity=Severity.NOTE if _is_all_down(facts) else Severity.WARNING,
            cluster=facts.cluster.id,
            where=some(manager.web_address or "no web address" for manager in facts.managers),
            found="the ResourceManager's version is not known" + _web_reason(facts),
            why=f"below {versions.SAFE_TO_WRITE} an update can crash its scheduler, and nobody would notice before",
            fix="open the web port for this program, or check the version by hand",
        )  # fmt: skip
    for manager in known:
        yield from _judge_version(facts, manager)


def _is_all_down(facts: ClusterFacts) -> bool:
    return all(manager.role is Role.FAILED for manager in facts.managers)


def _web_reason(facts: ClusterFacts) -> str:
    reason = next((manager.web_error for manager in facts.managers if manager.web_error), None)
    return f": {reason}" if reason else ""


def _judge_version(facts: ClusterFacts, manager: ManagerFacts) -> Iterator[Finding]:
    id_, where, text = facts.cluster.id, manager.web_address or manager.address, manager.version or ""
    try:
        found = versions.parse_version(text)
    except ValueError as error:
        yield Finding(
            check=Check.VERSION, severity=Severity.WARNING, cluster=id_, where=where, found=str(error),
            why="whether updates are safe cannot be told", fix="check the version by hand",
        )  # fmt: skip
        return
    reason, missing = versions.why_not_to_write(found), versions.missing_guarantees(found)
    if reason:
        yield Finding(
            check=Check.VERSION, severity=Severity.WARNING if facts.is_forced else Severity.ERROR, cluster=id_,
            where=where, found=f"ResourceManager {text}", why="; ".join([reason, *missing]),
            fix=f"upgrade to {versions.SAFE_TO_WRITE} or newer. Nothing is written meanwhile, unless "
            "hadoop.allow_unsafe_version is true because your vendor has mended YARN-10651",
        )  # fmt: skip
        return
    tested = str(found) in versions.TESTED
    yield Finding(
        check=Check.VERSION, severity=Severity.OK, cluster=id_, where=where,
        found=f"ResourceManager {text}" + ("" if tested else f"; tested are {', '.join(versions.TESTED)}"),
    )  # fmt: skip


def clock(facts: ClusterFacts) -> Iterator[Finding]:
    """Check that clocks agree: ours, the ResourceManagers', and roughly those of the NodeManagers."""
    for manager in facts.managers:
        ahead = manager.clock_ahead_seconds
        if ahead is None:
            continue
        is_wrong = abs(ahead) > CLOCK_WARNING_SECONDS
        is_fatal = facts.cluster.security.is_kerberos and abs(ahead) > CLOCK_ERROR_SECONDS
        yield Finding(
            check=Check.CLOCK,
            severity=Severity.ERROR if is_fatal else Severity.WARNING if is_wrong else Severity.OK,
            cluster=facts.cluster.id, where=manager.web_address or manager.address,
            found=f"its clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} ours" if is_wrong
            else "its clock agrees with ours",
            why="Kerberos refuses tickets beyond 5 minutes, and times in logs do not fit together" if is_wrong else "",
            fix="run NTP (chrony) on both machines" if is_wrong else "",
        )  # fmt: skip
    ahead_nodes = [
        report.node_id
        for report in facts.reports or ()
        if report.last_health_report_millis / 1000 > facts.now + CLOCK_WARNING_SECONDS
    ]
    if ahead_nodes:
        yield Finding(
            check=Check.CLOCK, severity=Severity.WARNING, cluster=facts.cluster.id, where=some(ahead_nodes),
            found=f"{len(ahead_nodes)} NodeManagers report from the future",
            why="of two registrations of one host, the one with the wrong clock would be taken for the newer",
            fix="run NTP (chrony) on these machines",
        )  # fmt: skip


def calculator(facts: ClusterFacts) -> Iterator[Finding]:
    """Check that the CapacityScheduler counts vcores at all."""
    scheduler = facts.told(keys.SCHEDULER_CLASS) or _own(facts, keys.SCHEDULER_CLASS) or CAPACITY_SCHEDULER
    id_, file = facts.cluster.id, facts.scheduler_file
    if CAPACITY_SCHEDULER not in scheduler:
        yield Finding(
            check=Check.CALCULATOR, severity=Severity.NOTE, cluster=id_, where=keys.SCHEDULER_CLASS,
            found=f"{scheduler.rpartition('.')[2]} is in use",
            why="the FairScheduler counts vcores only in queues with policy drf, the FifoScheduler never",
            fix="set defaultQueueSchedulingPolicy to drf",
        )  # fmt: skip
    elif file is None:
        yield Finding(
            check=Check.CALCULATOR, severity=Severity.NOTE, cluster=id_, where="capacity-scheduler.xml",
            found="not in the Hadoop folder here, so it could not be checked",
            why=f"with {DEFAULT_CALCULATOR}, Hadoop's default, vcores are ignored and CPU is oversold",
            fix=f"make sure that {keys.RESOURCE_CALCULATOR} is "
            "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        )  # fmt: skip
    elif file.calculator is None or file.calculator.strip().endswith(DEFAULT_CALCULATOR):
        yield Finding(
            check=Check.CALCULATOR, severity=Severity.ERROR, cluster=id_, where=str(file.path),
            found=f"{keys.RESOURCE_CALCULATOR} is {file.calculator or 'not set, so ' + DEFAULT_CALCULATOR}",
            why="vcores are ignored when containers are placed, so YARN uses CPU that was never offered",
            fix=f"set {keys.RESOURCE_CALCULATOR} to org.apache.hadoop.yarn.util.resource.DominantResourceCalculator "
            "and restart the ResourceManager",
        )  # fmt: skip
    else:
        yield Finding(
            check=Check.CALCULATOR, severity=Severity.OK, cluster=id_, where=str(file.path),
            found=file.calculator.strip().rpartition(".")[2],
        )  # fmt: skip


def _own(facts: ClusterFacts, key: str) -> str | None:
    return None if facts.cluster.values is None else facts.cluster.values.text(key)


def transport(facts: ClusterFacts) -> Iterator[Finding]:
    """State the limits of REST where it is in use."""
    if facts.transport is not Transport.REST:
        return
    yield Finding(
        check=Check.TRANSPORT, severity=Severity.WARNING, cluster=facts.cluster.id, where="hadoop.transport",
        found="nodes are changed over REST",
        why=f"there is no admin ACL on that way: {_web_callers(facts)} may change nodes. Each node is a call of its "
        "own, nodes with custom resource types (GPUs) get no updates since these would be zero afterwards, and one odd "
        "node can hide the whole list",
        fix="use transport rpc where port 8033 is reachable; else let only this program reach the web port",
    )  # fmt: skip
    if facts.proxy_user and not facts.cluster.security.is_web_kerberos:
        yield Finding(
            check=Check.TRANSPORT, severity=Severity.WARNING, cluster=facts.cluster.id, where="hadoop.proxy_user",
            found=f"REST calls are not made in the name of {facts.proxy_user}",
            why="web services with simple authentication know no proxy users, so the ResourceManager sees the caller "
            "itself",
            fix=f"use transport rpc, or give the web services Kerberos ({keys.HTTP_AUTHENTICATION})",
        )  # fmt: skip
    custom = [
        report.node_id
        for report in facts.reports or ()
        if report.state.is_active and any(one.value for one in report.capability.custom)
    ]
    if custom:
        yield Finding(
            check=Check.TRANSPORT, severity=Severity.ERROR, cluster=facts.cluster.id, where=some(custom),
            found=f"{len(custom)} nodes have custom resource types",
            why="an update over REST would set these to zero, so these nodes are not written at all",
            fix="use transport rpc for this cluster",
        )  # fmt: skip


def _web_callers(facts: ClusterFacts) -> str:
    guarded = facts.cluster.security.is_web_kerberos
    return "everybody whom its Kerberos lets in" if guarded else "everybody who reaches the web port, under any name,"
