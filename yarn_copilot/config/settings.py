# SPDX-License-Identifier: Apache-2.0
"""Model the configuration file: one class per concern, strict types, each field documented with unit and reason.

The file is YAML, normally a ConfigMap. Unknown keys are refused. Fields marked `reloadable` in `json_schema_extra`
take effect without a restart; the others are reported as "needs restart".
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

RELOADABLE: Final[dict[str, Any]] = {"reloadable": True}

Seconds = Annotated[float, Field(allow_inf_nan=False)]
"""Hold a number of seconds; strict, but a whole number is accepted. The unit is in the name of every such field."""

FilePath = Annotated[Path, Field(strict=False)]
"""Hold a path, written as text."""


class Section(BaseModel):
    """Be the base of every section: frozen, strict, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SharingMode(StrEnum):
    """Choose how the idle capacity is shared."""

    SHARED = "shared"
    STRICT = "strict"


class CpuUnit(StrEnum):
    """Choose what a milli-core of `kubernetes.io/batch-cpu` means to YARN."""

    NORMALIZED = "normalized"
    PHYSICAL = "physical"


class Transport(StrEnum):
    """Choose how a ResourceManager is reached."""

    RPC = "rpc"
    REST = "rest"


TransportChoice = Annotated[Transport, Field(strict=False)]
"""Hold a transport, written as text."""


class KubernetesSettings(Section):
    """Say how to reach the API server and how to keep its watches alive."""

    kubeconfig: FilePath | None = Field(
        None,
        description="Path of a kubeconfig; unset: in-cluster credentials, then $KUBECONFIG, then ~/.kube/config.",
    )
    context: str | None = Field(None, description="Context of the kubeconfig; unset: its current one.")
    request_timeout_seconds: Seconds = Field(
        5.0,
        gt=0,
        le=30,
        description="Deadline of one call that is not a watch, seconds. Must end before the lease's renew deadline does.",
    )
    list_page_size: int = Field(
        500, ge=50, le=5000, description="Objects per page of a list; a page bounds memory while decoding."
    )
    watch_silence_timeout_seconds: Seconds = Field(
        70.0,
        gt=0,
        le=600,
        description="A watch that says nothing (not even a bookmark, sent about every 60 s) for so many seconds is closed and opened again.",
    )
    backoff_max_seconds: Seconds = Field(
        10.0,
        gt=0,
        le=300,
        description="Longest wait between two tries to reach the API server, seconds; jitter is added.",
    )
    parallel_patches: int = Field(32, ge=1, le=256, description="Node patches in flight at once.")


class HadoopSettings(Section):
    """Say how to reach the ResourceManagers."""

    conf_dir: FilePath = Field(
        Path("/etc/hadoop/conf"),
        description="Hadoop configuration directory with yarn-site.xml, or <cluster>.yarn-site.xml for each of several clusters, and core-site.xml.",
    )
    user: str = Field(
        "yarn",
        min_length=1,
        max_length=64,
        description="User to call as with simple authentication; must be in yarn.admin.acl.",
    )
    proxy_user: str | None = Field(
        None,
        min_length=1,
        max_length=256,
        description="User in whose name RPC calls are made; hadoop.proxyuser rules of the ResourceManager must allow it. Unset: nobody else. $HADOOP_PROXY_USER stands for it.",
    )
    kerberos_principal: str | None = Field(
        None,
        min_length=1,
        max_length=256,
        description="Who to be where Hadoop's files say hadoop.security.authentication = kerberos: name[/host][@REALM], _HOST is this host's name. Unset: whoever the keytab or the tickets belong to.",
    )
    kerberos_keytab: FilePath | None = Field(
        None,
        description="Keytab of kerberos_principal. Tickets are got with it, kept in memory and renewed before they end. Unset: tickets that somebody else keeps (kerberos_ticket_cache).",
    )
    kerberos_ticket_cache: str | None = Field(
        None,
        min_length=1,
        max_length=512,
        description="Ticket cache to use without a keytab, for example FILE:/tmp/krb5cc_0; unset: $KRB5CCNAME, else the library's default.",
    )
    token_file: FilePath | None = Field(
        None,
        description="Hadoop token file (format java) with an RM_DELEGATION_TOKEN for RPC reads, read for each connection so that it can be renewed; updates need Kerberos. Unset: none. $HADOOP_TOKEN_FILE_LOCATION stands for it.",
    )
    call_timeout_seconds: Seconds = Field(
        4.0,
        gt=0,
        le=60,
        description="Deadline of one RPC, seconds. Must be below leader_election.renew_deadline_seconds, so that a deposed leader has no call in flight.",
    )
    connect_timeout_seconds: Seconds = Field(2.0, gt=0, le=60, description="Deadline of a TCP connect, seconds.")
    max_response_bytes: int = Field(
        134_217_728,
        ge=1_048_576,
        le=2_147_483_647,
        description="Largest response read, bytes; Hadoop's own ipc.maximum.response.length.",
    )
    transport: TransportChoice = Field(
        Transport.RPC,
        description="rpc: Hadoop RPC on the client and admin ports. rest: the web services, which are weaker (see hadoop.md): no admin ACL, one node a call, no custom resource types.",
    )
    cluster_transports: dict[str, TransportChoice] = Field(
        {}, description="Transport of single clusters, by cluster id, where it differs from hadoop.transport."
    )
    web_ca_file: FilePath | None = Field(
        None,
        description="PEM file with the authorities that sign the certificates of ResourceManagers' web services; unset: the system's own.",
    )
    delegation_token_file: FilePath | None = Field(
        None,
        description="File with a delegation token for the web services (one line), read for each call so that it can be renewed; unset: hadoop.user as user.name.",
    )
    allow_unsafe_version: bool = Field(
        False,
        description="Send updates to ResourceManagers older than 3.3.1 too, although one can crash their scheduler (YARN-10651). True only where the vendor has mended that.",
    )


