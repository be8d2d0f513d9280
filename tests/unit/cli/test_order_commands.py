# SPDX-License-Identifier: Apache-2.0
"""Commands that give orders refuse a wrong command line before anything is asked or written."""

from __future__ import annotations

import pytest
from msgspec.structs import replace as changed

from tests.unit.api.fake_reader import FakeReader, node_view
from tests.unit.cli.conftest import Invoke
from yarn_copilot.cli import draining, node_orders
from yarn_copilot.cli.api_client import APIClient
from yarn_copilot.cli.durations import parse_duration
from yarn_copilot.cli.errors import CommandError
from yarn_copilot.cli.progress import Progress
from yarn_copilot.cli.reporting import summarise
from yarn_copilot.controller.view import BatchView, DrainView, OrderView, PlannedView
from yarn_copilot.kube.errors import ForbiddenError, KubeAPIError, KubeConnectionError, NotFoundError

ORDER = OrderView(order="drain", text="true")


@pytest.mark.parametrize(
    ("text", "seconds"), [("45s", 45), ("30m", 1800), ("1h30m", 5400), ("2d", 172_800), (" 1d1h1m1s ", 90_061)]
)
def test_durations_are_read_with_their_units(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "0s", "soon", "m", "1m1h", "-1s", "1.5h"])
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="1h30m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(("drain",), "name one or more nodes", id="no node"),
        pytest.param(("drain", "worker-1", "-l", "a=b"), "one of both", id="names and selector"),
        pytest.param(("drain", "-l", "a in (b)"), "--selector", id="set selector"),
        pytest.param(("drain", "worker-1", "--deadline", "soon"), "30m", id="no duration"),
        pytest.param(("drain", "worker-1", "--undo", "--wait"), "do not go with it", id="undo and wait"),
        pytest.param(("cap", "worker-1"), "no amount is given", id="no amount"),
        pytest.param(("cap", "worker-1", "cpu=a"), "no quantity", id="no quantity"),
        pytest.param(("cap", "worker-1", "gpu=1"), "cpu, memory", id="other resource"),
        pytest.param(("cap", "worker-1", "cpu=1", "memory=1"), "one word", id="two words"),
        pytest.param(("cap", "worker-1", "cpu=1,reason=x"), "use --for and --reason", id="reason among amounts"),
        pytest.param(("fix", "worker-1", "cpu=1", "--clear"), "do not go with it", id="clear and amounts"),
        pytest.param(("pause", "worker-1", "--reason", "a;b"), "no semicolon", id="reason"),
        pytest.param(("release", "worker-1", "--all"), "one of both", id="release names and all"),
        pytest.param(("release", "worker-1"), "add --yes", id="nobody to ask"),
        pytest.param(("release", "worker-1", "--lease", "x"), "NAMESPACE/NAME", id="lease"),
    ],
)
def test_a_wrong_command_line_is_refused_with_what_is_allowed(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere/kubeconfig")
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "/nowhere" not in result.stderr


@pytest.mark.parametrize("command", ["drain", "pause", "resume", "cap", "fix", "release"])
def test_help_shows_an_example_of_each_command(invoke: Invoke, command: str) -> None:
    text = invoke(command, "--help").stdout
    assert f"  yarn-copilot {command} " in text


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(NotFoundError("GET x: 404"), "there is no node 'worker-1'; see `kubectl get nodes`", id="unknown"),
        pytest.param(ForbiddenError("GET x: 403"), "GET x: 403; .*ClusterRole yarn-copilot-operator", id="forbidden"),
        pytest.param(KubeConnectionError("GET x: refused"), "node 'worker-1': GET x: refused", id="no answer"),
    ],
)
def test_what_the_api_server_refuses_is_told_with_what_to_do(error: KubeAPIError, words: str) -> None:
    with pytest.raises(CommandError, match=words), node_orders.told("node 'worker-1'"):
        raise error


def _show(reader: FakeReader, drain: DrainView | None) -> None:
    reader.node_views[:] = [changed(node_view(), drain=drain, orders=[ORDER] if drain else [])]


def test_waiting_shows_what_is_left_and_ends_when_the_node_is_drained(
    url: str, reader: FakeReader, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [
        DrainView(state="draining", containers=3),
        DrainView(state="draining", containers=3),
        DrainView(state="draining", containers=None),
        DrainView(state="drained", containers=0),
    ]
    _show(reader, None)

    def sleep(_: float) -> None:
        _show(reader, steps.pop(0))

    assert draining.wait_drained(APIClient(url), ["worker-1"], progress=Progress(), sleep=sleep) == []
    assert capsys.readouterr().out.splitlines() == [
        "worker-1: waiting for the controller to see the order",
        "worker-1: draining, 3 containers left",
        "worker-1: draining, an unknown number of containers left",
        "worker-1: drained",
    ]


def test_waiting_ends_when_the_deadline_is_over_and_when_the_order_is_taken_back(url: str, reader: FakeReader) -> None:
    _show(reader, DrainView(state="overdue", containers=2))
    late = draining.wait_drained(APIClient(url), ["worker-1"], progress=Progress(), sleep=lambda _: None)
    assert late == ["worker-1"]
    _show(reader, DrainView(state="draining", containers=2))
    with pytest.raises(CommandError, match="was taken back"):
        draining.wait_drained(APIClient(url), ["worker-1"], progress=Progress(), sleep=lambda _: _show(reader, None))


def test_waiting_ends_with_what_to_do_when_the_controller_does_not_see_the_order(url: str, reader: FakeReader) -> None:
    _show(reader, None)
    slept: list[float] = []
    with pytest.raises(CommandError, match=r"does not see the order on worker-1.*is written and stays.*status"):
        draining.wait_drained(APIClient(url), ["worker-1"], progress=Progress(), sleep=slept.append)
    assert sum(slept) == 60


def test_the_report_adds_up_what_is_known_and_counts_what_is_not(invoke: Invoke, url: str, reader: FakeReader) -> None:
    planned = PlannedView(
        capacity=BatchView(cpu_milli=60_000, memory_bytes=1 << 30),
        claim=BatchView(cpu_milli=1000, memory_bytes=1 << 30),
        writes=["claim"],
        because="observing",
    )
    known = changed(node_view("worker-1"), planned=planned, mode="strict")
    unknown = changed(node_view("worker-2"), planned=PlannedView(), capacity=None, claimed=None)
    reader.node_views[:] = [known, unknown, node_view("worker-3")]
    result = invoke("nodes", "--planned", "--url", url)
    header, first, second = result.stdout.splitlines()
    assert header.split() == [
        "NODE", "MODE", "CAPACITY", "PLANNED-CAPACITY", "CLAIM", "PLANNED-CLAIM", "LEFT-ALONE", "WOULD-BE-WRITTEN",
    ]  # fmt: skip
    assert first.split() == [
        "worker-1", "strict", "58.0/116.0Gi", "60.0/1.0Gi", "10.0/20.0Gi", "1.0/1.0Gi", "observing", "claim",
    ]  # fmt: skip
    assert second.split()[:3] == ["worker-2", "-", "?"]
    assert "2 nodes, 1 left alone, 1 would be written; capacity 58.0/116.0Gi -> 60.0/1.0Gi" in result.stderr
    assert "1 nodes with unknown figures" in result.stderr


def test_the_summary_of_nothing_is_zero() -> None:
    assert summarise([])["capacity"] == {"cpu_milli": 0, "memory_bytes": 0}
