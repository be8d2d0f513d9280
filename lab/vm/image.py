# SPDX-License-Identifier: Apache-2.0
"""Make the file system of the virtual machine: this interpreter, what it needs, and this project, in memory.

Two archives: the interpreter with its packages, which is cached, and the project's own code, which is not. Paths of
the interpreter are the host's, so that it finds itself; packages are in /packages, the project in /project.
"""

from __future__ import annotations

import compileall
import importlib.metadata
import importlib.util
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from lab.processes import cache
from lab.processes.progress import Progress
from lab.vm.archive import Archive

PACKAGES: Final = "/packages"
PROJECT: Final = "/project"
_ROOT: Final = Path(__file__).resolve().parents[2]
_PROJECT_FOLDERS: Final = ("batch_resources", "nm_proxy", "yarn_copilot", "lab", "tests")
_DISTRIBUTIONS: Final = ("aiohttp", "msgspec", "prometheus-client", "pydantic", "pytest", "pyyaml", "requests", "rich")
_NOT_NEEDED: Final = ("test", "tests", "idlelib", "tkinter", "lib2to3", "ensurepip", "turtledemo", "site-packages")
_PROGRAMS: Final = ("cat", "mv", "setsid", "sh", "sleep", "unshare")
"""What the node side and a NodeManager start; copied from this machine into /bin."""

_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


def ensure_interpreter(progress: Progress) -> Path:
    """Return the archive with the interpreter and the packages that the node side and its tests need."""

    def build(folder: Path) -> None:
        with progress.step("packing an interpreter for the virtual machine"), (folder / "cpio").open("wb") as stream:
            archive = Archive(stream)
            _add_interpreter(archive)
            _add_programs(archive)
            for distribution in _closure(_DISTRIBUTIONS):
                _add_distribution(archive, distribution)
            archive.finish()

    key = cache.digest_of(
        Path(__file__), Path(__file__).with_name("archive.py"), _ROOT / "requirements.lock", sys.version, sys.executable
    )
    return cache.build_once("vm-interpreter", key, build) / "cpio"


def write_image(target: Path, *, init: str, carried: Mapping[str, Path], progress: Progress) -> None:
    """Write the whole file system.

    Args:
        target: file to write.
        init: module of the project whose `main` is process 1.
        carried: files of this machine by their absolute path in the other one.
        progress: where to tell what takes long.
    """
    staging = target.with_suffix(".project")
    shutil.rmtree(staging, ignore_errors=True)
    for name in _PROJECT_FOLDERS:
        shutil.copytree(_ROOT / name, staging / name, ignore=shutil.ignore_patterns("__pycache__", "data"))
    compileall.compile_dir(staging, quiet=1, stripdir=str(staging), prependdir=PROJECT)
    with target.open("wb") as stream:
        with ensure_interpreter(progress).open("rb") as interpreter:
            shutil.copyfileobj(interpreter, stream)
        archive = Archive(stream)
        archive.add_tree(staging, PROJECT)
        for directory in ("/proc", "/sys", "/dev", "/tmp", "/root"):  # noqa: S108 - of the machine to be made
            archive.add_directory(directory)
        for path, source in carried.items():
            archive.add_file(source, path)
        paths = [PACKAGES, PROJECT]
        lines = (
            f"#!{_executable()} -Es",
            "import sys",
            f"sys.path[:0] = {paths!r}",
            f"from {init} import main",
            "main()",
        )
        archive.add_text("/init", "\n".join([*lines, ""]), mode=0o755)
        archive.finish()
    shutil.rmtree(staging)


def _executable() -> Path:
    return Path(sys.executable).resolve()


def _add_interpreter(archive: Archive) -> None:
    executable = _executable()
    library = Path(sysconfig.get_paths()["stdlib"])
    archive.add_file(executable, str(executable))
    # Next to the library is what is needed to build programs around the interpreter.
    building = Path(sysconfig.get_config_var("LIBPL") or "").name
    archive.add_tree(library, str(library), leave_out=(*_NOT_NEEDED, building))
    for needed in _libraries([executable, *library.rglob("*.so")]):
        archive.add_file(needed, str(needed))


def _add_programs(archive: Archive) -> None:
    found = {name: Path(shutil.which(name) or f"/bin/{name}").resolve() for name in _PROGRAMS}
    for name, source in found.items():
        archive.add_file(source, f"/bin/{name}")
    for needed in _libraries(found.values()):
        archive.add_file(needed, str(needed))


def _add_distribution(archive: Archive, distribution: importlib.metadata.Distribution) -> None:
    binaries = []
    for file in distribution.files or ():
        source, target = Path(str(distribution.locate_file(file))), f"{PACKAGES}/{file.as_posix()}"
        if file.as_posix().startswith("../") or not source.is_file():
            continue
        archive.add_file(source, target)
        binaries += [source] if source.suffix == ".so" else []
        if source.suffix == ".py":
            _add_bytecode(archive, source, target)
    for needed in _libraries(binaries):
        archive.add_file(needed, str(needed))


def _add_bytecode(archive: Archive, source: Path, target: str) -> None:
    """Compile a module here, because an emulated processor would need seconds for all of them, in every process."""
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(folder, "compiled")
        try:
            py_compile.compile(
                str(source),
                cfile=str(compiled),
                dfile=target,
                doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )
        except py_compile.PyCompileError:
            return  # a file for another version of Python
        archive.add_file(compiled, importlib.util.cache_from_source(target))


def _closure(names: Iterable[str]) -> Iterator[importlib.metadata.Distribution]:
    """Give distributions with all that they require; what is not installed here is for other systems."""
    waiting, seen = list(names), set()
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        yield distribution
        required = [one for one in distribution.requires or () if "extra ==" not in one]
        waiting += [match.group() for one in required if (match := _NAME.match(one))]


def _libraries(binaries: Iterable[Path]) -> set[Path]:
    """List the shared libraries that programs are linked against, as the loader finds them."""
    listed = subprocess.run(["ldd", *map(str, binaries)], capture_output=True, text=True, check=False).stdout
    return {Path(path) for path in re.findall(r"(/\S+) \(0x", listed)}
