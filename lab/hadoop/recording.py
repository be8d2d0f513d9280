# SPDX-License-Identifier: Apache-2.0
"""Record what real ResourceManagers say during SASL, for tests that replay it: `python -m lab.hadoop.recording DIR`.

Each file holds one conversation on the client port: the frames of both sides up to the answer of one call, and what
the Kerberos library took and gave meanwhile (a replay cannot make tickets) or the token's secret (made for the
recording; its server is gone).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab.hadoop.jars import VERSIONS
from lab.hadoop.secure import ADMINISTRATOR, SecureYarn
from yarn_copilot.hadoop import connection, security
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.authentication import Identity
from yarn_copilot.hadoop.kerberos import GSSAPIContext, KerberosLogin, Mechanism
from yarn_copilot.hadoop.protocols import application_client, delegation
from yarn_copilot.hadoop.sasl.principals import Principal
from yarn_copilot.hadoop.sasl.protection import Protection
from yarn_copilot.hadoop.sasl.tokens import DelegationToken

SECONDS = 20.0


class Recorder:
    """Stand between client and server and note every chunk."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.chunks: list[dict[str, str]] = []

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Address]:
        """Listen and give the address to dial."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            yield Address("localhost", server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._port)
        await asyncio.gather(self._copy("client", reader, server_writer), self._copy("server", server_reader, writer))

    async def _copy(self, side: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1_000_000):
                self.chunks.append({"from": side, "hex": data.hex()})
                writer.write(data)
        writer.close()


class RecordingContext:
    """Note what a Kerberos context takes and gives."""

    def __init__(self, context: GSSAPIContext, notes: list[dict[str, Any]]) -> None:
        self._context = context
        self._notes = notes

    @property
    def is_complete(self) -> bool:
        """Tell whether both sides are known to each other."""
        return self._context.is_complete

    @property
    def lifetime_seconds(self) -> float | None:
        """Tell how long the context holds from now."""
        return self._context.lifetime_seconds

    def step(self, token: bytes | None) -> bytes:
        """Take the server's token and give the next."""
        given = self._context.step(token)
        self._note("step", token or b"", given)
        return given

    def wrap(self, message: bytes, *, encrypt: bool) -> bytes:
        """Sign or encrypt."""
        given = self._context.wrap(message, encrypt=encrypt)
        self._note("wrap", message, given)
        return given

    def unwrap(self, token: bytes, *, must_be_encrypted: bool) -> bytes:
        """Check or decrypt."""
        given = self._context.unwrap(token, must_be_encrypted=must_be_encrypted)
        self._note("unwrap", token, given)
        return given

    def _note(self, operation: str, taken: bytes, given: bytes) -> None:
        self._notes.append({"do": operation, "takes": taken.hex(), "gives": given.hex(), "complete": self.is_complete})


class RecordingLogin(KerberosLogin):
    """Log in as usual and note what contexts do."""

    notes: list[dict[str, Any]] = []  # noqa: RUF012  (one recording at a time)

    def open_context(self, server: Principal, *, mechanism: Mechanism = Mechanism.KERBEROS) -> Any:
        """Begin a context that is noted."""
        return RecordingContext(super().open_context(server, mechanism=mechanism), self.notes)


async def converse(port: int, identity: Identity) -> tuple[list[dict[str, str]], bytes]:
    """Authenticate and call once; give the chunks and the answer."""
    recorder = Recorder(port)
    options = connection.ConnectionOptions(
        user="u", connect_timeout_seconds=SECONDS, max_response_bytes=1_000_000, identity=identity
    )
    async with recorder.listening() as address:
        link = await connection.open_connection(address, protocol=application_client.PROTOCOL, options=options)
        body = await link.call(application_client.GET_CLUSTER_METRICS, b"", timeout_seconds=SECONDS)
        await link.aclose()
        await asyncio.sleep(0.05)
    return recorder.chunks, body


async def record(secure: SecureYarn, version: str, save: Callable[[str, dict[str, Any]], None]) -> None:
    """Record each protection, with Kerberos and with a token."""
    login = RecordingLogin(Principal.parse(f"{ADMINISTRATOR}@{secure.kdc.realm}"), secure.keytabs[ADMINISTRATOR])
    base = Identity(user="u", login=login, security=security.read_security(secure.properties()))
    token = await delegation_token(secure.ports.client, base)
    for protection in Protection:
        secured = replace(base.security, protections=(protection,))
        common = {"hadoop": version, "protection": protection.hadoop_name}
        login.notes.clear()
        chunks, body = await converse(secure.ports.client, replace(base, security=secured))
        notes = {"library": list(login.notes), "server": "rm/localhost"}
        save(f"kerberos-{protection.hadoop_name}", {**common, **notes, "chunks": chunks, "answer": body.hex()})
        simple = replace(secured, method=security.AuthenticationMethod.SIMPLE)
        chunks, body = await converse(secure.ports.client, replace(base, token=token, security=simple))
        secret = {"identifier": token.identifier.hex(), "password": token.password.hex()}
        save(f"token-{protection.hadoop_name}", {**common, **secret, "chunks": chunks, "answer": body.hex()})


async def delegation_token(port: int, identity: Identity) -> DelegationToken:
    """Get a token by Kerberos."""
    options = connection.ConnectionOptions(
        user="u", connect_timeout_seconds=SECONDS, max_response_bytes=1_000_000, identity=identity
    )
    address = Address("localhost", port)
    link = await connection.open_connection(address, protocol=application_client.PROTOCOL, options=options)
    request = delegation.encode_get_delegation_token("yarn")
    body = await link.call(delegation.GET_DELEGATION_TOKEN, request, timeout_seconds=SECONDS)
    await link.aclose()
    return delegation.decode_delegation_token(body)


def main() -> None:
    """Record every version into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hadoop", nargs="*", default=list(VERSIONS))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for version in arguments.hadoop:

        def save(name: str, recording: dict[str, Any], version: str = version) -> None:
            path = arguments.folder / f"{version}-{name}.json"
            path.write_text(json.dumps(recording, indent=1) + "\n")
            print(path)

        with SecureYarn(version=version) as secure:
            os.environ["KRB5_CONFIG"] = str(secure.kdc.krb5_conf)
            asyncio.run(record(secure, version, save))


if __name__ == "__main__":
    main()
