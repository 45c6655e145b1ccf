# SPDX-License-Identifier: Apache-2.0
"""A real Triton Inference Server around models of Ingot's backend: ensembles, the response
cache, priorities and limits of queues, the rate limiter, tracing; and clients that vanish or are slow."""
import http.server
import json
import re
import socket
import subprocess
import threading
import time

import numpy as np
import pytest

import triton_server
from serving_models import looping, rows, scaled
from triton_server import Refused

CPU = "instance_group [{ count: 1 kind: KIND_CPU }]\n"
VANISHING = 100
CACHES = triton_server.SERVER.parent.parent / "caches"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    triton_server.needed()
    folder = tmp_path_factory.mktemp("models")
    return {"double": scaled(folder / "double.onnx", 2), "triple": scaled(folder / "triple.onnx", 3),
            "slow": looping(folder / "slow.onnx", ["n", 4], 100_000)}


@pytest.fixture(scope="module")
def server(tmp_path_factory, models):
    options = [f"--cache-directory={CACHES}", "--cache-config=local,size=1048576", "--rate-limit=execution_count"]
    with triton_server.Server(tmp_path_factory.mktemp("triton"), options=options) as running:
        for name in ("double", "triple"):
            running.add(name, models[name], "max_batch_size: 8\n" + CPU, file_name="model.onnx")
            running.load(name)
        yield running


def test_two_engines_are_an_ensemble(server):
    steps = "".join(f'{{ model_name: "{name}" model_version: -1 input_map {{ key: "x" value: "{x}" }} '
                    f'output_map {{ key: "y" value: "{y}" }} }}, '
                    for name, x, y in (("double", "x", "between"), ("triple", "between", "y")))
    config = ('platform: "ensemble"\nmax_batch_size: 8\n'
              'input [{ name: "x" data_type: TYPE_FP32 dims: [4] }]\n'
              'output [{ name: "y" data_type: TYPE_FP32 dims: [4] }]\n'
              f'ensemble_scheduling {{ step [{steps.rstrip(", ")}] }}\n')
    folder = server.repository / "six"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config)
    server.load("six")
    for count in (1, 3, 8):
        np.testing.assert_array_equal(server.infer("six", {"x": rows(count)})["y"], 3 * (2 * rows(count)))
    with pytest.raises(Refused) as refused:
        server.infer("six", {"x": np.zeros((1, 5), np.float32)})
    assert "unexpected shape for input 'x' for model 'six'. Expected [-1,4], got [1,5]." in refused.value.text


def test_a_response_comes_from_the_cache(server, models):
    server.add("cached", models["double"], "max_batch_size: 8\nresponse_cache { enable: true }\n" + CPU,
               file_name="model.onnx")
    server.load("cached")
    for _ in range(5):
        np.testing.assert_array_equal(server.infer("cached", {"x": rows(2)})["y"], 2 * rows(2))
    np.testing.assert_array_equal(server.infer("cached", {"x": rows(3)})["y"], 2 * rows(3))
    said = server.metrics()
    assert 'ingot_runs{model="cached",version="1"} 2' in said
    assert re.search(r'nv_cache_num_hits_per_model\{model="cached",version="1"\} 4', said)


