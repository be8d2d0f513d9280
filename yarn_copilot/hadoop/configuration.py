# SPDX-License-Identifier: Apache-2.0
"""Read the addresses of ResourceManagers from a Hadoop configuration directory.

`<id>.yarn-site.xml` describes the cluster `<id>`, a plain `yarn-site.xml` the cluster `default`. Only plain values are
understood: what would need substitution, inclusion or an external entity is refused, since a wrong address is worse
than none. Source of keys and default ports: yarn-default.xml of Hadoop 3.5.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop import xmlfile
from yarn_copilot.hadoop.addresses import Address

SITE_FILE: Final = "yarn-site.xml"
DEFAULT_CLUSTER_ID: Final = "default"

CLIENT_ADDRESS_KEY: Final = "yarn.resourcemanager.address"
ADMIN_ADDRESS_KEY: Final = "yarn.resourcemanager.admin.address"
HOSTNAME_KEY: Final = "yarn.resourcemanager.hostname"
HA_ENABLED_KEY: Final = "yarn.resourcemanager.ha.enabled"
HA_IDS_KEY: Final = "yarn.resourcemanager.ha.rm-ids"
HEARTBEAT_KEY: Final = "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms"

CLIENT_PORT: Final = 8032
ADMIN_PORT: Final = 8033
HEARTBEAT_MILLIS_DEFAULT: Final = 1000
HEARTBEAT_MILLIS_MAX: Final = 3_600_000

WILDCARD_HOSTS: Final = frozenset(("0.0.0.0", "::", "0:0:0:0:0:0:0:0"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceManagerAddresses:
    """Hold where one ResourceManager listens.

    Attributes:
        rm_id: its id in yarn.resourcemanager.ha.rm-ids; empty without high availability.
        client: ApplicationClientProtocol.
        admin: ResourceManagerAdministrationProtocol.
    """

    rm_id: str
    client: Address
    admin: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfiguration:
    """Hold what is needed to talk to one YARN cluster.

    Attributes:
        id: name of the cluster, from the file's name.
        resource_managers: at least one, in the order of rm-ids.
        heartbeat_millis: how often its NodeManagers report.
    """

    id: str
    resource_managers: tuple[ResourceManagerAddresses, ...]
    heartbeat_millis: int = HEARTBEAT_MILLIS_DEFAULT

    @property
    def client_addresses(self) -> tuple[Address, ...]:
        """List the client ports."""
        return tuple(rm.client for rm in self.resource_managers)

    @property
    def admin_addresses(self) -> tuple[Address, ...]:
        """List the admin ports."""
        return tuple(rm.admin for rm in self.resource_managers)

    @property
    def heartbeat_seconds(self) -> float:
        """Give the heartbeat interval in seconds."""
        return self.heartbeat_millis / 1000


def read_clusters(conf_dir: Path) -> dict[str, ClusterConfiguration]:
    """Read every cluster that the directory describes.

    Returns:
        Cluster id to configuration, sorted by id.

    Raises:
        ConfigError: the directory or a file cannot be read, describes no cluster, or has a bad value; the text names
            file and key.
    """
    try:
        files = sorted(path for path in conf_dir.iterdir() if _cluster_id_or_none(path) is not None)
    except OSError as error:
        raise ConfigError(f"{conf_dir}: {error.strerror}") from error
    if not files:
        raise ConfigError(f"{conf_dir}: has neither {SITE_FILE} nor <cluster>.{SITE_FILE}")
    clusters: dict[str, ClusterConfiguration] = {}
    for path in files:
        cluster = read_cluster(path)
        if cluster.id in clusters:
            raise ConfigError(f"{path}: the cluster {cluster.id!r} is described twice, also by {SITE_FILE}")
        clusters[cluster.id] = cluster
    return clusters


def read_cluster(path: Path) -> ClusterConfiguration:
    """Read one yarn-site.xml; its name gives the cluster's id.

    Raises:
        ConfigError: the file cannot be read or has a bad value.
    """
    site = _Site(path, xmlfile.read_properties(path))
    return ClusterConfiguration(
        id=_cluster_id_or_none(path) or DEFAULT_CLUSTER_ID,
        resource_managers=tuple(_resource_manager(site, rm_id) for rm_id in _rm_ids(site)),
        heartbeat_millis=site.integer(HEARTBEAT_KEY, HEARTBEAT_MILLIS_DEFAULT, 1, HEARTBEAT_MILLIS_MAX),
    )


@dataclass(frozen=True, slots=True)
class _Site:
    """Look up keys of one file, with errors that name it."""

    path: Path
    properties: Mapping[str, str]

    def text(self, key: str) -> str | None:
        """Give the trimmed value; None where the key is absent or blank."""
        value = self.properties.get(key, "").strip()
        if "${" in value:
            raise ConfigError(f"{self.path}: {key} = {value[:256]!r} needs substitution; write the value itself")
        return value or None

    def integer(self, key: str, default: int, low: int, high: int) -> int:
        value = self.text(key)
        if value is None:
            return default
        if value.isascii() and value.isdigit() and low <= int(value[:20]) <= high:
            return int(value)
        raise ConfigError(f"{self.path}: {key} = {value[:256]!r}, allowed are whole numbers from {low} to {high}")

    def boolean(self, key: str) -> bool:
        value = self.text(key)
        if value is not None and value.lower() not in ("true", "false"):
            raise ConfigError(f"{self.path}: {key} = {value[:256]!r}, allowed are true and false")
        return value is not None and value.lower() == "true"


def _cluster_id_or_none(path: Path) -> str | None:
    """Tell the id that a file's name gives; None where the file describes no cluster."""
    if path.name == SITE_FILE:
        return DEFAULT_CLUSTER_ID
    cluster_id = path.name.removesuffix(f".{SITE_FILE}")
    # Names that begin with a dot belong to editors and to mounted ConfigMaps.
    return cluster_id if cluster_id != path.name and cluster_id and not path.name.startswith(".") else None


