# SPDX-License-Identifier: Apache-2.0
"""Say what went wrong on the way to a ResourceManager, in one tree.

    HadoopRPCError
    +-- ClientClosedError            local misuse: the client was closed before
    +-- ConnectError                 no connection came about; nothing was sent          retryable
    +-- ConnectionLostError          the connection ended with the call on it            retryable
    +-- CallTimeoutError             no answer before the deadline                       retryable
    +-- ProtocolViolationError       the peer does not speak this protocol
    |   +-- FrameTooLargeError
    |   +-- TruncatedFrameError
    |   +-- WrongPortError           HTTP or TLS answered
    +-- AuthenticationError          no agreement on who talks to whom; no call was made
    |   +-- CredentialsError         our ticket, keytab or token is missing, wrong or over
    |   |   +-- KDCUnreachableError                                                      retryable
    |   +-- ServerIdentityError      the server's principal is not the configured one
    |   +-- AuthenticationRefusedError   the server does not accept us (also an AccessDeniedError)
    +-- RemoteCallError              the server refused or failed the call
        +-- NodeRefusedError         one node of the batch stands in the way; nothing was applied
        |   +-- UnrecognizedNodeError    it is not in the RM's active map
        +-- AccessDeniedError        the user is known and may not make this call
        +-- StandbyError                                                                 retryable
        +-- ServerBusyError          the server asks to come again                       retryable
        +-- UnsupportedCallError     unknown method, protocol or version
            +-- FederationRouterError    the address is a Federation Router's

`may_have_been_applied` tells the writer of a capacity whether its request can still take effect. Where it is False
the server certainly did nothing. Source of the Java names: Hadoop 3.5.0, org.apache.hadoop.ipc and
org.apache.hadoop.yarn.server.resourcemanager.AdminService.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from yarn_copilot.errors import YarnCopilotError
from yarn_copilot.hadoop.model import NodeId

REMOTE_TEXT_LIMIT: Final = 256
"""Characters of a remote text that are kept; the rest of a Java stack trace helps nobody here."""


class HadoopRPCError(YarnCopilotError):
    """Be the base of everything this adapter raises, apart from `ConfigError`."""

    may_have_been_applied: ClassVar[bool] = False


class ClientClosedError(HadoopRPCError):
    """Say that a call was made on a client that is closed."""


class ConnectError(HadoopRPCError):
    """Say that no connection came about: refused, unreachable, name unknown, or too slow. Nothing was sent."""

    retryable = True


class ConnectionLostError(HadoopRPCError):
    """Say that the connection ended while the call was on it; the server may have received it."""

    retryable = True
    may_have_been_applied = True


class CallTimeoutError(HadoopRPCError):
    """Say that the deadline passed without an answer; the server may still be at work."""

    retryable = True
    may_have_been_applied = True


class ProtocolViolationError(HadoopRPCError):
    """Say that the peer sent bytes which Hadoop RPC does not allow; the connection is closed."""

    may_have_been_applied = True


class FrameTooLargeError(ProtocolViolationError):
    """Say that a frame announced more bytes than allowed; none of them were read."""


class TruncatedFrameError(ProtocolViolationError):
    """Say that the stream ended inside a frame; a connection reports it as `ConnectionLostError`."""

    retryable = True


class WrongPortError(ProtocolViolationError):
    """Say that the port belongs to another protocol: HTTP or TLS."""

    may_have_been_applied = False


class AuthenticationError(HadoopRPCError):
    """Say that the two sides did not agree on who they are; no call was made."""


class CredentialsError(AuthenticationError):
    """Say that the own credentials are missing, wrong, or over."""


class KDCUnreachableError(CredentialsError):
    """Say that no Kerberos server answered."""

    retryable = True


class ServerIdentityError(AuthenticationError):
    """Say that the server is, or claims to be, another one than the configuration names."""


class RemoteCallError(HadoopRPCError):
    """Say that the server answered with a Java exception.

    Attributes:
        class_name: full Java class name, at most 256 characters.
        message: first line of the server's text, at most 256 characters.
    """

    may_have_been_applied = True

    def __init__(self, class_name: str, message: str, *, method: str = "") -> None:
        self.class_name = class_name[:REMOTE_TEXT_LIMIT]
        self.message = message[:REMOTE_TEXT_LIMIT]
        call = f"{method}: " if method else ""
        super().__init__(f"{call}{self.class_name or 'unnamed exception'}: {self.message}")


class NodeRefusedError(RemoteCallError):
    """Say that one node keeps a batch from being sent; nothing of the batch was applied, the others can go without it.

    Attributes:
        node_id: the node; None if the server's text does not name one.
    """

    may_have_been_applied = False
    node_id: NodeId | None = None


class UnrecognizedNodeError(NodeRefusedError):
    """Say that the RM does not know a node of the batch; `node_id` is read from the server's text, as host:port."""

    def __init__(self, class_name: str, message: str, *, method: str = "") -> None:
        super().__init__(class_name, message, method=method)
        self.node_id = _node_id_or_none(message)


