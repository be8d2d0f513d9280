# SPDX-License-Identifier: Apache-2.0
"""Write refusals as kube-apiserver 1.37 does; texts were compared with a real one."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from lab.embedded.kubernetes.resource_types import ResourceType

REJECTED: Final = "the server rejected our request due to an error in our request"
CONTINUE_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter."
)


class Refusal(Exception):
    """Carry a `metav1.Status` with its HTTP status through the handlers."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after_seconds = retry_after_seconds

    def body(self) -> bytes:
        """Encode the Status."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if self.details is not None:
            status["details"] = self.details
        return msgspec.json.encode(status)


def _details(type_: ResourceType, name: str) -> dict[str, Any]:
    details = {"name": name, "kind": type_.plural}
    if type_.group:
        details["group"] = type_.group
    return details


def not_found(type_: ResourceType, name: str) -> Refusal:
    """Refuse because there is no such object."""
    return Refusal(404, "NotFound", f'{type_.qualified} "{name}" not found', details=_details(type_, name))


def already_exists(type_: ResourceType, name: str) -> Refusal:
    """Refuse to create an object again."""
    message = f'{type_.qualified} "{name}" already exists'
    return Refusal(409, "AlreadyExists", message, details=_details(type_, name))


def modified(type_: ResourceType, name: str) -> Refusal:
    """Refuse a write based on an old resourceVersion."""
    message = (
        f'Operation cannot be fulfilled on {type_.qualified} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    return Refusal(409, "Conflict", message, details=_details(type_, name))


def rejected_patch() -> Refusal:
    """Refuse a JSON patch that cannot be applied: a failed `test`, a missing path. The text names neither."""
    return Refusal(422, "Invalid", REJECTED, details={})


def invalid(type_: ResourceType, name: str, field: str, problem: str) -> Refusal:
    """Refuse an object that does not pass validation."""
    details = {
        "name": name,
        "kind": type_.kind,
        "causes": [{"reason": "FieldValueInvalid", "message": problem, "field": field}],
    }
    return Refusal(422, "Invalid", f'{type_.kind} "{name}" is invalid: {field}: {problem}', details=details)


def bad_request(message: str) -> Refusal:
    """Refuse what makes no sense."""
    return Refusal(400, "BadRequest", message)


def too_old(version: int, oldest: int) -> Refusal:
    """Refuse a watch from a version whose changes are not kept any more."""
    return Refusal(410, "Expired", f"too old resource version: {version} ({oldest})")


def forbidden(type_: ResourceType, user: str, verb: str, namespace: str) -> Refusal:
    """Refuse as RBAC does."""
    scope = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    message = (
        f'{type_.qualified} is forbidden: User "{user}" cannot {verb} resource "{type_.plural}" '
        f'in API group "{type_.group}" {scope}'
    )
    return Refusal(403, "Forbidden", message, details={"kind": type_.plural})


def unauthorized() -> Refusal:
    """Refuse a token that is not known."""
    return Refusal(401, "Unauthorized", "Unauthorized")
