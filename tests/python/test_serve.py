# SPDX-License-Identifier: Apache-2.0
"""`ingot serve`: real servers behind a real HAProxy, under load and faults. The rules of restarts
have their own tests (tests/workflow/serving), with a clock that is not real."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import ingot_command
import serving
import triton_server
from serving import DIGITS, Fleet, Load, children, publish, wait_for
from serving_models import looping, picking
from triton_server import Refused

KILLS = 20
LOST_DEVICES = int(os.environ.get("INGOT_LOST_DEVICES", "5"))  # 50 for a release
FAKE = pathlib.Path(__file__).with_name("fake_tritonserver.py")
NVIDIA_SMI = """#!/bin/sh
echo "GPU 0: NVIDIA A100 (UUID: GPU-aaaa)"
echo "  MIG 3g.20gb     Device  0: (UUID: MIG-1111)"
echo "  MIG 2g.10gb     Device  1: (UUID: MIG-2222)"
echo "GPU 1: NVIDIA A100 (UUID: GPU-bbbb)"
"""
CRASHING = """#!/bin/sh
case "$*" in *--http-port={port}*) exit 7;; esac
[ -f '{folder}/broken' ] && exit 8
exec '{server}' "$@"
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    serving.needed()
    path = tmp_path_factory.mktemp("digits") / "digits.engine"
    ingot_command.build(DIGITS / "digits.onnx", path)
    return path


@pytest.fixture(scope="module")
def repository(tmp_path_factory, engine):
    folder = tmp_path_factory.mktemp("repository") / "models"
    folder.mkdir()
    publish(engine, folder, "digits")
    return folder


@pytest.fixture(scope="module")
def images():
    return np.load(DIGITS / "held_out_images.npy")[:100]


@pytest.fixture(scope="module")
def scores(engine, images, tmp_path_factory):
    return ingot_command.run(engine, {"image": images}, tmp_path_factory.mktemp("alone"))["scores"]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory, repository):
    with Fleet(tmp_path_factory.mktemp("fleet"), repository) as running:
        yield running


def loads(fleet, folder, images, scores, **options):
    return [Load(folder / protocol, protocol, port, "digits", {"image": images}, {"scores": scores},
                 **options) for protocol, port in (("http", fleet.http), ("grpc", fleet.grpc))]


def test_both_protocols_get_what_the_engine_computes(fleet, images, scores, tmp_path):
    for protocol in ("http", "grpc"):
        got = triton_server.client(fleet.client(), protocol, "digits", {"image": images}, tmp_path,
                                   calls=50, threads=4)["scores"]
        np.testing.assert_allclose(got, scores, rtol=1e-5, atol=1e-5)


