# SPDX-License-Identifier: Apache-2.0
"""Read recorded conversations (`python -m lab.hadoop.recording`) and play the recorded Kerberos library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from yarn_copilot.hadoop import framing
from yarn_copilot.hadoop.sasl import messages
from yarn_copilot.hadoop.sasl.negotiation import Negotiation, Outcome

FOLDER = Path(__file__).parents[3] / "data" / "sasl"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


class RecordedContext:
    """Give what the library gave, and insist on being asked what it was asked."""

    lifetime_seconds = 60.0

    def __init__(self, notes: list[dict[str, Any]]) -> None:
        self._notes = iter(notes)
        self.is_complete = False

    def step(self, token: bytes | None) -> bytes:
        return self._next("step", token or b"")

    def wrap(self, message: bytes, *, encrypt: bool, any_message: bool = False) -> bytes:
        return self._next("wrap", message)

    def unwrap(self, token: bytes, *, must_be_encrypted: bool) -> bytes:
        return self._next("unwrap", token)

    def _next(self, operation: str, taken: bytes) -> bytes:
        note = next(self._notes)
        assert note["do"] == operation
        # The call after the handshake carries a random client id.
        if not (operation == "wrap" and len(taken) > 4):
            assert bytes.fromhex(note["takes"]) == taken
        self.is_complete = note["complete"]
        return bytes.fromhex(note["gives"])


def load(name: str) -> dict[str, Any]:
    """Read one recording."""
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return content


def stream(recording: dict[str, Any], side: str) -> bytes:
    """Join what one side sent."""
    return b"".join(bytes.fromhex(chunk["hex"]) for chunk in recording["chunks"] if chunk["from"] == side)


def replay(negotiation: Negotiation, recording: dict[str, Any]) -> tuple[Outcome, bytes, bytes]:
    """Run a negotiation against the recorded server.

    Returns:
        Outcome, all that the client sent, and the server's bytes after the handshake.
    """
    decoder = framing.ResponseDecoder(max_frame_bytes=1_000_000)
    sent = negotiation.start()
    said = stream(recording, "server")
    position = 0
    while negotiation.outcome is None:
        # One byte at a time: the handshake must end exactly where the server's last message does.
        for response in decoder.receive(said[position : position + 1]):
            sent += negotiation.receive(messages.decode(response))
        position += 1
    return negotiation.outcome, sent, said[position:]
