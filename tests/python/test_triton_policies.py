# SPDX-License-Identifier: Apache-2.0
"""Host policies in a real Triton Inference Server: an instance's threads stay on the cores that --host-policy gives to the
policy which its instance_group names."""
import os
import pathlib
import re

import numpy as np
import pytest

import triton_server
from serving_models import scaled
from triton_server import Refused

CORES = sorted(os.sched_getaffinity(0))
SIZE = 4096  # of a row: enough work to be divided


def threads(server):
    """{thread: its cores, "0-3"} of the server."""
    found = {}
    for task in pathlib.Path(f"/proc/{server.process.pid}/task").iterdir():
        status = (task / "status").read_text(encoding="ascii")
        found[task.name] = re.search(r"^Cpus_allowed_list:\t(\S+)", status, re.M).group(1)
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    triton_server.needed()
    folder = tmp_path_factory.mktemp("triton")
    policies = [f"--host-policy=first,cpu-cores={CORES[0]}-{CORES[0]}", "--host-policy=first,numa-node=0",
                f"--host-policy=last,cpu-cores={CORES[-1]}-{CORES[-1]}", "--host-policy=wrong,cpu-cores=3"]
    with triton_server.Server(folder, options=policies) as running:
        running.model = scaled(folder / "double.onnx", 2, size=SIZE)
        yield running


def load(server, name, groups, parameters=""):
    server.add(name, server.model, f"max_batch_size: 64\n{groups}{parameters}", file_name="model.onnx")
    server.load(name)
    for rows in (1, 64):
        x = np.random.default_rng(rows).normal(size=(rows, SIZE)).astype(np.float32)
        np.testing.assert_array_equal(server.infer(name, {"x": x})["y"], 2 * x)


@pytest.mark.skipif(len(CORES) < 2, reason="one CPU: there is nothing to choose from")
def test_threads_of_an_instance_stay_on_the_cores_of_its_policy(server):
    before = threads(server)
    two = 'parameters { key: "threads" value: { string_value: "2" } }\n'
    load(server, "placed", "instance_group [{ kind: KIND_CPU host_policy: \"first\" }, "
         "{ kind: KIND_CPU host_policy: \"last\" }]\n", two)
    new = [cores for thread, cores in threads(server).items() if thread not in before]
    # Each instance has a thread of the server's, and one beside it for the engine's loops.
    assert new.count(str(CORES[0])) >= 2 and new.count(str(CORES[-1])) >= 2
    said = server.said()
    assert f"host policy 'first': cores {CORES[0]}-{CORES[0]}, NUMA node 0" in said
    assert f"host policy 'last': cores {CORES[-1]}-{CORES[-1]}" in said
    server.unload("placed")


def test_a_policy_without_settings_is_named_in_the_log(server):
    load(server, "unknown", 'instance_group [{ kind: KIND_CPU host_policy: "nobody" }]\n')
    assert ("unknown version 1: the host policy 'nobody' has no settings: the server gets them by --host-policy=nobody,"
            "cpu-cores=0-3 and --host-policy=nobody,numa-node=0") in server.said()


def test_cores_that_the_server_does_not_understand_fail_the_load(server):
    with pytest.raises(Refused) as refused:
        load(server, "wrong", 'instance_group [{ kind: KIND_CPU host_policy: "wrong" }]\n')
    assert refused.value.status == 400 and "host policy setting 'cpu-cores' format is" in refused.value.text
