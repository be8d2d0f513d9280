# SPDX-License-Identifier: Apache-2.0
"""Quote every annotation key, resource name and fixed value of the ledger once.

Sources: Koordinator apis/extension and apis/slo/v1alpha1 (v1.8.0), and the keys that the Go bridge of Koordinator
introduced for NodeManager pods (`yarn.hadoop.apache.org/...`).
"""

from __future__ import annotations

from typing import Final

BATCH_CPU: Final = "kubernetes.io/batch-cpu"
"""Extended resource, whole milli-cores: 1000 is one core."""

BATCH_MEMORY: Final = "kubernetes.io/batch-memory"
"""Extended resource, bytes."""

ORIGIN_ANNOTATION: Final = "node.koordinator.sh/originExtendedAllocatable"
"""Written by koord-manager only: batch capacity before third parties are subtracted."""

THIRD_PARTY_ANNOTATION: Final = "node.koordinator.sh/thirdPartyAllocations"
"""Read by koord-manager: what others than Kubernetes hold; several writers share it, one entry each."""

CPU_NORMALIZATION_RATIO_ANNOTATION: Final = "node.koordinator.sh/cpu-normalization-ratio"
"""Decimal text such as `1.20`: batch-cpu was multiplied by it before it was published."""

PRIORITY_BATCH: Final = "koord-batch"
"""The only priority whose entries koord-manager subtracts from batch resources."""

ENTRY_NAME: Final = "hadoop-yarn"
"""The name of our entry, the same that the Go bridge uses."""

NODE_ID_ANNOTATION: Final = "yarn.hadoop.apache.org/node-id"
"""Override on a NodeManager pod or a Node: `host:port` as the ResourceManager knows it."""

CLUSTER_ID_ANNOTATION: Final = "yarn.hadoop.apache.org/cluster-id"
"""Which YARN cluster a NodeManager belongs to."""

CLAIM_COUNTER_ANNOTATION: Final = "yarn-copilot/claim-counter"
"""Our own: counts growths, so that a repeated growth is a change of the Node."""

DRAIN_ANNOTATION: Final = "yarn-copilot/drain"
"""An operator's order: take YARN off this node."""

PAUSE_ANNOTATION: Final = "yarn-copilot/pause"
"""An operator's order: write nothing for this node, on either side."""

CAP_ANNOTATION: Final = "yarn-copilot/cap"
"""An operator's order: YARN gets at most so much of this node."""

FIX_ANNOTATION: Final = "yarn-copilot/fix"
"""An operator's order: YARN gets exactly so much of this node, where so much is there."""