def test_metrics_of_all_workers_are_one_page(fleet, images):
    before = sum(float(v) for v in re.findall(r"nv_inference_request_success\{worker=.*\} (\S+)", fleet.metrics()))
    for row in range(10):
        fleet.client().infer("digits", {"image": images[row:row + 1]})
    page = fleet.metrics()
    assert before + 10 == sum(
        float(v) for v in re.findall(r"nv_inference_request_success\{worker=.*\} (\S+)", page))
    for worker in (0, 1):
        assert f'ingot_serve_worker_up{{worker="{worker}"}} 1' in page
        assert f'ingot_serve_worker_given_up{{worker="{worker}"}} 0' in page
        assert f'ingot_runs{{worker="{worker}",model="digits",version="1"}} ' in page
    kinds = re.findall(r"^# TYPE (\S+)", page, re.MULTILINE)
    assert len(kinds) == len(set(kinds)) > 10  # families stand together, once
    listed = re.findall(r"^\| `(ingot_\w+)` \|", (ingot_command.REPOSITORY / "docs/serving.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(kind for kind in kinds if kind.startswith("ingot_"))
    assert re.findall(r"^(?!#)[^{\n]*$", page, re.MULTILINE) == [""]  # each sample has its worker
    with pytest.raises(Refused) as refused:
        fleet.client().call("/other", port=fleet.metrics_port)
    assert refused.value.status == 404


def test_other_endpoints_are_closed_at_the_proxy_and_at_the_workers(fleet, images):
    client = fleet.client()
    [command] = [c for p, c in children(fleet.process.pid).items() if p == fleet.worker(0)]
    own_port = next(int(w.split("=")[1]) for w in command if w.startswith("--http-port="))
    for port in (fleet.http, own_port):
        for path, body in (("/v2/repository/index", b"{}"), ("/v2/repository/models/digits/unload", b"{}"),
                           ("/v2/systemsharedmemory/status", None), ("/v2/cudasharedmemory/status", None),
                           ("/v2/trace/setting", None), ("/v2/models/digits/trace/setting", None),
                           ("/v2/logging", None)):
            with pytest.raises(Refused) as refused:
                client.call(path, body, port=port)
            assert (refused.value.status, refused.value.text) == (
                403, "This API is restricted, expecting header 'ingot-key'")
    assert [w for w in command if w.endswith("-address=127.0.0.1")] == [
        "--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1"]


def test_workers_on_the_cpu_share_the_cores(fleet):
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        pytest.skip("there is one core")
    shares = [os.sched_getaffinity(fleet.worker(w)) for w in (0, 1)]
    assert shares[0] | shares[1] == cores and not shares[0] & shares[1]


def test_no_request_is_lost_when_workers_are_killed(repository, images, scores, tmp_path):
    slowest = 0
    with Fleet(tmp_path / "fleet", repository, "--restart-limit", "1000", "--healthy-after", "1") as fleet:
        running = loads(fleet, tmp_path, images, scores)
        with running[0], running[1]:
            for kill in range(KILLS):
                worker = kill % 2
                start = time.monotonic()
                fleet.kill(worker)
                slowest = max(slowest, time.monotonic() - start)
                fleet.wait_until_up([worker])
                time.sleep(1)  # a request is tried twice: it survives one death, not two in a row
            results = [load.stop() for load in running]
        print(f"READY again after at most {slowest:.2f} s; {results}")
        for result in results:
            assert result["failures"] == [] and result["answered"] > KILLS
        deaths = re.findall(r"ingot_serve_worker_deaths\{worker=\"\d\"\} (\d+)", fleet.metrics())
        assert sum(map(int, deaths)) == KILLS
        # Health between the kills has kept the delay short.
        assert "it starts again in 0.1 s" in fleet.wait_for_event("ended by signal 9", KILLS)


def with_model(repository, tmp_path, name, model, configuration=""):
    """The repository with one more ONNX model, copied in by hand."""
    models = tmp_path / "models"
    shutil.copytree(repository, models)
    (models / name / "1").mkdir(parents=True)
    model.rename(models / name / "1" / "model.onnx")
    (models / name / "config.pbtxt").write_text(f'backend: "ingot"\ninstance_group [{{ kind: KIND_CPU }}]\n{configuration}')
    return models


def server_that_loses_its_device(tmp_path):
    """A program that is the server, but a run that fails has lost the device."""
    library, lost, server = tmp_path / "lost_device.so", tmp_path / "lost", tmp_path / "server.sh"
    source = ingot_command.REPOSITORY / "tests" / "triton" / "programs" / "lost_device.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    server.write_text(f"#!/bin/sh\nLD_PRELOAD='{library}' INGOT_LOST='{lost}' exec '{triton_server.SERVER}' \"$@\"\n")
    server.chmod(0o755)
    lost.touch()
    return server


def test_lost_devices_cost_only_the_batches_that_hit_them(repository, images, scores, tmp_path):
    """A request that loses its worker's device, alone or beside others, again and again: it gets 500, one worker ends
    with 86 each time, and everybody else is answered."""
    models = with_model(repository, tmp_path, "pick", picking(tmp_path / "pick.onnx"))
    server = server_that_loses_its_device(tmp_path)
    slowest = 0.0
    with Fleet(tmp_path / "fleet", models, "--restart-limit", "1000", "--healthy-after", "1",
               tritonserver=server) as fleet:
        running = loads(fleet, tmp_path, images, scores)
        with running[0], running[1]:
            for death in range(LOST_DEVICES):
                with pytest.raises(Refused) as refused:
                    fleet.client().infer("pick", {"i": np.array([[7]], np.int64)})
                assert refused.value.status == 500, refused.value.text
                start = time.monotonic()
                fleet.wait_for_event(r"ended with exit code 86 \(device lost\)", death + 1)
                fleet.wait_for_event(r"worker \d is up", 2 + death + 1)
                fleet.wait_until_up([0, 1])
                slowest = max(slowest, time.monotonic() - start)
                time.sleep(1)  # as above
            results = [load.stop() for load in running]
        print(f"{LOST_DEVICES} lost devices; READY again after at most {slowest:.2f} s; {results}")
        for result in results:
            assert result["failures"] == [] and result["answered"] > LOST_DEVICES
        assert len([e for e in fleet.events() if "ended with exit code 86" in e]) == LOST_DEVICES


def test_a_poisonous_request_takes_its_own_batch_alone(repository, tmp_path):
    """Sent again and again among others: each time one worker restarts and never two, only requests of that batch get 500."""
    models = with_model(repository, tmp_path, "pick", picking(tmp_path / "pick.onnx"),
                        "max_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 300000 }\n")
    poison, neighbours, failed = np.array([[7]], np.int64), 11, []
    with Fleet(tmp_path / "fleet", models, "--restart-limit", "1000", "--healthy-after", "1",
               tritonserver=server_that_loses_its_device(tmp_path)) as fleet:
        def status(i):
            try:
                found = fleet.client().infer("pick", {"i": poison if i is None else np.array([[i % 3]], np.int64)})["y"]
                return 200, float(found.ravel()[0])
            except Refused as refused:
                return refused.status, refused.text

        right = [status(i)[1] for i in range(3)]
        for death in range(3):
            with concurrent.futures.ThreadPoolExecutor(neighbours + 1) as pool:
                poisoned, *others = pool.map(status, [None, *range(neighbours)])
            assert poisoned[0] == 500, poisoned
            failed += [one for one in others if one[0] != 200]
            assert all(one == (200, right[i % 3]) for i, one in enumerate(others) if one[0] == 200), others
            fleet.wait_for_event(r"ended with exit code 86 \(device lost\)", death + 1)
            fleet.wait_for_event(r"worker \d is up", 2 + death + 1)
            fleet.wait_until_up([0, 1])
            time.sleep(1)  # of health
        assert len([e for e in fleet.events() if "ended with" in e]) == 3, fleet.events()
    print(f"{len(failed)} neighbours of 3 poisonous requests in their batches")
    assert 0 < len(failed) <= 3 * 7  # batches were shared, and are of 8 rows at most
    assert {one[0] for one in failed} == {500}, failed


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_request_that_does_not_end_costs_one_worker(repository, tmp_path, protocol):
    """It is told so, and is not sent to another worker, which it would end too."""
    models = with_model(repository, tmp_path, "loop", looping(tmp_path / "loop.onnx"),
                        'parameters { key: "hang_timeout_ms" value: { string_value: "1000" } }')
    few = {"count": np.array([3], np.int64), "x": np.zeros(2, np.float32)}
    with Fleet(tmp_path / "fleet", models, "--healthy-after", "1") as fleet:
        def infer(inputs):
            if protocol == "http":
                return fleet.client().infer("loop", inputs)["y"]
            return triton_server.client(fleet, "grpc", "loop", inputs, tmp_path)["y"]

        for death in range(2):
            with pytest.raises((Refused, AssertionError), match="a run has not ended after 1000 ms"):
                infer(few | {"count": np.array([2**62], np.int64)})
            np.testing.assert_array_equal(infer(few), [3, 3])
            fleet.wait_for_event("ended with exit code 87", death + 1)
            fleet.wait_for_event(r"worker \d is up", 2 + death + 1)
            fleet.wait_until_up([0, 1])
        time.sleep(1.5)  # another worker's run would have reached its limit
        assert len([e for e in fleet.events() if "ended with" in e]) == 2, fleet.events()


def test_a_broken_version_copied_in_by_hand_is_not_served(fleet, repository, images, scores):
    """Not even by servers that start later: the configuration names the version."""
    (repository / "digits" / "7").mkdir()
    (repository / "digits" / "7" / "model.engine").write_bytes(b"no engine")
    try:
        fleet.kill(0)
        fleet.wait_until_up([0])
        for row in range(8):
            got = fleet.client().infer("digits", {"image": images[row:row + 1]})["scores"]
            np.testing.assert_allclose(got, scores[row:row + 1], rtol=1e-5, atol=1e-5)
        assert fleet.client().answers("/v2/models/digits/versions/1/ready")
    finally:
        serving.triton_server.shutil.rmtree(repository / "digits" / "7")


def test_the_proxy_is_started_again_too(fleet, images):
    process, _ = fleet.proxy()
    os.kill(process, signal.SIGKILL)
    fleet.wait_for_event("the proxy ended by signal 9; it starts again in 0.1 s")
    wait_for(lambda: fleet.client().answers("/v2/models/digits/ready"), fleet.said)
    fleet.client().infer("digits", {"image": images[:1]})


def test_a_worker_that_cannot_start_is_given_up_and_the_last_ends_all(repository, images, tmp_path):
    """A server that crashes at every start: worker 1 always, worker 0 once the file is there."""
    [port] = triton_server.free_ports(1)
    base = 20000 + port % 10000
    server = tmp_path / "server.sh"
    server.write_text(CRASHING.format(port=base + 3, folder=tmp_path, server=triton_server.SERVER))
    server.chmod(0o755)
    fleet = Fleet(tmp_path / "fleet", repository, "--restart-limit", "4", "--restart-window", "200",
                  "--worker-port", base,
                  tritonserver=server)
    try:
        fleet.start()
        fleet.wait_for_event("worker 1 ended with exit code 7; it is given up")
        assert [e.split("; ")[1] for e in fleet.events() if "worker 1 ended" in e] == [
            "it starts again in 0.1 s", "it starts again in 0.2 s", "it starts again in 0.4 s",
            "it is given up"]
        fleet.wait_for_event("ready:")
        for row in range(10):  # by the other one
            fleet.client().infer("digits", {"image": images[row:row + 1]})
        page = fleet.metrics()
        assert 'ingot_serve_worker_given_up{worker="1"} 1' in page
        assert 'ingot_serve_worker_up{worker="1"} 0' in page
        assert 'ingot_serve_worker_deaths{worker="1"} 4' in page
        _, folder = fleet.proxy()
        assert re.search(r"server w1 .* disabled", (folder / "haproxy.cfg").read_text())
        (tmp_path / "broken").touch()
        os.kill(fleet.worker(0), signal.SIGKILL)
        assert fleet.process.wait(timeout=serving.WAIT_SECONDS) == 1
        assert ("ingot serve: error: no worker is left: each died 4 times within 200 s; what they "
                "say is above") in fleet.said()
        assert not folder.exists()
    finally:
        fleet.__exit__()


def test_a_worker_that_hangs_is_killed_and_its_requests_are_answered(repository, images, scores, tmp_path):
    with Fleet(tmp_path / "fleet", repository, "--silence", "2") as fleet:
        running = loads(fleet, tmp_path, images, scores)
        with running[0], running[1]:
            os.kill(fleet.worker(1), signal.SIGSTOP)
            fleet.wait_for_event("worker 1 has not answered for 2 s and is killed")
            fleet.wait_for_event("worker 1 is up", 2)
            results = [load.stop() for load in running]
        for result in results:
            assert result["failures"] == [] and result["answered"] > 0


def test_a_new_version_is_taken_up_without_losing_a_request(engine, images, scores, tmp_path):
    repository = tmp_path / "models"
    repository.mkdir()
    publish(engine, repository, "digits")
    with Fleet(tmp_path / "fleet", repository) as fleet:
        running = loads(fleet, tmp_path, images, scores)
        with running[0], running[1]:
            publish(engine, repository, "digits")
            fleet.process.send_signal(signal.SIGUSR1)
            fleet.wait_for_event("each worker has started anew")
            fleet.wait_until_up([0, 1])
            results = [load.stop() for load in running]
        for result in results:
            assert result["failures"] == [] and result["answered"] > 0
        for worker in (0, 1):
            assert len([e for e in fleet.events() if f"worker {worker} is up" in e]) == 2
            [command] = [c for p, c in children(fleet.process.pid).items() if p == fleet.worker(worker)]
            port = next(int(w.split("=")[1]) for w in command if w.startswith("--http-port="))
            assert fleet.client().call("/v2/models/digits/versions/2/ready", port=port)[0] == b""
        assert 'ingot_serve_worker_deaths{worker="0"} 0' in fleet.metrics()  # asked for, no death


@pytest.mark.parametrize("path, body, status, sent", [
    ("500", 10, 500, 1),  # a batch that has hurt a device is not tried again
    ("503", 10, 503, 2),  # a full queue, or a device that is lost: one more worker
    ("die", 10, 502, 2),  # a request that ends its process ends two, never a third
    ("die", 5000, 502, 1)])  # too large to be kept for another worker
def test_a_request_is_sent_at_most_twice(repository, tmp_path, path, body, status, sent):
    """Three workers that note what they get, so that a third could be tried."""
    server = tmp_path / "server.sh"
    server.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{FAKE}' \"$@\"\n")
    server.chmod(0o755)
    with Fleet(tmp_path / "fleet", repository, f"--server-option=--notes={tmp_path}", "--retry-bytes", "1000",
               workers=3, tritonserver=server) as fleet:
        with pytest.raises(Refused) as refused:
            fleet.client().call(f"/v2/{path}", b"x" * body)
        assert refused.value.status == status
        notes = (tmp_path / path).read_text().split()
        assert len(notes) == len(set(notes)) == sent
        fleet.wait_until_up(range(3))
        for event in range(sent if path == "die" else 0):
            fleet.wait_for_event(r"ended with exit code 86 \(device lost\); it starts again in 0.1 s", event + 1)


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "Application/X-WWW-Form-Urlencoded; charset=utf-8"])
def test_a_large_body_that_is_sent_as_a_form_ends_no_server(fleet, images, kind):
    """As curl and urllib send it where no type is given; the packaged server crashes at it by itself."""
    deaths = re.findall(r"ingot_serve_worker_deaths\{.*", fleet.metrics())
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            fleet.client().call("/v2/models/digits/infer", b"a=1&" * (5 << 18), {"Content-Type": kind})
        assert (refused.value.status, refused.value.text) == (500, "failed to parse the request JSON buffer: Invalid value. at 0")
    fleet.client().infer("digits", {"image": images[:1]})
    assert re.findall(r"ingot_serve_worker_deaths\{.*", fleet.metrics()) == deaths


