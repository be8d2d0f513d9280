# SPDX-License-Identifier: Apache-2.0
"""Wait for servers with deadlines, and say what is wrong when one is missed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import requests

from lab.errors import LabError
from lab.processes.process import ServerProcess

T = TypeVar("T")
_POLL_SECONDS: Final = 0.05
_CALL_TIMEOUT_SECONDS: Final = 5.0


class NotReadyError(Exception):
    """Tell a probe's caller why the server is not ready yet."""


def wait_until(
    probe: Callable[[], T],
    *,
    what: str,
    timeout_seconds: float,
    processes: Sequence[ServerProcess] = (),
    poll_seconds: float = _POLL_SECONDS,
) -> T:
    """Call `probe` until it returns something truthy.

    Args:
        probe: returns the awaited value; falsy, `NotReadyError` or a `requests` error means not yet.
        what: the awaited state in words, for the error.
        timeout_seconds: the deadline.
        processes: servers that must stay alive meanwhile; their logs are quoted.
        poll_seconds: pause between two calls.

    Raises:
        LabError: the deadline passed or one of the processes ended.
    """
    deadline = time.monotonic() + timeout_seconds
    reason = "no answer yet"
    while True:
        try:
            value = probe()
        except (NotReadyError, requests.RequestException) as error:
            reason = str(error) or type(error).__name__
        else:
            if value:
                return value
            reason = f"last answer: {value!r}"
        for process in processes:
            if not process.is_running:
                raise LabError(
                    f"{what}: {process.name} ended with exit code {process.exit_code}\n{_quote(process)}"
                ) from None
        if time.monotonic() > deadline:
            quotes = "\n".join(_quote(process) for process in processes)
            raise LabError(f"{what}: not within {timeout_seconds:g} s ({reason[:500]})\n{quotes}")
        time.sleep(poll_seconds)


def http_ok(url: str, *, ca_file: Path | None = None, token: str | None = None) -> bool:
    """GET a URL and tell that it answered 200.

    Args:
        url: http or https; a certificate that the server made itself is trusted only through `ca_file`.
        ca_file: certificate to trust.
        token: bearer token.

    Raises:
        NotReadyError: the file of the certificate is not there yet, or another status came.
    """
    if url.startswith("https:") and (ca_file is None or not ca_file.exists()):
        raise NotReadyError(f"{ca_file} was not written yet")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    verify = str(ca_file) if ca_file else True
    try:
        with requests.Session() as session:
            session.trust_env = False  # no proxy, no other certificates
            answer = session.get(url, headers=headers, verify=verify, timeout=_CALL_TIMEOUT_SECONDS)
    except OSError as error:  # also an unreadable certificate file that is just being written
        raise NotReadyError(str(error)) from error
    if answer.status_code != requests.codes.ok:
        raise NotReadyError(f"{url} answered {answer.status_code}: {answer.text[-300:]}")
    return True


def _quote(process: ServerProcess) -> str:
    return f"last lines of {process.log_path}:\n{process.tail()}"
