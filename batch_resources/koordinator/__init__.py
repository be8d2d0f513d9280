# SPDX-License-Identifier: Apache-2.0
"""Compute and publish batch resources as Koordinator's koord-manager does.

Each module holds one part of the rule: `priority` (which pods count), `strategy` (the configuration), `demand`
(what high-priority work takes), `formula` (the batch resources), `prepare` (what goes on the Node) and
`publication` (when it is written). Nothing here knows where the numbers come from. Source: Koordinator 1.8,
pkg/slo-controller/noderesource.
"""
