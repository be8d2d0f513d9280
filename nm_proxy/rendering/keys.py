# SPDX-License-Identifier: Apache-2.0
"""Name the NodeManager's keys that are read or rendered, with their defaults of yarn-default.xml (Hadoop 3.5.0).

A test compares the defaults with the real file.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

HOSTNAME: Final = "yarn.nodemanager.hostname"
ADDRESS: Final = "yarn.nodemanager.address"
BIND_HOST: Final = "yarn.nodemanager.bind-host"
WEB_ADDRESS: Final = "yarn.nodemanager.webapp.address"
WEB_HTTPS_ADDRESS: Final = "yarn.nodemanager.webapp.https.address"
LOCAL_DIRS: Final = "yarn.nodemanager.local-dirs"
DETECT_HARDWARE: Final = "yarn.nodemanager.resource.detect-hardware-capabilities"
RECOVERY_ENABLED: Final = "yarn.nodemanager.recovery.enabled"
RECOVERY_DIR: Final = "yarn.nodemanager.recovery.dir"
RECOVERY_SUPERVISED: Final = "yarn.nodemanager.recovery.supervised"
KILL_DELAY: Final = "yarn.nodemanager.sleep-delay-before-sigkill.ms"
EXECUTOR: Final = "yarn.nodemanager.container-executor.class"
CPU_HANDLER: Final = "yarn.nodemanager.resource.cpu.enabled"
MEMORY_HANDLER: Final = "yarn.nodemanager.resource.memory.enabled"
CPU_PERCENT: Final = "yarn.nodemanager.resource.percentage-physical-cpu-limit"
LEGACY_HANDLER: Final = "yarn.nodemanager.linux-container-executor.resources-handler.class"
HIERARCHY: Final = "yarn.nodemanager.linux-container-executor.cgroups.hierarchy"
MOUNT: Final = "yarn.nodemanager.linux-container-executor.cgroups.mount"
MOUNT_PATH: Final = "yarn.nodemanager.linux-container-executor.cgroups.mount-path"
STRICT_USAGE: Final = "yarn.nodemanager.linux-container-executor.cgroups.strict-resource-usage"
V2_ENABLED: Final = "yarn.nodemanager.linux-container-executor.cgroups.v2.enabled"
V2_MOUNT_PATH: Final = "yarn.nodemanager.linux-container-executor.cgroups.v2.mount-path"
TRACKER_ADDRESS: Final = "yarn.resourcemanager.resource-tracker.address"
HTTP_ANONYMOUS: Final = "hadoop.http.authentication.simple.anonymous.allowed"

DEFAULT_EXECUTOR: Final = "org.apache.hadoop.yarn.server.nodemanager.DefaultContainerExecutor"
LINUX_EXECUTOR: Final = "org.apache.hadoop.yarn.server.nodemanager.LinuxContainerExecutor"
NO_LEGACY_HANDLER: Final = "org.apache.hadoop.yarn.server.nodemanager.util.DefaultLCEResourcesHandler"

FIXED_PORT: Final = 8041
"""The usual port of a NodeManager; Hadoop's own default is a new one at each start."""
TRACKER_PORT: Final = 8031
WEB_PORT: Final = 8042
WEB_HTTPS_PORT: Final = 8044

DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        HOSTNAME: "0.0.0.0",
        ADDRESS: "${yarn.nodemanager.hostname}:0",
        WEB_ADDRESS: "${yarn.nodemanager.hostname}:8042",
        WEB_HTTPS_ADDRESS: "0.0.0.0:8044",
        LOCAL_DIRS: "${hadoop.tmp.dir}/nm-local-dir",
        DETECT_HARDWARE: "false",
        RECOVERY_ENABLED: "false",
        RECOVERY_DIR: "${hadoop.tmp.dir}/yarn-nm-recovery",
        RECOVERY_SUPERVISED: "false",
        KILL_DELAY: "250",
        EXECUTOR: DEFAULT_EXECUTOR,
        MEMORY_HANDLER: "false",
        CPU_PERCENT: "100",
        HIERARCHY: "/hadoop-yarn",
        MOUNT: "false",
        STRICT_USAGE: "false",
        TRACKER_ADDRESS: "${yarn.resourcemanager.hostname}:8031",
    }
)
