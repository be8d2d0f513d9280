# SPDX-License-Identifier: Apache-2.0
"""Build things once: keyed by content, guarded by a lock file, put in place by a rename.

The cache lives in `.cache/lab` of the repository or in $LAB_CACHE_DIR. Two labs that need the same entry at the same
time build it once; a build that is interrupted leaves nothing that looks finished.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab.errors import LabError
from lab.processes.process import tail_of


def cache_folder() -> Path:
    """Return the cache folder, made if missing."""
    default = Path(__file__).resolve().parents[2] / ".cache" / "lab"
    path = Path(os.environ.get("LAB_CACHE_DIR") or default)
    path.mkdir(parents=True, exist_ok=True)
    return path


def digest_of(*parts: str | bytes | Path) -> str:
    """Digest texts and the contents of files into a short key."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()[:16]


def build_once(name: str, key: str, build: Callable[[Path], None]) -> Path:
    """Return the folder `<cache>/<name>-<key>`, built by `build(folder)` when it is missing.

    Raises:
        LabError: from `build`; nothing is left in that case.
    """
    folder = cache_folder()
    target = folder / f"{name}-{key}"
    if target.exists():
        return target
    with _locked(folder / f"{name}.lock"):
        if not target.exists():
            temporary = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=folder))
            try:
                build(temporary)
                temporary.chmod(0o755)
                temporary.rename(target)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    return target


def run_tool(
    argv: Sequence[str], *, working_directory: Path, what: str, environment: dict[str, str] | None = None
) -> None:
    """Run a build tool with its output in a file.

    Raises:
        LabError: the tool is missing or failed; the end of its output is quoted.
    """
    if shutil.which(argv[0]) is None:
        raise LabError(f"{what}: the program {argv[0]} is not installed")
    with tempfile.NamedTemporaryFile(prefix="lab-tool-", suffix=".log") as log:
        done = subprocess.run(
            argv,
            cwd=working_directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            check=False,
        )
        if done.returncode != 0:
            raise LabError(f"{what}: {argv[0]} ended with exit code {done.returncode}\n{tail_of(Path(log.name), 40)}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
