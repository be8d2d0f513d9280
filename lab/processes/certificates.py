# SPDX-License-Identifier: Apache-2.0
"""Make certificates for servers of tests; needs the openssl program."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make_certificate(folder: Path, name: str = "tls", *, also: str = "") -> tuple[Path, Path]:
    """Make a certificate for 127.0.0.1 that is its own authority, valid for two days.

    Args:
        folder: gets `<name>.crt` and `<name>.key`.
        name: of both files and of the subject.
        also: further names of the server, as subjectAltName has them, for example `DNS:copilot.yarn.svc`.

    Returns:
        Certificate and key.
    """
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    names = ",".join(filter(None, (also, "IP:127.0.0.1")))
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName={names}"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    return certificate, key
