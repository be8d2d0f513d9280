# SPDX-License-Identifier: Apache-2.0
"""Make a key and a certificate with the JDK's keytool, and the file that leads Hadoop's web servers to them."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lab.errors import LabError
from lab.hadoop import conf

_PASSWORD: Final = "changeit"  # noqa: S105  (protects a key of one run on loopback)
_ALIAS: Final = "lab"
_TOOL_TIMEOUT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class KeyStore:
    """Hold where they are: the store with the key, and the certificate, which is its own authority, as PEM."""

    store: Path
    certificate: Path

    @classmethod
    def make(cls, folder: Path) -> KeyStore:
        """Make a key for 127.0.0.1 and localhost.

        Raises:
            LabError: keytool is missing or fails.
        """
        store, certificate = folder / "keystore.p12", folder / "certificate.pem"
        names = ["-dname", "CN=localhost", "-ext", "san=dns:localhost,ip:127.0.0.1", "-ext", "bc=ca:true"]
        key = ["-keyalg", "EC", "-groupname", "secp256r1", "-validity", "2"]
        _keytool("-genkeypair", "-storetype", "PKCS12", "-keystore", str(store), *names, *key)
        _keytool("-exportcert", "-rfc", "-keystore", str(store), "-file", str(certificate))
        return cls(store, certificate)

    def write_server_conf(self, conf_dir: Path) -> None:
        """Write ssl-server.xml into a configuration folder."""
        conf.write_site(
            conf_dir / "ssl-server.xml",
            {
                "ssl.server.keystore.location": str(self.store),
                "ssl.server.keystore.type": "PKCS12",
                "ssl.server.keystore.password": _PASSWORD,
                "ssl.server.keystore.keypassword": _PASSWORD,
            },
        )


def _keytool(*arguments: str) -> None:
    command = ["keytool", *arguments, "-alias", _ALIAS, "-storepass", _PASSWORD]
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TOOL_TIMEOUT_SECONDS
        )  # fmt: skip
    except OSError as error:
        raise LabError(f"keytool of the JDK is missing: {error}") from error
    if result.returncode != 0:
        raise LabError(f"keytool {arguments[0]} failed: {(result.stdout + result.stderr)[-500:]}")
