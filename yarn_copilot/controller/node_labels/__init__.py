# SPDX-License-Identifier: Apache-2.0
"""Keep partitions and node attributes of YARN in step with labels of Kubernetes Nodes."""
