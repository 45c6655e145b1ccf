# SPDX-License-Identifier: Apache-2.0
"""A real Triton Inference Server with the backend of this build, for tests: where its files are,
a server on loopback ports of its own, and requests by Triton's protocol without its client."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

import ingot_command

DEPS = pathlib.Path(os.environ.get("INGOT_TRITON") or ingot_command.REPOSITORY / ".deps" / "triton")
SERVER = DEPS / "pytriton" / "tritonserver" / "bin" / "tritonserver"
CLIENT_PYTHON = DEPS / "client" / "bin" / "python"
CLIENT = pathlib.Path(__file__).with_name("triton_client.py")
LIBRARIES = ("libtriton_ingot.so", "libingot.so", "libingot_cpu.so")
EMULATED = pathlib.Path(os.environ.get("INGOT_EMULATED_CUDA")
                        or ingot_command.REPOSITORY / "build" / "tests" / "emulated_cuda")
START_SECONDS = 120  # far more than it takes
TYPES = {"FP32": np.float32, "FP16": np.float16, "INT8": np.int8, "UINT8": np.uint8, "INT32": np.int32,
         "INT64": np.int64, "BOOL": np.bool_}
NAMES = {np.dtype(kind): name for name, kind in TYPES.items()}


def needed():
    """Skips, loudly, where the server cannot be run."""
    if not SERVER.is_file():
        pytest.skip(f"no Triton Inference Server at {SERVER}: './dev setup' unpacks it; the real "
                    "server was NOT tested")
    if not (ingot_command.binary().parent / LIBRARIES[0]).is_file():
        pytest.skip(f"no {LIBRARIES[0]} beside {ingot_command.binary()}: the backend was NOT tested")


def emulated_gpus(cache="none", preloaded=()):
    """(options, environment) of a server that has two emulated GPUs of compute capability 8.0, whose kernels
    run on the host. Skips, loudly, where they are not built."""
    runtime = EMULATED / "server_cudart.so"
    if not runtime.is_file():
        pytest.skip(f"no {runtime}: run './dev build', or set INGOT_EMULATED_CUDA; the server was NOT tested on "
                    "emulated GPUs")
    return (["--pinned-memory-pool-byte-size=1048576", "--cuda-memory-pool-byte-size=0:1048576",
             "--cuda-memory-pool-byte-size=1:1048576", "--allow-gpu-metrics=false"],
            {"LD_LIBRARY_PATH": str(EMULATED), "LD_PRELOAD": ":".join(map(str, [runtime, *preloaded])),
             "INGOT_NVRTC": str(EMULATED / "libnvrtc.so.13"), "INGOT_RUNTIME_CACHE": str(cache)})


def server_on(kind, folder):
    """A server whose instances are of that kind: on the CPU, or on emulated GPUs."""
    options, environment = emulated_gpus() if kind == "KIND_GPU" else ([], {})
    return Server(folder, options=options, environment=environment)


def backends(folder, names=("ingot",)):
    """A backend directory with the library of this build under each name."""
    build = ingot_command.binary().resolve().parent
    for name in names:
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        for library in LIBRARIES:
            alias = f"libtriton_{name}.so" if library == LIBRARIES[0] else library
            (target / alias).symlink_to(build / library)
    return folder


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Refused(Exception):
    """The server's message instead of a result."""

    def __init__(self, status, text):
        super().__init__(f"{status} {text}")
        self.status = status
        self.text = text


