# SPDX-License-Identifier: Apache-2.0
"""Show the bridge at work: a compressed day on real servers, or on those inside the process.

`command` parses and reports, `scenario` plays, `observer` watches both schedulers from outside, `summary` judges. The
scenario knows its servers only through `backend`; `real` and `embedded` provide them.
"""
