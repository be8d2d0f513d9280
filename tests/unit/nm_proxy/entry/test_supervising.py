# SPDX-License-Identifier: Apache-2.0
"""The decisions of init and supervisor: when to start again, when not, what is ready and what is healthy."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from nm_proxy.cli.supervise import parse
from nm_proxy.draining import DrainState
from nm_proxy.exit_codes import ExitCode
from nm_proxy.nodemanager.model import Answering
from nm_proxy.supervisor import init
from nm_proxy.supervisor.conditions import Condition, Phase, why_not_healthy, why_not_ready
from nm_proxy.supervisor.process import Launcher, LaunchError
from nm_proxy.supervisor.registration import connected_inodes, is_connected
from nm_proxy.supervisor.restarting import Restarts

READY = Condition(phase=Phase.RUNNING, answering=Answering.ANSWERS, is_healthy=True, is_connected=True, containers=2)
TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F49 0100007F:1F5F 01 00000000:00000000 00:00000000 00000000     0        0 111 1 0 20 4 30 10 -1
   1: 0100007F:1F4A 0100007F:1F5F 06 00000000:00000000 00:00000000 00000000     0        0 222 1 0 20 4 30 10 -1
   2: 0100007F:1F5F 0100007F:1F49 01 00000000:00000000 00:00000000 00000000     0        0 333 1 0 20 4 30 10 -1
"""


def exited(code: int) -> int:
    return code << 8


@pytest.mark.parametrize("code", [code for code in ExitCode if code is not ExitCode.FAILED])
def test_init_ends_when_starting_again_would_not_help(code: ExitCode) -> None:
    assert init.final_code(exited(code)) == int(code)


@pytest.mark.parametrize("status", [exited(1), exited(99), int(signal.SIGKILL), int(signal.SIGSEGV) | 0x80])
def test_init_starts_a_crashed_supervisor_again(status: int) -> None:
    assert init.final_code(status) is None


def test_init_starts_a_supervisor_that_keeps_crashing_less_and_less_often() -> None:
    restarts = init.restarts()
    waits = [restarts.ended(1.0) for _ in range(10)]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (init.RESTART_MIN_SECONDS, init.RESTART_MAX_SECONDS)
    assert restarts.ended(init.STABLE_SECONDS) == init.RESTART_MIN_SECONDS


def test_no_two_kinds_share_an_exit_code_and_each_says_what_it_means() -> None:
    assert len({int(code) for code in ExitCode.__members__.values()}) == len(ExitCode.__members__)
    assert all(code.meaning for code in ExitCode)
    assert all(0 <= code <= 63 for code in ExitCode)


def test_waits_double_up_to_a_limit_and_a_good_run_forgives() -> None:
    restarts = Restarts(min_seconds=1.0, max_seconds=60.0, stable_seconds=120.0)
    assert [restarts.ended(5.0) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert restarts.failures_now(119.0) == 8
    assert restarts.failures_now(120.0) == 0
    assert restarts.ended(5.0) == 1
    assert restarts.ended(500.0) == 1
    assert restarts.failures == 0
    for _ in range(5000):
        assert restarts.ended(0.0) <= 60.0


def test_ready_when_the_node_manager_answers_is_healthy_and_heartbeats() -> None:
    assert why_not_ready(READY) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"phase": Phase.BACKING_OFF}, "is backing-off", id="restarting"),
        pytest.param({"answering": Answering.HANGS, "detail": "3 s"}, "hangs (3 s)", id="hangs"),
        pytest.param({"answering": Answering.BABBLES}, "babbles", id="babbles"),
        pytest.param({"is_healthy": False, "health_report": "disk full"}, "unhealthy: disk full", id="unhealthy"),
        pytest.param({"is_connected": False}, "no connection to a ResourceManager", id="not registered"),
        pytest.param({"drain": DrainState.DRAINING}, "is draining", id="draining"),
        pytest.param({"agent_error": "no tree"}, "the agent does not work: no tree", id="agent"),
    ],
)
def test_says_why_it_is_not_ready(changes: dict[str, object], said: str) -> None:
    fields = {name: getattr(READY, name) for name in Condition.__dataclass_fields__}
    (reason,) = why_not_ready(Condition(**{**fields, **changes}))
    assert said in reason


@pytest.mark.parametrize(
    ("failures", "containers", "phase", "healthy"),
    [
        pytest.param(4, 0, Phase.BACKING_OFF, True, id="a few failures"),
        pytest.param(5, 0, Phase.BACKING_OFF, False, id="cannot be kept up, nothing to lose"),
        pytest.param(50, 1, Phase.BACKING_OFF, True, id="a restart of the container would cost a task"),
        pytest.param(50, None, Phase.BACKING_OFF, True, id="unknown is not none"),
        pytest.param(50, 0, Phase.STOPPING, True, id="stopping"),
    ],
)
def test_healthy_unless_a_new_container_would_help(
    failures: int, containers: int | None, phase: Phase, healthy: bool
) -> None:
    seen = Condition(phase=phase, failures=failures, containers=containers)
    assert (why_not_healthy(seen, start_failures=5) == "") is healthy


def test_reads_established_connections_to_the_tracker_only() -> None:
    assert connected_inodes(TABLE, {8031}) == {"111"}
    assert connected_inodes(TABLE, {8009}) == {"333"}
    assert connected_inodes("", {8031}) == set()


def test_a_connection_counts_only_for_the_process_that_holds_it(tmp_path: Path) -> None:
    for pid, inode in ((5, "111"), (6, "444")):
        (tmp_path / f"{pid}/net").mkdir(parents=True)
        (tmp_path / f"{pid}/net/tcp").write_text(TABLE)
        (tmp_path / f"{pid}/fd").mkdir()
        (tmp_path / f"{pid}/fd/3").symlink_to(f"socket:[{inode}]")
        (tmp_path / f"{pid}/fd/4").symlink_to("/dev/null")
    assert is_connected(5, {8031}, proc=tmp_path)
    assert not is_connected(6, {8031}, proc=tmp_path)
    assert not is_connected(5, {9999}, proc=tmp_path)
    assert not is_connected(7, {8031}, proc=tmp_path)


def test_the_supervisors_command_line_is_what_run_and_init_write() -> None:
    found = parse(["--config", "/c", "--", "yarn", "nodemanager", "-D", "a=b"])
    assert (found.config, found.command, found.stop_since) == (Path("/c"), ("yarn", "nodemanager", "-D", "a=b"), None)
    found = parse(["--", "yarn", "nodemanager", init.STOP_SINCE_OPTION, "12.5"])
    assert (found.config, found.command, found.stop_since) == (None, ("yarn", "nodemanager"), 12.5)


def test_statuses_of_the_tests_are_those_of_the_kernel() -> None:
    assert os.WIFEXITED(exited(3))
    assert os.WEXITSTATUS(exited(3)) == 3
    assert os.WIFSIGNALED(int(signal.SIGKILL))


def test_a_user_that_does_not_exist_and_a_place_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"hadoop\.user: the user 'no-such-user' does not exist"):
        Launcher(["true"], state_dir=tmp_path, user="no-such-user").start({})
    (tmp_path / "file").touch()
    with pytest.raises(LaunchError, match=r"supervisor\.state_dir must be a directory"):
        Launcher(["true"], state_dir=tmp_path / "file", user=None).start({})
