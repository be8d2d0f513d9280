# SPDX-License-Identifier: Apache-2.0
"""Tell refusals of who we are from refusals of what we may, and name the users of a connection."""

from __future__ import annotations

import pytest

from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.authentication import Identity
from yarn_copilot.hadoop.kerberos import KerberosLogin
from yarn_copilot.hadoop.sasl.principals import Principal

ACCESS_CONTROL = "org.apache.hadoop.security.AccessControlException"
YARN = "org.apache.hadoop.yarn.exceptions.YarnException"


@pytest.mark.parametrize(
    ("class_name", "text", "kind", "said"),
    [
        pytest.param(
            ACCESS_CONTROL,
            "SIMPLE authentication is not enabled.  Available:[KERBEROS]",
            errors.AuthenticationRefusedError,
            "KERBEROS",
            id="simple where kerberos is asked for",
        ),
        pytest.param(
            "javax.security.sasl.SaslException",
            "GSS initiate failed",
            errors.AuthenticationRefusedError,
            "clocks that differ",
            id="kerberos without a reason",
        ),
        pytest.param(
            "org.apache.hadoop.security.token.SecretManager$InvalidToken",
            "token can't be found in cache",
            errors.AuthenticationRefusedError,
            "token",
            id="token that is over",
        ),
        pytest.param(
            YARN,
            f"{ACCESS_CONTROL}: User bob doesn't have permission to call 'updateNodeResource'",
            errors.AccessDeniedError,
            "bob",
            id="permission",
        ),
        pytest.param(
            "org.apache.hadoop.security.authorize.AuthorizationException",
            "User: alice is not allowed to impersonate yarn",
            errors.AccessDeniedError,
            "impersonate",
            id="proxy user",
        ),
        pytest.param(
            YARN,
            "Missing UpdateNodeResource SubClusterId.",
            errors.FederationRouterError,
            "each sub-cluster's own ResourceManagers",
            id="federation router",
        ),
    ],
)
def test_refusals_are_told_apart(class_name: str, text: str, kind: type[Exception], said: str) -> None:
    error = errors.from_remote_exception(class_name, f"{text}\n\tat org.example.Java", method="call")
    assert type(error) is kind
    assert said in str(error)
    assert not error.may_have_been_applied


@pytest.mark.parametrize(
    ("identity", "method", "users"),
    [
        (Identity(user="yarn"), "SIMPLE", ("yarn", None)),
        (Identity(user="yarn", proxy_user="alice"), "SIMPLE", ("alice", "yarn")),
        (Identity(user="yarn"), "KERBEROS", (None, None)),
        (Identity(user="yarn", proxy_user="alice"), "KERBEROS", ("alice", None)),
        (Identity(user="yarn"), "TOKEN", (None, None)),
    ],
)
def test_context_names_nobody_whom_the_handshake_has_named(
    identity: Identity, method: str, users: tuple[str | None, str | None]
) -> None:
    assert identity.context_users(method) == users


def test_logins_do_not_share_tickets() -> None:
    principal = Principal("yarn", "", "EXAMPLE")
    assert KerberosLogin(principal)._memory_cache != KerberosLogin(principal)._memory_cache
    assert KerberosLogin(principal)._memory_cache.startswith("MEMORY:")