def test_nothing_is_lost_when_it_is_told_to_stop(repository, images, scores, tmp_path):
    with Fleet(tmp_path / "fleet", repository) as fleet:
        started = children(fleet.process.pid)
        running = loads(fleet, tmp_path, images, scores, until_refused=True)
        with running[0], running[1]:
            time.sleep(1)
            fleet.process.send_signal(signal.SIGTERM)
            assert fleet.process.wait(timeout=serving.WAIT_SECONDS) == 0, fleet.said()
            time.sleep(0.5)
            results = [load.stop() for load in running]
        for result in results:
            assert result["failures"] == [] and result["answered"] > 0
            assert result["refused"] == 4  # each thread was told by a closed port
        assert len(started) == 3
        wait_for(lambda: not any(pathlib.Path(f"/proc/{p}").exists() for p in started), fleet.said)


def test_no_program_outlives_a_launcher_that_is_killed(repository, tmp_path):
    with Fleet(tmp_path / "fleet", repository, workers=1) as fleet:
        started = children(fleet.process.pid)
        assert len(started) == 2
        fleet.process.kill()
        fleet.process.wait()
        wait_for(lambda: not any(pathlib.Path(f"/proc/{p}").exists() for p in started), fleet.said)


def test_endpoints_open_by_name(repository, engine, tmp_path):
    with Fleet(tmp_path / "fleet", repository, "--open", "model-repository", workers=1) as fleet:
        url = f"http://127.0.0.1:{fleet.http}"
        assert publish(engine, repository, "second", "--load", url)["loaded"] == [url]
        assert fleet.client().answers("/v2/models/second/ready")
        with pytest.raises(Refused) as refused:
            fleet.client().call("/v2/logging")
        assert refused.value.status == 403


