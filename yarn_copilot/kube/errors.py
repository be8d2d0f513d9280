# SPDX-License-Identifier: Apache-2.0
"""Name what can go wrong between this program and the API server.

::

    YarnCopilotError
    └── KubeAPIError                 refused with a status that has no class of its own
        ├── KubeConnectionError      no answer: refused, reset, TLS, cut in the middle        retryable
        │   └── KubeTimeoutError     no answer within the deadline                            retryable
        ├── KubeProtocolError        an answer that is not what the API promises
        ├── UnauthorizedError        401, also after credentials were read again             retryable
        ├── ForbiddenError           403
        ├── NotFoundError            404
        ├── ConflictError            409
        ├── GoneError                410, list again                                          retryable
        ├── PreconditionFailedError  422 from a failed `test` of a JSON patch
        ├── InvalidObjectError       422 from validation of the object
        ├── ThrottledError           429, `retry_after_seconds`                               retryable
        └── ServerError              5xx                                                      retryable
    NotLeaderError                   the lease is not (or not for long enough) ours

The connection is fine in all cases but `KubeConnectionError`. Texts hold method, path and the server's message,
cut to 256 characters; a credential never gets here because headers and bodies of requests are left out.
Source of statuses and reasons: `metav1.Status`, Kubernetes API conventions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from yarn_copilot.errors import YarnCopilotError

REMOTE_TEXT_LIMIT: Final = 256
FAILED_TEST_MESSAGE: Final = "the server rejected our request due to an error in our request"
"""What API server 1.37 answers to a JSON patch whose `test` fails; it does not name the operation."""


class KubeAPIError(YarnCopilotError):
    """Say that a call to the API server did not succeed.

    Attributes:
        status: HTTP status, None where there was no answer.
        reason: `metav1.Status.reason`, empty where there was none.
        retry_after_seconds: what the server asked to wait, None where it did not.
    """

    def __init__(
        self, message: str, *, status: int | None = None, reason: str = "", retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds


class KubeConnectionError(KubeAPIError):
    """Say that no complete answer arrived; whether the server acted is unknown."""

    retryable: ClassVar[bool] = True


class KubeTimeoutError(KubeConnectionError):
    """Say that the deadline passed first; whether the server acted is unknown."""


class KubeProtocolError(KubeAPIError):
    """Say that the answer is not JSON of the promised shape, or too large."""


class UnauthorizedError(KubeAPIError):
    """Say that the credentials were refused twice: before and after they were read again."""

    retryable: ClassVar[bool] = True


class ForbiddenError(KubeAPIError):
    """Say that RBAC (or an admission plugin) refuses the call."""


class NotFoundError(KubeAPIError):
    """Say that the object, or its whole kind, does not exist."""


class ConflictError(KubeAPIError):
    """Say that the object changed since it was read, or exists already."""


class GoneError(KubeAPIError):
    """Say that the resourceVersion or continue token is too old."""

    retryable: ClassVar[bool] = True


class PreconditionFailedError(KubeAPIError):
    """Say that a `test` of the JSON patch does not hold; nothing was written."""


class InvalidObjectError(KubeAPIError):
    """Say that validation refuses the object as it would become; nothing was written."""


class ThrottledError(KubeAPIError):
    """Say that the server is busy; wait `retry_after_seconds` where it is set."""

    retryable: ClassVar[bool] = True


class ServerError(KubeAPIError):
    """Say that the server failed; for a write it is unknown whether it happened."""

    retryable: ClassVar[bool] = True


class NotLeaderError(YarnCopilotError):
    """Say that this process must not write now."""

    retryable: ClassVar[bool] = True


class StatusDetails(msgspec.Struct, frozen=True):
    """Hold what of `metav1.StatusDetails` tells errors apart."""

    causes: list[msgspec.Raw] | None = None
    retryAfterSeconds: float | None = None


class Status(msgspec.Struct, frozen=True):
    """Hold a `metav1.Status`, which is the body of every refusal and of a watch's ERROR event."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


_BY_STATUS: Final[Mapping[int, type[KubeAPIError]]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    429: ThrottledError,
}
_status_decoder: Final = msgspec.json.Decoder(Status)


def decode_status(body: bytes | msgspec.Raw) -> Status | None:
    """Read a `metav1.Status`, or give None where the bytes are something else (a proxy's HTML page)."""
    try:
        return _status_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def cut(text: str) -> str:
    """Shorten text that came from outside."""
    return text if len(text) <= REMOTE_TEXT_LIMIT else text[: REMOTE_TEXT_LIMIT - 1] + "…"


def error_from_answer(what: str, code: int, body: bytes, *, retry_after: str | None = None) -> KubeAPIError:
    """Turn a refusal into the exception for it.

    Args:
        what: method and path, for the message.
        code: HTTP status, 300 and above.
        body: normally a `metav1.Status`; anything else is quoted, cut.
        retry_after: the header of that name, seconds.
    """
    status = decode_status(body) or Status(message=cut(body.decode("utf-8", "replace").strip()))
    return error_from_status(what, status, code=code, retry_after=retry_after)


def error_from_status(
    what: str, status: Status, *, code: int | None = None, retry_after: str | None = None
) -> KubeAPIError:
    """Turn a decoded `metav1.Status` (also of an ERROR event) into the exception for it."""
    number = code if code is not None else status.code
    details = status.details or StatusDetails()
    seconds = _seconds_or_none(retry_after)
    return _class_of(number, status)(
        f"{what}: {number} {status.reason or 'without reason'}: {cut(status.message) or 'no message'}",
        status=number,
        reason=status.reason,
        retry_after_seconds=seconds if seconds is not None else details.retryAfterSeconds,
    )


def _class_of(code: int, status: Status) -> type[KubeAPIError]:
    if code == 422:
        failed_test = FAILED_TEST_MESSAGE in status.message and not (status.details and status.details.causes)
        return PreconditionFailedError if failed_test else InvalidObjectError
    if code >= 500:
        return ServerError
    return _BY_STATUS.get(code, KubeAPIError)


def _seconds_or_none(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None
