# SPDX-License-Identifier: Apache-2.0
"""Every target of the Makefile starts something that exists, and `make help` lists it."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_every_module_and_file_that_a_target_names_exists() -> None:
    text = (ROOT / "Makefile").read_text()
    for module in re.findall(r"\$\(BIN\)/python -m ([a-z_.]+)", text):
        assert importlib.util.find_spec(module) is not None, module
    for path in re.findall(r"(?<![\w./])((?:[a-z_]+/)+[a-z_]+\.proto|\.ci/[a-z.]+)", text):
        assert (ROOT / path).exists(), path


def test_help_lists_every_target() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.+)$", text, re.MULTILINE)
    assert targets is not None
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(re.findall(r"^  make ([a-z-]+)", done.stdout, re.MULTILINE)) == set(targets[1].split())


def test_the_ci_entry_is_executable_and_valid() -> None:
    entry = ROOT / ".ci" / "run"
    assert entry.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", str(entry)], check=True)
