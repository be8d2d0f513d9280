# SPDX-License-Identifier: Apache-2.0
"""Which nodes a pod may run on: every operator on every kind of label, terms, taints and tolerations."""

from __future__ import annotations

import itertools

import pytest

from batch_resources.demand.placement import (
    ANYWHERE,
    UNSCHEDULABLE_TAINT,
    Host,
    Placement,
    Requirement,
    Taint,
    Term,
    Toleration,
    may_run,
    named_nodes,
    repelling_taints,
)

ABSENT = None
LABEL_VALUES = (ABSENT, "", "a", "b", "5", "-5", "007", "+8", "5.0", "9223372036854775807", "9223372036854775808")
VALUE_LISTS = ((), ("a",), ("a", "b"), ("b",), ("",), ("5",), ("-6",), ("4",), ("x",), ("9223372036854775808",))
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Matches")
_NUMBERS = {"5": 5, "-5": -5, "-6": -6, "4": 4, "007": 7, "+8": 8, "9223372036854775807": 9223372036854775807}


def _expected(operator: str, label: str | None, values: tuple[str, ...]) -> bool:
    """Say what kube-scheduler answers; its parser refuses In and NotIn without values, the others by their number."""
    if operator in ("In", "NotIn"):
        if not values:
            return False
        return (label in values) if operator == "In" else (label not in values)
    if operator in ("Exists", "DoesNotExist"):
        return not values and (label is not None) is (operator == "Exists")
    if operator in ("Gt", "Lt"):
        if len(values) != 1 or values[0] not in _NUMBERS or label not in _NUMBERS:
            return False
        return _NUMBERS[label] > _NUMBERS[values[0]] if operator == "Gt" else _NUMBERS[label] < _NUMBERS[values[0]]
    return False


def _host(label: str | None = ABSENT, *taints: Taint, name: str = "node-1") -> Host:
    return Host(name=name, labels={} if label is None else {"key": label}, taints=taints)


def _wants(*expressions: Requirement, fields: tuple[Requirement, ...] = ()) -> Placement:
    return Placement(terms=(Term(expressions=expressions, fields=fields),))


@pytest.mark.parametrize(("operator", "label", "values"), list(itertools.product(OPERATORS, LABEL_VALUES, VALUE_LISTS)))
def test_an_expression_holds_as_in_kube_scheduler(operator: str, label: str | None, values: tuple[str, ...]) -> None:
    placement = _wants(Requirement("key", operator, values))
    assert may_run(placement, _host(label)) is _expected(operator, label, values)


@pytest.mark.parametrize("label", LABEL_VALUES)
@pytest.mark.parametrize("wanted", [value for value in LABEL_VALUES if value is not None])
def test_a_node_selector_wants_the_very_value(wanted: str, label: str | None) -> None:
    placement = Placement(node_selector=(("key", wanted),))
    assert may_run(placement, _host(label)) is (label == wanted)


@pytest.mark.parametrize(
    ("field", "operator", "values", "fits"),
    [
        pytest.param("metadata.name", "In", ("node-1",), True, id="this node"),
        pytest.param("metadata.name", "In", ("node-2",), False, id="another node"),
        pytest.param("metadata.name", "NotIn", ("node-2",), True, id="not another node"),
        pytest.param("metadata.name", "NotIn", ("node-1",), False, id="not this node"),
        pytest.param("metadata.name", "In", ("node-1", "node-2"), False, id="two names are refused"),
        pytest.param("metadata.name", "In", (), False, id="no name is refused"),
        pytest.param("metadata.name", "Exists", (), False, id="other operators are refused"),
        pytest.param("metadata.name", "Gt", ("1",), False, id="Gt is refused"),
        pytest.param("spec.nodeName", "In", ("node-1",), False, id="other fields are refused"),
    ],
)
def test_a_field_is_the_name_and_nothing_else(field: str, operator: str, values: tuple[str, ...], fits: bool) -> None:
    assert may_run(_wants(fields=(Requirement(field, operator, values),)), _host()) is fits


HOLDS, FAILS = Requirement("key", "In", ("a",)), Requirement("key", "In", ("b",))
IS_NAMED = Requirement("metadata.name", "In", ("node-1",))


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        pytest.param(None, True, id="no affinity"),
        pytest.param((), False, id="affinity without terms"),
        pytest.param((Term(),), False, id="an empty term"),
        pytest.param((Term(), Term(expressions=(HOLDS,))), True, id="an empty term beside one that holds"),
        pytest.param((Term(expressions=(HOLDS, FAILS)),), False, id="all expressions of a term"),
        pytest.param((Term(expressions=(FAILS,)), Term(expressions=(HOLDS,))), True, id="one of the terms"),
        pytest.param((Term(expressions=(FAILS,)), Term(expressions=(FAILS,))), False, id="none of the terms"),
        pytest.param((Term(expressions=(HOLDS,), fields=(IS_NAMED,)),), True, id="expressions and fields"),
        pytest.param((Term(expressions=(FAILS,), fields=(IS_NAMED,)),), False, id="fields do not make up for it"),
    ],
)
def test_one_term_has_to_hold_as_a_whole(terms: tuple[Term, ...] | None, fits: bool) -> None:
    assert may_run(Placement(terms=terms), _host("a")) is fits


