# SPDX-License-Identifier: Apache-2.0
"""Decide which keys of the NodeManager's configuration are laid over the operator's, and what they say; pure.

What each is for: a node id that stays, a registration that the ResourceManager accepts and that leaves capacity to
the controller, one owner of the cgroups, containers that outlive a crash of their NodeManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nm_proxy.agent_settings import ParentingMode
from nm_proxy.cgroup.detection import Detection
from nm_proxy.cgroup.layout import Version as CgroupVersion
from nm_proxy.rendering import keys
from nm_proxy.rendering.local_paths import parse_local_path
from nm_proxy.settings import NodeSettings
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop import configuration_defaults as yarn_keys
from yarn_copilot.hadoop.addresses import Address, is_wildcard
from yarn_copilot.hadoop.configuration_values import HadoopConfiguration

RECOVERY_DIRECTORY: Final = Path("/var/lib/nm-proxy/recovery")
_MAX_MIB: Final = 2_147_483_647
_LOOPBACK: Final = "127.0.0.1"
_SIMPLE: Final = "simple"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """Hold what is laid over, and what the other parts of this program need to know of the joined configuration.

    Attributes:
        properties: key to value, in the order in which they are written.
        host, port: the node id, before the ResourceManager resolves the host name back.
        listens_at: where the NodeManager listens on the port: `host`, unless bind-host names another host.
        web_url: of the NodeManager's web application, as this container reaches it.
        page_login: what the web application wants to know of who asks, and this program will not tell: the value of
            hadoop.http.authentication.type, or "a name"; empty where it answers.
        local_directories: of yarn.nodemanager.local-dirs.
        recovery_directory: None where recovery is off.
        tracker_ports: where ResourceManagers take heartbeats.
        memory_mib, vcores: what it registers with.
        minimum_memory_mib, minimum_vcores: the ResourceManager's smallest allocation, by the mounted files.
    """

    properties: Mapping[str, str]
    host: str
    port: int
    listens_at: str
    web_url: str
    local_directories: tuple[str, ...]
    recovery_directory: Path | None
    tracker_ports: frozenset[int]
    memory_mib: int
    vcores: int
    minimum_memory_mib: int
    minimum_vcores: int
    page_login: str = ""


def build_overlay(
    values: HadoopConfiguration, settings: NodeSettings, *, host_name: str, detection: Detection | None
) -> Overlay:
    """Decide all of it.

    Args:
        values: the operator's files, with `keys.DEFAULTS`.
        settings: this program's.
        host_name: this machine's full host name.
        detection: the cgroup tree; None where it was not found, then keys about it are left out.

    Raises:
        ConfigError: a key of the operator's files cannot be read; file and key are in the text.
    """
    host, port = _identity(values, settings, host_name)
    bind_host = _bind_host(values)
    minimum_memory = values.integer(yarn_keys.MINIMUM_MEMORY_MIB, low=0, high=_MAX_MIB)
    minimum_vcores = values.integer(yarn_keys.MINIMUM_VCORES, low=0, high=_MAX_MIB)
    memory_mib = settings.capacity.memory_mib or max(minimum_memory, 1)
    vcores = settings.capacity.vcores or max(minimum_vcores, 1)
    recovery = _recovery_directory(values, settings)
    properties = {
        keys.HOSTNAME: host,
        keys.ADDRESS: str(Address(host, port)),
        yarn_keys.NODE_MEMORY_MIB: str(memory_mib),
        yarn_keys.NODE_VCORES: str(vcores),
        keys.DETECT_HARDWARE: "false",
        **_recovery(recovery, settings),
        keys.KILL_DELAY: str(settings.stop.container_kill_millis),
        **_cgroups(values, settings, detection),
    }
    return Overlay(
        properties=properties,
        host=host,
        port=port,
        listens_at=bind_host or host,
        web_url=_web_url(values, host, bind_host),
        local_directories=_local_directories(values),
        recovery_directory=recovery,
        tracker_ports=_tracker_ports(values),
        memory_mib=memory_mib,
        vcores=vcores,
        minimum_memory_mib=minimum_memory,
        minimum_vcores=minimum_vcores,
        page_login=_page_login(values, settings),
    )


def _identity(values: HadoopConfiguration, settings: NodeSettings, host_name: str) -> tuple[str, int]:
    host, port = settings.identity.host_name, settings.identity.port
    written = _address(values, keys.ADDRESS, default_port=0)
    if host is None and not written.is_wildcard:
        host = written.host
    return host or host_name, port or written.port or keys.FIXED_PORT


def _address(values: HadoopConfiguration, key: str, *, default_port: int) -> Address:
    """Read an address of a server's own configuration, where port 0 is a free one."""
    try:
        return Address.parse(values.text(key) or "", default_port=default_port, lowest_port=0)
    except ValueError as error:
        values.fail(key, str(error))


def _bind_host(values: HadoopConfiguration) -> str | None:
    """Read where all servers of the NodeManager listen in place of their own hosts (Configuration.getSocketAddr)."""
    written = values.text(keys.BIND_HOST)
    if written is None:
        return None
    address = _address(values, keys.BIND_HOST, default_port=0)
    if address.port:
        values.fail(keys.BIND_HOST, "names a port, with which the NodeManager's pages do not start")
    return address.host


