# SPDX-License-Identifier: Apache-2.0
"""Fetch the jars of a Hadoop version with Maven and compile the lab's application against them, once each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from lab.errors import LabError
from lab.processes import cache
from lab.processes.progress import Progress

VERSIONS: Final = ("3.3.6", "3.4.3", "3.5.0")
ROUTER_VERSION: Final = "3.4.2"
"""The newest version whose Federation Router is published as a jar."""
_FOLDER: Final = Path(__file__).parent
_GOAL: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_COPY_GOAL: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def ensure_jars(version: str, progress: Progress) -> Path:
    """Return the folder with all jars of a Hadoop version (about 90 MB).

    Raises:
        LabError: the version has another form than 3.5.0, Maven is missing, or a download failed.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise LabError(f"not a Hadoop version: {version!r}; tried ones are {', '.join(VERSIONS)}")
    pom = _FOLDER / "pom.xml"

    def build(folder: Path) -> None:
        with progress.step(f"fetching Hadoop {version}"):
            options = [f"-Dhadoop.version={version}", f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
            argv = ["mvn", "-B", "-ntp", "-q", "-f", str(pom), _GOAL, *options]
            cache.run_tool(argv, working_directory=folder, what=f"fetching Hadoop {version}")

    return cache.build_once(f"hadoop-{version}", cache.digest_of(pom, version), build)


def ensure_router(progress: Progress) -> Path:
    """Return the folder with the Federation Router's own jar; what it needs is among the jars of its version.

    Raises:
        LabError: Maven is missing, or the download failed.
    """

    def build(folder: Path) -> None:
        with progress.step(f"fetching the Federation Router {ROUTER_VERSION}"):
            artifact = f"org.apache.hadoop:hadoop-yarn-server-router:{ROUTER_VERSION}"
            argv = ["mvn", "-B", "-ntp", "-q", _COPY_GOAL, f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
            cache.run_tool(argv, working_directory=folder, what="fetching the Federation Router")

    return cache.build_once(f"router-{ROUTER_VERSION}", cache.digest_of(ROUTER_VERSION), build)


def ensure_application(version: str, progress: Progress) -> Path:
    """Return the folder with the lab's application as classes compiled against a Hadoop version.

    Raises:
        LabError: the compiler is missing or refuses the sources.
    """
    jars = ensure_jars(version, progress)
    sources = sorted(_FOLDER.joinpath("app").glob("*.java"))

    def build(folder: Path) -> None:
        with progress.step(f"compiling the application for Hadoop {version}"):
            argv = ["javac", "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", str(folder), *map(str, sources)]
            cache.run_tool(argv, working_directory=folder, what="compiling the application")

    return cache.build_once(f"application-{version}", cache.digest_of(_FOLDER / "pom.xml", version, *sources), build)
