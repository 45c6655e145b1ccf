# SPDX-License-Identifier: Apache-2.0
"""With an engine built for it (DISTRIBUTIVE_INDEPENDENCE), a request's answer does not depend on its neighbours: the bits
that concurrent clients of a real Triton Inference Server get from shared batches, on the CPU and on an emulated GPU,
are those of the request alone."""
import concurrent.futures
import re

import numpy as np
import onnx
import onnx.helper as oh
import pytest

import serving_models
import triton_server
from shim import package

package.find()

import tensorrt as trt  # noqa: E402

LIMIT = 8
INVARIANT = 'parameters { key: "batch_invariant" value: { string_value: "true" } }\n'


def mixed(path):
    """y[n, 10]: a convolution, a matrix product, a normalisation and a softmax, with sums in each."""
    rng = np.random.default_rng(7)
    weights = {"k": (16, 3, 3, 3), "m": (16 * 36, 40), "scale": (40,), "shift": (40,), "w": (40, 10)}
    return serving_models.save(
        path,
        [oh.make_node("Conv", ["x", "k"], ["c"]), oh.make_node("Relu", ["c"], ["r"]),
         oh.make_node("Flatten", ["r"], ["f"]), oh.make_node("MatMul", ["f", "m"], ["h"]),
         oh.make_node("LayerNormalization", ["h", "scale", "shift"], ["z"]),
         oh.make_node("MatMul", ["z", "w"], ["o"]), oh.make_node("Softmax", ["o"], ["y"])],
        [oh.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3, 8, 8])],
        [oh.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 10])],
        [onnx.numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
         for name, shape in weights.items()])


def independent(model, path):
    """The engine of a model, built so that a row depends on nothing but the row."""
    logger = trt.Logger()
    builder = trt.Builder(logger)
    network = builder.create_network()
    parser = trt.OnnxParser(network, logger)
    assert parser.parse_from_file(str(model)), parser.get_error(0)
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.DISTRIBUTIVE_INDEPENDENCE)
    profile = builder.create_optimization_profile()
    profile.set_shape("x", *((rows, 3, 8, 8) for rows in (1, LIMIT, LIMIT)))
    config.add_optimization_profile(profile)
    path.write_bytes(builder.build_serialized_network(network, config))
    return path


@pytest.fixture(scope="module", params=["KIND_CPU", "KIND_GPU"])
def server(tmp_path_factory, request):
    triton_server.needed()
    folder = tmp_path_factory.mktemp("bits")
    with triton_server.server_on(request.param, folder) as running:
        running.add("mixed", independent(mixed(folder / "mixed.onnx"), folder / "model.engine"),
                    f"max_batch_size: {LIMIT}\ndynamic_batching {{ max_queue_delay_microseconds: 20000 }}\n"
                    f"instance_group [{{ count: 2 kind: {request.param} }}]\n")
        running.add("from_onnx", folder / "mixed.onnx",
                    f"max_batch_size: {LIMIT}\n{INVARIANT}instance_group [{{ count: 1 kind: {request.param} }}]\n")
        for name in ("mixed", "from_onnx"):
            running.load(name)
        device = {"KIND_CPU": "the CPU", "KIND_GPU": "GPU 0"}[request.param]
        assert f"instance 'mixed_0_0' is ready on {device}," in running.said()
        yield running


def batches(server):
    found = re.search(r'^nv_inference_exec_count\{model="mixed",version="1"\} (\d+)', server.metrics(), re.M)
    return int(found[1])


def ask(server, x, model="mixed"):
    return server.infer(model, {"x": x})["y"].tobytes()


@pytest.mark.parametrize("model", ["mixed", "from_onnx"])
def test_bits_do_not_depend_on_the_batch(server, model):
    """Each row by itself, and the same rows at every place of batches of every size."""
    x = np.random.default_rng(1).normal(size=(LIMIT, 3, 8, 8)).astype(np.float32)
    alone = [ask(server, x[i:i + 1], model) for i in range(LIMIT)]
    for rows in range(2, LIMIT + 1):
        for first in range(LIMIT):
            order = [(first + i) % LIMIT for i in range(rows)]
            assert ask(server, x[order], model) == b"".join(alone[i] for i in order), (rows, first)


def test_bits_do_not_depend_on_concurrent_clients(server):
    """Requests of one to three rows from twelve clients at once are served in shared batches."""
    x = [np.random.default_rng(i).normal(size=(1 + i % 3, 3, 8, 8)).astype(np.float32) for i in range(24)]
    alone = [ask(server, one) for one in x]
    before = batches(server)
    rounds = 5
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for _ in range(rounds):
            for i, got in enumerate(pool.map(lambda one: ask(server, one), x)):
                assert got == alone[i], i
    assert batches(server) - before < rounds * len(x) / 2  # else no two requests shared a batch


def test_an_engine_beside_the_parameter_is_refused(server, tmp_path):
    engine = independent(mixed(tmp_path / "mixed.onnx"), tmp_path / "model.engine")
    server.add("fixed", engine, f"max_batch_size: {LIMIT}\n{INVARIANT}")
    with pytest.raises(triton_server.Refused) as refused:
        server.load("fixed")
    assert ("file 'model.engine': it is an engine, and the parameter 'batch_invariant' is for ONNX models: build it with "
            "'ingot build --batchInvariant' and leave the parameter out") in refused.value.text
