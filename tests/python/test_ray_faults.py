# SPDX-License-Identifier: Apache-2.0
"""ingot.ray under load when something goes wrong: a replica is killed, its device is lost, a run does not
end, a new version is rolled out, a node is removed, the controller is killed."""
import collections
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

import numpy as np
import pytest

import ingot_command
import ray_cluster
from serving_models import looping, picking, rows, scaled
from triton_server import Refused

CLIENTS = 4
TWO = "max_batch_size: 8 instance_group [{ count: 2 kind: KIND_CPU }]"
ONE = "instance_group [{ count: 1 kind: KIND_CPU }] "


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    ray_cluster.needed()
    folder = tmp_path_factory.mktemp("ray")
    library = folder / "lost_device.so"
    source = ingot_command.REPOSITORY / "tests" / "triton" / "programs" / "lost_device.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    more = {"LD_PRELOAD": str(library), "INGOT_LOST": str(folder / "lost")}
    with ray_cluster.Cluster(folder, more, nodes=1) as running:
        running.add("scale", scaled(folder / "double.onnx", 2), TWO, file_name="model.onnx")
        running.add("pick", picking(folder / "pick.onnx"), ONE, file_name="model.onnx")
        running.add("loop", looping(folder / "loop.onnx"), ONE + 'parameters { key: "hang_timeout_ms" value: '
                    '{ string_value: "1000" } }', file_name="model.onnx")
        running.add("slow", running.folder / "loop.onnx", ONE + "dynamic_batching { default_queue_policy { "
                    "max_queue_size: 1 } }", file_name="model.onnx")
        running.run()
        yield running


class Load:
    """Clients that ask without a pause while the block runs; `failed` has each failure, `factors` counts
    the answers by the factor that they were multiplied with."""

    def __init__(self, cluster):
        self.cluster, self.stop = cluster, threading.Event()
        self.failed, self.failures, self.factors = [], collections.Counter(), collections.Counter()
        self.threads = [threading.Thread(target=self.ask, args=(count,)) for count in range(1, CLIENTS + 1)]

    def ask(self, count):
        x = rows(count)
        while not self.stop.is_set():
            try:
                y = self.cluster.infer("scale", {"x": x})["y"]
                factor = round(float(y[0, 0] / x[0, 0]))
                np.testing.assert_allclose(y, x * factor, rtol=1e-6)
                self.factors[factor] += 1
            except Exception as error:  # whatever it is, a request was lost
                self.failed.append(error)
                self.failures[count] += 1

    def __enter__(self):
        for one in self.threads:
            one.start()
        try:
            self.more()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop.set()
        for one in self.threads:
            one.join()

    def more(self, *factors):
        """Waits for some more answers, with one of the factors where they are given."""
        def found():
            return sum(count for factor, count in self.factors.items() if not factors or factor in factors)

        wanted = found() + 10 * CLIENTS
        self.cluster.wait(f"{wanted} answers", lambda: found() >= wanted)

    def only_lost_in_flight(self):
        """Each client has one request in flight at a time."""
        return all(count == 1 for count in self.failures.values())

    def told(self):
        return [f"{type(error).__name__}: {error}" for error in self.failed]


def wait_for_replicas(cluster, count, name="scale"):
    cluster.wait(f"{count} replicas of {name}",
                 lambda: cluster.do("status", "default").get(name) == {"RUNNING": count})


def test_a_killed_replica_loses_at_most_its_requests_in_flight(cluster):
    wait_for_replicas(cluster, 2)
    before = cluster.replicas("scale")
    assert len(before) == 2
    with Load(cluster) as load:
        os.kill(before[0], signal.SIGKILL)
        load.more()
        cluster.wait("another replica", lambda: len(set(cluster.replicas("scale")) - {before[0]}) == 2)
        wait_for_replicas(cluster, 2)
        load.more()
    assert load.only_lost_in_flight(), load.told()
    for error in load.failed:
        assert isinstance(error, Refused) and error.status == 503, load.told()
        assert error.text == "the replica of model 'scale' that had the request has ended; send it again"


def test_a_lost_device_ends_the_replica_at_once_and_another_one_starts(cluster):
    wait_for_replicas(cluster, 1, "pick")
    wrong = {"i": np.array([[7]], np.int64)}
    with pytest.raises(Refused):  # an error that is none of the device's
        cluster.infer("pick", wrong)
    before, = cluster.replicas("pick")
    lost = pathlib.Path(cluster.more["INGOT_LOST"])
    with Load(cluster) as load:
        lost.touch()
        with pytest.raises(Refused) as refused:
            cluster.infer("pick", wrong)
        assert refused.value.status == 500
        cluster.wait("ended", lambda: not os.path.exists(f"/proc/{before}"))
        lost.unlink()
        cluster.wait("another replica", lambda: cluster.replicas("pick") and before not in cluster.replicas("pick"))
        wait_for_replicas(cluster, 1, "pick")
        load.more()
    assert not load.failed, load.told()  # of another model
    np.testing.assert_array_equal(cluster.infer("pick", {"i": np.array([[1]], np.int64)})["y"].ravel(), [20])
    assert "the device is lost: cuStreamSynchronize: an illegal address; this process ends with exit code 86" \
        in cluster.replica_logs("pick")


