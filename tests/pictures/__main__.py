# SPDX-License-Identifier: Apache-2.0
"""Write the pictures of docs/sharing.md into a folder, and print the rows and times of its tables."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.pictures.gallery import paint


def main() -> int:
    """Write them; the folder is the only argument."""
    if len(sys.argv) != 2:
        print("usage: python -m tests.pictures FOLDER", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    gallery = paint()
    for name, text in gallery.pictures.items():
        (folder / name).write_text(text)
    print(*gallery.rows, ", ".join(gallery.steps), sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
