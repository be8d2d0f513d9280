# SPDX-License-Identifier: Apache-2.0
"""Walk the handshake's states, the ones that are not allowed most of all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from yarn_copilot.hadoop import errors, framing
from yarn_copilot.hadoop.proto import rpc_pb2
from yarn_copilot.hadoop.sasl import messages
from yarn_copilot.hadoop.sasl.messages import Auth, SaslMessage, State
from yarn_copilot.hadoop.sasl.negotiation import ROUNDS_MAX, Authenticator, Established, Mechanism, Negotiation

OFFER = Auth("TOKEN", "ECHO", "", "default")
NEGOTIATE = SaslMessage(State.NEGOTIATE, auths=(OFFER,))


class Echo:
    """Answer each challenge with itself; take one proof."""

    method = "TOKEN"
    mechanism = "ECHO"

    def begin(self, auth: Auth) -> Mechanism:
        token = yield b"first"
        while token != b"proof":
            token = yield token or b""
        return Established(lifetime_seconds=7.0)


def negotiation(*, allow_simple: bool = False, ways: Sequence[Authenticator] = (Echo(),)) -> Negotiation:
    """Start one."""
    started = Negotiation(ways, allow_simple=allow_simple)
    started.start()
    return started


def sent(frame: bytes) -> rpc_pb2.RpcSasl:
    """Read a frame that this side sends: length, header of known bytes, message with a length."""
    header = bytes.fromhex("0a08021000184122002801")
    assert frame[4:].startswith(header)
    assert frame[4 + len(header)] < 0x80
    return rpc_pb2.RpcSasl.FromString(frame[5 + len(header) :])


def test_first_frame_is_the_known_one() -> None:
    assert Negotiation([Echo()]).start().hex() == "0000000e0a08021000184122002801021001"


def test_whole_exchange_ends_with_the_outcome() -> None:
    running = negotiation()
    initiate = sent(running.receive(NEGOTIATE))
    assert (initiate.state, initiate.token, len(initiate.auths)) == (State.INITIATE, b"first", 1)
    response = sent(running.receive(SaslMessage(State.CHALLENGE, b"riddle")))
    assert (response.state, response.token) == (State.RESPONSE, b"riddle")
    assert running.receive(SaslMessage(State.SUCCESS, b"proof")) == b""
    assert running.outcome is not None
    assert (running.outcome.method, running.outcome.established.lifetime_seconds) == ("TOKEN", 7.0)


def test_challenge_of_the_offer_is_not_sent_back() -> None:
    offer = Auth("TOKEN", "ECHO", "p", "s", b"challenge")
    echoed = sent(negotiation().receive(SaslMessage(State.NEGOTIATE, auths=(offer,)))).auths[0]
    assert (echoed.protocol, echoed.server_id, echoed.HasField("challenge")) == ("p", "s", False)


def test_first_offer_that_both_can_do_is_taken() -> None:
    offers = (Auth("KERBEROS", "GSSAPI", "rm", "host"), OFFER)
    assert sent(negotiation().receive(SaslMessage(State.NEGOTIATE, auths=offers))).auths[0].method == "TOKEN"


def test_no_common_way_names_both_sides() -> None:
    offers = (Auth("KERBEROS", "GSSAPI", "rm", "host"), Auth("SIMPLE"))
    with pytest.raises(errors.AuthenticationError, match=r"KERBEROS/GSSAPI, SIMPLE.*TOKEN/ECHO"):
        negotiation().receive(SaslMessage(State.NEGOTIATE, auths=offers))


def test_simple_offer_is_taken_where_it_is_allowed_and_nothing_follows() -> None:
    running = negotiation(allow_simple=True, ways=())
    assert sent(running.receive(SaslMessage(State.NEGOTIATE, auths=(Auth("SIMPLE"),)))).state == State.INITIATE
    assert running.outcome is not None
    assert running.outcome.method == "SIMPLE"


@pytest.mark.parametrize("allowed", [True, False])
def test_server_that_asks_for_nothing_is_taken_only_where_it_is_allowed(allowed: bool) -> None:
    running = negotiation(allow_simple=allowed)
    if allowed:
        assert running.receive(SaslMessage(State.SUCCESS)) == b""
        assert running.outcome is not None
    else:
        with pytest.raises(errors.AuthenticationError, match="fallback"):
            running.receive(SaslMessage(State.SUCCESS))


def test_success_before_the_proof_is_refused() -> None:
    running = negotiation()
    running.receive(NEGOTIATE)
    with pytest.raises(errors.AuthenticationError, match="before it had proved"):
        running.receive(SaslMessage(State.SUCCESS))


@pytest.mark.parametrize("state", [State.INITIATE, State.CHALLENGE, State.RESPONSE, State.WRAP])
def test_state_that_is_not_due_first_is_a_violation(state: State) -> None:
    with pytest.raises(errors.ProtocolViolationError, match="offers are due"):
        negotiation().receive(SaslMessage(state, b"x"))


@pytest.mark.parametrize("state", [State.NEGOTIATE, State.INITIATE, State.RESPONSE, State.WRAP])
def test_state_that_is_not_due_later_is_a_violation(state: State) -> None:
    running = negotiation()
    running.receive(NEGOTIATE)
    with pytest.raises(errors.ProtocolViolationError, match="challenge or success is due"):
        running.receive(SaslMessage(state, b"x"))


def test_nothing_may_follow_the_outcome() -> None:
    running = negotiation()
    running.receive(NEGOTIATE)
    running.receive(SaslMessage(State.SUCCESS, b"proof"))
    with pytest.raises(errors.ProtocolViolationError, match="after the end"):
        running.receive(SaslMessage(State.CHALLENGE, b"x"))


def test_challenge_after_the_last_step_is_a_violation() -> None:
    running = negotiation()
    running.receive(NEGOTIATE)
    with pytest.raises(errors.ProtocolViolationError, match="after the last step"):
        running.receive(SaslMessage(State.CHALLENGE, b"proof"))


def test_challenges_without_end_are_cut() -> None:
    running = negotiation()
    running.receive(NEGOTIATE)
    for _ in range(ROUNDS_MAX - 1):
        running.receive(SaslMessage(State.CHALLENGE, b"x"))
    with pytest.raises(errors.ProtocolViolationError, match="without an end"):
        running.receive(SaslMessage(State.CHALLENGE, b"x"))


@pytest.mark.parametrize(
    ("call_id", "body", "text"),
    [
        pytest.param(0, b"\x10\x00", "call id 0", id="call id of a call"),
        pytest.param(-33, b"\x10", "does not decode", id="cut"),
        pytest.param(-33, b"", "lacks its state", id="empty"),
        pytest.param(-33, b"\x10\x01\x22\x00", "lacks its method", id="offer without method"),
        pytest.param(-33, b"\x10\x01" + 33 * b"\x22\x04\x0a\x00\x12\x00", "33 offers", id="too many offers"),
    ],
)
def test_frame_that_is_no_sasl_message_is_a_violation(call_id: int, body: bytes, text: str) -> None:
    with pytest.raises(errors.ProtocolViolationError, match=text):
        messages.decode(framing.Response(call_id, framing.Status.SUCCESS, body))