def test_a_run_that_does_not_end_ends_the_replica(cluster):
    wait_for_replicas(cluster, 1, "loop")
    few = {"count": np.array([3], np.int64), "x": np.zeros(2, np.float32)}
    np.testing.assert_array_equal(cluster.infer("loop", few)["y"], [3, 3])
    before, = cluster.replicas("loop")
    with pytest.raises(Refused, match="a run has not ended after 1000 ms") as refused:
        cluster.infer("loop", few | {"count": np.array([2**62], np.int64)})
    assert refused.value.status == 500  # 503 would ask for another try, which ends another replica
    cluster.wait("ended", lambda: not os.path.exists(f"/proc/{before}"))
    cluster.wait("another replica", lambda: cluster.replicas("loop") and before not in cluster.replicas("loop"))
    wait_for_replicas(cluster, 1, "loop")
    np.testing.assert_array_equal(cluster.infer("loop", few)["y"], [3, 3])
    assert "a run has not ended after 1000 ms (parameter hang_timeout_ms); this process ends with exit code 87" \
        in cluster.replica_logs("loop")


def test_a_full_queue_rejects(cluster):
    wait_for_replicas(cluster, 1, "slow")
    count = 1000
    while True:  # as many rounds as take a while
        inputs = {"count": np.array([count], np.int64), "x": np.zeros(2, np.float32)}
        start = time.monotonic()
        cluster.infer("slow", inputs)
        if time.monotonic() - start > 1:
            break
        count *= 2
    answers = []

    def ask():
        try:
            answers.append(cluster.infer("slow", inputs)["y"].tolist())
        except Refused as error:
            answers.append((error.status, error.text))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    full = (503, "the queue of model 'slow' is full")
    assert {str(answer) for answer in answers} == {str([float(count)] * 2), str(full)}, answers
    assert 1 <= answers.count(full) <= 6


def test_an_upgrade_loses_no_request(cluster, tmp_path):
    wait_for_replicas(cluster, 2)
    with Load(cluster) as load:
        cluster.add("scale", scaled(tmp_path / "triple.onnx", 3), TWO, version=2, file_name="model.onnx")
        cluster.run()
        wait_for_replicas(cluster, 2)
        load.more(3)
    assert not load.failed, load.told()
    assert load.factors[2] and load.factors[3]


def test_a_broken_version_leaves_the_old_one_serving(cluster):
    """Ones that are refused before anything is deployed; then one whose damage only a replica sees."""
    config = cluster.repository / "pick" / "config.pbtxt"
    before = config.read_text()
    broken = cluster.repository / "scale" / "3"
    whole = cluster.folder / "whole.engine"
    ingot_command.build(cluster.folder / "double.onnx", whole)

    def refused():
        return cluster.do("refuse", {"repository": str(cluster.repository)})

    with Load(cluster) as load:
        config.write_text("ensemble_scheduling { }")
        assert "model 'pick': ensemble_scheduling cannot be had in Ray Serve" in refused()
        config.write_text(before)
        broken.mkdir()
        (broken / "model.plan").write_bytes(b"ftrt" + bytes(100))
        assert "model 'scale', file 'model.plan': it is a plan of NVIDIA's TensorRT, which runs there alone" in refused()
        (broken / "model.plan").write_bytes(whole.read_bytes()[:-40])
        with pytest.raises(RuntimeError, match="Deploying application default failed"):
            cluster.run()
        load.more(3)
        shutil.rmtree(broken)
        cluster.run()
        wait_for_replicas(cluster, 2)
        load.more(3)
    assert not load.failed, load.told()


def test_a_killed_controller_loses_no_request(cluster):
    with Load(cluster) as load:
        cluster.do("kill_controller")
        load.more(3)
        wait_for_replicas(cluster, 2)
        load.more(3)
    assert not load.failed, load.told()


def test_a_node_removed_by_force_loses_at_most_the_requests_in_flight(cluster):
    with Load(cluster) as load:
        cluster.do("remove_node")
        wait_for_replicas(cluster, 2)
        load.more(3)
    assert load.only_lost_in_flight(), load.told()
