# SPDX-License-Identifier: Apache-2.0
"""Run the commands `check` and `render`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from nm_proxy.cli import settings_file
from nm_proxy.exit_codes import ExitCode
from nm_proxy.preflight.findings import exit_code
from nm_proxy.preflight.judging import as_document, as_text, judge
from nm_proxy.preflight.observing import Surroundings, find_tree_or_none, observe, render_here
from nm_proxy.rendering.directory import write
from nm_proxy.rendering.site_file import overlay_text
from nm_proxy.supervisor.process import is_recorded_alive


def check(config: Path | None, command: Sequence[str], environ: Mapping[str, str], *, json_output: bool) -> ExitCode:
    """Check the node and print what was found.

    Raises:
        ConfigError: the settings file is wrong.
    """
    settings = settings_file.load(config, environ)
    runs = is_recorded_alive(settings.supervisor.state_dir)
    findings = judge(observe(settings, command, Surroundings(environ=environ), tries_port=not runs))
    print(json.dumps(as_document(findings), indent=1) if json_output else as_text(findings))
    return exit_code(findings)


def show_rendering(config: Path | None, environ: Mapping[str, str], *, whole: bool, output: Path | None) -> None:
    """Print or write the rendering; without a cgroup tree, keys about it are left out.

    Raises:
        ConfigError: the settings file or the operator's files are wrong, or the directory cannot be written.
    """
    settings = settings_file.load(config, environ)
    around = Surroundings(environ=environ)
    rendered = render_here(settings, around, find_tree_or_none(settings, around))
    if output is not None:
        write(rendered, output)
        print(output)
        return
    print(rendered.files["yarn-site.xml"] if whole else overlay_text(rendered.overlay.properties), end="")
