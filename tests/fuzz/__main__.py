# SPDX-License-Identifier: Apache-2.0
"""Fuzz what reads bytes of strangers: `python -m tests.fuzz TARGET [SECONDS]`.

A run ends well after its seconds; an exception that is not ours, a hang of more than ten seconds or more than 1 GiB of
memory ends it with the input that caused it in build/fuzz. What it found worth keeping is in build/fuzz/corpus.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["yarn_copilot"]):
    import msgspec

    from yarn_copilot.errors import YarnCopilotError
    from yarn_copilot.hadoop import configuration, framing
    from yarn_copilot.hadoop.addresses import Address
    from yarn_copilot.hadoop.codec import ProtectedCodec
    from yarn_copilot.hadoop.protocols.application_client import decode_cluster_metrics, decode_queue_info
    from yarn_copilot.hadoop.protocols.node_reports import NodeReportDecoder
    from yarn_copilot.hadoop.rest import answers, decoding, queues
    from yarn_copilot.hadoop.sasl import messages, tokens
    from yarn_copilot.hadoop.sasl.digest_md5 import DigestAuthenticator, DigestLayer, parse_challenge
    from yarn_copilot.hadoop.sasl.negotiation import Negotiation

from tests.fuzz.seeds import write_seeds

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


def reports_target(data: bytes) -> None:
    """Decode the answers that a ResourceManager gives over RPC."""
    for decode in (NodeReportDecoder().decode, decode_cluster_metrics, lambda body: decode_queue_info(body, "root")):
        with contextlib.suppress(YarnCopilotError):
            decode(data)


def rest_target(data: bytes) -> None:
    """Judge an HTTP answer and read its document."""
    status = (200, 307, 401, 403, 404, 500, 503)[data[0] % 7] if data else 200
    body = data[1:]
    headers = {"Location": body.decode("latin-1"), "Content-Type": "application/json"}
    answers.check(status, headers, body, what="GET http://rm:1/ws/v1/cluster/nodes", known=[Address("rm", 1)])
    try:
        document = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return
    for read in (decoding.node_reports, decoding.cluster_metrics, queues.queue_tree, queues.partition_use):
        with contextlib.suppress(YarnCopilotError):
            read(document)


def xml_target(data: bytes) -> None:
    """Read a configuration file."""
    path = _FOLDER / "yarn-site.xml"
    path.write_bytes(data)
    configuration.read_cluster(path)


_FOLDER = Path(tempfile.mkdtemp(prefix="yarn-copilot-fuzz-"))
TARGETS: dict[str, Callable[[bytes], None]] = {
    "framing": framing_target,
    "sasl": sasl_target,
    "challenge": challenge_target,
    "token": token_target,
    "reports": reports_target,
    "rest": rest_target,
    "xml": xml_target,
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

    corpus = write_seeds(name, findings / "corpus" / name)
    limits = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=1024", f"-max_len={2 * LIMIT}"]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={findings}/{name}-", str(corpus)], run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
