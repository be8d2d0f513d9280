# SPDX-License-Identifier: Apache-2.0
"""Hold the defaults of the keys that we use: core-default.xml and yarn-default.xml of Hadoop 3.5.0.

A default of yarn-default.xml wins over core-site.xml, because Hadoop loads it later; only a `<final>` value of
core-site.xml stays. A test compares every value with the real files.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

AUTHENTICATION: Final = "hadoop.security.authentication"
AUTHORIZATION: Final = "hadoop.security.authorization"
RPC_PROTECTION: Final = "hadoop.rpc.protection"
AUTH_TO_LOCAL: Final = "hadoop.security.auth_to_local"
FALLBACK: Final = "ipc.client.fallback-to-simple-auth-allowed"
USE_IP: Final = "hadoop.security.token.service.use_ip"
HTTP_AUTHENTICATION: Final = "hadoop.http.authentication.type"

HOSTNAME: Final = "yarn.resourcemanager.hostname"
CLIENT_ADDRESS: Final = "yarn.resourcemanager.address"
ADMIN_ADDRESS: Final = "yarn.resourcemanager.admin.address"
WEB_ADDRESS: Final = "yarn.resourcemanager.webapp.address"
WEB_HTTPS_ADDRESS: Final = "yarn.resourcemanager.webapp.https.address"
PRINCIPAL: Final = "yarn.resourcemanager.principal"
PRINCIPAL_PATTERN: Final = "yarn.resourcemanager.principal.pattern"
HA_ENABLED: Final = "yarn.resourcemanager.ha.enabled"
HA_IDS: Final = "yarn.resourcemanager.ha.rm-ids"
CLUSTER_ID: Final = "yarn.resourcemanager.cluster-id"
HTTP_POLICY: Final = "yarn.http.policy"
HEARTBEAT_MILLIS: Final = "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms"
EXPIRY_MILLIS: Final = "yarn.nm.liveness-monitor.expiry-interval-ms"
ACL_ENABLED: Final = "yarn.acl.enable"
ADMIN_ACL: Final = "yarn.admin.acl"
MINIMUM_MEMORY_MIB: Final = "yarn.scheduler.minimum-allocation-mb"
MINIMUM_VCORES: Final = "yarn.scheduler.minimum-allocation-vcores"
NODE_MEMORY_MIB: Final = "yarn.nodemanager.resource.memory-mb"
NODE_VCORES: Final = "yarn.nodemanager.resource.cpu-vcores"
SCHEDULER_CLASS: Final = "yarn.resourcemanager.scheduler.class"
CSRF_ENABLED: Final = "yarn.resourcemanager.webapp.rest-csrf.enabled"
CSRF_HEADER: Final = "yarn.resourcemanager.webapp.rest-csrf.custom-header"
RESOURCE_CALCULATOR: Final = "yarn.scheduler.capacity.resource-calculator"
DYNAMIC_NODES: Final = "yarn.resource.dynamic.nodes"

CLIENT_PORT: Final = 8032
ADMIN_PORT: Final = 8033
WEB_PORT: Final = 8088
WEB_HTTPS_PORT: Final = 8090

CORE_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "hadoop.tmp.dir": "/tmp/hadoop-${user.name}",  # noqa: S108  (Hadoop's own words; never opened here)
        AUTHENTICATION: "simple",
        AUTHORIZATION: "false",
        RPC_PROTECTION: "authentication",
        FALLBACK: "false",
        USE_IP: "true",
        HTTP_AUTHENTICATION: "simple",
    }
)

YARN_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        HOSTNAME: "0.0.0.0",
        CLIENT_ADDRESS: "${yarn.resourcemanager.hostname}:8032",
        ADMIN_ADDRESS: "${yarn.resourcemanager.hostname}:8033",
        WEB_ADDRESS: "${yarn.resourcemanager.hostname}:8088",
        WEB_HTTPS_ADDRESS: "${yarn.resourcemanager.hostname}:8090",
        HA_ENABLED: "false",
        HTTP_POLICY: "HTTP_ONLY",
        HEARTBEAT_MILLIS: "1000",
        EXPIRY_MILLIS: "600000",
        ACL_ENABLED: "false",
        ADMIN_ACL: "*",
        MINIMUM_MEMORY_MIB: "1024",
        MINIMUM_VCORES: "1",
        NODE_MEMORY_MIB: "-1",
        NODE_VCORES: "-1",
        SCHEDULER_CLASS: "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler",
        CSRF_ENABLED: "false",
        CSRF_HEADER: "X-XSRF-Header",
    }
)
