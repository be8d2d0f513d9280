# SPDX-License-Identifier: Apache-2.0
"""Find out where this process runs: its identity, its pod and its namespace."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarn_copilot.config.settings import LeaderElectionSettings
from yarn_copilot.kube.events import ObjectReference

DEFAULT_NAMESPACE: Final = "koordinator-system"
NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Hold who this replica is; `about` is what Events on the controller itself refer to."""

    identity: str
    namespace: str
    about: ObjectReference


def find_place(
    settings: LeaderElectionSettings, environ: Mapping[str, str], *, namespace_file: Path = NAMESPACE_FILE
) -> Place:
    """Find the place from settings, the pod's own files and the downward API's variables.

    Args:
        settings: `identity` and `namespace` win where they are set.
        environ: POD_NAME and POD_UID name the pod; without them Events refer to the Lease.
        namespace_file: where a pod finds its namespace.
    """
    namespace = settings.namespace or _own_namespace(namespace_file) or DEFAULT_NAMESPACE
    pod = environ.get("POD_NAME", "")
    # A random part, because a container that is started again keeps its pod's name but not its promises.
    identity = settings.identity or f"{pod or socket.gethostname()}_{secrets.token_hex(4)}"
    if pod:
        about = ObjectReference("Pod", pod, namespace, uid=environ.get("POD_UID", ""))
    else:
        about = ObjectReference("Lease", settings.lease_name, namespace, api_version="coordination.k8s.io/v1")
    return Place(identity=identity, namespace=namespace, about=about)


def _own_namespace(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
