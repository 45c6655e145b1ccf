# SPDX-License-Identifier: Apache-2.0
"""ingot.ray in a real Ray cluster on the CPU: answers over HTTP and gRPC, the same as those of a real
Triton Inference Server for the same requests, good and bad."""
import http.client
import json

import numpy as np
import pytest

import ingot_command
import ray_cluster
import serving_cases
import triton_server
from triton_server import Refused

DIGITS = ingot_command.REPOSITORY / "examples" / "digits"
CONFIG = """max_batch_size: 8
instance_group [{ count: 1 kind: KIND_CPU }]
dynamic_batching { max_queue_delay_microseconds: 2000 }
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    path = tmp_path_factory.mktemp("digits") / "model.engine"
    ingot_command.build(DIGITS / "digits.onnx", path)
    return path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, engine):
    ray_cluster.needed()
    with ray_cluster.Cluster(tmp_path_factory.mktemp("ray")) as running:
        running.add("digits", engine, CONFIG)
        running.run()
        yield running


@pytest.fixture(scope="module")
def triton(tmp_path_factory, engine):
    triton_server.needed()
    with triton_server.Server(tmp_path_factory.mktemp("triton")) as running:
        running.add("digits", engine, CONFIG)
        running.load("digits")
        yield running


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_official_client_gets_what_the_engine_computes(cluster, engine, protocol, tmp_path):
    images = np.load(DIGITS / "held_out_images.npy")[:61]
    expected = ingot_command.run(engine, {"image": images}, tmp_path / "alone")["scores"]
    got = triton_server.client(cluster, protocol, "digits", {"image": images}, tmp_path, calls=40,
                               threads=8)["scores"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    labels = np.load(DIGITS / "held_out_labels.npy")[:61]
    assert np.mean(np.argmax(got, axis=1) == labels) > 0.9


def answers_of(server, cases):
    """[(status, JSON, bytes behind it)] of cases, over one connection where it holds."""
    connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=60)
    found = []
    for case in cases:
        connection.request("GET" if case.body is None else "POST", case.path, case.body, case.headers)
        answer = connection.getresponse()
        body = answer.read()
        length = int(answer.headers.get("Inference-Header-Content-Length", len(body)))
        found.append((answer.status, json.loads(body[:length] or "null"), body[length:]))
        if answer.will_close:
            connection.close()
    connection.close()
    return found


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
    for case, ours, theirs in zip(cases, answers_of(cluster, cases), answers_of(triton, cases)):
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
    for case, ours, theirs in zip(cases, answers_of(cluster, cases), answers_of(triton, cases)):
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
    assert index == [{"name": "digits", "version": "1", "state": "READY"}]
    assert json.loads(cluster.call("/v2")[0])["name"] == "ingot.ray"


def test_a_graph_of_ones_own_calls_an_engine(cluster, engine):
    cluster.do("graph", str(engine), {"name": "engine", "max_batch_size": 4, "num_gpus": 0})
    images = np.load(DIGITS / "held_out_images.npy")[:4]
    labels = np.load(DIGITS / "held_out_labels.npy")[:4]
    found = json.loads(cluster.call("/digit", json.dumps(images.tolist()).encode())[0])
    assert found == labels.tolist()
    with pytest.raises(Refused) as refused:
        cluster.call("/digit", json.dumps(images[:, 0].tolist()).encode())
    assert refused.value.status == 500
    cluster.do("delete", "graph")
