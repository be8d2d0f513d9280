# SPDX-License-Identifier: Apache-2.0
"""Read the clusters that a Hadoop configuration directory describes.

`<id>.yarn-site.xml` describes the cluster `<id>`, a plain `yarn-site.xml` the cluster `default`. Each goes together
with `<id>.core-site.xml`, or with the shared `core-site.xml` where there is none. How files are joined and values are
read is in `configuration_values`. Source of keys and default ports: yarn-default.xml of Hadoop 3.5.0, HAUtil, NetUtils.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop import configuration_defaults as keys
from yarn_copilot.hadoop import xmlfile
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.configuration_values import HadoopConfiguration

SITE_FILE: Final = "yarn-site.xml"
CORE_FILE: Final = "core-site.xml"
DEFAULT_CLUSTER_ID: Final = "default"

HEARTBEAT_MILLIS_DEFAULT: Final = 1000
HEARTBEAT_MILLIS_MAX: Final = 3_600_000
EXPIRY_MILLIS_MAX: Final = 2_147_483_647


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceManagerAddresses:
    """Hold where one ResourceManager listens.

    Attributes:
        rm_id: its id in yarn.resourcemanager.ha.rm-ids; empty without high availability.
        client: ApplicationClientProtocol.
        admin: ResourceManagerAdministrationProtocol.
        web: web services, by the cluster's yarn.http.policy; None where the files do not say.
    """

    rm_id: str
    client: Address
    admin: Address
    web: Address | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityConfiguration:
    """Hold what the files say about authentication.

    Attributes:
        authentication: simple or kerberos.
        rpc_protection: allowed qualities of protection, in order: authentication, integrity, privacy.
        principal: the ResourceManager's principal, perhaps with _HOST; None where it is not set.
        principal_pattern: pattern that the principal may match instead; None where it is not set.
        auth_to_local: rules from principal to user; None where they are not set.
        falls_back_to_simple: go on without authentication where a server asks for none.
        token_service_uses_ip: a token's service names an IP address instead of a host name.
        http_authentication: simple, kerberos, or the class name of a handler.
    """

    authentication: str = "simple"
    rpc_protection: tuple[str, ...] = ("authentication",)
    principal: str | None = None
    principal_pattern: str | None = None
    auth_to_local: str | None = None
    falls_back_to_simple: bool = False
    token_service_uses_ip: bool = True
    http_authentication: str = "simple"

    @property
    def is_kerberos(self) -> bool:
        """Tell whether RPC needs Kerberos."""
        return self.authentication == "kerberos"

    @property
    def is_web_kerberos(self) -> bool:
        """Tell whether the web services want Kerberos."""
        return self.http_authentication.strip().lower() == "kerberos"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConfiguration:
    """Hold what the files say about the web services.

    Attributes:
        is_https: yarn.http.policy is HTTPS_ONLY.
        csrf_header: name of the header that the CSRF filter asks for; harmless where there is no filter.
    """

    is_https: bool = False
    csrf_header: str = "X-XSRF-Header"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfiguration:
    """Hold what is needed to talk to one YARN cluster. Two are equal when they lead to the same connections.

    Attributes:
        id: name of the cluster, from the file's name.
        resource_managers: at least one, in the order of rm-ids.
        heartbeat_millis: how often its NodeManagers report.
        expiry_millis: a NodeManager silent for so long is LOST.
        yarn_cluster_id: yarn.resourcemanager.cluster-id; None where it is not set.
        security: authentication.
        web: web services.
        values: all properties, for what has no field here; None in tests that need none.
    """

    id: str
    resource_managers: tuple[ResourceManagerAddresses, ...]
    heartbeat_millis: int = HEARTBEAT_MILLIS_DEFAULT
    expiry_millis: int = 600_000
    yarn_cluster_id: str | None = None
    security: SecurityConfiguration = SecurityConfiguration()
    web: WebConfiguration = WebConfiguration()
    values: HadoopConfiguration | None = field(default=None, compare=False, repr=False)

    @property
    def client_addresses(self) -> tuple[Address, ...]:
        """List the client ports."""
        return tuple(rm.client for rm in self.resource_managers)

    @property
    def admin_addresses(self) -> tuple[Address, ...]:
        """List the admin ports."""
        return tuple(rm.admin for rm in self.resource_managers)

    @property
    def web_addresses(self) -> tuple[Address, ...]:
        """List the web ports that are known."""
        return tuple(rm.web for rm in self.resource_managers if rm.web is not None)

    @property
    def heartbeat_seconds(self) -> float:
        """Give the heartbeat interval in seconds."""
        return self.heartbeat_millis / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFiles:
    """Hold what one look at the directory found.

    Attributes:
        clusters: the good ones by id, sorted.
        errors: what is wrong with the others, by id; each is a sentence that names file and key.
    """

    clusters: Mapping[str, ClusterConfiguration]
    errors: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Hold what `${...}` may refer to beside other keys.

    Attributes:
        environ: variables, for `${env.NAME}`.
        system_properties: Java system properties, for `${user.name}` and the like.
    """

    environ: Mapping[str, str] = field(default_factory=dict)
    system_properties: Mapping[str, str] = field(default_factory=dict)