def test_a_full_queue_refuses(server, models):
    server.add("queued", models["double"], "max_batch_size: 8\n" + CPU +
               "dynamic_batching { preferred_batch_size: [8] max_queue_delay_microseconds: 3000000 "
               "default_queue_policy { max_queue_size: 2 } }\n", file_name="model.onnx")
    server.load("queued")
    answers, refused = [], []

    def ask(count):
        try:
            answers.append((count, server.infer("queued", {"x": rows(count)})["y"]))
        except Refused as error:
            refused.append((error.status, error.text))

    clients = [threading.Thread(target=ask, args=[count]) for count in (1, 2, 1, 1)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    assert len(answers) == 2 and len(refused) == 2
    assert all(status == 503 and "Exceeds maximum queue size" in text for status, text in refused), refused
    for count, y in answers:
        np.testing.assert_array_equal(y, 2 * rows(count))


CANCELLING = """
import queue, sys
import numpy as np
from tritonclient import grpc
client, errors = grpc.InferenceServerClient(sys.argv[1]), queue.Queue()
x = grpc.InferInput("x", [1, 4], "FP32")
x.set_data_from_numpy(np.ones((1, 4), np.float32))
call = client.async_infer("cancelled", [x], lambda result, error: errors.put(error))
sys.stdin.readline()  # it is in the queue
call.cancel()
print(errors.get(timeout=60).status())
"""


def test_a_cancelled_request_is_not_run(server, models):
    server.add("cancelled", models["double"], "max_batch_size: 8\n" + CPU +
               "dynamic_batching { preferred_batch_size: [8] max_queue_delay_microseconds: 3000000 }\n",
               file_name="model.onnx")
    server.load("cancelled")
    with subprocess.Popen([triton_server.CLIENT_PYTHON, "-c", CANCELLING, f"127.0.0.1:{server.grpc}"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        pending = r'nv_inference_pending_request_count\{model="cancelled",version="1"\} 1'
        end = time.monotonic() + 60
        while not re.search(pending, server.metrics()) and time.monotonic() < end:
            time.sleep(0.01)
        assert client.communicate("1\n", timeout=60)[0].strip() == "StatusCode.CANCELLED"
    np.testing.assert_array_equal(server.infer("cancelled", {"x": rows(2)})["y"], 2 * rows(2))
    said = server.metrics()
    assert 'ingot_runs{model="cancelled",version="1"} 1' in said
    assert 'ingot_padded_rows{model="cancelled",version="1"} 0' in said  # with the other's row one would be added


def test_a_request_of_high_priority_overtakes(server, models):
    server.add("slow", models["slow"], "max_batch_size: 1\n" + CPU +
               "dynamic_batching { priority_levels: 2 default_priority_level: 2 }\n", file_name="model.onnx")
    server.load("slow")
    done = []

    def ask(name, priority):
        server.infer("slow", {"x": rows(1)}, parameters={"priority": priority})
        done.append(name)

    def answered():
        found = json.loads(server.call("/v2/models/slow/stats")[0])["model_stats"][0]
        return int(found["inference_stats"]["success"]["count"])

    assert answered() == 0
    low = [threading.Thread(target=ask, args=[f"low {i}", 2]) for i in range(6)]
    for one in low:
        one.start()
    while not done:  # the others are in the queue by now
        time.sleep(0.001)
    ask("high", 1)
    for one in low:
        one.join()
    assert done.index("high") < 6, done


def test_models_share_what_the_rate_limiter_gives(server, models):
    limiter = 'instance_group [{ count: 1 kind: KIND_CPU rate_limiter { resources [{ name: "seat" global: true ' \
              'count: 1 }] } }]\n'
    for name in ("first", "second"):
        server.add(name, models["double"], "max_batch_size: 8\n" + limiter, file_name="model.onnx")
        server.load(name)
    failed = []

    def ask(name):
        for count in range(1, 9):
            if not np.array_equal(server.infer(name, {"x": rows(count)})["y"], 2 * rows(count)):
                failed.append(name)

    clients = [threading.Thread(target=ask, args=[name]) for name in ("first", "second") * 4]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    assert failed == []


class Receiver(http.server.ThreadingHTTPServer):
    """Takes traces over HTTP, as a collector of OpenTelemetry does."""

    def __init__(self):
        bodies = self.bodies = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                bodies.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def traced(folder, models, port):
    """A server that sends each request's trace to a port."""
    url = f"http://127.0.0.1:{port}/v1/traces"
    options = ["--trace-config=mode=opentelemetry", f"--trace-config=opentelemetry,url={url}",
               "--trace-config=rate=1", "--trace-config=level=TIMESTAMPS",
               "--trace-config=opentelemetry,bsp_schedule_delay=100"]
    running = triton_server.Server(folder, options=options)
    running.add("double", models["double"], "max_batch_size: 8\n" + CPU, file_name="model.onnx")
    return running


def test_traces_reach_a_receiver(tmp_path, models):
    receiver = Receiver()
    with traced(tmp_path, models, receiver.server_port) as running:
        running.load("double")
        for count in range(1, 9):
            running.infer("double", {"x": rows(count)})
        end = time.monotonic() + 60
        while not receiver.bodies and time.monotonic() < end:
            time.sleep(0.05)
    receiver.shutdown()
    assert {path for path, _ in receiver.bodies} == {"/v1/traces"}
    everything = b"".join(body for _, body in receiver.bodies)
    assert b"double" in everything and b"COMPUTE_START" in everything


def test_a_receiver_that_is_dead_has_no_effect(tmp_path, models):
    [port] = triton_server.free_ports(1)
    with traced(tmp_path, models, port) as running:
        running.load("double")
        for count in [*range(1, 9)] * 5:
            np.testing.assert_array_equal(running.infer("double", {"x": rows(count)})["y"], 2 * rows(count))


def request_bytes(server, x):
    """A request for the model `double` as it goes over the wire."""
    head = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": list(x.shape),
                                   "parameters": {"binary_data_size": x.nbytes}}]}).encode()
    return (f"POST /v2/models/double/infer HTTP/1.1\r\nHost: 127.0.0.1:{server.http}\r\n"
            f"Inference-Header-Content-Length: {len(head)}\r\nContent-Length: {len(head) + x.nbytes}\r\n\r\n"
            ).encode() + head + x.tobytes()


def resident_kib(server):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        return int(status.read().split("VmRSS:")[1].split()[0])


def test_clients_that_vanish_leave_nothing(server):
    whole = request_bytes(server, rows(8))
    for number in range(2 * VANISHING):
        if number == VANISHING:
            before = resident_kib(server)
        with socket.create_connection(("127.0.0.1", server.http)) as client:
            # Cut inside the head, inside the body, or after all of it, without reading the answer.
            client.sendall(whole[:(40, len(whole) - 20, len(whole))[number % 3]])
    np.testing.assert_array_equal(server.infer("double", {"x": rows(3)})["y"], 2 * rows(3))
    print(f"{VANISHING} more clients that vanish: {resident_kib(server) - before} KiB")
    assert resident_kib(server) < before + 8 * 1024


def test_a_client_that_sends_slowly_delays_nobody(server):
    whole = request_bytes(server, rows(2))
    with socket.create_connection(("127.0.0.1", server.http)) as client:
        head = whole.index(b"\r\n\r\n") + 4  # the server itself takes no heads in small pieces
        client.sendall(whole[:head])
        for first in range(head, len(whole), 20):
            client.sendall(whole[first:first + 20])
            np.testing.assert_array_equal(server.infer("double", {"x": rows(1)})["y"], 2 * rows(1))
        client.settimeout(60)
        assert client.recv(12) == b"HTTP/1.1 200"
