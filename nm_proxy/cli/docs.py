# SPDX-License-Identifier: Apache-2.0
"""Write docs/node-reference.md from the code: `python -m nm_proxy.cli.docs docs`.

A developer's command, not part of `nm-proxy`. A test compares the committed page with what this writes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Final

from nm_proxy.agent_metrics import AgentMetrics
from nm_proxy.exit_codes import ExitCode
from nm_proxy.settings import RULE_SENTENCES, SCHEMA
from nm_proxy.supervisor.metrics import SupervisorMetrics
from yarn_copilot.config.reference import GENERATED, section_lines, write_pages

PAGE: Final = "node-reference.md"
_INTRO: Final = """# Node side: reference

`nm-proxy run`, `check`, `render` and `agent` read one YAML file (`--config FILE` or `NM_PROXY_CONFIG`), normally from a
ConfigMap. Every key has a default; an empty file is valid. The rules of reading are those of the controller's file (see
[configuration.md](configuration.md)); a variable `NM_PROXY_<SECTION>__<KEY>` overrides a key, lists are separated by
commas. `nm-proxy config check FILE` checks a file, `nm-proxy config show-defaults` starts one.

The file is read again every two seconds. Keys marked *at once* take effect without a restart; a file with a mistake
changes nothing and shows in the log and in `yarn_copilot_node_config_last_reload_successful`. What it all is for is in
[node.md](node.md).

## Exit codes

| code | kind | meaning |
|---|---|---|
"""


def exit_code_rows() -> Iterator[str]:
    """Write a row for each code."""
    for code in ExitCode:
        yield f"| {int(code)} | `{code.kind}` | {code.meaning} |"


def metric_rows() -> Iterator[str]:
    """Write a row for each family of both registries."""
    text = SupervisorMetrics().render().decode() + AgentMetrics().render().decode()
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    for name, kind in re.findall(r"^# TYPE (yarn_copilot_\S+) (\w+)$", text, re.MULTILINE):
        if not name.endswith("_created"):
            yield f"| `{name}` | {kind} | {helps[name]} |"


def page() -> str:
    """Write the page."""
    lines = [GENERATED, _INTRO + "\n".join(exit_code_rows()), "", "## Rules across keys", ""]
    lines += [f"- {sentence}" for sentence in RULE_SENTENCES]
    lines += section_lines(SCHEMA)
    lines += ["## Metrics", "", "`GET /metrics` on `health.port`.", "", "| metric | type | meaning |", "|---|---|---|"]
    lines += metric_rows()
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(write_pages("nm_proxy.cli.docs", {PAGE: page()}, sys.argv[1:]))
