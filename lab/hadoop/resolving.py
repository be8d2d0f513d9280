# SPDX-License-Identifier: Apache-2.0
"""Ask Hadoop itself what it makes of configuration folders: one JVM for any number of questions."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from lab.errors import LabError
from lab.hadoop.jars import ensure_jars
from lab.processes.progress import Progress

_PROGRAM: Final = Path(__file__).parent / "oracle" / "Resolve.java"
_TIMEOUT_SECONDS: Final = 120.0
_ESCAPES: Final = {"\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r"}


class Question(NamedTuple):
    """Ask for a key's value: kind is get, integer, boolean, list, millis, seconds or address."""

    folder: Path
    kind: str
    key: str


def resolve(
    questions: Sequence[Question], *, version: str, environ: Mapping[str, str], user: str, progress: Progress
) -> list[str]:
    """Answer questions with `org.apache.hadoop.conf.Configuration` of a Hadoop version.

    Args:
        questions: those of one folder together; a folder is read again whenever it changes.
        version: Hadoop version, for example 3.5.0.
        environ: variables added to this process's own.
        user: Java's user.name.
        progress: told about downloads.

    Returns:
        For each question `OK value`, `UNSET`, or `ERROR`.

    Raises:
        LabError: Java failed.
    """
    argv = [
        "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Duser.name={user}", "-Dfile.encoding=UTF-8",
        "-cp", f"{ensure_jars(version, progress)}/*", str(_PROGRAM),
    ]  # fmt: skip
    text = "".join(f"{question.folder}\t{question.kind}\t{question.key}\n" for question in questions)
    done = subprocess.run(
        argv, input=text.encode(), capture_output=True, timeout=_TIMEOUT_SECONDS, env={**os.environ, **environ},
        check=False,
    )  # fmt: skip
    answers = done.stdout.decode().splitlines()
    if done.returncode != 0 or len(answers) != len(questions):
        raise LabError(f"Resolve.java ended with {done.returncode}: {done.stderr.decode(errors='replace')[-2000:]}")
    return [_answer(line) for line in answers]


def _answer(line: str) -> str:
    kind, _, value = line.partition("\t")
    if kind != "OK":
        return kind
    return "OK " + re.sub(r"\\.", lambda found: _ESCAPES.get(found[0], found[0]), value)