def _recovery_directory(values: HadoopConfiguration, settings: NodeSettings) -> Path | None:
    if not settings.recovery.enabled:
        return None
    directory = settings.recovery.directory
    if directory is not None:
        if "${" in str(directory):
            raise ConfigError(
                f"recovery.directory = {str(directory)!r} has ${{, in whose place Hadoop would put something else; "
                "write the path itself"
            )
        return directory
    written = values.text(keys.RECOVERY_DIR) if values.is_set(keys.RECOVERY_DIR) else None
    return Path(_local_path(values, keys.RECOVERY_DIR, written)) if written else RECOVERY_DIRECTORY


def _recovery(directory: Path | None, settings: NodeSettings) -> dict[str, str]:
    if directory is None:
        return {keys.RECOVERY_ENABLED: "false", keys.RECOVERY_SUPERVISED: "false"}
    return {
        keys.RECOVERY_ENABLED: "true",
        keys.RECOVERY_DIR: str(directory),
        # Unsupervised, a NodeManager that is told to stop ends its containers and signs off.
        keys.RECOVERY_SUPERVISED: "true" if settings.recovery.keep_on_stop else "false",
    }


def _cgroups(values: HadoopConfiguration, settings: NodeSettings, detection: Detection | None) -> dict[str, str]:
    """Let exactly one program own the containers' groups: this one (adopt) or the executor."""
    if settings.parenting.mode is ParentingMode.ADOPT:
        off = {keys.CPU_HANDLER: "false", keys.MEMORY_HANDLER: "false"}
        # The legacy switch would turn the cpu handler on again.
        return {**off, keys.LEGACY_HANDLER: keys.NO_LEGACY_HANDLER} if values.is_set(keys.LEGACY_HANDLER) else off
    written = values.text(keys.EXECUTOR)
    found = {
        keys.EXECUTOR: keys.LINUX_EXECUTOR if written in (None, keys.DEFAULT_EXECUTOR) else str(written),
        keys.CPU_HANDLER: "true",
        keys.MEMORY_HANDLER: "true",
        keys.MOUNT: "false",
        # Quotas of containers below a parent that koordlet throttles make its writes fail; so does one of ours.
        keys.STRICT_USAGE: "false",
        keys.CPU_PERCENT: "100",
    }
    if detection is None:
        return found
    found |= {keys.HIERARCHY: f"/{detection.place.yarn}", keys.MOUNT_PATH: str(settings.cgroup.root)}
    version_2 = [one for one in detection.hierarchies.every if one.version is CgroupVersion.V2]
    if version_2:
        found |= {keys.V2_ENABLED: "true", keys.V2_MOUNT_PATH: version_2[0].mount_point}
    return found


def _web_url(values: HadoopConfiguration, host: str, bind_host: str | None) -> str:
    is_https = values.text(yarn_keys.HTTP_POLICY) == "HTTPS_ONLY"
    key, default_port = (keys.WEB_HTTPS_ADDRESS, keys.WEB_HTTPS_PORT) if is_https else (keys.WEB_ADDRESS, keys.WEB_PORT)
    written = _address(values, key, default_port=default_port)
    # Without a host of its own the web application follows the host name that is rendered.
    own = host if not values.is_set(key) or "${yarn.nodemanager.hostname}" in (values.raw(key) or "") else written.host
    listens_at = bind_host or own  # WebAppUtils.getWebAppBindURL puts it in the place of the host
    if is_wildcard(listens_at):
        # The names that a certificate carries are of the node, never of the loopback.
        listens_at = host if is_https else _LOOPBACK
    address = Address(listens_at, written.port)
    return f"{'https' if is_https else 'http'}://{address}"


def _page_login(values: HadoopConfiguration, settings: NodeSettings) -> str:
    """Find what AuthenticationFilter will ask; a NodeManager has it without hadoop.http.filter.initializers too."""
    kind = values.text(yarn_keys.HTTP_AUTHENTICATION) or _SIMPLE
    if kind.lower() != _SIMPLE:
        return kind
    is_open = values.boolean(keys.HTTP_ANONYMOUS, default=True) or settings.node_manager.user is not None
    return "" if is_open else "a name"


def _local_directories(values: HadoopConfiguration) -> tuple[str, ...]:
    found = tuple(_local_path(values, keys.LOCAL_DIRS, item) for item in values.items(keys.LOCAL_DIRS))
    if not found:
        raise ConfigError(f"{values.main_file}: {keys.LOCAL_DIRS} is empty, so no container can run")
    return found


def _local_path(values: HadoopConfiguration, key: str, text: str) -> str:
    try:
        return parse_local_path(text)
    except ValueError as error:
        values.fail(key, str(error))


def _tracker_ports(values: HadoopConfiguration) -> frozenset[int]:
    ids = values.items(yarn_keys.HA_IDS) if values.boolean(yarn_keys.HA_ENABLED) else [""]
    ports = set()
    for rm_id in ids:
        key = f"{keys.TRACKER_ADDRESS}.{rm_id}" if rm_id else keys.TRACKER_ADDRESS
        if values.raw(key) is None:
            ports.add(keys.TRACKER_PORT)
        else:
            ports.add(_address(values, key, default_port=keys.TRACKER_PORT).port)
    return frozenset(port or keys.TRACKER_PORT for port in ports)
