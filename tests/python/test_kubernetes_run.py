# SPDX-License-Identifier: Apache-2.0
"""The rendered Deployment of deploy/kubernetes, executed: its command, user, volumes and probes in
containers of this machine, by tests/python/kubelet.py."""
import itertools
import os
import shutil
import signal
import tempfile
import threading

import numpy as np
import pytest

import ingot_command
import kubelet
import manifests
import triton_server

DIGITS = ingot_command.DIGITS


@pytest.fixture(scope="module")
def deployment():
    kubelet.needed()
    found, = [one for one in manifests.render("overlays/cpu") if one["kind"] == "Deployment"]
    return found


@pytest.fixture(scope="module")
def place():
    """A folder that other users may read, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="pods") as folder:
        os.chmod(folder, 0o755)
        yield folder


@pytest.fixture(scope="module")
def backends(place):
    folder = f"{place}/backends/ingot"
    os.makedirs(folder)
    for library in triton_server.LIBRARIES:
        shutil.copy(ingot_command.binary().parent / library, folder)
    return f"{place}/backends"


@pytest.fixture(scope="module")
def models(place):
    """The image of the models: the digits engine."""
    folder = f"{place}/models/digits"
    os.makedirs(f"{folder}/1")
    ingot_command.build(DIGITS / "digits.onnx", f"{folder}/1/model.engine")
    with open(f"{folder}/config.pbtxt", "w", encoding="utf-8") as config:
        config.write('backend: "ingot"\n')
    return f"{place}/models"


@pytest.fixture
def start(deployment, place, backends, models):
    """Starts a pod and waits until it is ready; ends all pods at the end."""
    pods = []
    numbers = itertools.count()

    def started():
        pods.append(kubelet.Pod(deployment, f"{place}/pod{len(os.listdir(place))}_{next(numbers)}", models))
        pods[-1].start(backends)
        pods[-1].wait("ready", lambda: pods[-1].ready)
        return pods[-1]

    yield started
    for pod in pods:
        pod.kill()


def classify(port):
    server = triton_server.Server(tempfile.mkdtemp())
    images = np.load(DIGITS / "held_out_images.npy")[:4]
    labels = np.load(DIGITS / "held_out_labels.npy")[:4]
    return np.mean(np.argmax(server.infer("digits", {"image": images}, port=port)["scores"], axis=1) == labels)


class Service:
    """Clients that ask any ready pod, as a Service does; `failed` has each failure."""

    def __init__(self, *pods):
        self.pods, self.stop, self.failed, self.answered = list(pods), threading.Event(), [], 0
        self.threads = [threading.Thread(target=self.ask) for _ in range(3)]

    def ask(self):
        while not self.stop.is_set():
            ready = [pod for pod in self.pods if pod.ready]
            try:
                assert classify(ready[self.answered % len(ready)].http) == 1
                self.answered += 1
            except Exception as error:  # whatever it is, a request was lost
                self.failed.append(error)

    def __enter__(self):
        for one in self.threads:
            one.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for one in self.threads:
            one.join()

    def more(self, pod):
        wanted = self.answered + 30
        pod.wait("30 answers", lambda: self.answered >= wanted)


def test_the_pod_serves_without_root_and_closes_what_is_no_inference(start):
    pod = start()
    assert classify(pod.http) == 1
    with open(f"/proc/{pod.process.pid}/status", encoding="ascii") as status:
        assert "\nUid:\t1000\t1000\t1000\t1000\n" in status.read()
    with pytest.raises(OSError):
        os.mkdir(f"/proc/{pod.process.pid}/root/written")
    server = triton_server.Server(tempfile.mkdtemp())
    for path in ("/v2/repository/models/digits/unload", "/v2/repository/index", "/v2/systemsharedmemory/status",
                 "/v2/trace/setting", "/v2/logging"):
        with pytest.raises(triton_server.Refused) as refused:
            server.call(path, b"{}" if "repository" in path else None, port=pod.http)
        assert refused.value.status == 403, path
    assert "ingot_runs" in server.call("/metrics", port=pod.ports[8002])[0].decode()
    assert pod.restarts == 0


def test_a_large_form_ends_no_pod_behind_the_route(start):
    """As a gateway sends it that obeys the HTTPRoute; the server alone ends at it."""
    route, = [one for one in manifests.render("overlays/gpu") if one["kind"] == "HTTPRoute"]
    sent = {"Content-Type": "application/x-www-form-urlencoded"} | manifests.headers_of(route)
    pod = start()
    server = triton_server.Server(tempfile.mkdtemp())
    with pytest.raises(triton_server.Refused) as refused:
        server.call("/v2/models/digits/infer", b"a=1&" * (5 << 18), sent, port=pod.http)
    assert (refused.value.status, refused.value.text) == (500, "failed to parse the request JSON buffer: Invalid value. at 0")
    assert classify(pod.http) == 1 and pod.restarts == 0


def test_a_container_that_ends_is_started_again(start):
    pod = start()
    pod.process.send_signal(signal.SIGKILL)
    pod.wait("restarted", lambda: pod.restarts == 1 and pod.ready)
    assert classify(pod.http) == 1


def test_a_container_that_hangs_fails_its_liveness_probe_and_is_started_again(start):
    pod = start()
    pod.spec = pod.spec | {"terminationGracePeriodSeconds": 12}  # a stopped process needs all of it
    pod.process.send_signal(signal.SIGSTOP)
    pod.wait("not ready", lambda: not pod.ready)
    pod.wait("restarted", lambda: pod.restarts == 1 and pod.ready)
    assert pod.exits == [-signal.SIGKILL]
    assert classify(pod.http) == 1


def test_a_roll_out_loses_no_request(start, deployment):
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    old = start()
    with Service(old) as service:
        service.more(old)
        new = start()
        service.pods.append(new)
        assert old.delete() == 0
        service.more(new)
    assert not service.failed, service.failed[:3]
    assert new.ready and not old.ready