def test_selector_and_affinity_both_have_to_hold() -> None:
    both = Placement(node_selector=(("key", "a"),), terms=(Term(expressions=(FAILS,)),))
    assert not may_run(both, _host("a"))


TAINTS = (
    Taint("key", "a", "NoSchedule"),
    Taint("key", "a", "NoExecute"),
    Taint("key", "", "NoSchedule"),
    Taint("other", "a", "NoSchedule"),
)
TOLERATIONS = (
    Toleration(key="key", operator="Equal", value="a", effect="NoSchedule"),
    Toleration(key="key", operator="", value="a"),
    Toleration(key="key", operator="Exists"),
    Toleration(key="key", operator="Exists", effect="NoExecute"),
    Toleration(operator="Exists"),
    Toleration(operator="Exists", effect="NoSchedule"),
    Toleration(key="key", value="b"),
)
TOLERATED = {
    # Row: toleration; column: taint.
    0: (True, False, False, False),
    1: (True, True, False, False),
    2: (True, True, True, False),
    3: (False, True, False, False),
    4: (True, True, True, True),
    5: (True, False, True, True),
    6: (False, False, False, False),
}


@pytest.mark.parametrize(("row", "column"), list(itertools.product(range(len(TOLERATIONS)), range(len(TAINTS)))))
def test_a_taint_repels_what_does_not_tolerate_it(row: int, column: int) -> None:
    placement = Placement(tolerations=(TOLERATIONS[row],))
    assert may_run(placement, _host("a", TAINTS[column])) is TOLERATED[row][column]


@pytest.mark.parametrize("taint", TAINTS)
def test_a_pod_without_tolerations_is_repelled(taint: Taint) -> None:
    assert not may_run(ANYWHERE, _host("a", taint))


def test_every_taint_has_to_be_tolerated() -> None:
    one = Placement(tolerations=(Toleration(key="key", operator="Exists"),))
    assert not may_run(one, _host("a", TAINTS[0], TAINTS[3]))
    two = Placement(tolerations=(*one.tolerations, Toleration(key="other", operator="Exists")))
    assert may_run(two, _host("a", TAINTS[0], TAINTS[3]))


def test_an_operator_of_a_later_kubernetes_counts_as_fitting() -> None:
    assert may_run(Placement(tolerations=(Toleration(key="key", operator="Gt", value="3"),)), _host("a", TAINTS[0]))


def test_a_preference_repels_nobody() -> None:
    assert repelling_taints((Taint("key", "a", "PreferNoSchedule"),), is_cordoned=False) == ()


@pytest.mark.parametrize("is_told_twice", [False, True])
def test_a_cordon_is_a_taint(is_told_twice: bool) -> None:
    cordon = Taint(UNSCHEDULABLE_TAINT, "", "NoSchedule")
    taints = repelling_taints((cordon,) if is_told_twice else (), is_cordoned=True)
    assert taints == (cordon,)
    assert not may_run(ANYWHERE, Host(name="node-1", taints=taints))
    tolerant = Placement(tolerations=(Toleration(key=UNSCHEDULABLE_TAINT, operator="Exists", effect="NoSchedule"),))
    assert may_run(tolerant, Host(name="node-1", taints=taints))


@pytest.mark.parametrize(
    ("placement", "names"),
    [
        pytest.param(ANYWHERE, None, id="no affinity"),
        pytest.param(_wants(HOLDS), None, id="labels only"),
        pytest.param(_wants(fields=(IS_NAMED,)), {"node-1"}, id="a DaemonSet's pod"),
        pytest.param(_wants(HOLDS, fields=(IS_NAMED,)), {"node-1"}, id="a name and a label"),
        pytest.param(
            Placement(terms=(Term(fields=(IS_NAMED,)), Term(expressions=(HOLDS,)))), None, id="one term is open"
        ),
        pytest.param(_wants(fields=(Requirement("metadata.name", "NotIn", ("node-1",)),)), None, id="not a name"),
    ],
)
def test_names_the_nodes_that_a_pod_is_tied_to(placement: Placement, names: set[str] | None) -> None:
    assert named_nodes(placement) == names