class Server:
    """One process; models are loaded when they are asked for. Use as a context manager."""

    def __init__(self, folder, names=("ingot",), options=(), environment=None):
        self.folder = pathlib.Path(folder)
        self.repository = self.folder / "models"
        self.repository.mkdir(parents=True, exist_ok=True)
        self.backends = backends(self.folder / "backends", names)
        self.options = list(options)
        self.environment = environment or {}
        self.log = self.folder / "server.log"
        self.process = None
        self.http = self.grpc = self.metrics_port = 0

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        self.http, self.grpc, self.metrics_port = free_ports(3)
        addresses = [f"--{kind}-address=127.0.0.1" for kind in ("http", "grpc", "metrics")]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [SERVER, f"--model-repository={self.repository}",
                 f"--backend-directory={self.backends}", "--model-control-mode=explicit",
                 *addresses, f"--http-port={self.http}", f"--grpc-port={self.grpc}",
                 f"--metrics-port={self.metrics_port}", "--http-thread-count=4",
                 "--exit-timeout-secs=5", *self.options],
                stdout=log, stderr=log, env=os.environ | self.environment)
        end = time.monotonic() + START_SECONDS
        while not self.answers("/v2/health/live"):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server did not start:\n{self.said()}")
            time.sleep(0.05)

    def stop(self):
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=20)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process = None

    def said(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def call(self, path, body=None, headers=None, port=None, timeout=60):
        """(bytes, headers) of an answer of 200; Refused for others."""
        # Without a type Python says that it is a form, and the server crashes at forms of 4 MB.
        kind = {} if body is None else {"Content-Type": "application/octet-stream"}
        request = urllib.request.Request(f"http://127.0.0.1:{port or self.http}{path}", data=body,
                                         headers=kind | (headers or {}))
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.read(), answer.headers
        except urllib.error.HTTPError as error:
            text = error.read().decode("utf-8", "replace")
            with contextlib.suppress(ValueError, KeyError):
                text = json.loads(text)["error"]
            raise Refused(error.code, text) from None

    def answers(self, path):
        try:
            self.call(path)
        except (Refused, OSError):
            return False
        return True

    def add(self, name, file, config="", version=1, file_name=None):
        """Puts a version of a model into the repository."""
        folder = self.repository / name / str(version)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / (file_name or f"model{pathlib.Path(file).suffix}"))
        if config is not None:
            backend = "" if "backend:" in config or "platform:" in config else 'backend: "ingot"\n'
            (self.repository / name / "config.pbtxt").write_text(backend + config)

    def load(self, name):
        self.call(f"/v2/repository/models/{name}/load", b"{}")

    def unload(self, name):
        self.call(f"/v2/repository/models/{name}/unload", b"{}")

    def config(self, name):
        return json.loads(self.call(f"/v2/models/{name}/config")[0])

    def metrics(self):
        return self.call("/metrics", port=self.metrics_port)[0].decode()

    def infer(self, model, inputs, outputs=None, version=None, port=None, parameters=None):
        """{name: array} of a request with binary tensors."""
        parts = [np.ascontiguousarray(array).tobytes() for array in inputs.values()]
        header = {"inputs": [{"name": name, "datatype": NAMES[array.dtype], "shape": list(array.shape),
                              "parameters": {"binary_data_size": len(part)}}
                             for (name, array), part in zip(inputs.items(), parts)],
                  "parameters": {"binary_data_output": True, **(parameters or {})}}
        if outputs is not None:
            del header["parameters"]["binary_data_output"]
            header["outputs"] = [{"name": name, "parameters": {"binary_data": True}}
                                 for name in outputs]
        text = json.dumps(header).encode()
        place = f"/v2/models/{model}" + (f"/versions/{version}" if version else "")
        body, headers = self.call(f"{place}/infer", text + b"".join(parts),
                                  {"Inference-Header-Content-Length": str(len(text))}, port)
        length = int(headers["Inference-Header-Content-Length"])
        at = length
        results = {}
        for output in json.loads(body[:length])["outputs"]:
            size = output["parameters"]["binary_data_size"]
            results[output["name"]] = np.frombuffer(
                body[at:at + size], TYPES[output["datatype"]]).reshape(output["shape"])
            at += size
        return results


def client(server, protocol, model, inputs, folder, calls=1, threads=1):
    """{name: array} by the official client, in its own environment; every call gives the same."""
    np.savez(folder / "inputs.npz", **inputs)
    port = server.http if protocol == "http" else server.grpc
    done = subprocess.run([CLIENT_PYTHON, CLIENT, protocol, f"127.0.0.1:{port}", model,
                           folder / "inputs.npz", folder / "outputs.npz", str(calls), str(threads)],
                          text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    with np.load(folder / "outputs.npz") as found:
        return dict(found)