class YarnSettings(Section):
    """Say how often to look at YARN and how NodeManagers behave."""

    poll_interval_seconds: Seconds = Field(
        1.0,
        ge=0.05,
        le=60,
        description="Time between two reads of a cluster's node list, seconds.",
        json_schema_extra=RELOADABLE,
    )
    confirm_interval_seconds: Seconds = Field(
        0.2,
        ge=0.05,
        le=10,
        description="Time between two reads while an update is not confirmed yet, seconds.",
        json_schema_extra=RELOADABLE,
    )
    heartbeat_interval_seconds: Seconds | None = Field(
        None,
        gt=0,
        le=60,
        description="NodeManager heartbeat interval, seconds. Unset: yarn.resourcemanager.nodemanagers.heartbeat-interval-ms of the cluster's yarn-site.xml, else 1. A fall of use counts only when seen twice with a heartbeat between.",
        json_schema_extra=RELOADABLE,
    )
    queue_interval_seconds: Seconds = Field(
        10.0,
        ge=1,
        le=600,
        description="Time between two reads of the queues, seconds.",
        json_schema_extra=RELOADABLE,
    )
    message_lifetime_seconds: Seconds = Field(
        10.0,
        gt=0,
        le=600,
        description="After so many seconds an update that was sent and never confirmed counts as dead. Must be at least hadoop.call_timeout_seconds.",
        json_schema_extra=RELOADABLE,
    )
    lost_hold_seconds: Seconds = Field(
        600.0,
        ge=1,
        le=86400,
        description="A NodeManager that is LOST or gone from the node list is believed to hold its last use for so many seconds. Choose at least the RM's yarn.nm.liveness-monitor.expiry-interval-ms.",
        json_schema_extra=RELOADABLE,
    )
    unrecognized_backoff_max_seconds: Seconds = Field(
        60.0,
        ge=1,
        le=3600,
        description="Longest wait before a node that the RM does not know is tried again, seconds; starts at 1 and doubles.",
        json_schema_extra=RELOADABLE,
    )
    floor_memory_mib: int = Field(
        1024,
        ge=0,
        le=2_147_483_647,
        description="Memory a NodeManager registers with, MiB: at least the RM's yarn.scheduler.minimum-allocation-mb. Capacity never goes below.",
        json_schema_extra=RELOADABLE,
    )
    floor_vcores: int = Field(
        1,
        ge=0,
        le=2_147_483_647,
        description="vcores a NodeManager registers with: at least yarn.scheduler.minimum-allocation-vcores.",
        json_schema_extra=RELOADABLE,
    )


