# SPDX-License-Identifier: Apache-2.0
"""Find the NodeManager that a pod or a Node stands for in the ResourceManager's node list."""
