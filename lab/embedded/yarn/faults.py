# SPDX-License-Identifier: Apache-2.0
"""Script what goes wrong with answers: cut, late, lost, foreign, refused."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from lab.embedded.yarn import wire

STANDBY_EXCEPTION = "org.apache.hadoop.ipc.StandbyException"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Spoil the answer to one call.

    Attributes:
        is_executed: the call takes effect although its answer is spoiled.
        delay_seconds: wait before answering.
        spoil: turns the good frame into what is sent; None sends it as it is.
        exception: class name and text of a refusal sent instead.
        is_fatal: the refusal ends the connection.
        is_silent: send nothing at all.
        closes: close the connection after what is sent.
    """

    is_executed: bool = True
    delay_seconds: float = 0.0
    spoil: Callable[[bytes, wire.Request], bytes] | None = None
    exception: tuple[str, str] | None = None
    is_fatal: bool = False
    is_silent: bool = False
    closes: bool = False


def cut_after(byte_count: int, *, is_executed: bool = True) -> Fault:
    """Send the first bytes of the answer, then close."""
    return Fault(is_executed=is_executed, spoil=lambda frame, _: frame[:byte_count], closes=True)


def standby(rm_id: str = "rm1") -> Fault:
    """Refuse as a ResourceManager that is not the active one."""
    return Fault(is_executed=False, exception=(STANDBY_EXCEPTION, f"ResourceManager {rm_id} is not Active!"))


def refusal(class_name: str, message: str, *, is_fatal: bool = False) -> Fault:
    """Refuse with any Java exception."""
    return Fault(is_executed=False, exception=(class_name, message), is_fatal=is_fatal, closes=is_fatal)


def slow(seconds: float) -> Fault:
    """Answer well, but late."""
    return Fault(delay_seconds=seconds)


def silent(*, is_executed: bool = True) -> Fault:
    """Never answer, and keep the connection open."""
    return Fault(is_executed=is_executed, is_silent=True)


def wrong_call_id() -> Fault:
    """Answer with the id of a call that nobody made, and never to the real one."""

    def spoil(_frame: bytes, request: wire.Request) -> bytes:
        stranger = wire.Request(request.call_id + 1_000_000, request.client_id, request.retry_count)
        return wire.success(stranger, b"")

    return Fault(spoil=spoil)


def oversize(announced_bytes: int) -> Fault:
    """Announce a frame of any length and send nothing of it."""
    return Fault(spoil=lambda _frame, _request: struct.pack(">i", announced_bytes))


def raw(data: bytes) -> Fault:
    """Send any bytes instead of the answer, then close."""
    return Fault(spoil=lambda _frame, _request: data, closes=True)


def http_answer() -> Fault:
    """Answer as a web server would."""
    return raw(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


class FaultScript:
    """Hold faults in the order in which they are to happen."""

    def __init__(self) -> None:
        """Start without faults."""
        self._entries: list[tuple[str | None, Fault, int | None]] = []

    def add(self, fault: Fault, *, method: str | None = None, times: int | None = 1) -> None:
        """Let a fault happen.

        Args:
            fault: what happens.
            method: only to calls of this method; None: to any.
            times: how often; None: until `clear`.
        """
        self._entries.append((method, fault, times))

    def clear(self) -> None:
        """Let nothing more go wrong."""
        self._entries.clear()

    def take(self, method: str) -> Fault | None:
        """Use up the first fault that fits a call of `method`."""
        for index, (wanted, fault, times) in enumerate(self._entries):
            if wanted not in (None, method):
                continue
            if times is not None and times <= 1:
                del self._entries[index]
            elif times is not None:
                self._entries[index] = (wanted, fault, times - 1)
            return fault
        return None