class AccessDeniedError(RemoteCallError):
    """Say that the user may not make this call, or that the server wants another kind of authentication."""

    may_have_been_applied = False


class AuthenticationRefusedError(AccessDeniedError, AuthenticationError):
    """Say that the server does not accept how this side proves who it is."""


class StandbyError(RemoteCallError):
    """Say that this ResourceManager is not the active one."""

    retryable = True
    may_have_been_applied = False


class ServerBusyError(RemoteCallError):
    """Say that the server is too busy or not ready, and asks to come again."""

    retryable = True
    may_have_been_applied = False


class UnsupportedCallError(RemoteCallError):
    """Say that the server has no such method or protocol, or speaks another version."""

    may_have_been_applied = False


class FederationRouterError(UnsupportedCallError):
    """Say that a Federation Router answered, which speaks for the ResourceManagers of several sub-clusters."""


REMOTE_EXCEPTIONS: Final[dict[str, type[RemoteCallError]]] = {
    "org.apache.hadoop.ipc.StandbyException": StandbyError,
    "org.apache.hadoop.ipc.ObserverRetryOnActiveException": StandbyError,
    "org.apache.hadoop.ipc.RetriableException": ServerBusyError,
    "org.apache.hadoop.ipc.CallQueueOverflowException": ServerBusyError,
    "org.apache.hadoop.security.AccessControlException": AccessDeniedError,
    "org.apache.hadoop.security.authorize.AuthorizationException": AccessDeniedError,
    "javax.security.sasl.SaslException": AuthenticationRefusedError,
    "org.apache.hadoop.security.token.SecretManager$InvalidToken": AuthenticationRefusedError,
    "org.apache.hadoop.ipc.RpcNoSuchMethodException": UnsupportedCallError,
    "org.apache.hadoop.ipc.RpcNoSuchProtocolException": UnsupportedCallError,
    "org.apache.hadoop.ipc.RPC$VersionMismatch": UnsupportedCallError,
    "org.apache.hadoop.ipc.Server$RpcVersionMismatch": UnsupportedCallError,
}
"""Java class name to error type. What is missing here becomes a plain `RemoteCallError`."""

ROUTER_REASON: Final = (
    "(this is a Federation Router, which cannot tell whose node it is: name each sub-cluster's own ResourceManagers)"
)

ROUTER_DOCUMENT: Final = (
    "the answer is put together of sub-clusters' (this is a Federation Router: name each sub-cluster's own "
    "ResourceManagers)"
)

GSS_REASON: Final = (
    "(the server does not say why: clocks that differ, a ticket for another key of the server, or a server without its "
    "keytab; the ResourceManager's log has the reason)"
)

_UNRECOGNIZED_NODE: Final = re.compile(r"unrecognized node: *(\S+)")
_NESTED_CLASS: Final = re.compile(r"^(?P<class_name>(?:[a-z_][\w]*\.)+[A-Z][\w$]*): ")
_WRAPPER: Final = "org.apache.hadoop.yarn.exceptions.YarnException"
_ACCESS_CONTROL: Final = "org.apache.hadoop.security.AccessControlException"
_WANTS_AUTHENTICATION: Final = re.compile(r"authentication is not enabled|Authentication is required", re.IGNORECASE)
_ROUTER: Final = re.compile(r"\bSubClusterId\b")


def from_remote_exception(class_name: str, text: str, *, method: str = "") -> RemoteCallError:
    """Turn the two strings of a failed response into an error.

    YarnException is a wrapper: AdminService puts the real exception's class name at the start of its text, and says
    "unrecognized node: host:port" in plain words. Only the first line is looked at, the rest is a stack trace.

    Args:
        class_name: `exceptionClassName` of the response header.
        text: `errorMsg`, normally a whole Java stack trace without the leading class name.
        method: the call, for the error's text.
    """
    first_line = text.partition("\n")[0].strip()
    if class_name == _WRAPPER:
        if _UNRECOGNIZED_NODE.search(first_line):
            return UnrecognizedNodeError(class_name, first_line, method=method)
        if nested := _NESTED_CLASS.match(first_line):
            kind = REMOTE_EXCEPTIONS.get(nested["class_name"], RemoteCallError)
            return kind(class_name, first_line, method=method)
        if _ROUTER.search(first_line):
            return FederationRouterError(class_name, f"{first_line} {ROUTER_REASON}", method=method)
    if first_line == "GSS initiate failed":
        first_line = f"{first_line} {GSS_REASON}"
    if class_name == _ACCESS_CONTROL and _WANTS_AUTHENTICATION.search(first_line):
        return AuthenticationRefusedError(class_name, first_line, method=method)
    return REMOTE_EXCEPTIONS.get(class_name, RemoteCallError)(class_name, first_line, method=method)


def _node_id_or_none(message: str) -> NodeId | None:
    match = _UNRECOGNIZED_NODE.search(message)
    if match is None:
        return None
    try:
        return NodeId.parse(match[1])
    except ValueError:
        return None