def read_cluster_files(conf_dir: Path, surroundings: Surroundings = Surroundings()) -> ClusterFiles:
    """Read every cluster that the directory describes; a broken one does not hide the others.

    Raises:
        ConfigError: the directory cannot be read or describes no cluster.
    """
    clusters: dict[str, ClusterConfiguration] = {}
    errors: dict[str, str] = {}
    for path in _site_files(conf_dir):
        cluster_id = _cluster_id_or_none(path) or DEFAULT_CLUSTER_ID
        if cluster_id in clusters or cluster_id in errors:
            clusters.pop(cluster_id, None)
            errors[cluster_id] = f"{path}: the cluster {cluster_id!r} is described twice, also by {SITE_FILE}"
            continue
        try:
            clusters[cluster_id] = read_cluster(path, surroundings)
        except ConfigError as error:
            errors[cluster_id] = str(error)
    return ClusterFiles(clusters=dict(sorted(clusters.items())), errors=dict(sorted(errors.items())))


def read_clusters(
    conf_dir: Path,
    surroundings: Surroundings = Surroundings(),
) -> dict[str, ClusterConfiguration]:
    """Read every cluster that the directory describes; each must be right.

    Returns:
        Cluster id to configuration, sorted by id.

    Raises:
        ConfigError: the directory or a file cannot be read, describes no cluster, or has a bad value; the text names
            file and key.
    """
    found = read_cluster_files(conf_dir, surroundings)
    for error in found.errors.values():
        raise ConfigError(error)
    return dict(found.clusters)


def read_cluster(path: Path, surroundings: Surroundings = Surroundings()) -> ClusterConfiguration:
    """Read one yarn-site.xml with its core-site.xml; the name gives the cluster's id.

    Raises:
        ConfigError: a file cannot be read or has a bad value.
    """
    values = read_values(path, surroundings)
    web = _web(values)
    return ClusterConfiguration(
        id=_cluster_id_or_none(path) or DEFAULT_CLUSTER_ID,
        resource_managers=tuple(_resource_manager(values, rm_id, web) for rm_id in _rm_ids(values)),
        heartbeat_millis=values.integer(
            keys.HEARTBEAT_MILLIS, low=1, high=HEARTBEAT_MILLIS_MAX, default=HEARTBEAT_MILLIS_DEFAULT
        ),
        expiry_millis=values.duration_millis(keys.EXPIRY_MILLIS, low=1, high=EXPIRY_MILLIS_MAX),
        yarn_cluster_id=values.text(keys.CLUSTER_ID),
        security=_security(values),
        web=web,
        values=values,
    )


def read_values(
    path: Path, surroundings: Surroundings = Surroundings(), more_defaults: Mapping[str, str] | None = None
) -> HadoopConfiguration:
    """Join a yarn-site.xml with its core-site.xml and the defaults.

    Args:
        path: the yarn-site.xml.
        surroundings: what references may lead to.
        more_defaults: defaults of keys that the controller does not need.

    Raises:
        ConfigError: a file cannot be read or is not well formed.
    """
    core_site = core_site_of(path)
    return HadoopConfiguration(
        core_site=xmlfile.read_properties(core_site) if core_site is not None else (),
        yarn_site=xmlfile.read_properties(path),
        main_file=path,
        environ=surroundings.environ,
        system_properties=surroundings.system_properties,
        more_defaults=more_defaults,
    )


def core_site_of(path: Path) -> Path | None:
    """Find the core-site.xml that goes with a yarn-site.xml: the cluster's own, else the shared one."""
    return companion(path, CORE_FILE)


def companion(path: Path, name: str) -> Path | None:
    """Find another file of a cluster: `<id>.<name>` beside `<id>.yarn-site.xml`, else the shared `<name>`."""
    prefix = path.name.removesuffix(SITE_FILE)
    for candidate in dict.fromkeys((path.with_name(prefix + name), path.with_name(name))):
        if can_be_seen(candidate):
            return candidate
    return None


