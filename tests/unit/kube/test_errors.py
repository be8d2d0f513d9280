# SPDX-License-Identifier: Apache-2.0
"""Test that every refusal becomes the right exception, and that no text grows or leaks."""

from __future__ import annotations

import json

import pytest

from yarn_copilot.kube import errors


def _status(code: int, message: str, **more: object) -> bytes:
    return json.dumps({"kind": "Status", "code": code, "message": message, "reason": "Because", **more}).encode()


@pytest.mark.parametrize(
    ("code", "type_", "retryable"),
    [
        (400, errors.KubeAPIError, False),
        (401, errors.UnauthorizedError, True),
        (403, errors.ForbiddenError, False),
        (404, errors.NotFoundError, False),
        (405, errors.KubeAPIError, False),
        (409, errors.ConflictError, False),
        (410, errors.GoneError, True),
        (422, errors.InvalidObjectError, False),
        (429, errors.ThrottledError, True),
        (500, errors.ServerError, True),
        (503, errors.ServerError, True),
        (504, errors.ServerError, True),
    ],
)
def test_each_status_has_its_class(code: int, type_: type[errors.KubeAPIError], retryable: bool) -> None:
    error = errors.error_from_answer("GET /x", code, _status(code, "text"))
    assert type(error) is type_
    assert error.retryable is retryable
    assert error.status == code
    assert error.reason == "Because"
    assert str(error) == f"GET /x: {code} Because: text"


def test_a_failed_test_is_told_from_an_invalid_object() -> None:
    failed = errors.error_from_answer("PATCH /x", 422, _status(422, errors.FAILED_TEST_MESSAGE, details={}))
    invalid = errors.error_from_answer(
        "PATCH /x", 422, _status(422, errors.FAILED_TEST_MESSAGE, details={"causes": [{"field": "metadata"}]})
    )
    assert type(failed) is errors.PreconditionFailedError
    assert type(invalid) is errors.InvalidObjectError


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        pytest.param("3", {}, 3.0, id="header"),
        pytest.param(None, {"retryAfterSeconds": 7}, 7.0, id="details"),
        pytest.param("2", {"retryAfterSeconds": 7}, 2.0, id="header wins"),
        pytest.param("-4", {}, 0.0, id="negative"),
        pytest.param("Wed, 21 Oct 2015 07:28:00 GMT", {}, None, id="a date is not understood"),
        pytest.param(None, {}, None, id="none"),
    ],
)
def test_the_wait_that_the_server_asks_for_is_kept(
    header: str | None, details: dict[str, int], seconds: float | None
) -> None:
    body = _status(429, "busy", details=details)
    assert errors.error_from_answer("GET /x", 429, body, retry_after=header).retry_after_seconds == seconds


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>" + b"x" * 10_000, id="a proxy's page"),
        pytest.param(_status(500, "y" * 10_000), id="a long message"),
        pytest.param(b"\xff\xfe", id="not UTF-8"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"[1, 2]", id="JSON of another shape"),
    ],
)
def test_a_text_from_outside_is_cut(body: bytes) -> None:
    error = errors.error_from_answer("GET /x", 500, body)
    assert isinstance(error, errors.ServerError)
    assert len(str(error)) < errors.REMOTE_TEXT_LIMIT + 60
