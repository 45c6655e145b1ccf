# SPDX-License-Identifier: Apache-2.0
"""ingot.ray in a real Ray cluster on the CPU: answers over HTTP and gRPC, the same as those of a real
Triton Inference Server for the same requests, good and bad."""
import json
import pathlib
import subprocess
import threading

import numpy as np
import pytest

import ingot_command
import ray_cluster
import serving_cases
import serving_models
import triton_server
from serving_models import DIGITS, added, rows, scaled
from triton_server import Refused

CONFIG = """max_batch_size: 8
instance_group [{ count: 1 kind: KIND_CPU }]
dynamic_batching { max_queue_delay_microseconds: 2000 }
"""
WAITING = CONFIG.replace("2000", "1000000")  # requests wait a second for others: load that no machine's speed changes
OPTIONAL = """instance_group [{ kind: KIND_CPU }]
input [{ name: "x" data_type: TYPE_FP32 dims: [2] }, { name: "scale" data_type: TYPE_FP32 dims: [1] optional: true },
       { name: "shift" data_type: TYPE_FP32 dims: [2] optional: true }]
output [{ name: "y" data_type: TYPE_FP32 dims: [2] }]
"""
WARM = """instance_group [{ kind: KIND_CPU }]
model_warmup [{ name: "first" count: 2
  inputs { key: "a" value: { data_type: TYPE_FP16 dims: [2, 3] random_data: true } }
  inputs { key: "b" value: { data_type: TYPE_FP32 dims: [3] input_data_file: "b" } } }]
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, digits_engine):
    ray_cluster.needed()
    with ray_cluster.Cluster(tmp_path_factory.mktemp("ray")) as running:
        running.add("digits", digits_engine, CONFIG)
        running.add("waiting", digits_engine, WAITING)
        for version, factor in ((1, 2), (2, 3), (5, 5)):
            running.add("versions", scaled(running.folder / "scaled.onnx", factor), "version_policy { all { } } "
                        "instance_group [{ kind: KIND_CPU }]", version=version, file_name="model.onnx")
        running.add("sum", added(running.folder / "sum.onnx"), WARM, file_name="model.onnx")
        file = serving_models.with_defaults(running.folder / "defaults.onnx")
        running.add("optional_model", file, OPTIONAL, file_name="model.onnx")
        ingot_command.call("build", str(file), "--optionalInputs=scale,shift", "-o", str(running.folder / "d.engine"))
        running.add("optional_engine", running.folder / "d.engine", "instance_group [{ kind: KIND_CPU }]")
        (running.repository / "sum" / "warmup").mkdir()
        np.arange(3, dtype=np.float32).tofile(running.repository / "sum" / "warmup" / "b")
        running.run()
        yield running


@pytest.fixture(scope="module")
def triton(tmp_path_factory, digits_engine):
    triton_server.needed()
    with triton_server.Server(tmp_path_factory.mktemp("triton")) as running:
        running.add("digits", digits_engine, CONFIG)
        running.load("digits")
        yield running


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_official_client_gets_what_the_engine_computes(cluster, digits_engine, protocol, tmp_path):
    serving_models.check_digits(cluster, digits_engine, protocol, tmp_path)


def without_outputs(answer):
    """The part that is equal, and the numbers, which batches of other sizes may round differently."""
    status, head, rest = answer
    numbers = np.frombuffer(rest, np.float32).tolist()
    for output in (head or {}).get("outputs", []) if isinstance(head, dict) else []:
        if "datatype" in output and isinstance(output.get("data"), list):
            numbers += output.pop("data")
    return status, head, numbers


def test_the_same_good_requests_get_the_same_answers_as_from_triton(cluster, triton):
    cases = [*serving_cases.good(440), *serving_cases.other_good()]
    for case, ours, theirs in zip(cases, serving_cases.answers_of(cluster, cases), serving_cases.answers_of(triton, cases)):
        ours, theirs = without_outputs(ours), without_outputs(theirs)
        assert ours[:2] == theirs[:2], case.name
        np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-4, atol=1e-4, err_msg=case.name)


# The other server's text is about another thing (sizes that overflow) or is not well-formed.
OWN_TEXTS = {
    "two inputs": (400, "[request id: <id_unknown>] expected 1 inputs but got 2 inputs for model 'digits'. Got "
                        "input(s) ['image','other'], but missing required input(s) []. Please provide all required "
                        "input(s)."),
    "a huge size": (500, "Unable to parse 'data': Shape does not match true shape of 'data' field"),
}


def test_the_same_wrong_requests_get_the_same_answers_as_from_triton(cluster, triton):
    cases = serving_cases.wrong()
    assert len(cases) >= 60
    for case, ours, theirs in zip(cases, serving_cases.answers_of(cluster, cases), serving_cases.answers_of(triton, cases)):
        if case.name in OWN_TEXTS:
            assert (ours[0], ours[1]["error"]) == OWN_TEXTS[case.name]
            continue
        hint = theirs[1]["error"].find(" NOTE: ")  # an advice about config.pbtxt
        theirs[1]["error"] = theirs[1]["error"][:hint if hint > 0 else None]
        assert ours == theirs, case.name
        assert str(cluster.folder) not in ours[1]["error"]
    assert cluster.answers("/v2/health/ready")  # nothing ended


def test_the_configuration_is_completed_from_the_engine(cluster, triton):
    ours, theirs = cluster.config("digits"), triton.config("digits")
    for field in ("name", "backend", "max_batch_size", "input", "output"):
        assert ours[field] == theirs[field], field
    assert ours["dynamic_batching"]["max_queue_delay_microseconds"] == 2000
    index = json.loads(cluster.call("/v2/repository/index", b"{}")[0])
    assert {"name": "digits", "version": "1", "state": "READY"} in index
    assert [one["version"] for one in index if one["name"] == "versions"] == ["1", "2", "5"]
    assert json.loads(cluster.call("/v2")[0])["name"] == "ingot.ray"


def test_a_graph_of_ones_own_calls_an_engine(cluster, digits_engine):
    cluster.do("graph", str(digits_engine), {"name": "engine", "max_batch_size": 4, "num_gpus": 0})
    images = np.load(DIGITS / "held_out_images.npy")[:4]
    labels = np.load(DIGITS / "held_out_labels.npy")[:4]
    found = json.loads(cluster.call("/digit", json.dumps(images.tolist()).encode())[0])
    assert found == labels.tolist()
    with pytest.raises(Refused) as refused:
        cluster.call("/digit", json.dumps(images[:, 0].tolist()).encode())
    assert refused.value.status == 500
    cluster.do("delete", "graph")


def grpc_answers(port):
    script = pathlib.Path(__file__).with_name("grpc_cases.py")
    done = subprocess.run([triton_server.CLIENT_PYTHON, script, f"127.0.0.1:{port}"], text=True, capture_output=True,
                          timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_same_requests_by_grpc_get_the_same_answers_as_from_triton(cluster, triton):
    ours, theirs = grpc_answers(cluster.grpc), grpc_answers(triton.grpc)
    assert ours.pop("stream") == [["", "", 1], [
        "[request id: <id_unknown>] unexpected shape for input 'image' for model 'digits'. Expected [-1,1,8,8], got "
        "[1,8,8].", "", 0], ["", "7", 1]]
    assert ours.pop("trace") == ["UNIMPLEMENTED", "TraceSetting is not supported by this server"]
    assert ours.pop("two sets of data") == [  # the other server ignores the second
        "INVALID_ARGUMENT", "expected tensor data for 1 inputs but got 2 sets of data for model 'digits'"]
    assert ours.pop("unknown datatype") == ["INVALID_ARGUMENT", "invalid datatype for input image"]  # as by HTTP
    del theirs["stream"]
    theirs = {name: [status, text.partition(" NOTE: ")[0] if isinstance(text, str) else text]
              for name, (status, text) in theirs.items()}
    assert {name: (answer, theirs[name]) for name, answer in ours.items() if answer != theirs[name]} == {}


def test_versions_are_those_of_the_policy(cluster):
    for version, factor in ((None, 5), (1, 2), (2, 3), (5, 5)):
        np.testing.assert_allclose(cluster.infer("versions", {"x": rows(3)}, version=version)["y"], factor * rows(3),
                                   rtol=1e-6)
    assert json.loads(cluster.call("/v2/models/versions")[0])["versions"] == ["1", "2", "5"]
    assert cluster.answers("/v2/models/versions/versions/2/ready")
    assert not cluster.answers("/v2/models/versions/versions/3/ready")


def test_a_model_without_batches_takes_all_its_inputs(cluster):
    a, b = np.arange(6).reshape(2, 3).astype(np.float16), np.ones(3, np.float32)
    np.testing.assert_array_equal(cluster.infer("sum", {"a": a, "b": b})["c"], a + 1)
    with pytest.raises(Refused) as refused:
        cluster.infer("sum", {"a": a})
    assert refused.value.text == (
        "[request id: <id_unknown>] expected 2 inputs but got 1 inputs for model 'sum'. Got input(s) ['a'], but "
        "missing required input(s) ['b']. Please provide all required input(s).")
    with pytest.raises(Refused) as refused:
        cluster.infer("sum", {"a": a, "b": np.ones(4, np.float32)})
    assert "unexpected shape for input 'b' for model 'sum'. Expected [3], got [4]." in refused.value.text
    assert "not every batch size is prepared" not in cluster.replica_logs("sum")


@pytest.mark.parametrize("name", ["optional_model", "optional_engine"])
def test_requests_to_ray_may_leave_optional_inputs_out(cluster, name):
    x = {"x": np.array([1, 2], np.float32)}
    scale = {"scale": np.array([5], np.float32)}
    shift = {"shift": np.array([1, 1], np.float32)}
    for inputs, expected in ((x, [13, 26]), (x | scale, [15, 30]), (shift | x, [4, 7]), (x | shift | scale, [6, 11]),
                             (x, [13, 26])):
        assert cluster.infer(name, inputs)["y"].tolist() == expected
    with pytest.raises(Refused) as refused:
        cluster.infer(name, scale)
    assert "but missing required input(s) ['x']" in refused.value.text


def test_more_requests_at_once_bring_more_replicas(cluster):
    cluster.run(models="waiting", max_replicas=3, target_ongoing_requests=1)
    assert cluster.do("status", "default")["waiting"] == {"RUNNING": 1}
    stop = threading.Event()
    image = np.load(DIGITS / "held_out_images.npy")[:1]
    failed = []

    def ask():
        while not stop.is_set():
            try:
                cluster.infer("waiting", {"image": image})
            except Exception as error:  # whatever it is
                failed.append(error)

    clients = [threading.Thread(target=ask) for _ in range(6)]
    for one in clients:
        one.start()
    try:
        cluster.wait("3 replicas", lambda: cluster.do("status", "default")["waiting"].get("RUNNING") == 3)
    finally:
        stop.set()
        for one in clients:
            one.join()
    assert not failed