class NodeManagerSettings(Section):
    """Say how to find NodeManagers in Kubernetes."""

    pod_selector: str = Field(
        "app.kubernetes.io/component=node-manager",
        min_length=1,
        description="Label selector (equality form, comma separated) of NodeManager pods.",
    )
    host_node_selector: str | None = Field(
        None, description="Label selector of Nodes whose NodeManager runs as a host daemon; unset: none."
    )
    default_cluster: str | None = Field(
        None,
        description="Cluster id of NodeManagers without the annotation yarn.hadoop.apache.org/cluster-id; unset: the only cluster, or the one of the un-prefixed yarn-site.xml.",
    )
    count_node_manager_pod: bool = Field(
        True,
        description="Count the NodeManager pod's own batch request as Kubernetes use. False only where that request is meant to hold the tasks.",
        json_schema_extra=RELOADABLE,
    )
    cluster_weights: dict[str, int] = Field(
        {},
        description="Weight of each cluster on a node that carries several; 1 where absent.",
        json_schema_extra=RELOADABLE,
    )


class ReserveSettings(Section):
    """Withhold head-room from YARN; never claimed, so Kubernetes may still use it."""

    cpu_percent: int = Field(
        0,
        ge=0,
        le=100,
        description="Percent of origin batch-cpu withheld, rounded up.",
        json_schema_extra=RELOADABLE,
    )
    cpu_milli: int = Field(
        0, ge=0, description="Milli-cores withheld; added to the percentage.", json_schema_extra=RELOADABLE
    )
    memory_percent: int = Field(
        0,
        ge=0,
        le=100,
        description="Percent of origin batch-memory withheld, rounded up.",
        json_schema_extra=RELOADABLE,
    )
    memory_bytes: int = Field(
        0, ge=0, description="Bytes withheld; added to the percentage.", json_schema_extra=RELOADABLE
    )


class StrictSettings(Section):
    """Say how mode strict moves the boundary between the two sides."""

    settle_seconds: Seconds = Field(
        10.0,
        ge=1,
        lt=60,
        description="After a fall of a node's batch allocatable YARN waits so long before it grows there. Must exceed the longest lag of a kube-scheduler's watch plus the longest bind.",
        json_schema_extra=RELOADABLE,
    )
    fresh_read_seconds: Seconds = Field(
        2.0,
        gt=0,
        le=30,
        description="A growth rests on a read of the node and its pods that began at most so many seconds ago.",
        json_schema_extra=RELOADABLE,
    )
    nudge_seconds: Seconds = Field(
        60.0,
        ge=5,
        le=600,
        description="A claim that koord-manager has not published after so many seconds is written again, equal, which makes it look at the Node.",
        json_schema_extra=RELOADABLE,
    )
    yarn_weight: int = Field(
        1,
        ge=0,
        le=1_000_000,
        description="YARN's share of what is free on a node while neither side alone waits for it, against kubernetes_weight.",
        json_schema_extra=RELOADABLE,
    )
    kubernetes_weight: int = Field(
        1, ge=0, le=1_000_000, description="Kubernetes' share, see yarn_weight.", json_schema_extra=RELOADABLE
    )
    kubernetes_minimum_cpu_milli: int = Field(
        1000,
        ge=0,
        description="Milli-cores that YARN leaves free on every node. Above 0, koord-manager publishes a fall of origin at once.",
        json_schema_extra=RELOADABLE,
    )
    kubernetes_minimum_memory_bytes: int = Field(
        1_073_741_824, ge=0, description="Bytes that YARN leaves free on every node.", json_schema_extra=RELOADABLE
    )


