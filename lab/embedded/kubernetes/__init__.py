# SPDX-License-Identifier: Apache-2.0
"""Be a Kubernetes API server in memory: lists, watches, patches, leases and events over real HTTP.

It follows kube-apiserver 1.37 in what the product and the tests use: resource versions, paging, watch with bookmarks
and 410, JSON and merge patch, the status subresource, optimistic concurrency, refusals with the same texts. It has no
schema, no admission, no RBAC (single resources can be forbidden) and no managed fields.
"""

from lab.embedded.kubernetes.calls import Call, CallLog
from lab.embedded.kubernetes.faults import Fault, Faults
from lab.embedded.kubernetes.scheduler import FirstFitScheduler
from lab.embedded.kubernetes.server import EmbeddedKubernetes

__all__ = ["Call", "CallLog", "EmbeddedKubernetes", "Fault", "Faults", "FirstFitScheduler"]
