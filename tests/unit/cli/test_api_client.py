# SPDX-License-Identifier: Apache-2.0
"""Every way in which the API can fail to answer is a sentence."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from yarn_copilot.cli.api_client import APIClient
from yarn_copilot.cli.errors import CommandError


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Accept one connection in a thread and treat it as told."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            connection, _ = server.accept()
            with connection:
                answer(connection)

        thread = threading.Thread(target=accept, name="listening")
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)


def respond(body: str, status: str = "200 OK") -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.recv(65536)
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        connection.sendall((head + body).encode())

    return answer


def failure(url: str) -> str:
    with pytest.raises(CommandError) as caught:
        APIClient(url).get("status")
    return str(caught.value)


def test_an_error_of_the_api_is_its_sentence() -> None:
    with listening(respond('{"leader": true, "age_seconds": 1, "error": "no such node"}', "404 Not Found")) as place:
        assert failure(f"http://{place}") == "no such node"


@pytest.mark.parametrize("body", ["<p>hello</p>", "[]", "{}", ""])
def test_other_programs_are_recognised(body: str) -> None:
    with listening(respond(body)) as place:
        assert "is not a yarn-copilot; check --url" in failure(f"http://{place}")


def test_a_server_that_hangs_up_is_told_apart_from_a_refused_connection() -> None:
    with listening(lambda connection: None) as place:
        message = failure(f"http://{place}")
    assert message.startswith(f"http://{place}: ")
    assert "connection refused" not in message


def test_a_server_that_is_silent_is_given_up() -> None:
    given_up = threading.Event()

    def keep_silent(connection: socket.socket) -> None:
        given_up.wait(10)

    with listening(keep_silent) as place:
        with pytest.raises(CommandError, match=r"connected, but no answer within 0\.05 s; see the controller's log"):
            APIClient(f"http://{place}", read_timeout_seconds=0.05).get("status")
        given_up.set()


def test_plain_http_at_an_https_address_is_named() -> None:
    with listening(respond("no TLS here")) as place:
        assert f"https://{place}: TLS failed" in failure(f"https://{place}")
