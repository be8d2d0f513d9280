# SPDX-License-Identifier: Apache-2.0
"""Build the project's images on a base made of Debian packages, since tests cannot pull one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import docker
from docker.errors import BuildError

from lab.errors import LabError
from lab.processes import cache
from lab.processes.progress import Progress

BASE: Final = "yarn-copilot-lab-base:1"
CONTROLLER: Final = "yarn-copilot-lab-controller:1"
NODE_MANAGER: Final = "yarn-copilot-lab-node-manager:1"
_ROOT: Final = Path(__file__).resolve().parents[2]
_DOCKERFILES: Final = _ROOT / "deploy" / "images"
_PACKAGES: Final = "python3.11,zlib1g,libstdc++6"
_FAST: Final = (
    "--dpkgopt=force-unsafe-io",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    '--aptopt=APT::Install-Recommends "false"',
)


def ensure_base(progress: Progress) -> Path:
    """Return the archive of a small Debian 12 with Python 3.11; apt's own sources say where packages come from.

    Raises:
        LabError: mmdebstrap is missing or failed.
    """

    def build(folder: Path) -> None:
        with progress.step("making a base image from Debian packages"):
            argv = ["mmdebstrap", "--mode=root", "--variant=essential", f"--include={_PACKAGES}", *_FAST]
            cache.run_tool([*argv, "bookworm", str(folder / "base.tar")], working_directory=folder, what="a base image")

    return cache.build_once("docker-base", cache.digest_of(_PACKAGES, *_FAST), build) / "base.tar"


def ensure_packages(progress: Progress) -> Path:
    """Return the folder with what the images need of other projects, made by the project's own target.

    Raises:
        LabError: the target failed.
    """

    def build(folder: Path) -> None:
        with progress.step("installing the packages of the images"):
            _make("image-packages", folder)

    return cache.build_once("image-packages", cache.digest_of(_ROOT / "requirements-runtime.lock"), build)


def write_context(folder: Path, progress: Progress) -> None:
    """Write what the images are built from, with the project as it is now.

    Raises:
        LabError: a target failed.
    """
    packages = ensure_packages(progress) / "packages"
    with progress.step("writing the images' context"):
        cache.run_tool(["cp", "-a", str(packages), str(folder)], working_directory=folder, what="copying packages")
        _make("image-program", folder)


def _make(target: str, folder: Path) -> None:
    # Modules are compiled when they are imported: a test starts an image a few times, an operator thousands of times.
    argv = ["make", "-C", str(_ROOT), target, f"IMAGE={folder}", f"PYTHON={sys.executable}", "COMPILE="]
    cache.run_tool(argv, working_directory=folder, what=f"make {target}")


def import_base(client: docker.DockerClient, progress: Progress) -> None:
    """Bring the base into the daemon."""
    archive = ensure_base(progress)
    with progress.step("importing the base image"), archive.open("rb") as stream:
        client.api.import_image_from_data(stream, repository=BASE.split(":")[0], tag=BASE.split(":")[1])


def build(client: docker.DockerClient, context: Path, dockerfile: str, tag: str, progress: Progress) -> None:
    """Build one of the project's images.

    Args:
        client: of the daemon, which has the base.
        context: see `write_context`.
        dockerfile: name of a file in deploy/images.
        tag: of the image.
        progress: where to tell what takes long.

    Raises:
        LabError: the build failed; its output is quoted.
    """
    with progress.step(f"building {tag}"):
        shutil.copy(_DOCKERFILES / dockerfile, context / dockerfile)
        try:
            client.images.build(
                path=str(context),
                dockerfile=dockerfile,
                tag=tag,
                buildargs={"BASE": BASE},
                network_mode="none",
                rm=True,
            )
        except BuildError as error:
            lines = "".join(str(entry.get("stream", "")) for entry in error.build_log)
            raise LabError(f"building {tag}: {error}\n{lines[-3000:]}") from error


def java_home() -> Path:
    """Return the folder of the Java that runs on this machine.

    Raises:
        LabError: there is none.
    """
    program = shutil.which("java")
    if program is None:
        raise LabError("the program java is not installed")
    listed = subprocess.run(
        [program, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=False
    ).stderr
    for line in listed.splitlines():
        name, _, value = line.strip().partition(" = ")
        if name == "java.home":
            return Path(value)
    raise LabError(f"{program} does not tell its java.home")
