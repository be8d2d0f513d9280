# SPDX-License-Identifier: Apache-2.0
"""docs/hadoop.md names the keys, defaults, checks and versions that the code has."""

from __future__ import annotations

import re
from pathlib import Path

from lab.hadoop import jars
from tests.contract.hadoop.differences import BEHAVIOURS
from yarn_copilot.cli.doctor.findings import Check
from yarn_copilot.config.fields import setting_fields
from yarn_copilot.hadoop import configuration_defaults as keys
from yarn_copilot.hadoop import versions, xmlfile
from yarn_copilot.hadoop.configuration_values import SUBSTITUTIONS_MAX

PAGE = Path(__file__).resolve().parents[3] / "docs" / "hadoop.md"
TEXT = PAGE.read_text()


def table(name: str) -> list[list[str]]:
    """Give the rows of the table between two marks."""
    part = TEXT.partition(f"<!-- {name} -->")[2].partition(f"<!-- end of {name} -->")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| `")]
    assert rows
    return rows


def test_every_key_is_listed_with_its_default() -> None:
    defaults = {**keys.CORE_DEFAULTS, **keys.YARN_DEFAULTS}
    known = {
        value for name, value in vars(keys).items() if name.isupper() and isinstance(value, str) and "." in value
    } | set(defaults)
    listed = {row[0].strip("`"): row[1].strip("`") for row in table("keys")}
    assert listed == {key: defaults.get(key, "not set") for key in known}


def test_every_check_is_listed_in_its_order() -> None:
    assert [row[0].strip("`") for row in table("checks")] == [check.value for check in Check]


def test_settings_that_the_page_names_exist() -> None:
    named = set(re.findall(r"`(hadoop\.[a-z_]+)(?:: [^`]*)?`", TEXT))
    assert named
    assert named <= set(setting_fields()) | {"hadoop.md"}


def test_versions_and_limits_are_those_of_the_code() -> None:
    header = next(line for line in TEXT.splitlines() if line.startswith("| what | embedded"))
    assert re.findall(r"\d+\.\d+\.\d+", header) == list(versions.TESTED)
    # Both suites take their versions from these two; so what the page says of every version is what runs.
    assert tuple(BEHAVIOURS) == versions.TESTED == jars.VERSIONS
    contract = next(line for line in TEXT.splitlines() if line.startswith("| RPC: "))
    assert contract.count("| yes ") == 1 + len(versions.TESTED)
    assert f"| {versions.SAFE_TO_WRITE} and newer |" in TEXT
    assert f"at most {SUBSTITUTIONS_MAX} times in one value" in TEXT
    mebibytes = (xmlfile.FILE_BYTES_MAX >> 20, xmlfile.TOTAL_BYTES_MAX >> 20)
    limits = (xmlfile.INCLUDED_FILES_MAX, xmlfile.INCLUDE_DEPTH_MAX, *mebibytes)
    flat = " ".join(TEXT.split())
    assert "At most {} files, {} deep, {} MiB each and {} MiB together.".format(*limits) in flat
