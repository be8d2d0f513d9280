# SPDX-License-Identifier: Apache-2.0
"""Test the API over a real unix socket: the published protocol, real kills, abuse."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nm_proxy.copilot import serving, unix_socket
from nm_proxy.copilot.asks import MAX_BODY_BYTES
from nm_proxy.copilot.serving import ServerStartError
from tests.contract.nm_proxy.running import running, until
from tests.unit.nm_proxy.test_asks import REFUSED
from tests.unit.nm_proxy.world import container_id

GIB = 1 << 30


async def test_introduces_itself(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        assert await one.call("GET", "/information") == (200, {"name": "yarn", "version": "v1"})
        await until(lambda: one.agent.reader.view.asked_at is not None, "the NodeManager was asked")
        assert await one.call("GET", "/health") == (200, {"status": "ok", "nodeManager": "answers"})


@pytest.mark.parametrize("kind", ["v1", "v2"])
async def test_lists_containers_with_what_a_caller_needs_to_rank_them(tmp_path: Path, kind: str) -> None:
    async with running(tmp_path, kind=kind) as one:
        one.launch(1, vcores=1, memory_mib=512)
        one.launch(2, vcores=4, memory_mib=2048)
        one.launch(3, opportunistic=True)
        await one.settled(1, 2, 3)
        one.node.set_used(one.node.path(2), GIB)
        status, containers = await one.call("GET", "/v1/containers")
        assert status == 200
        master, task, cheap = containers
        assert [entry["priority"] for entry in containers] == [2, 1, 0]
        assert master["applicationMaster"] is True
        assert cheap["executionType"] == "OPPORTUNISTIC"
        assert task["name"] == task["uid"] == container_id(2)
        assert task["namespace"] == "yarn"
        assert task["cgroupDir"] == f"/{one.node.path(2)}"
        assert task["resources"]["limits"]["cpu"] == "4000m"
        assert task["resources"]["requests"]["kubernetes.io/batch-memory"] == str(2 * GIB)
        assert task["usage"]["memoryBytes"] == GIB
        assert task["usage"]["memoryLimitBytes"] == 2 * GIB
        assert task["usage"]["processes"] == 1
        assert task["labels"]["yarn.hadoop.apache.org/application-id"] == "application_1700000000000_0001"
        assert task["createTimestamp"].endswith("+00:00")
        assert task["parented"] is True
        assert (await one.call("GET", f"/v1/container?containerID={container_id(2)}"))[1] == task


async def test_a_container_that_nobody_knows_is_400_with_its_name(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        for status, answer in (
            await one.call("GET", f"/v1/container?containerID={container_id(9)}"),
            await one.call("POST", "/v1/killContainer", {"containerID": container_id(9)}),
        ):
            assert status == 400
            assert answer["error"] == f"no processes of {container_id(9)} are in a cgroup here"
        status, answer = await one.call("GET", "/v1/container")
        assert status == 400
        assert "containerID is missing" in answer["error"]


@pytest.mark.parametrize("kind", ["v1", "v2"])
async def test_kills_a_whole_container_and_nobody_else(tmp_path: Path, kind: str) -> None:
    async with running(tmp_path, kind=kind) as one:
        victim, other = one.launch(2), one.launch(3)
        child = one.node.kernel.processes.fork(victim.pid, new_session=True)
        await one.settled(2, 3)
        await until(lambda: one.node.is_inside(child.pid), "the child is inside")
        status, answer = await one.call("POST", "/v1/killContainer", {"containerID": container_id(2)})
        assert (status, answer["containerID"], answer["processes"]) == (200, container_id(2), 2)
        assert [(item["name"], item["usage"]["processes"]) for item in answer["items"]] == [(container_id(2), 2)]
        assert [one.is_alive(process) for process in (victim, child, other)] == [False, False, True]
        assert b'yarn_copilot_node_kills_total{asked_by="api",result="ended"} 1.0' in one.agent.metrics.render()


async def test_makes_room_by_the_policy_and_says_what_was_freed(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        master = one.launch(1, vcores=1)
        old = one.launch(2, vcores=4)
        await asyncio.sleep(0.05)  # starts are counted in hundredths of a second
        young = one.launch(3, vcores=4)
        await one.settled(1, 2, 3)
        status, answer = await one.call("POST", "/v1/killContainersByResource", {"resources": {"cpu": "3"}})
        assert status == 200
        assert [item["name"] for item in answer["items"]] == [container_id(3)]
        assert answer["freed"]["cpu"] == "4000m"
        assert answer["missing"]["cpu"] == "0m"
        assert [one.is_alive(process) for process in (master, old, young)] == [True, True, False]
        # The NodeManager still calls the victim running; it must not be counted a second time.
        status, answer = await one.call("POST", "/v1/killContainersByResource", {"resources": {"cpu": "5"}})
        assert [item["name"] for item in answer["items"]] == [container_id(2), container_id(1)]
        assert answer["missing"]["cpu"] == "0m"


async def test_says_what_could_not_be_freed(tmp_path: Path) -> None:
    async with running(tmp_path, copilot={"kill_timeout_seconds": 1}) as one:
        stuck = one.launch(3, vcores=2, memory_mib=1024)
        one.launch(2, vcores=1, memory_mib=1024)
        await one.settled(2, 3)
        stuck.is_unkillable = True
        status, answer = await one.call(
            "POST", "/v1/killContainersByResource", {"resources": {"kubernetes.io/batch-memory": str(2 * GIB)}}
        )
        assert status == 200
        assert [item["name"] for item in answer["items"]] == [container_id(2)]
        assert [failure["containerID"] for failure in answer["failed"]] == [container_id(3)]
        assert "alive after the deadline" in answer["failed"][0]["reason"]
        assert answer["freed"]["memory"] == answer["missing"]["memory"] == str(GIB)


async def test_two_callers_at_once_do_not_count_one_victim_twice(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        for number in range(2, 8):
            one.launch(number, vcores=1)
        await one.settled(*range(2, 8))
        ask = {"resources": {"cpu": 2}}
        answers = await asyncio.gather(*(one.call("POST", "/v1/killContainersByResource", ask) for _ in range(3)))
        names = [item["name"] for _, answer in answers for item in answer["items"]]
        assert len(names) == len(set(names)) == 6


async def test_a_bad_ask_is_answered_with_its_reason_and_kills_nobody(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        process = one.launch(2)
        await one.settled(2)
        for case in REFUSED:
            if case.id == "a bit more than the node":
                continue  # of the node of that table; this machine may be larger
            body, reason = case.values
            assert isinstance(body, bytes)
            status, answer = await one.call("POST", "/v1/killContainersByResource", data=body)
            assert status == (413 if len(body) > MAX_BODY_BYTES else 400), case.id
            assert str(reason) in answer["error"], case.id
        assert one.is_alive(process)


async def test_wrong_methods_and_paths_are_named(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        assert (await one.call("GET", "/v1/killContainer"))[0] == 405
        assert (await one.call("DELETE", "/v1/containers"))[0] == 405
        status, answer = await one.call("GET", "/v2/containers")
        assert status == 404
        assert "/v1/killContainersByResource" in answer["error"]


async def test_the_socket_is_roots_and_only_root_and_its_group_may_connect(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        found = one.socket.stat()
        assert stat.S_ISSOCK(found.st_mode)
        assert stat.S_IMODE(found.st_mode) == 0o660
        if os.geteuid() == 0:
            assert (found.st_uid, found.st_gid) == (0, 0)
    assert not one.socket.exists()


async def test_a_user_that_is_not_allowed_is_refused_by_the_kernels_word(tmp_path: Path) -> None:
    async with running(tmp_path, copilot={"allowed_uids": [12_345]}) as one:
        process = one.launch(2)
        await one.settled(2)
        status, answer = await one.call("POST", "/v1/killContainer", {"containerID": container_id(2)})
        assert status == 403
        assert f"user {os.geteuid()}" in answer["error"]
        assert one.is_alive(process)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_cannot_even_connect(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and str(folder).startswith("/tmp/"):  # noqa: S108 - pytest's own
            folder.chmod(folder.stat().st_mode | 0o011)
    async with running(tmp_path) as one:
        code = (
            "import os, socket, sys; os.setgid(65534); os.setuid(65534); "
            "socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        )
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, str(one.socket), stderr=subprocess.PIPE
        )
        _, errors = await program.communicate()
        assert b"PermissionError" in errors


async def test_a_connection_that_says_nothing_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "FIRST_REQUEST_SECONDS", 0.2)
    async with running(tmp_path) as one:
        reader, writer = await asyncio.open_unix_connection(str(one.socket))
        writer.write(b"GET /health HTTP/1.1\r\nX-Slow: ")
        async with asyncio.timeout(10):
            assert await _read_to_the_end(reader) == b""
        writer.close()
        assert (await one.call("GET", "/health"))[0] == 200


async def test_a_slow_body_ends_with_408(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "BODY_SECONDS", 0.2)
    async with running(tmp_path) as one:
        reader, writer = await asyncio.open_unix_connection(str(one.socket))
        writer.write(b"POST /v1/killContainer HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{")
        async with asyncio.timeout(10):
            assert b"408" in await reader.readline()
        writer.close()


@pytest.mark.parametrize(
    "garbage",
    [b"\x00" * 100 + b"\r\n\r\n", b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00"],
    ids=["zeros", "a long line", "a TLS greeting"],
)
async def test_garbage_harms_nobody(tmp_path: Path, garbage: bytes) -> None:
    async with running(tmp_path) as one:
        _, writer = await asyncio.open_unix_connection(str(one.socket))
        writer.write(garbage)
        await writer.drain()
        assert (await one.call("GET", "/health"))[0] == 200
        writer.close()


async def test_too_many_connections_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "MAX_CONNECTIONS", 4)
    async with running(tmp_path) as one:
        kept = [await asyncio.open_unix_connection(str(one.socket)) for _ in range(4)]
        reader, writer = await asyncio.open_unix_connection(str(one.socket))
        async with asyncio.timeout(10):
            assert await _read_to_the_end(reader) == b""
        for _, other in [*kept, (reader, writer)]:
            other.close()


async def test_a_caller_that_hangs_up_does_not_leave_a_kill_half_done(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        process = one.launch(2)
        await one.settled(2)
        body = json.dumps({"containerID": container_id(2)}).encode()
        _, writer = await asyncio.open_unix_connection(str(one.socket))
        writer.write(
            b"POST /v1/killContainer HTTP/1.1\r\nHost: x\r\nContent-Length: "
            + str(len(body)).encode()
            + b"\r\n\r\n"
            + body
        )
        await writer.drain()
        writer.close()
        await until(lambda: not one.is_alive(process), "the container is ended all the same")
        assert one.node.kernel.show("freezer", one.node.path(2), "freezer.state") == "THAWED"


async def test_replaces_a_dead_socket_but_not_a_living_one_nor_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    living = unix_socket.bind(path)
    with pytest.raises(ServerStartError, match="another process listens"):
        unix_socket.bind(path)
    unix_socket.remove(path)
    assert path.exists()
    living.close()
    unix_socket.remove(path)
    assert not path.exists()
    path.write_text("precious")
    with pytest.raises(ServerStartError, match="no socket"):
        unix_socket.bind(path)
    assert path.read_text() == "precious"
    with pytest.raises(ServerStartError, match="cannot listen"):
        unix_socket.bind(tmp_path / ("long" * 40))


async def _read_to_the_end(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
