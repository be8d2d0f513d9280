# SPDX-License-Identifier: Apache-2.0
"""Run commands of `yarn-copilot` as an operator with rights of their own, and nothing more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from lab.cluster import Lab
from tests.lab import access

OPERATOR: Final = "operator"
_TIMEOUT_SECONDS: Final = 120.0
_API: Final = "/apis/rbac.authorization.k8s.io/v1"
_ROOT: Final = Path(__file__).parents[2]


class Operator:
    """Be somebody who is bound to the roles for operators of `deploy/kubernetes`."""

    def __init__(self, lab: Lab, url: str) -> None:
        """Bind the roles; `access.grant_access` must have created them."""
        token = lab.kubernetes.service_account_token(access.NAMESPACE, OPERATOR)
        subject = {"kind": "ServiceAccount", "name": OPERATOR, "namespace": access.NAMESPACE}
        for kind, scope in (("ClusterRole", ""), ("Role", f"/namespaces/{access.NAMESPACE}")):
            body = {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": f"{kind}Binding",
                "metadata": {"name": "operator-of-the-tests"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": kind,
                    "name": f"{access.ACCOUNT}-operator",
                },
                "subjects": [subject],
            }
            lab.objects.apply(f"{_API}{scope}/{kind.lower()}bindings", body)
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(_ROOT),
            "KUBECONFIG": str(lab.kubernetes.kubeconfig_for(token, user=OPERATOR)),
            "YARN_COPILOT_URL": url,
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command and leave it running."""
        return subprocess.Popen(
            [sys.executable, "-m", "yarn_copilot.cli.main", *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run a command to its end, which must come with this exit code; returns what it printed."""
        return self.ended(self.start(*arguments), code=code)

    @staticmethod
    def ended(process: subprocess.Popen[str], *, code: int = 0) -> str:
        """Wait for the end of a command."""
        try:
            out, err = process.communicate(timeout=_TIMEOUT_SECONDS)
        finally:
            process.kill()
            process.wait()
        assert process.returncode == code, f"exit code {process.returncode}: {out}{err}"
        return out
