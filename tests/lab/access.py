# SPDX-License-Identifier: Apache-2.0
"""Give controllers of the tests the rights that `deploy/kubernetes` grants, and no more."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Final

import requests
import yaml

from lab.cluster import Lab
from lab.processes import probes

NAMESPACE: Final = "koordinator-system"
ACCOUNT: Final = "yarn-copilot"
_RBAC: Final = Path(__file__).parents[2] / "deploy" / "kubernetes" / "rbac.yaml"
_API: Final = "/apis/rbac.authorization.k8s.io/v1"


def user_of(account: str) -> str:
    """Give the user name under which the API server knows a service account of the tests."""
    return f"system:serviceaccount:{NAMESPACE}:{account}"


def grant_access(lab: Lab, account: str = ACCOUNT, *, without_resource: str | None = None) -> str:
    """Create a service account with the roles of `deploy/kubernetes` and return a token for it.

    Args:
        lab: where.
        account: its name; the roles are copied under this name.
        without_resource: a resource (plural) that no rule of the copy names.
    """
    objects = lab.objects
    token = lab.kubernetes.service_account_token(NAMESPACE, account)
    for document in yaml.safe_load_all(_RBAC.read_text(encoding="utf-8")):
        body = _renamed(document, account, without_resource)
        scope = "" if body["kind"].startswith("Cluster") else f"/namespaces/{NAMESPACE}"
        objects.apply(f"{_API}{scope}/{body['kind'].lower()}s", body)
    _wait_until_granted(lab, token)
    return token


def _renamed(document: dict[str, Any], account: str, without_resource: str | None) -> dict[str, Any]:
    body = copy.deepcopy(document)
    body["metadata"]["name"] = body["metadata"]["name"].replace(ACCOUNT, account, 1)
    if "roleRef" in body:
        body["roleRef"]["name"] = body["roleRef"]["name"].replace(ACCOUNT, account, 1)
        body["subjects"] = [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}]
    else:
        body["rules"] = [rule for rule in body["rules"] if without_resource not in rule["resources"]]
    return body


def _wait_until_granted(lab: Lab, token: str) -> None:
    """Wait until the API server's authorizer has seen the new roles."""

    def is_granted() -> bool:
        with lab.kubernetes.session(token) as session:
            answers = [
                session.get(f"{lab.kubernetes.url}{path}?limit=1", timeout=10)
                for path in ("/api/v1/nodes", "/api/v1/pods")
            ]
            lease = session.get(
                f"{lab.kubernetes.url}/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/yarn-copilot",
                timeout=10,
            )
        allowed = {requests.codes.ok, requests.codes.not_found}
        return all(answer.status_code in allowed for answer in (*answers, lease))

    probes.wait_until(is_granted, what="the roles are in force", timeout_seconds=30)
