# SPDX-License-Identifier: Apache-2.0
"""Hold the page at `/`: both schedulers' shares for each node, drawn from the JSON API, with nothing from elsewhere.

All text from the API is put in as text, never as HTML. The hash in the content security policy lets only this
script run.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final

_STYLE: Final = """
:root { color-scheme: light dark; --k: #3467c8; --y: #c77f1a; --o: #8a8a8a; --free: #d9d9d933; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.25rem; margin: 0 0 .25rem; } p { margin: .25rem 0 .75rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .5rem; border-bottom: 1px solid #8884; vertical-align: top; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.bar { display: flex; height: .9rem; min-width: 14rem; background: var(--free); border: 1px solid #8886; }
.bar > span { display: block; height: 100%; } .k { background: var(--k); } .y { background: var(--y); }
.o { background: var(--o); } .key { display: inline-block; width: .8rem; height: .8rem; margin: 0 .3rem 0 .8rem; }
.bad { color: #c0392b; } .dim { opacity: .7; }
"""

_SCRIPT: Final = """
"use strict";
const cores = m => m == null ? "?" : (m / 1000).toFixed(1);
const gib = b => b == null ? "?" : (b / 1073741824).toFixed(1);
const element = (tag, text, cls) => {
  const e = document.createElement(tag);
  if (text != null) e.textContent = text;
  if (cls) e.className = cls;
  return e;
};
const part = (cls, share, title) => {
  const e = element("span", null, cls);
  e.style.width = Math.max(0, Math.min(100, share * 100)) + "%";
  e.title = title;
  return e;
};
const bar = (node, key, show) => {
  const amount = stage => node[stage] == null ? null : node[stage][key];
  const origin = node.origin[key], holds = [["k", "kubernetes_requested"], ["y", "used"], ["o", "others"]];
  const sum = holds.reduce((total, [, stage]) => total + (amount(stage) || 0), 0);
  const whole = Math.max(origin || 0, sum) || 1;
  const e = element("div", null, "bar");
  for (const [cls, stage] of holds)
    e.append(part(cls, (amount(stage) || 0) / whole, stage + " " + show(amount(stage))));
  e.title = "origin " + show(origin) + ", offered to YARN " + show(amount("capacity"));
  return e;
};
const row = node => {
  const tr = element("tr"), used = node.used || {}, k = node.kubernetes_requested || {}, c = node.capacity || {};
  tr.append(element("td", node.node));
  const bars = element("td");
  bars.append(bar(node, "cpu_milli", cores), bar(node, "memory_bytes", gib));
  tr.append(bars);
  const line = (f, key) => [f(node.origin[key]), f(k[key]), f(used[key]), f(c[key])].join(" / ");
  const numbers = element("td", null, "number");
  numbers.append(element("div", line(cores, "cpu_milli") + " cores"),
                 element("div", line(gib, "memory_bytes") + " GiB"));
  tr.append(numbers);
  const why = element("td");
  why.append(element("div", node.origin.state, node.origin.state === "known" ? "dim" : "bad"));
  for (const reason of node.reasons) why.append(element("div", reason.reason + ": " + reason.message, "bad"));
  tr.append(why);
  return tr;
};
const read = async path => { const r = await fetch(path, {cache: "no-store"}); return r.json(); };
const draw = async () => {
  const state = document.getElementById("state");
  try {
    const [status, nodes] = await Promise.all([read("api/v1/status"), read("api/v1/nodes")]);
    const c = status.controller, age = status.age_seconds;
    state.className = c.ready ? "" : "bad";
    state.textContent = (c.leader ? "Leader " : "Standby ") + c.identity + ", mode " + c.mode + ", data " +
      (age == null ? "incomplete" : age.toFixed(1) + " s old") + (c.ready ? "" : ". Not ready: " +
      c.ready_missing.join("; ")) + status.clusters.map(y => ". YARN " + y.id + ": " +
      (y.reachable ? "answers" : "does not answer" + (y.error ? " (" + y.error + ")" : ""))).join("");
    document.getElementById("nodes").replaceChildren(...nodes.nodes.map(row));
  } catch (error) {
    state.className = "bad";
    state.textContent = "The controller does not answer.";
  }
};
draw();
setInterval(draw, 5000);
"""

PAGE: Final = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>yarn-copilot</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>
<h1>yarn-copilot</h1><p id="state">Reading…</p>
<p><span class="key k"></span>Kubernetes requested<span class="key y"></span>YARN used
<span class="key o"></span>other third parties; the whole bar is origin. Upper bar: CPU, lower bar: memory.</p>
<table><thead><tr><th>Node</th><th>Shares</th><th>Origin / Kubernetes / YARN used / YARN offered</th><th>State</th>
</tr></thead><tbody id="nodes"></tbody></table>
<noscript>This page needs JavaScript; the same figures are at <a href="api/v1/nodes">api/v1/nodes</a>.</noscript>
<script>{_SCRIPT}</script></body></html>
"""


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


CONTENT_SECURITY_POLICY: Final = (
    f"default-src 'none'; connect-src 'self'; script-src {_hash(_SCRIPT)}; "
    f"style-src {_hash(_STYLE)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
