# SPDX-License-Identifier: Apache-2.0
"""Reading commands print stable plain columns when piped, JSON on request, and sentences when something is wrong."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest

from tests.unit.api.fake_reader import FakeReader, controller_view, node_view
from tests.unit.cli.conftest import Invoke
from yarn_copilot.cli.tables import Table, plain
from yarn_copilot.controller.view import ClusterView, ConfigView, ReasonView

MALFORMED = ReasonView(reason="OriginMalformed", message="origin is not JSON", since_seconds=4.0)


def test_nodes_are_one_line_each_with_a_header(invoke: Invoke, url: str) -> None:
    result = invoke("nodes", "--url", url)
    header, row = result.stdout.splitlines()
    assert header.split() == [
        "NODE", "ORIGIN", "KUBERNETES", "YARN-USED", "YARN-OFFERED", "CLAIMED", "AGE", "REASONS",
    ]  # fmt: skip
    assert row.split() == [
        "worker-1", "60.6/120.0Gi", "2.0/4.0Gi", "10.0/20.0Gi", "58.0/116.0Gi", "10.0/20.0Gi", "12s", "-",
    ]  # fmt: skip
    assert result.exit_code == 0


def test_wide_adds_columns_before_the_reasons(invoke: Invoke, url: str) -> None:
    header, row = invoke("nodes", "--url", url, "-o", "wide").stdout.splitlines()
    assert header.split()[-2:] == ["NODE-MANAGERS", "REASONS"]
    assert row.split()[-2:] == ["blue/worker-1:8041=RUNNING", "-"]
    assert len(header.split()) == len(row.split()) == 14


def test_problems_leaves_out_nodes_without_a_reason(invoke: Invoke, url: str, reader: FakeReader) -> None:
    assert "No node has a reason to look at." in invoke("nodes", "--url", url, "--problems").stderr
    reader.node_views.append(node_view("worker-2", MALFORMED))
    lines = invoke("nodes", "--url", url, "--problems").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["NODE", "worker-2"]
    assert lines[1].endswith("OriginMalformed")


def test_an_unmanaged_node_says_so(invoke: Invoke, url: str, reader: FakeReader) -> None:
    reader.node_views[:] = [node_view("worker-3", MALFORMED, managed=False)]
    assert invoke("nodes", "--url", url).stdout.splitlines()[1].endswith("NotManaged,OriginMalformed")


def test_json_is_the_answer_of_the_api(invoke: Invoke, url: str) -> None:
    content = json.loads(invoke("nodes", "--url", url, "-o", "json").stdout)
    assert content["leader"] is True
    assert content["nodes"][0]["claimed"]["cpu_milli"] == 10000


def test_queues_are_listed_with_shares(invoke: Invoke, url: str) -> None:
    header, row = invoke("queues", "--url", url).stdout.splitlines()
    assert header.split()[:4] == ["CLUSTER", "QUEUE", "STATE", "CAPACITY"]
    assert row.split() == [
        "blue", "root.batch", "RUNNING", "50.0%", "100.0%", "25.0%", "2/2048Mi", "0/0Mi", "2",
    ]  # fmt: skip


def test_clusters_are_listed_with_their_errors(invoke: Invoke, url: str, reader: FakeReader) -> None:
    reader.cluster_views.append(ClusterView(id="green", reachable=False, error="connection refused"))
    rows = invoke("clusters", "--url", url).stdout.splitlines()[1:]
    assert rows[0].split() == ["blue", "yes", "0.9s", "0", "RUNNING=3", "rm:8032", "-"]
    assert rows[1].endswith("connection refused")


def test_explain_prints_one_sentence_on_a_line(invoke: Invoke, url: str) -> None:
    result = invoke("explain", "worker-1", "--url", url)
    assert result.stdout.splitlines() == ["worker-1 is managed.", "Origin is 60646 milli-cores."]


def test_explain_of_an_unknown_node_fails_with_its_name(invoke: Invoke, url: str) -> None:
    result = invoke("explain", "no/body", "--url", url)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "node 'no/body' is not known" in result.stderr


def test_status_tells_role_configuration_and_what_is_missing(invoke: Invoke, url: str, reader: FakeReader) -> None:
    reader.view = controller_view(
        leader=False,
        leader_identity="pod-b",
        ready=False,
        ready_missing=["cluster blue has not answered yet"],
        config=ConfigView(path="/c.yaml", hash="abc", ok=False, error="/c.yaml:1: bad", needs_restart=["server.port"]),
    )
    text = invoke("status", "--url", url).stdout
    for part in (
        "role:         standby (leader: pod-b), term 2",
        "ready:        no",
        "missing:      cluster blue has not answered yet",
        "file on disk refused, last good one in force: /c.yaml:1: bad",
        "restart for:  server.port",
    ):
        assert part in text


def test_figures_without_an_age_are_pointed_out(invoke: Invoke, url: str, reader: FakeReader) -> None:
    reader.view = controller_view(kubernetes_age_seconds=None)
    assert "not every side has answered yet" in invoke("nodes", "--url", url).stderr


def test_old_figures_are_pointed_out(invoke: Invoke, url: str, reader: FakeReader) -> None:
    reader.view = controller_view(kubernetes_age_seconds=180.0)
    assert "these figures are 3m old" in invoke("nodes", "--url", url).stderr


def test_a_refused_connection_says_what_to_do(invoke: Invoke) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        result = invoke("nodes", "--url", f"http://127.0.0.1:{unused.getsockname()[1]}")
    assert result.exit_code == 1
    assert "connection refused. Is the controller running?" in result.stderr
    assert "port-forward" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://x", "http://"])
def test_a_wrong_url_is_named(invoke: Invoke, url: str) -> None:
    result = invoke("status", "--url", url)
    assert result.exit_code == 1
    assert "is not a URL such as http://127.0.0.1:8080" in result.stderr


def test_another_program_at_the_address_is_recognised(invoke: Invoke) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        program = (
            "import sys; from http.server import *\n"
            "class H(BaseHTTPRequestHandler):\n"
            "  def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b'<p>hello</p>')\n"
            "  def log_message(self, *a): pass\n"
            "import socket; s = socket.socket(fileno=int(sys.argv[1])); c, a = s.accept(); H(c, a, None); c.close()"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program, str(server.fileno())], pass_fds=[server.fileno()]
        ) as other:
            result = invoke("nodes", "--url", url)
            other.wait(10)
    assert "is not a yarn-copilot; check --url" in result.stderr


def test_the_variable_gives_the_address(invoke: Invoke, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARN_COPILOT_URL", url)
    assert invoke("nodes").exit_code == 0


def test_a_piped_subprocess_prints_ascii_without_escapes(url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "yarn_copilot.cli.main", "nodes", "--url", url],
        check=True,
        capture_output=True,
        env={**os.environ, "FORCE_COLOR": "1", "COLUMNS": "20"},
    )
    assert done.stdout.decode("ascii").count("\n") == 2
    assert b"\x1b" not in done.stdout


def test_a_reader_that_leaves_early_is_no_failure(url: str, reader: FakeReader) -> None:
    reader.node_views[:] = [node_view(f"worker-{number}") for number in range(5000)]
    command = f"'{sys.executable}' -m yarn_copilot.cli.main nodes --url {url} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def test_plain_tables_align_and_mark_empty_cells() -> None:
    table = Table(("name", "how many"), [["a", "1"], ["long name", ""]], frozenset({"how many"}))
    assert plain(table) == "NAME       HOW-MANY\na                 1\nlong name         -"


@pytest.mark.parametrize("command", ["queues", "clusters", "status", "explain worker-1"])
def test_every_reading_command_gives_the_answer_of_the_api_as_json(invoke: Invoke, url: str, command: str) -> None:
    content = json.loads(invoke(*command.split(), "--url", url, "-o", "json").stdout)
    assert content["leader"] is True
    assert content["age_seconds"] is not None


def test_wide_queues_have_more_columns(invoke: Invoke, url: str) -> None:
    header, row = invoke("queues", "--url", url, "-o", "wide").stdout.splitlines()
    assert header.split()[-1] == "AGE"
    assert row.split()[-4:] == ["?", "?", "?", "3.0s"]


def test_a_terminal_gets_every_name_whole(url: str) -> None:
    command = f"stty cols 60 2>/dev/null; '{sys.executable}' -m yarn_copilot.cli.main nodes --url {url}"
    done = subprocess.run(
        ["script", "--quiet", "--return", "--command", command, "/dev/null"],
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    )
    assert "worker-1" in done.stdout
    assert "yarn used" in done.stdout
    assert "Amounts are cores/memory." in done.stdout
