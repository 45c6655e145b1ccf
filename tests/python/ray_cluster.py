# SPDX-License-Identifier: Apache-2.0
"""A real Ray cluster in one machine that serves by ingot.ray, for tests: it is started in Ray's own
environment and asked over HTTP and gRPC like a Triton Inference Server."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import ingot_command
import triton_server
from shim import package

DEPS = pathlib.Path(os.environ.get("INGOT_RAY") or ingot_command.REPOSITORY / ".deps" / "ray")
PYTHON = DEPS / "bin" / "python"
SECONDS = 120  # far more than anything takes
ENVIRONMENT = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_memory_monitor_refresh_ms": "0",
               "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "CUDA_VISIBLE_DEVICES": ""}


def needed():
    """Skips, loudly, where Ray cannot be run."""
    if not (DEPS / "version").is_file():
        pytest.skip(f"no Ray in {DEPS}: './dev setup' installs it; ingot.ray was NOT tested")
    if not list((package.folder() / "ingot").glob("_ingot*.so")):
        pytest.skip(f"no Python extension in {package.folder()}: ingot.ray was NOT tested")


def environment(more=None):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    return kept | ENVIRONMENT | {"PYTHONPATH": str(package.folder())} | (more or {})


def in_ray(program, *arguments):
    """The JSON that a program prints in Ray's environment."""
    needed()
    done = subprocess.run([PYTHON, "-c", program, *map(str, arguments)], text=True, capture_output=True,
                          env=environment(), timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Cluster(triton_server.Server):
    """Use as a context manager; requests as to triton_server.Server. With `command`, that runs instead
    of ray_program.py, and do() is not there."""
    program = pathlib.Path(__file__).with_name("ray_program.py")

    def __init__(self, folder, environment=None, nodes=0, command=None, cwd=None):
        self.folder = pathlib.Path(folder)
        self.repository = self.folder / "models"
        self.repository.mkdir(parents=True, exist_ok=True)
        self.nodes, self.more = nodes, environment or {}
        self.command, self.cwd = command, cwd
        self.log = self.folder / "cluster.log"
        self.process = None
        self.http = self.grpc = 0

    def start(self):
        self.http, self.grpc = triton_server.free_ports(2)
        self.sockets = tempfile.mkdtemp(prefix="r")  # a short path, for Ray's sockets
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command or [PYTHON, self.program, str(self.http), str(self.grpc), str(self.nodes)],
                cwd=self.cwd, text=True, stdin=subprocess.PIPE, stderr=log,
                stdout=log if self.command else subprocess.PIPE, start_new_session=True,
                env=environment(self.more | {"RAY_TMPDIR": self.sockets}))
        try:
            if not self.command:
                self._answer()
        except RuntimeError:
            self.stop()
            raise

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the cluster ended:\n{self.said()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{answer['error']}\n{self.said()[-4000:]}")
        return answer["answer"]

    def do(self, name, *arguments):
        """A command of ray_program.py."""
        self.process.stdin.write(json.dumps([name, *arguments]) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def run(self, **arguments):
        """Serves the repository."""
        self.do("run", {"repository": str(self.repository)} | arguments)

    def stop(self):
        if self.process is None:
            return
        while pids := self.processes():  # an orderly stop takes a quarter of a minute
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
        self.process.wait()
        self.process.stdin.close()
        if self.process.stdout:
            self.process.stdout.close()
        shutil.rmtree(self.sockets, ignore_errors=True)
        self.process = None

    def processes(self, title=""):
        """The cluster's processes whose title begins so: those whose environment names its folder."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if not entry.name.isdigit() or int(entry.name) == os.getpid():
                    continue
                words = (entry / "cmdline").read_bytes()
                mine = self.sockets.encode() in (entry / "environ").read_bytes() + words
                if mine and words.decode("utf-8", "replace").startswith(title):
                    found.append(int(entry.name))
        return found

    def replicas(self, deployment, application="default"):
        return self.processes(f"ray::ServeReplica:{application}:{deployment}")

    def replica_logs(self, deployment):
        """All that replicas of a deployment said."""
        return "".join(path.read_text(encoding="utf-8", errors="replace") for path in sorted(pathlib.Path(
            self.sockets).glob(f"**/logs/serve/replica_*_{deployment}_*.log")))

    def wait(self, what, condition, seconds=SECONDS):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"not {what} after {seconds} s\n{self.said()[-4000:]}"
            time.sleep(0.1)
