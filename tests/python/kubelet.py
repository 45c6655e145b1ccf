# SPDX-License-Identifier: Apache-2.0
"""Runs the pod of a rendered Deployment on this machine as a kubelet would: init containers, command,
environment, volumes, users, a read-only root file system, probes, preStop and grace period are those of
the manifest. The images are this machine's /usr with the packaged server and this build's backend."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
import uuid

import pytest

import triton_server

SERVER_BIN = "/server/pytriton/tritonserver/bin"
# Makes the root of a container and becomes its process: ROOT, VOLUMES (SOURCE:TARGET:MODE ...), USER and
# the command come as arguments.
ENTER = """
set -e
root=$1; volumes=$2; user=$3; shift 3
mount -t tmpfs tmpfs "$root"
mkdir -p "$root"/{usr,etc,proc,dev,server,opt/ingot/backends}
for link in bin lib lib64 sbin; do ln -s usr/$link "$root/$link"; done
mount --bind /usr "$root/usr"
mount --bind /etc "$root/etc"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
for volume in $volumes; do
    IFS=: read -r source target mode <<<"$volume"
    mkdir -p "$root$target"
    mount --bind "$source" "$root$target"
    [[ $mode == ro ]] && mount -o remount,bind,ro "$root$target"
done
mount -o remount,ro "$root"
exec chroot --userspec="$user" "$root" "$@"
"""


def needed():
    """Skips, loudly, where containers cannot be made."""
    triton_server.needed()
    may = shutil.which("unshare") and os.geteuid() == 0 and subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False).returncode == 0
    if not may:
        pytest.skip("mount namespaces cannot be made here: the manifests were NOT executed")


class Pod:
    """One pod of a Deployment. `ports` maps the manifest's ports to free ones, since pods share this
    machine's loopback. `models` is what the image of the models holds in /models."""

    def __init__(self, deployment, folder, models):
        self.spec = deployment["spec"]["template"]["spec"]
        self.container, = self.spec["containers"]
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.models = models
        self.uid = str(uuid.uuid4())
        numbers = [port["containerPort"] for port in self.container["ports"]]
        self.names = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        self.ports = dict(zip(numbers, triton_server.free_ports(len(numbers))))
        self.volumes = self._make_volumes()
        self.process, self.ready, self.restarts, self.exits = None, False, 0, []
        self.stop_probes = threading.Event()
        self.log = self.folder / "log"

    @property
    def http(self):
        return self.ports[self.names["http"]]

    def _make_volumes(self):
        made = {}
        group = self.spec["securityContext"]["fsGroup"]
        for volume in self.spec["volumes"]:
            assert set(volume) == {"name", "emptyDir"}, f"{volume}: this kubelet has empty folders alone"
            made[volume["name"]] = path = self.folder / volume["name"]
            path.mkdir()
            os.chown(path, 0, group)
            path.chmod(0o2775)
        return made

    def _environment(self, container):
        found = {"PATH": f"{SERVER_BIN}:/usr/bin:/bin"}
        for variable in container.get("env", []):
            source = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            assert source in (None, "metadata.uid"), source
            found[variable["name"]] = self.uid if source else variable["value"]
        return found

    def _popen(self, container, image):
        """`image`: SOURCE:TARGET:ro ... that the container's image holds."""
        pod, own = self.spec["securityContext"], container["securityContext"]
        user = own.get("runAsUser", pod["runAsUser"])
        assert user != 0 or not own.get("runAsNonRoot", pod["runAsNonRoot"])
        assert own["readOnlyRootFilesystem"] and not own["allowPrivilegeEscalation"]
        variables = self._environment(container)
        words = [re.sub(r"\$\((\w+)\)", lambda found: variables[found.group(1)], word)
                 for word in [*container["command"], *container.get("args", [])]]
        for number, port in self.ports.items():
            words = [re.sub(rf"(-port=){number}$", rf"\g<1>{port}", word) for word in words]
        mounts = [f"{self.volumes[mount['name']]}:{mount['mountPath']}:{'ro' if mount.get('readOnly') else 'rw'}"
                  for mount in container["volumeMounts"]]
        root = self.folder / "root"
        root.mkdir(exist_ok=True)
        with open(self.log, "ab") as log:
            return subprocess.Popen(
                ["unshare", "-m", "--propagation", "private", "bash", "-c", ENTER, "enter", root,
                 " ".join([*image, *mounts]), f"{user}:{pod['runAsGroup']}", "/usr/bin/env", "-i",
                 *(f"{key}={value}" for key, value in variables.items()), *words],
                stdout=log, stderr=log, start_new_session=True)

    def start(self, backends):
        """Init containers, then the container; probes until it is ready, and for as long as it lives."""
        for container in self.spec.get("initContainers", []):
            done = self._popen(container, [f"{self.models}:/models:ro"])
            assert done.wait(timeout=60) == 0, self.said()
        self.backends = backends
        self._start_container()
        threading.Thread(target=self._watch, daemon=True).start()

    def _start_container(self):
        self.process = self._popen(self.container, [f"{triton_server.DEPS}:/server:ro",
                                                    f"{self.backends}:/opt/ingot/backends:ro"])

    def _probe(self, probe):
        request = probe["httpGet"]
        port = self.ports[self.names.get(request["port"], request["port"])]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{request['path']}",
                                        timeout=probe["timeoutSeconds"]) as answer:
                return 200 <= answer.status < 400
        except (OSError, urllib.error.HTTPError):
            return False

    def _watch(self):
        """The startup probe first; then the other two, each in its period. An ended container, and one
        whose liveness fails, is started again."""
        while not self.stop_probes.is_set():
            if self._started():
                self._live()
            self.ready = False
            if self.stop_probes.is_set():
                return
            self._end(self.process)
            self.restarts += 1
            self._start_container()

    def _started(self):
        probe = self.container["startupProbe"]
        for _ in range(probe["failureThreshold"]):
            if self.stop_probes.wait(probe["periodSeconds"]) or self.process.poll() is not None:
                return False
            if self._probe(probe):
                return True
        return False

    def _live(self):
        """Returns when the container has to be started again."""
        failures = {"livenessProbe": 0, "readinessProbe": 0}
        due = dict.fromkeys(failures, 0.0)
        while not self.stop_probes.wait(0.05):
            if self.process.poll() is not None:
                return
            for name in failures:
                probe = self.container[name]
                if time.monotonic() < due[name]:
                    continue
                due[name] = time.monotonic() + probe["periodSeconds"]
                failures[name] = 0 if self._probe(probe) else failures[name] + 1
                if failures[name] >= probe["failureThreshold"]:
                    if name == "livenessProbe":
                        return
                    self.ready = False
                elif failures[name] == 0 and name == "readinessProbe":
                    self.ready = True

    def _end(self, process):
        """preStop, SIGTERM, and SIGKILL when the grace period is over; the exit code."""
        end = time.monotonic() + self.spec["terminationGracePeriodSeconds"]
        if process.poll() is None:
            time.sleep(self.container["lifecycle"]["preStop"]["sleep"]["seconds"])
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=max(end - time.monotonic(), 0))
            if process.poll() is None:
                process.kill()
        self.exits.append(process.wait())
        return self.exits[-1]

    def delete(self):
        """As when a Deployment takes the pod away: out of the Service's endpoints, then to its end."""
        self.stop_probes.set()
        self.ready = False
        return self._end(self.process)

    def kill(self):
        self.stop_probes.set()
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def said(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait(self, what, condition, seconds=120):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"not {what} after {seconds} s\n{self.said()[-4000:]}"
            time.sleep(0.05)
