# SPDX-License-Identifier: Apache-2.0
"""Share one annotation with writers that we know nothing of."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_resources.annotations.third_party import ThirdPartyError, read_third_party
from batch_resources.keys import BATCH_CPU, BATCH_MEMORY, ENTRY_NAME, PRIORITY_BATCH, THIRD_PARTY_ANNOTATION
from batch_resources.resources import ZERO_BATCH, BatchResources
from tests.unit.batch_resources import vectors

ONE = BatchResources(cpu_milli=1000, memory_bytes=1 << 30)
int64 = st.integers(min_value=0, max_value=2**63 - 1)
amounts = st.builds(BatchResources, cpu_milli=int64, memory_bytes=int64)


def of_key(group: str) -> list[Any]:
    return [parameter for parameter in vectors.group(group) if parameter.values[0]["key"] == THIRD_PARTY_ANNOTATION]


def entry(name: object, cpu: object = None, memory: object = None, **others: object) -> dict[str, object]:
    resources = {key: value for key, value in ((BATCH_CPU, cpu), (BATCH_MEMORY, memory)) if value is not None}
    return {"name": name, "priority": PRIORITY_BATCH, "resources": resources} | others


def annotation(*entries: object, **others: object) -> str:
    return json.dumps({"allocations": list(entries)} | others)


@pytest.mark.parametrize("vector", of_key("annotation_parse") + vectors.group("yarn_copilot", "get_allocated"))
def test_reads_what_the_vectors_say(vector: dict[str, Any]) -> None:
    if vector["error"]:
        with pytest.raises(ThirdPartyError):
            read_third_party(vector["text"])
        return
    expected = vector["expected"]
    if isinstance(expected, list):
        expected = expected[0]["resources"]
    ours = read_third_party(vector["text"]).entry(ENTRY_NAME)
    assert ours == (expected and BatchResources(cpu_milli=expected[BATCH_CPU], memory_bytes=expected[BATCH_MEMORY]))


@pytest.mark.parametrize("vector", of_key("annotation_write"))
def test_writes_what_the_vectors_say(vector: dict[str, Any]) -> None:
    values = vector["values"]
    resources = BatchResources(cpu_milli=values[BATCH_CPU], memory_bytes=values[BATCH_MEMORY])
    assert read_third_party(vector["before"]).with_entry(vector["owner"], resources) == vector["expected_text"]


@pytest.mark.parametrize("vector", vectors.group("yarn_copilot", "set_allocated"))
def test_writes_quantities_like_the_vectors(vector: dict[str, Any]) -> None:
    resources = BatchResources(cpu_milli=vector["expected_batch_cpu"], memory_bytes=vector["expected_batch_memory"])
    written = json.loads(read_third_party(None).with_entry(ENTRY_NAME, resources))["allocations"][0]["resources"]
    assert written == {BATCH_CPU: vector["expected_text_cpu"], BATCH_MEMORY: vector["expected_text_memory"]}


@pytest.mark.parametrize("vector", vectors.group("third_party_prepare"))
def test_sees_what_koordinator_subtracts(vector: dict[str, Any]) -> None:
    listed = vector["third_party_allocations"] or []
    text = vector.get("annotation_text") or annotation(
        *(entry(each["name"], each["batch_cpu"], each["batch_memory"], priority=each["priority"]) for each in listed)
    )
    if vector["id"] == "malformed_is_fail_open":
        with pytest.raises(ThirdPartyError):
            read_third_party(text)
    elif not vector["reset"]:
        origin = BatchResources(
            cpu_milli=vector["expected_origin"]["batch_cpu"], memory_bytes=vector["expected_origin"]["batch_memory"]
        )
        allocations = read_third_party(text)
        subtracted = (allocations.entry(ENTRY_NAME) or ZERO_BATCH) + allocations.others(ENTRY_NAME)
        left = (origin - subtracted).floored()
        assert vector["expected_kube_allocatable"] == {"batch_cpu": left.cpu_milli, "batch_memory": left.memory_bytes}
    else:
        assert read_third_party(text).has_entry(ENTRY_NAME)  # a reset node keeps the annotation


@pytest.mark.parametrize("text", [None, "", " \n", "null", "{}", '{"allocations":null}', '{"allocations":[]}'])
def test_nothing_there_is_nothing_held(text: str | None) -> None:
    allocations = read_third_party(text)
    assert allocations.entry(ENTRY_NAME) is None
    assert not allocations.has_entry(ENTRY_NAME)
    assert allocations.others(ENTRY_NAME) == ZERO_BATCH
    assert allocations.without_entry(ENTRY_NAME) is None
    assert read_third_party(allocations.with_entry(ENTRY_NAME, ONE)).entry(ENTRY_NAME) == ONE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bad-format", "not JSON"),
        ("[]", "array"),
        ("0", "number"),
        ('{"allocations":{}}', "allocations is of kind object"),
        ('{"allocations":"x"}', "allocations is of kind string"),
        ('{"allocations":false}', "allocations is of kind boolean"),
        ('{"Allocations":[]}', "only in case"),
        ('{"allocations":[],"allocations":[]}', "occurs twice"),
        (annotation("x"), r"allocations\[0\] is of kind string"),
        (annotation(None, 7), r"allocations\[1\] is of kind number"),
        (annotation(entry(7)), r"allocations\[0\]\.name is of kind number"),
        (annotation(entry(1.5)), r"name is of kind number"),
        (annotation(entry(["a"])), "name is of kind array"),
        (annotation(entry("a", priority=3)), "priority is of kind number"),
        (annotation(entry("a", priority=True)), "priority is of kind boolean"),
        (annotation(entry("a", resources=[])), "resources is of kind array"),
        (annotation(entry("a", resources="1")), "resources is of kind string"),
        (annotation(entry("a", NAME="b")), "'NAME', which differs from 'name'"),
        (annotation(entry("a", Resources={})), "only in case"),
        ('{"allocations":[{"name":"a","name":"b"}]}', "'name' occurs twice"),
        ('{"allocations":[{"name":"a","resources":{"x":"1","x":"1"}}]}', "'x' occurs twice"),
        ('{"allocations":[{"name":"a","weight":NaN}]}', "NaN"),
        ('{"allocations":' + "[" * 100_000, "nested"),
        (annotation("x" * 300_000), "the limit is 262144"),
    ],
    ids=lambda value: repr(value[:60]),
)
def test_a_text_that_koordinator_would_not_read_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ThirdPartyError, match=message):
        read_third_party(text)


def test_entries_of_others_count_with_priority_batch_only() -> None:
    allocations = read_third_party(
        annotation(
            entry("spark", "1500m", "1.5"),
            entry("flink", 2, "1Ki"),
            entry("mid", "100", "100", priority="koord-mid"),
            entry("none", "100", "100", priority=None),
            entry("case", "100", "100", priority="Koord-Batch"),
            entry(ENTRY_NAME, "7", "7"),
            entry(None, "1", None),
            {"priority": PRIORITY_BATCH, "resources": {BATCH_MEMORY: None}},
            {"priority": PRIORITY_BATCH, "resources": None},
            {"priority": PRIORITY_BATCH},
            {},
            None,
        )
    )
    assert allocations.others(ENTRY_NAME) == BatchResources(cpu_milli=2 + 2 + 1, memory_bytes=2 + 1024)
    assert allocations.others("spark") == BatchResources(cpu_milli=2 + 1 + 7, memory_bytes=1024 + 7)
    assert allocations.entry("spark") == BatchResources(cpu_milli=2, memory_bytes=2)
    assert allocations.entry("") == BatchResources(cpu_milli=1, memory_bytes=0)


def test_our_entry_twice_counts_twice_and_is_written_once() -> None:
    allocations = read_third_party(
        annotation(entry("a"), entry(ENTRY_NAME, 1, 2, x=1), entry("b"), entry(ENTRY_NAME, 3, 4))
    )
    assert allocations.entry(ENTRY_NAME) == BatchResources(cpu_milli=4, memory_bytes=6)
    assert allocations.others(ENTRY_NAME) == ZERO_BATCH
    written = json.loads(allocations.with_entry(ENTRY_NAME, ONE))["allocations"]
    assert [each["name"] for each in written] == ["a", ENTRY_NAME, "b"]
    assert written[1]["x"] == 1
    assert [each["name"] for each in json.loads(allocations.without_entry(ENTRY_NAME) or "")["allocations"]] == [
        "a",
        "b",
    ]


def test_our_entry_with_another_priority_holds_nothing_until_it_is_written() -> None:
    allocations = read_third_party(annotation(entry(ENTRY_NAME, 1, 2, priority="koord-mid")))
    assert allocations.entry(ENTRY_NAME) is None
    assert allocations.has_entry(ENTRY_NAME)
    assert allocations.others("else") == ZERO_BATCH
    assert read_third_party(allocations.with_entry(ENTRY_NAME, ONE)).entry(ENTRY_NAME) == ONE
    assert allocations.without_entry(ENTRY_NAME) is None


def test_unreadable_quantities_of_ours_are_an_error_and_can_be_written_over() -> None:
    allocations = read_third_party(annotation(entry(ENTRY_NAME, "lots", "1", resources={BATCH_CPU: "lots", "q": "?"})))
    with pytest.raises(ThirdPartyError, match=r"allocations\[0\] \(name 'hadoop-yarn'\): .*'lots' is malformed"):
        allocations.entry(ENTRY_NAME)
    assert allocations.others(ENTRY_NAME) == ZERO_BATCH
    repaired = allocations.with_entry(ENTRY_NAME, ONE)
    assert repaired == read_third_party(None).with_entry(ENTRY_NAME, ONE)


@pytest.mark.parametrize(
    ("foreign", "message"),
    [
        (entry("spark", "lots"), "'lots' is malformed"),
        (entry("spark", "-1"), "'-1' is outside"),
        (entry("spark", None, "-1m", priority=PRIORITY_BATCH) | {"resources": {BATCH_MEMORY: "-5"}}, "'-5' is outside"),
        (entry("spark", "99999999999999999999"), "is outside 0 to"),
        (entry("spark", 2**63), "an integer beyond 64 bits"),
        (entry("spark", 10**5), None),
        (entry("spark", True), "bool"),
        (entry("spark", {"a": 1}), "dict"),
        (entry("spark", resources={"cpu": "much"}), "cpu: quantity 'much'"),
        (entry("spark", "much", priority="koord-mid"), "'much'"),
        (entry("spark", "-1", priority="koord-mid"), None),
        (entry("spark", resources={"x": "1" * 1000}), "longer than 128"),
    ],
    ids=lambda value: json.dumps(value)[:70],
)
def test_bad_foreign_quantities_are_an_error_and_are_kept(foreign: dict[str, Any], message: str | None) -> None:
    allocations = read_third_party(annotation(foreign, entry(ENTRY_NAME, 1, 2)))
    if message is None:
        allocations.others(ENTRY_NAME)
    else:
        with pytest.raises(ThirdPartyError, match=message):
            allocations.others(ENTRY_NAME)
    assert allocations.entry(ENTRY_NAME) == BatchResources(cpu_milli=1, memory_bytes=2)
    assert json.loads(allocations.with_entry(ENTRY_NAME, ONE))["allocations"][0] == foreign
    assert json.loads(allocations.without_entry(ENTRY_NAME) or "")["allocations"] == [foreign]


@pytest.mark.parametrize(
    "claim",
    [
        BatchResources(cpu_milli=-1, memory_bytes=0),
        BatchResources(cpu_milli=0, memory_bytes=-1),
        BatchResources(cpu_milli=2**63, memory_bytes=0),
        BatchResources(cpu_milli=0, memory_bytes=10**100),
    ],
    ids=["cpu below", "memory below", "cpu above", "memory above"],
)
def test_claims_outside_the_limits_are_never_written(claim: BatchResources) -> None:
    with pytest.raises(ThirdPartyError, match=r"a claim of .* is outside 0 to"):
        read_third_party(None).with_entry(ENTRY_NAME, claim)


def test_unknown_fields_and_foreign_numbers_keep_their_digits() -> None:
    text = (
        '{"z":{"deep":[1.50,1e400]},"allocations":[{"resources":{"x":0.10},"priority":"koord-mid","name":"other",'
        '"note":"\u00fc","weight":1.0},null,{"name":"hadoop-yarn","since":"today"}],"a":-0.0}'
    )
    written = read_third_party(text).with_entry(ENTRY_NAME, ONE)
    assert written == (
        '{"a":-0.0,"allocations":[{"name":"other","note":"\\u00fc","priority":"koord-mid","resources":{"x":0.10},'
        '"weight":1.0},null,{"name":"hadoop-yarn","priority":"koord-batch","resources":{"kubernetes.io/batch-cpu":"1k",'
        '"kubernetes.io/batch-memory":"1Gi"},"since":"today"}],"z":{"deep":[1.50,1e400]}}'
    )
    assert '"allocations":[]' in (
        read_third_party('{"allocations":[{"name":"hadoop-yarn"}],"z":1}').without_entry(ENTRY_NAME) or ""
    )


def test_reading_and_writing_change_nothing_that_was_read() -> None:
    allocations = read_third_party(annotation(entry(ENTRY_NAME, 1, 2), entry("other", 3, 4)))
    before = allocations.without_entry("nobody")
    allocations.with_entry(ENTRY_NAME, ONE)
    allocations.without_entry(ENTRY_NAME)
    assert allocations.without_entry("nobody") == before


names = st.sampled_from(["", "spark", "flink", ENTRY_NAME, "Hadoop-Yarn", "hadoop-yarn "]) | st.text(max_size=6)
junk = st.none() | st.booleans() | st.integers() | st.text(max_size=6)
json_junk = st.recursive(
    junk,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
known = {"name", "priority", "resources", "allocations"}
unknown_fields = st.dictionaries(
    st.text(max_size=5).filter(lambda key: key.casefold() not in known), json_junk, max_size=3
)
foreign_entries = st.none() | st.builds(
    lambda name, priority, resources, others: others | {"name": name, "priority": priority, "resources": resources},
    names | st.none(),
    st.sampled_from([PRIORITY_BATCH, "koord-mid", ""]) | st.none(),
    st.none() | st.dictionaries(st.sampled_from([BATCH_CPU, BATCH_MEMORY, "cpu"]), json_junk, max_size=3),
    unknown_fields,
)


@given(st.lists(foreign_entries, max_size=5), unknown_fields, amounts)
def test_foreign_entries_are_never_lost(
    entries: list[dict[str, Any] | None], others: dict[str, Any], claim: BatchResources
) -> None:
    def foreign(document: dict[str, Any]) -> list[dict[str, Any] | None]:
        return [each for each in document["allocations"] if each is None or each.get("name") != ENTRY_NAME]

    document = others | {"allocations": entries}
    allocations = read_third_party(json.dumps(document))
    written = allocations.with_entry(ENTRY_NAME, claim)
    assert foreign(json.loads(written)) == foreign(document)
    assert {key: value for key, value in json.loads(written).items() if key != "allocations"} == others
    again = read_third_party(written)
    assert again.entry(ENTRY_NAME) == claim
    assert again.with_entry(ENTRY_NAME, claim) == written
    without = again.without_entry(ENTRY_NAME)
    assert without == allocations.without_entry(ENTRY_NAME)
    if without is None:
        assert not foreign(document)
        assert not others
    else:
        assert json.loads(without) == others | {"allocations": foreign(document)}


@given(st.text() | json_junk.map(json.dumps) | json_junk.map(lambda value: json.dumps({"allocations": [value]})))
def test_any_text_is_kept_whole_or_refused(text: str) -> None:
    try:
        allocations = read_third_party(text)
    except ThirdPartyError as error:
        assert len(str(error)) < 400  # noqa: PT017
        return
    for ask in (allocations.entry, allocations.others, allocations.has_entry):
        ask(ENTRY_NAME)
    assert read_third_party(allocations.with_entry(ENTRY_NAME, ONE)).entry(ENTRY_NAME) == ONE


@given(amounts, amounts)
def test_a_claim_reads_back_as_the_same_beside_another(ours: BatchResources, theirs: BatchResources) -> None:
    text = read_third_party(read_third_party(None).with_entry("other", theirs)).with_entry(ENTRY_NAME, ours)
    allocations = read_third_party(text)
    assert allocations.entry(ENTRY_NAME) == ours
    assert allocations.others(ENTRY_NAME) == theirs