def can_be_seen(path: Path) -> bool:
    """Tell whether a file is there for us: not under a name that no file can have, nor in a directory closed to us."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises there


def site_file_of(conf_dir: Path, cluster_id: str) -> Path:
    """Name the yarn-site.xml of a cluster."""
    own = conf_dir / f"{cluster_id}.{SITE_FILE}"
    return own if cluster_id != DEFAULT_CLUSTER_ID or can_be_seen(own) else conf_dir / SITE_FILE


def _site_files(conf_dir: Path) -> list[Path]:
    try:
        files = sorted(path for path in conf_dir.iterdir() if _cluster_id_or_none(path) is not None)
    except OSError as error:
        raise ConfigError(f"{conf_dir}: {error.strerror}") from error
    if not files:
        raise ConfigError(f"{conf_dir}: has neither {SITE_FILE} nor <cluster>.{SITE_FILE}")
    return files


def _cluster_id_or_none(path: Path) -> str | None:
    """Tell the id that a file's name gives; None where the file describes no cluster."""
    if path.name == SITE_FILE:
        return DEFAULT_CLUSTER_ID
    cluster_id = path.name.removesuffix(f".{SITE_FILE}")
    # Names that begin with a dot belong to editors and to mounted ConfigMaps.
    return cluster_id if cluster_id != path.name and cluster_id and not path.name.startswith(".") else None


def _rm_ids(values: HadoopConfiguration) -> list[str]:
    """List rm-ids; one empty id stands for a cluster without high availability."""
    if not values.boolean(keys.HA_ENABLED):
        return [""]
    ids = values.items(keys.HA_IDS)
    if not ids:
        raise ConfigError(
            f"{values.main_file}: {keys.HA_ENABLED} is true, so {keys.HA_IDS} must name the ResourceManagers"
        )
    if len(set(ids)) != len(ids):
        values.fail(keys.HA_IDS, "names an id twice")
    return ids


def _resource_manager(values: HadoopConfiguration, rm_id: str, web: WebConfiguration) -> ResourceManagerAddresses:
    web_key, web_port = (
        (keys.WEB_HTTPS_ADDRESS, keys.WEB_HTTPS_PORT) if web.is_https else (keys.WEB_ADDRESS, keys.WEB_PORT)
    )
    return ResourceManagerAddresses(
        rm_id=rm_id,
        client=_address(values, keys.CLIENT_ADDRESS, rm_id, keys.CLIENT_PORT),
        admin=_address(values, keys.ADMIN_ADDRESS, rm_id, keys.ADMIN_PORT),
        web=_address_or_none(values, web_key, rm_id, web_port),
    )


def _address(values: HadoopConfiguration, base_key: str, rm_id: str, default_port: int) -> Address:
    address = _address_or_none(values, base_key, rm_id, default_port)
    if address is None:
        suffix = f".{rm_id}" if rm_id else ""
        raise ConfigError(f"{values.main_file}: neither {base_key + suffix} nor {keys.HOSTNAME + suffix} is set")
    return address


def _address_or_none(values: HadoopConfiguration, base_key: str, rm_id: str, default_port: int) -> Address | None:
    """Take the address itself, or the host name with the default port; None where only Hadoop's default is left."""
    suffix = f".{rm_id}" if rm_id else ""
    key, hostname_key = base_key + suffix, keys.HOSTNAME + suffix
    value = values.text(key)
    if not rm_id and values.origin(key) is None and values.origin(hostname_key) is None:
        return None  # 0.0.0.0, which is a server's way to say "all of my addresses"
    if value is None:
        key, value = hostname_key, values.text(hostname_key)
        if value is None:
            return None
    elif values.origin(key) is None:
        key = hostname_key  # the default of the address is made of the host name, which is what somebody wrote
    try:
        address = Address.parse(value, default_port=default_port)
    except ValueError as error:
        values.fail(key, str(error))
    if address.is_wildcard:
        values.fail(key, f"{address} is every address of a machine; name the ResourceManager's")
    return address


def _web(values: HadoopConfiguration) -> WebConfiguration:
    policy = values.choice(keys.HTTP_POLICY, ("HTTP_ONLY", "HTTPS_ONLY", "HTTP_AND_HTTPS"))
    return WebConfiguration(
        is_https=policy == "HTTPS_ONLY", csrf_header=values.text(keys.CSRF_HEADER) or "X-XSRF-Header"
    )


def _security(values: HadoopConfiguration) -> SecurityConfiguration:
    protection = values.items(keys.RPC_PROTECTION)
    for level in protection:
        if level.lower() not in ("authentication", "integrity", "privacy"):
            values.fail(keys.RPC_PROTECTION, "allowed are authentication, integrity and privacy, separated by commas")
    return SecurityConfiguration(
        authentication=values.choice(keys.AUTHENTICATION, ("simple", "kerberos")),
        rpc_protection=tuple(level.lower() for level in protection) or ("authentication",),
        principal=values.text(keys.PRINCIPAL),
        principal_pattern=values.text(keys.PRINCIPAL_PATTERN),
        auth_to_local=values.text(keys.AUTH_TO_LOCAL),
        falls_back_to_simple=values.boolean(keys.FALLBACK),
        token_service_uses_ip=values.boolean(keys.USE_IP, default=True),
        http_authentication=values.text(keys.HTTP_AUTHENTICATION) or "simple",
    )