def test_one_server_for_each_gpu_or_slice_of_one(repository, tmp_path):
    """A list of GPUs as the driver's program prints it; nothing is started."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "nvidia-smi").write_text(NVIDIA_SMI)
    (programs / "nvidia-smi").chmod(0o755)

    def devices(environment, *options):
        out = tmp_path / "out"
        done = subprocess.run(
            [ingot_command.binary(), "serve", repository, "--write-only", out, "--tritonserver",
             triton_server.SERVER, "--haproxy", serving.HAPROXY, *options], text=True,
            capture_output=True, timeout=60,
            env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"} | environment)
        assert done.returncode == 0, done.stderr
        count = int(re.search(r"worker-(\d+).sh$", done.stdout.strip()).group(1)) + 1
        return [re.search(r"CUDA_VISIBLE_DEVICES='(.*?)'", (out / f"worker-{i}.sh").read_text()).group(1)
                for i in range(count)]

    assert devices({}) == ["MIG-1111", "MIG-2222", "GPU-bbbb"]
    assert devices({"CUDA_VISIBLE_DEVICES": "1,0"}) == ["1", "0"]
    assert devices({"CUDA_VISIBLE_DEVICES": ""}) == [""]
    assert devices({}, "--devices", "MIG-2222,1") == ["MIG-2222", "1"]
    assert devices({}, "--workers", "3") == ["", "", ""]


def test_options_reach_the_files_that_are_written(repository, tmp_path):
    backends = triton_server.backends(tmp_path / "backends")
    out = tmp_path / "out"
    common = [ingot_command.binary(), "serve", repository, "--workers", "2", "--write-only", out,
              "--tritonserver", triton_server.SERVER, "--haproxy", serving.HAPROXY]
    subprocess.run(common, check=True, capture_output=True, timeout=60)
    usual = (out / "haproxy.cfg").read_text()
    for line in ("    bind 127.0.0.1:8000", "    bind 127.0.0.1:8001 proto h2", "    bind 127.0.0.1:8002",
                 "    hard-stop-after 30s", "    http-request disable-l7-retry if { req.body_size gt 1048576 }",
                 "    retries 1", "    server w1 127.0.0.1:18003 check",
                 "    server w1 127.0.0.1:18004 proto h2 check check-proto h1 port 18003"):
        assert line in usual.splitlines()
    subprocess.run([*common, "--address", "0.0.0.0", "--http-port", "80", "--grpc-port", "81",
                    "--metrics-port", "82", "--worker-port", "5000", "--retry-bytes", "1000", "--drain", "7",
                    "--backends", backends, "--server-option=--log-verbose=1"],
                   check=True, capture_output=True, timeout=60)
    proxy = (out / "haproxy.cfg").read_text()
    for line in ("    bind 0.0.0.0:80", "    bind 0.0.0.0:81 proto h2", "    bind 0.0.0.0:82",
                 "    hard-stop-after 7s", "    http-request disable-l7-retry if { req.body_size gt 1000 }",
                 "    server w1 127.0.0.1:5003 check"):
        assert line in proxy.splitlines()
    worker = (out / "worker-1.sh").read_text()
    for word in ("--log-verbose=1", f"--backend-directory={backends}", "--exit-timeout-secs=7",
                 "--http-port=5003", "--http-address=127.0.0.1"):
        assert f"'{word}'" in worker
    checked = subprocess.run([serving.HAPROXY, "-c", "-f", out / "haproxy.cfg"], capture_output=True,
                             text=True, timeout=60)
    assert checked.returncode == 0, checked.stderr
    for file in out.iterdir():  # they hold the key of the closed endpoints
        assert file.is_dir() or file.name in ("haproxy.cfg", "metrics.lua") or file.stat().st_mode & 0o77 == 0
    assert out.stat().st_mode & 0o77 == 0


def test_wrong_command_lines_are_explained(repository, tmp_path):
    busy = triton_server.socket.socket()
    busy.bind(("127.0.0.1", 0))
    busy.listen()
    port = busy.getsockname()[1]
    common = ["--tritonserver", triton_server.SERVER, "--haproxy", serving.HAPROXY, "--workers", "1"]
    for words, text, code in (
            ([tmp_path / "none", *common], "none: there is no such model repository; ingot export-triton fills one", 1),
            ([repository, "--tritonserver", "/no/server"], "/no/server is no program that can be run; name it by --tritonserver", 1),
            ([repository, "--tritonserver", triton_server.SERVER, "--haproxy", "/no/proxy"],
             "/no/proxy is no program that can be run; name it by --haproxy, or install the package haproxy", 1),
            ([repository, *common, "--http-port", port], f"--http-port {port}: the port is in use on 127.0.0.1; name another", 1),
            ([repository, *common, "--backends", tmp_path / "none"], "none: there is no such folder", 1),
            ([repository, *common, "--devices", "0"], "--workers and --devices are given", 1),
            ([repository, *common, "--open", "everything"],
             "--open=everything: expected model-repository, shared-memory, trace or logging", 2)):
        done = subprocess.run([ingot_command.binary(), "serve", *map(str, words)], text=True,
                              capture_output=True, timeout=60)
        assert done.returncode == code and text in done.stderr, (words, done.stderr)
    busy.close()