class CapacitySettings(Section):
    """Say how capacity follows origin."""

    mode: SharingMode = Field(
        SharingMode.SHARED,
        strict=False,
        description="How the free part is shared. shared: Koordinator's documented rule, free capacity is offered to both schedulers. strict: a boundary on each node, so that the two together never hold more than origin.",
        json_schema_extra=RELOADABLE,
    )
    milli_cores_per_vcore: int = Field(
        1000, ge=1, le=1_000_000, description="Milli-cores of batch-cpu that make one vcore, both ways."
    )
    cpu_unit: CpuUnit = Field(
        CpuUnit.NORMALIZED,
        strict=False,
        description="normalized: batch-cpu as published. physical: divided by the node's cpu-normalization-ratio before vcores are counted.",
    )
    growth_window_seconds: Seconds = Field(
        60.0,
        ge=0,
        le=3600,
        description="Capacity grows only to the smallest origin seen in so many seconds; 0 follows at once.",
        json_schema_extra=RELOADABLE,
    )
    dead_band_vcores: int = Field(
        0,
        ge=0,
        description="A growth by fewer vcores than this (and less memory than dead_band_memory_mib) is not sent.",
        json_schema_extra=RELOADABLE,
    )
    dead_band_memory_mib: int = Field(
        0,
        ge=0,
        description="A growth by less MiB than this (and fewer vcores than dead_band_vcores) is not sent.",
        json_schema_extra=RELOADABLE,
    )
    strict: StrictSettings = Field(StrictSettings(), description="Steps and shares of mode strict.")
    reserve: ReserveSettings = Field(ReserveSettings(), description="Head-room withheld from YARN.")
    require_node_metric: bool = Field(
        True,
        description="Stop growth on nodes whose NodeMetric cannot be read. False: trust origin without an age.",
        json_schema_extra=RELOADABLE,
    )
    origin_max_age_seconds: Seconds = Field(
        900.0,
        ge=1,
        le=86400,
        description="Origin older than this counts as degraded, whatever the annotation says; Koordinator's own limit is 15 minutes.",
        json_schema_extra=RELOADABLE,
    )
    kubernetes_max_silence_seconds: Seconds = Field(
        120.0,
        ge=1,
        le=3600,
        description="With the API server silent for longer than this, no update is sent to YARN.",
        json_schema_extra=RELOADABLE,
    )
    foreign_writer_hold_seconds: Seconds = Field(
        600.0,
        ge=1,
        le=86400,
        description="After somebody else changed our entry of the third-party allocations, the node is left alone until the entry has been quiet for so many seconds.",
        json_schema_extra=RELOADABLE,
    )
    batch_interval_seconds: Seconds = Field(
        0.05,
        ge=0,
        le=10,
        description="Changes are collected for so many seconds before a batch is sent.",
        json_schema_extra=RELOADABLE,
    )


class LeaderElectionSettings(Section):
    """Let one of several replicas write."""

    enabled: bool = Field(True, description="False only where exactly one process runs, for example in a test.")
    lease_name: str = Field("yarn-copilot", min_length=1, description="Name of the coordination.k8s.io Lease.")
    namespace: str | None = Field(
        None,
        description="Namespace of the Lease and of Events; unset: the pod's own, else koordinator-system.",
    )
    identity: str | None = Field(None, description="Holder identity; unset: host name and a random part.")
    lease_duration_seconds: int = Field(
        10, ge=3, le=120, description="A standby takes over a lease not renewed for so long, seconds."
    )
    renew_deadline_seconds: Seconds = Field(
        6.0, gt=0, le=100, description="A leader that could not renew for so long stops writing, seconds."
    )
    retry_period_seconds: Seconds = Field(
        1.0, gt=0, le=30, description="Time between two tries to take or renew, seconds."
    )


class ServerSettings(Section):
    """Say where health, metrics and the read-only API are served."""

    bind_address: str = Field("0.0.0.0", description="Address to listen on.")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 picks a free one and logs it.")


class LogSettings(Section):
    """Say what is logged."""

    level: str = Field(
        "INFO",
        pattern="^(DEBUG|INFO|WARNING|ERROR)$",
        description="Smallest level logged: DEBUG, INFO, WARNING or ERROR.",
        json_schema_extra=RELOADABLE,
    )
    format: str = Field(
        "text",
        pattern="^(text|json)$",
        description="text: one sentence with keys. json: one object per line.",
    )


class Settings(Section):
    """Be the whole file."""

    kubernetes: KubernetesSettings = KubernetesSettings()
    hadoop: HadoopSettings = HadoopSettings()
    yarn: YarnSettings = YarnSettings()
    node_managers: NodeManagerSettings = NodeManagerSettings()
    capacity: CapacitySettings = CapacitySettings()
    leader_election: LeaderElectionSettings = LeaderElectionSettings()
    server: ServerSettings = ServerSettings()
    log: LogSettings = LogSettings()
