# SPDX-License-Identifier: Apache-2.0
"""Test that the NodeManager's pages are read in every shape, and container ids taken apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batch_resources.victims import ExecutionType
from nm_proxy.container_ids import application_of, is_application_master, is_container_id
from nm_proxy.nodemanager import pages
from nm_proxy.nodemanager.errors import NodeManagerAnswerError, NodeManagerError
from nm_proxy.nodemanager.pages import parse_applications, parse_containers, parse_info
from nm_proxy.nodemanager.pid_files import PidFiles, container_of, read_pid_file
from nm_proxy.nodemanager.processes import ProcessReader, parse_stat
from tests.unit.nm_proxy.world import container_id

ENTRY: dict[str, Any] = {
    "id": container_id(2),
    "state": "RUNNING",
    "exitCode": -1000,
    "user": "alice",
    "totalMemoryNeededMB": 2048,
    "totalVCoresNeeded": 3,
    "executionType": "GUARANTEED",
}


@pytest.mark.parametrize(
    ("document", "count"),
    [
        pytest.param({"containers": {"container": [ENTRY]}}, 1, id="a list"),
        pytest.param({"containers": {"container": ENTRY}}, 1, id="a single object"),
        pytest.param({"containers": [ENTRY]}, 1, id="a list without its name"),
        pytest.param({"containers": {"container": []}}, 0, id="an empty list"),
        pytest.param({"containers": {"container": None}}, 0, id="null inside"),
        pytest.param({"containers": {"container": {}}}, 0, id="an empty object inside"),
        pytest.param({"containers": {}}, 0, id="an empty object"),
        pytest.param({"containers": ""}, 0, id="an empty text"),
        pytest.param({"containers": None}, 0, id="null"),
    ],
)
def test_reads_containers_in_every_shape(document: object, count: int) -> None:
    found, malformed = parse_containers(document)
    assert len(found) == count
    assert malformed == 0
    if count:
        entry = found[container_id(2)]
        assert (entry.memory_mib, entry.vcores, entry.state, entry.user) == (2048, 3, "RUNNING", "alice")
        assert entry.execution_type is ExecutionType.GUARANTEED
        assert not entry.is_finished


@pytest.mark.parametrize("document", [None, [], "x", 5, {}, {"RemoteException": {"message": "x"}}])
def test_another_page_is_an_error(document: object) -> None:
    for parse in (parse_containers, parse_applications, parse_info):
        with pytest.raises(NodeManagerAnswerError):
            parse(document)


HUGE = "x" * 3_000_000


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({HUGE: 1}, id="a key"),
        pytest.param({f"{number}{HUGE[:1000]}": 1 for number in range(8)}, id="keys"),
        pytest.param([HUGE], id="a value"),
        pytest.param(HUGE, id="a text"),
        pytest.param({"nodeInfo": HUGE}, id="a page of something else"),
        pytest.param({"containers": {"container": [HUGE]}, "apps": HUGE}, id="entries"),
    ],
)
def test_what_is_said_of_an_answer_is_short_however_long_the_answer_is(document: object) -> None:
    for parse in (parse_containers, parse_applications, parse_info):
        try:
            found = repr(parse(document))
        except NodeManagerAnswerError as error:
            found = str(error)
        assert len(found) < 400


def test_what_is_read_of_the_node_is_short() -> None:
    every = ("id", "healthReport", "nodeManagerVersion", "nmStartupTime", "totalVCoresAllocatedContainers")
    assert len(repr(parse_info({"nodeInfo": {key: [HUGE] for key in every}}))) < 1000
    applications = parse_applications({"apps": {"app": [{"id": [HUGE], "state": {HUGE: 1}}]}})
    assert len(repr(applications)) < 400


@pytest.mark.parametrize(
    "entry",
    [None, 5, "x", {}, {"id": container_id(2)}, {"id": "../../etc", "state": "RUNNING"}, {"id": 5, "state": "x"}],
)
def test_an_entry_that_cannot_be_read_is_counted_and_the_others_are_kept(entry: object) -> None:
    found, malformed = parse_containers({"containers": {"container": [entry, ENTRY]}})
    assert list(found) == [container_id(2)]
    assert malformed == 1


@pytest.mark.parametrize(
    ("value", "read"),
    [("2048", 2048), (2048.0, 2048), (-1, None), (True, None), (1 << 40, None), ("x", None), ([], None), (1e400, None)],
)
def test_odd_numbers_are_read_or_unknown(value: object, read: int | None) -> None:
    found, _ = parse_containers({"containers": {"container": [{**ENTRY, "totalMemoryNeededMB": value}]}})
    assert found[container_id(2)].memory_mib == read


@pytest.mark.parametrize(
    ("state", "is_finished"),
    [
        ("NEW", False),
        ("LOCALIZING", False),
        ("KILLING", False),
        ("PAUSED", False),
        ("DONE", True),
        ("EXITED_WITH_FAILURE", True),
    ],
)
def test_a_container_that_is_being_killed_still_holds(state: str, is_finished: bool) -> None:
    found, _ = parse_containers(
        {"containers": {"container": {**ENTRY, "state": state, "executionType": "OPPORTUNISTIC"}}}
    )
    assert found[container_id(2)].is_finished is is_finished
    assert found[container_id(2)].execution_type is ExecutionType.OPPORTUNISTIC


def test_refuses_absurdly_many_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_CONTAINERS", 1)
    with pytest.raises(NodeManagerAnswerError, match="2 entries"):
        parse_containers({"containers": {"container": [ENTRY, ENTRY]}})


def test_reads_the_node() -> None:
    info = parse_info(
        {
            "nodeInfo": {
                "id": "host:8041",
                "nodeHealthy": True,
                "totalPmemAllocatedContainersMB": 4096,
                "totalVCoresAllocatedContainers": "8",
                "nodeManagerVersion": "3.5.0",
                "nmStartupTime": 1_700_000_000_123,
                "healthReport": "x" * 999,
            }
        }
    )
    assert (info.node_id, info.is_healthy, info.memory_mib, info.vcores) == ("host:8041", True, 4096, 8)
    assert info.started_at == 1_700_000_000.123
    assert len(info.health_report) == 256
    empty = parse_info({"nodeInfo": {}})
    assert (empty.node_id, empty.is_healthy, empty.started_at) == ("", False, None)


def test_reads_applications() -> None:
    document = {"apps": {"app": [{"id": "application_1_0001", "state": "RUNNING"}, {"state": "x"}, 5]}}
    assert parse_applications(document) == {"application_1_0001": "RUNNING"}


@pytest.mark.parametrize(
    ("name", "application", "is_master"),
    [
        (container_id(1), "application_1700000000000_0001", True),
        (container_id(2), "application_1700000000000_0001", False),
        (container_id(1, epoch=17, application=12), "application_1700000000000_0012", True),
        (container_id(1_000_001, epoch=3), "application_1700000000000_0001", False),
        ("container_1505269670687_0001_02_000001", "application_1505269670687_0001", True),
    ],
)
def test_takes_container_ids_apart_with_and_without_epoch(name: str, application: str, is_master: bool) -> None:
    assert is_container_id(name)
    assert application_of(name) == application
    assert is_application_master(name) is is_master


@pytest.mark.parametrize(
    "name",
    ["", "container_", "container_1_2_3_4", f"{container_id(2)}/..", f"x{container_id(2)}", f"{container_id(2)}\n"],
)
def test_other_texts_are_no_container_ids(name: str) -> None:
    assert not is_container_id(name)
    assert application_of(name) is None
    assert not is_application_master(name)


def test_finds_pid_files_in_every_local_directory_and_nothing_else(tmp_path: Path) -> None:
    for number, disk in ((2, "a"), (3, "b")):
        folder = tmp_path / disk / "nmPrivate/application_1700000000000_0001" / container_id(number)
        folder.mkdir(parents=True)
        (folder / f"{container_id(number)}.pid").write_text(f"{number}00\n")
        (folder / f"{container_id(number)}.pid.exitcode").write_text("0")
        (folder / "launch_container.sh").write_text("")
    (tmp_path / "a/nmPrivate/not-an-application").mkdir()
    (tmp_path / "a/nmPrivate/application_1700000000000_0001/not-a-container").mkdir()
    files = PidFiles([str(tmp_path / "a"), f"{tmp_path}/b/", str(tmp_path / "missing")])
    assert {name: file.pid for name, file in files.scan().items()} == {container_id(2): 200, container_id(3): 300}


def test_does_not_follow_a_link_to_another_file(tmp_path: Path) -> None:
    folder = tmp_path / container_id(2)
    folder.mkdir()
    (tmp_path / "secret").write_text("4711")
    (folder / f"{container_id(2)}.pid").symlink_to(tmp_path / "secret")
    assert read_pid_file(str(folder / f"{container_id(2)}.pid")) is None


@pytest.mark.parametrize("path", ["/a/b/c.pid", "/a/b/b.txt", "x", f"/a/{container_id(2)}/{container_id(3)}.pid"])
def test_a_path_that_names_no_container_is_no_pid_file(path: str) -> None:
    assert container_of(path) is None
    assert read_pid_file(path) is None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"7 (a b) c) S 3 7 5 0 0 0 0 0 0 0 0 0 0 0 0 0 4 0 99 0", (3, 5, 99)),
        (b"7 (x) Z 3 7 5 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 99 0", None),
        (b"7 (x) Z 3 7 5 0 0 0 0 0 0 0 0 0 0 0 0 0 3 0 99 0", (3, 5, 99)),
        (b"7 (x) S 3", None),
        (b"", None),
        (b"7 (x) S a b c d", None),
    ],
)
def test_reads_a_process_line_with_odd_names_and_dead_leaders(
    content: bytes, expected: tuple[int, int, int] | None
) -> None:
    process = parse_stat(7, content)
    assert (process and (process.parent, process.session, process.start_ticks)) == expected


def test_says_that_there_is_no_process_table(tmp_path: Path) -> None:
    with pytest.raises(NodeManagerError, match="mount /proc"):
        ProcessReader(str(tmp_path / "none")).table()


def test_counts_processes_that_vanish_while_it_looks(tmp_path: Path) -> None:
    (tmp_path / "123").mkdir()
    assert ProcessReader(str(tmp_path)).table().vanished == 1
