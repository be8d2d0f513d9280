# SPDX-License-Identifier: Apache-2.0
"""Put the parts of the lab together: `with Lab() as lab:` gives a running Kubernetes control plane and a YARN cluster.

Several labs may run at once. Everything a lab writes is in its state folder (`lab.state_dir`), everything it starts
ends with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lab.controller import ControllerProcess, Program
from lab.errors import LabError
from lab.hadoop.application import Application
from lab.hadoop.jars import ensure_application, ensure_jars
from lab.hadoop.node_manager import NodeManager
from lab.hadoop.options import YarnOptions
from lab.hadoop.yarn import Yarn
from lab.kubernetes.binaries import ensure_binaries
from lab.kubernetes.bodies import NodeManagerPod, NodeSpec
from lab.kubernetes.control_plane import ControlPlane
from lab.kubernetes.credentials import User
from lab.kubernetes.objects import KubernetesObjects
from lab.processes.group import ProcessGroup
from lab.processes.process import Command, ServerProcess
from lab.processes.progress import Progress
from lab.processes.state import StateFolder


def prepare(*, hadoop_versions: Sequence[str] = ("3.5.0",), kubernetes: bool = True, progress: Progress) -> None:
    """Build and fetch everything that labs need, so that starting one is quick."""
    if kubernetes:
        ensure_binaries(progress)
    for version in hadoop_versions:
        ensure_jars(version, progress)
        ensure_application(version, progress)


class Lab:
    """Run real servers on loopback.

    Args:
        kubernetes: run etcd, kube-apiserver and kube-scheduler.
        node_managers: number of NodeManagers, up to 200; 0 runs a ResourceManager alone, None no YARN at all.
        hadoop_version: 3.3.6, 3.4.3 or 3.5.0.
        state_dir: folder to use and keep; None: a temporary one that is removed (kept with LAB_KEEP=1).
        yarn_options: sizes and times of YARN.
        users: further users of the API server with static tokens (service accounts need none, see
            `ControlPlane.service_account_token`).
        progress: where to tell what takes long.
        remove_state: remove the folder with the lab; None: only a temporary one.
    """

    def __init__(
        self,
        *,
        kubernetes: bool = True,
        node_managers: int | None = 3,
        hadoop_version: str = "3.5.0",
        state_dir: Path | None = None,
        yarn_options: YarnOptions | None = None,
        users: Sequence[User] = (),
        progress: Progress | None = None,
        remove_state: bool | None = None,
    ) -> None:
        self._with_kubernetes = kubernetes
        self._node_managers = node_managers
        self.hadoop_version = hadoop_version
        self._state_dir = state_dir
        self._yarn_options = yarn_options or YarnOptions()
        self._users = users
        self._progress = progress or Progress()
        self._remove_state = remove_state
        self._applications: list[Application] = []
        self._controllers: list[ControllerProcess] = []
        self._group: ProcessGroup | None = None
        self._kubernetes: ControlPlane | None = None
        self._yarn: Yarn | None = None
        self._count = 0
        self.startup_seconds: dict[str, float] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def kubernetes(self) -> ControlPlane:
        """Return the control plane.

        Raises:
            LabError: this lab runs without, or was not started.
        """
        if self._kubernetes is None:
            raise LabError("this lab runs no Kubernetes (or was not started)")
        return self._kubernetes

    @property
    def yarn(self) -> Yarn:
        """Return the YARN cluster.

        Raises:
            LabError: this lab runs without, or was not started.
        """
        if self._yarn is None:
            raise LabError("this lab runs no YARN (or was not started)")
        return self._yarn

    @property
    def objects(self) -> KubernetesObjects:
        """Return a helper that makes Kubernetes objects as administrator."""
        return self.kubernetes.objects()

    @property
    def state_dir(self) -> Path:
        """Return the folder with everything of this lab."""
        return self._running_group().state.path

    def start(self) -> None:
        """Start all servers and wait until they are ready; nothing is left running when one fails.

        Raises:
            LabError: a build failed or a server is not ready in time.
        """
        prepare_versions = () if self._node_managers is None else (self.hadoop_version,)
        prepare(hadoop_versions=prepare_versions, kubernetes=self._with_kubernetes, progress=self._progress)
        self._group = ProcessGroup(StateFolder(self._state_dir, remove=self._remove_state))
        try:
            self._start_servers(self._group)
            self._group.state.publish(self.describe())
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop every process of the lab; safe to call twice."""
        group, self._group = self._group, None
        self._kubernetes = None
        self._yarn = None
        if group is not None:
            group.close()

    def submit(
        self,
        *,
        queue: str | None = None,
        user: str = "alice",
        managed: bool = False,
        am_memory_mib: int = 256,
        am_vcores: int = 1,
    ) -> Application:
        """Submit a real YARN application that holds containers until told to release them.

        Args:
            queue: leaf queue of the first ask; None: `root.batch.etl`.
            user: user of the application.
            managed: run its ApplicationMaster in a container instead of in the client's process.
            am_memory_mib, am_vcores: size of that container.
        """
        self._count += 1
        application = Application(
            self._running_group(),
            self.yarn,
            name=f"application-{self._count}",
            classes=ensure_application(self.hadoop_version, self._progress),
            user=user,
            am_memory_mib=am_memory_mib if managed else None,
            am_vcores=am_vcores,
        )
        self._applications.append(application)
        application.start(queue)
        return application

    def run_beside(self, command: Command) -> ServerProcess:
        """Make a process that ends with the lab; start it with its `start()`."""
        return self._running_group().add(command)

    def free_port(self) -> int:
        """Give a port that nobody else in this lab gets."""
        return self._running_group().ports.take()

    def controller(
        self,
        config: Mapping[str, Any],
        *,
        name: str | None = None,
        token: str | None = None,
        program: Program | None = None,
    ) -> ControllerProcess:
        """Make a controller process with the given configuration; start it with its `start()`.

        Args:
            config: the configuration file's content. What is missing of addresses is filled in: the kubeconfig, the
                Hadoop folder and user, the floor of a NodeManager, a free port of the HTTP interface.
            name: name of the process and its files.
            token: bearer token for the API server; None: the administrator's.
            program: what is run; None: the product.
        """
        self._count += 1
        controller = ControllerProcess.in_lab(
            self._running_group(),
            name=name or f"controller-{self._count}",
            config=config,
            kubernetes=self._kubernetes,
            yarn=self._yarn,
            token=token,
            program=program,
        )
        self._controllers.append(controller)
        return controller

    def enroll(self, node_manager: NodeManager, node: NodeSpec, **pod: Any) -> NodeManagerPod:
        """Create a node and, on it, the running pod of a NodeManager of this lab.

        Args:
            node_manager: whose pod it is.
            node: the node to create.
            pod: fields of `NodeManagerPod` that differ: by default the pod is `<node>-nm` and carries host name, IP
                and the node-id annotation of the NodeManager; `node_id=None` leaves matching to the other ways.
        """
        identity = node_manager.identity
        fields: dict[str, Any] = {
            "name": f"{node.name}-nm",
            "host_name": identity.short_name,
            "pod_ip": identity.address,
            "node_id": identity.node_id,
            **pod,
        }
        described = NodeManagerPod(node_name=node.name, **fields)
        self.objects.create_node(node)
        self.objects.create_node_manager_pod(described)
        return described

    def tidy(self) -> None:
        """Bring a shared lab back to how it started: all servers running, no applications, controllers or objects.

        Capacities go back to the floor. Namespaces stay: nothing would finish their deletion.
        """
        for controller in self._controllers:
            controller.sigkill()
        self._controllers.clear()
        if self._kubernetes is not None:
            self._kubernetes.revive()
            self.objects.delete_everything()
        if self._yarn is not None:
            self._yarn.revive()
            for application in self._applications:
                application.kill()
            self._applications.clear()
            self._yarn.clear()
            self._yarn.reset_capacities()

    def describe(self) -> dict[str, Any]:
        """Say how to reach everything, as JSON-able data."""
        description: dict[str, Any] = {"startup_seconds": self.startup_seconds}
        if self._kubernetes is not None:
            description |= {"kubernetes_url": self._kubernetes.url, "kubeconfig": str(self._kubernetes.kubeconfig)}
        if self._yarn is not None:
            description |= {
                "hadoop_version": self.hadoop_version,
                "hadoop_conf_dir": str(self._yarn.conf_dir),
                "resource_manager_rest": self._yarn.rest_url,
                "resource_manager_client": self._yarn.client_address,
                "resource_manager_admin": self._yarn.admin_address,
                "node_managers": [each.node_id for each in self._yarn.node_managers],
            }
        return description

    def _running_group(self) -> ProcessGroup:
        if self._group is None:
            raise LabError("the lab was not started")
        return self._group

    def _start_servers(self, group: ProcessGroup) -> None:
        began = time.monotonic()
        parts: list[Callable[[], None]] = []
        if self._with_kubernetes:
            self._kubernetes = ControlPlane(group, ensure_binaries(self._progress), users=self._users)
            parts.append(self._start_kubernetes)
        if self._node_managers is not None:
            self._yarn = Yarn(
                group,
                version=self.hadoop_version,
                node_managers=self._node_managers,
                options=self._yarn_options,
                progress=self._progress,
            )
            parts.append(self._yarn.start)
        _run_together(parts, on_failure=group.close)
        for part in (self._kubernetes, self._yarn):
            self.startup_seconds |= part.startup_seconds if part is not None else {}
        self.startup_seconds["all"] = round(time.monotonic() - began, 2)

    def _start_kubernetes(self) -> None:
        began = time.monotonic()
        self.kubernetes.start()
        self.objects.install_koordinator_kinds()
        self.startup_seconds["kubernetes"] = round(time.monotonic() - began, 2)


def _run_together(parts: Sequence[Callable[[], None]], *, on_failure: Callable[[], None]) -> None:
    """Call all parts at once; when one fails, or on Ctrl-C, `on_failure` makes the others end soon."""
    pool = ThreadPoolExecutor(max(1, len(parts)))
    try:
        for future in as_completed([pool.submit(part) for part in parts]):
            future.result()
    except BaseException:
        on_failure()
        raise
    finally:
        pool.shutdown()