def _rm_ids(site: _Site) -> list[str]:
    """List rm-ids; one empty id stands for a cluster without high availability."""
    if not site.boolean(HA_ENABLED_KEY):
        return [""]
    ids = [rm_id.strip() for rm_id in (site.text(HA_IDS_KEY) or "").split(",") if rm_id.strip()]
    if not ids:
        raise ConfigError(f"{site.path}: {HA_ENABLED_KEY} is true, so {HA_IDS_KEY} must name the ResourceManagers")
    if len(set(ids)) != len(ids):
        raise ConfigError(f"{site.path}: {HA_IDS_KEY} names an id twice: {', '.join(ids)[:256]}")
    return ids


def _resource_manager(site: _Site, rm_id: str) -> ResourceManagerAddresses:
    return ResourceManagerAddresses(
        rm_id=rm_id,
        client=_address(site, CLIENT_ADDRESS_KEY, rm_id, CLIENT_PORT),
        admin=_address(site, ADMIN_ADDRESS_KEY, rm_id, ADMIN_PORT),
    )


def _address(site: _Site, base_key: str, rm_id: str, default_port: int) -> Address:
    """Take the address itself, or the host name with the default port."""
    suffix = f".{rm_id}" if rm_id else ""
    key, hostname_key = base_key + suffix, HOSTNAME_KEY + suffix
    value = site.text(key)
    if value is None:
        key, value = hostname_key, site.text(hostname_key)
        if value is None:
            raise ConfigError(f"{site.path}: neither {base_key + suffix} nor {hostname_key} is set")
    try:
        address = Address.parse(value, default_port=default_port)
    except ValueError as error:
        raise ConfigError(f"{site.path}: {key}: {error}") from error
    if address.host in WILDCARD_HOSTS:
        raise ConfigError(f"{site.path}: {key} = {value!r} is every address of a machine; name the ResourceManager's")
    return address
