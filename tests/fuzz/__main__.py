# SPDX-License-Identifier: Apache-2.0
"""Fuzz what reads bytes of strangers: `python -m tests.fuzz TARGET [SECONDS]`.

A run ends well after its seconds; an exception that is not ours, a hang of more than ten seconds or more than 1 GiB of
memory ends it with the input that caused it in build/fuzz.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["yarn_copilot"]):
    from yarn_copilot.errors import YarnCopilotError
    from yarn_copilot.hadoop import framing
    from yarn_copilot.hadoop.codec import ProtectedCodec
    from yarn_copilot.hadoop.sasl import messages, tokens
    from yarn_copilot.hadoop.sasl.digest_md5 import DigestAuthenticator, DigestLayer, parse_challenge
    from yarn_copilot.hadoop.sasl.negotiation import Negotiation

LIMIT = 4096
DEFAULT_SECONDS = 60


def framing_target(data: bytes) -> None:
    """Decode a stream of responses."""
    decoder = framing.ResponseDecoder(max_frame_bytes=LIMIT)
    list(decoder.receive(data))
    decoder.end()


def sasl_target(data: bytes) -> None:
    """Run a handshake and a protected stream against whatever the server says."""
    way = DigestAuthenticator(identifier=b"i", password=b"p", make_nonce=lambda: "n")
    negotiation = Negotiation([way], allow_simple=True)
    negotiation.start()
    for response in framing.ResponseDecoder(max_frame_bytes=LIMIT).receive(data):
        negotiation.receive(messages.decode(response))
    layer = DigestLayer(sending_key=b"a" * 16, receiving_key=b"b" * 16)
    list(ProtectedCodec(layer, max_frame_bytes=LIMIT).receive(data))


def challenge_target(data: bytes) -> None:
    """Read a digest challenge."""
    parse_challenge(data)


def token_target(data: bytes) -> None:
    """Read a token's text form."""
    tokens.parse_token(data.decode("latin-1"))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "framing": framing_target,
    "sasl": sasl_target,
    "challenge": challenge_target,
    "token": token_target,
}


def main() -> None:
    """Fuzz one target."""
    name, *rest = sys.argv[1:] or [""]
    if name not in TARGETS:
        sys.exit(f"usage: python -m tests.fuzz {'|'.join(TARGETS)} [SECONDS]")
    seconds = int(rest[0]) if rest else DEFAULT_SECONDS
    findings = Path("build") / "fuzz"
    findings.mkdir(parents=True, exist_ok=True)

    def run(data: bytes) -> None:
        with contextlib.suppress(YarnCopilotError):
            TARGETS[name](data)

    limits = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=1024", f"-max_len={2 * LIMIT}"]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={findings}/{name}-"], run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
