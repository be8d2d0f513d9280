# SPDX-License-Identifier: Apache-2.0
"""Make what the control plane needs to know its callers: tokens, a signing key, kubeconfig files."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

# Order of the group of NIST P-256 (FIPS 186-4, D.1.2.3): a private key is a number from 1 to the order less 1.
_P256_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_P256_OID: Final = bytes.fromhex("06082a8648ce3d030107")


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Describe a user whom the API server knows by a static token."""

    name: str
    groups: Sequence[str] = ()
    token: str = field(default_factory=lambda: secrets.token_hex(16))


def token_file_text(users: Sequence[User]) -> str:
    """Render the API server's static token file: token, user, uid, quoted groups."""
    return "".join(f'{user.token},{user.name},{user.name},"{",".join(user.groups)}"\n' for user in users)


def signing_key_pem() -> str:
    """Make a P-256 key as a SEC 1 (RFC 5915) PEM text; the reader derives the public key from the number."""
    number = secrets.randbelow(_P256_ORDER - 1) + 1
    version = _der(0x02, b"\x01")
    content = version + _der(0x04, number.to_bytes(32, "big")) + _der(0xA0, _P256_OID)
    body = base64.b64encode(_der(0x30, content)).decode()
    lines = [body[start : start + 64] for start in range(0, len(body), 64)]
    label = "EC PRIVATE KEY"
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])


def kubeconfig_text(*, url: str, ca_file: Path, token: str, user: str) -> str:
    """Render a kubeconfig with one cluster, one user and one context (JSON, which is YAML)."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": {"server": url, "certificate-authority": str(ca_file)}}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": user}}],
            "current-context": "lab",
        },
        indent=2,
    )


def _der(tag: int, content: bytes) -> bytes:
    """Encode one DER element; all of ours are shorter than 128 bytes."""
    return bytes([tag, len(content)]) + content
