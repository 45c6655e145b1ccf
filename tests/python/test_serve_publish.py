# SPDX-License-Identifier: Apache-2.0
"""`ingot export-triton`: versions get into a model repository whole, checked, or not at all."""
import json
import platform
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnx.helper as oh
import pytest

import ingot_command
import killed_calls
import serving
import triton_server
from serving import DIGITS, publish, publish_fails
from serving_models import FLOAT, scaled

sys.path.insert(0, str(ingot_command.REPOSITORY / "tests" / "data"))
import make_engines  # noqa: E402


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "place" / "models"
    folder.mkdir(parents=True)
    return folder


def files(folder):
    """{relative path: bytes} of all files below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def served(repository, name):
    """The version that the configuration serves."""
    text = (repository / name / "config.pbtxt").read_text()
    return int(re.search(r"versions: \[ (\d+) \]", text).group(1))


def test_a_version_is_published_with_its_configuration(digits_engine, repository):
    told = publish(digits_engine, repository, "digits")
    assert told == {"model": "digits", "version": 1, "path": f"{repository}/digits/1",
                    "published": True, "served_before": None, "max_batch_size": 8,
                    "buckets": [1, 2, 4, 8], "removed_versions": [], "loaded": []}
    assert (repository / "digits" / "1" / "model.engine").read_bytes() == digits_engine.read_bytes()
    assert (repository / "digits" / "config.pbtxt").read_text() == """\
# Written by ingot export-triton; it serves version 1.
name: "digits"
backend: "ingot"
max_batch_size: 8
input [
  { name: "image" data_type: TYPE_FP32 dims: [ 1, 8, 8 ] }
]
output [
  { name: "scores" data_type: TYPE_FP32 dims: [ 10 ] }
]
version_policy { specific { versions: [ 1 ] } }
dynamic_batching { }
parameters { key: "buckets" value { string_value: "1,2,4,8" } }
"""
    assert sorted(p.name for p in repository.parent.iterdir()) == ["models"]  # no staging is left


def test_every_option_is_in_the_configuration(repository, tmp_path):
    model = scaled(tmp_path / "double.onnx", 2)
    told = publish(model, repository, "double", "--max-batch", "6", "--buckets", "2,6",
                   "--queue-delay-us", "300", "--instances", "2", "--cpu", "--version", "40",
                   "--warm-up")
    assert (told["version"], told["max_batch_size"], told["buckets"]) == (40, 6, [2, 6])
    text = (repository / "double" / "config.pbtxt").read_text()
    for line in ("max_batch_size: 6", "dynamic_batching { max_queue_delay_microseconds: 300 }",
                 "instance_group [ { kind: KIND_CPU count: 2 } ]",
                 'parameters { key: "buckets" value { string_value: "2,6" } }',
                 '  inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } }'):
        assert line in text.splitlines()
    triton_server.needed()
    with triton_server.Server(tmp_path / "triton") as server:
        shutil.copytree(repository, server.repository, dirs_exist_ok=True)
        server.load("double")
        rows = np.arange(12, dtype=np.float32).reshape(3, 4)
        np.testing.assert_array_equal(server.infer("double", {"x": rows})["y"], 2 * rows)
        config = server.config("double")
        assert config["instance_group"][0]["count"] == 2
        assert config["instance_group"][0]["kind"] == "KIND_CPU"
        assert config["dynamic_batching"]["max_queue_delay_microseconds"] == 300
        assert config["model_warmup"][0]["name"] == "one request"


def test_a_model_that_takes_no_batches_is_served_without(repository, tmp_path):
    graph = oh.make_graph([oh.make_node("Neg", ["x"], ["y"])], "g",
                          [oh.make_tensor_value_info("x", FLOAT, [2, 3])],
                          [oh.make_tensor_value_info("y", FLOAT, [2, 3])])
    model = tmp_path / "fixed.onnx"
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8), model)
    assert publish(model, repository, "fixed")["max_batch_size"] == 0
    text = (repository / "fixed" / "config.pbtxt").read_text()
    assert "max_batch_size: 0\n" in text and "dims: [ 2, 3 ]" in text
    assert "buckets" not in text and "dynamic_batching" not in text
    _, error = publish_fails(model, repository, "fixed", "--max-batch", "4")
    assert ("--max-batch: the model takes no batches, since not every input and output begins with "
            "a size that is open") in error


def test_a_changed_interface_is_refused_unless_it_is_allowed(repository, tmp_path):
    publish(scaled(tmp_path / "four.onnx", 2), repository, "m")
    five = scaled(tmp_path / "five.onnx", 2, size=5)
    before = files(repository)
    code, error = publish_fails(five, repository, "m")
    assert code == 1
    assert ("version 1 is served now, and clients would notice: input 'x' was TYPE_FP32[-1,4] and is "
            "TYPE_FP32[-1,5]; output 'y' was TYPE_FP32[-1,4] and is TYPE_FP32[-1,5]. "
            "--allow-changed-interface publishes nevertheless") in error
    assert files(repository) == before
    told = publish(five, repository, "m", "--allow-changed-interface")
    assert (told["version"], told["served_before"], served(repository, "m")) == (2, 1, 2)


def test_old_versions_are_pruned_and_dry_runs_change_nothing(digits_engine, repository):
    for version in (1, 2, 3):
        assert publish(digits_engine, repository, "digits")["version"] == version
    before = files(repository)
    told = publish(digits_engine, repository, "digits", "--dry-run", "--prune", "1")
    assert (told["version"], told["published"], told["removed_versions"]) == (4, False, [])
    assert files(repository) == before
    assert publish(digits_engine, repository, "digits", "--prune", "2")["removed_versions"] == [1, 2]
    assert sorted(p.name for p in (repository / "digits").iterdir()) == ["3", "4", "config.pbtxt"]
    _, error = publish_fails(digits_engine, repository, "digits", "--version", "3")
    assert "digits/3 exists; leave --version out for the next number" in error


def test_the_configuration_of_somebody_else_stays(digits_engine, repository):
    (repository / "digits").mkdir()
    config = repository / "digits" / "config.pbtxt"
    config.write_text('backend: "ingot"\n')
    _, error = publish_fails(digits_engine, repository, "digits")
    assert ("config.pbtxt was not written by ingot export-triton; --replace-config replaces it"
            in error)
    assert config.read_text() == 'backend: "ingot"\n'
    publish(digits_engine, repository, "digits", "--replace-config")
    assert served(repository, "digits") == 1


@pytest.mark.parametrize("kind, text", [
    ("truncated", "it is truncated, copy it again"), ("damaged", "damaged"),
    ("foreign", ""), ("empty", ""), ("newer", "engine format 99"), ("older", "engine format 0")])
def test_broken_and_foreign_engines_are_refused(digits_engine, repository, tmp_path, kind, text):
    publish(digits_engine, repository, "digits")
    before = files(repository)
    data = digits_engine.read_bytes()
    broken = tmp_path / "broken.engine"
    broken.write_bytes({"truncated": data[:len(data) // 2], "empty": b"",
                        "damaged": data[:9000] + bytes([data[9000] ^ 1]) + data[9001:],
                        "newer": data[:8] + bytes([99]) + data[9:], "older": data[:8] + bytes([0]) + data[9:],
                        "foreign": b"ftrt" + bytes(range(256)) * 40}[kind])
    code, error = publish_fails(broken, repository, "digits", "--allow-changed-interface")
    assert code == 1 and "broken.engine" in error and text in error
    assert files(repository) == before
    assert sorted(p.name for p in repository.parent.iterdir()) == ["models"]
    publish_fails(broken, repository, "new_model")
    assert sorted(p.name for p in repository.iterdir()) == ["digits"]


@pytest.mark.parametrize("kind", ["plain", "half", "profiles"])
def test_engines_of_released_formats_are_published(repository, kind):
    engine = make_engines.FOLDER / f"format1_{kind}.engine"
    publish(engine, repository, kind)
    assert (repository / kind / "1" / "model.engine").read_bytes() == engine.read_bytes()


def test_a_model_that_fails_in_its_run_is_not_published(repository, tmp_path):
    """The engine loads, and only a batch of 3, 6, ... rows can be cut into rows of 12."""
    graph = oh.make_graph(
        [oh.make_node("Reshape", ["x", "s"], ["y"])], "g",
        [oh.make_tensor_value_info("x", FLOAT, ["n", 4])],
        [oh.make_tensor_value_info("y", FLOAT, ["m", 12])],
        [onnx.numpy_helper.from_array(np.array([-1, 12], np.int64), "s")])
    model = tmp_path / "three.onnx"
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8), model)
    _, error = publish_fails(model, repository, "three", "--max-batch", "4")
    assert "is not published: its check ended with exit code 1 and says:" in error, error
    assert list(repository.iterdir()) == []


def test_publishers_at_once_get_a_number_each(digits_engine, repository):
    command = [ingot_command.binary(), "export-triton", digits_engine, "--repository", repository, "--name",
               "digits", "--json"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(5)]
    told = [json.loads(p.communicate(timeout=300)[0]) for p in running]
    assert sorted(t["version"] for t in told) == [1, 2, 3, 4, 5]
    assert sorted(t["served_before"] or 0 for t in told) == [0, 1, 2, 3, 4]
    assert served(repository, "digits") == 5
    for version in range(1, 6):
        assert (repository / "digits" / str(version) / "model.engine").read_bytes() == digits_engine.read_bytes()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="system calls have other numbers")
@pytest.mark.parametrize("versions_before", [0, 1])
def test_a_kill_at_any_change_of_a_file_leaves_the_old_or_the_new(digits_engine, tmp_path, versions_before):
    """It is killed before the first such call, then before the second, until it is through."""
    old, kills, new = tmp_path / "old", 0, 0
    old.mkdir()
    for _ in range(versions_before):
        publish(digits_engine, old, "digits")
    for at in range(1000):
        place = tmp_path / str(at)
        repository = place / "models"
        repository.mkdir(parents=True)
        shutil.copytree(old, repository, dirs_exist_ok=True)
        _, killed = killed_calls.run(
            [ingot_command.binary(), "export-triton", digits_engine, "--repository", repository, "--name",
             "digits", "--buckets", "1"], at)
        state = files(repository)
        numbers = sorted(int(p.name) for p in repository.glob("digits/*") if p.name.isdigit())
        if (repository / "digits" / "config.pbtxt").exists():
            now = served(repository, "digits")
            assert now in numbers
            assert state[f"digits/{now}/model.engine"] == digits_engine.read_bytes()
        else:
            assert versions_before == 0 and not state  # nothing that a server would look at
            now = 0
        assert now in (versions_before, versions_before + 1)
        new += now == versions_before + 1
        kills += killed
        if not killed:
            assert now == versions_before + 1
            break
        if at % 6 == 0:  # the next publisher is not disturbed by what is left
            publish(digits_engine, repository, "digits")
            assert [p.name for p in place.rglob(".ingot-*")] == []
    assert kills >= 10 and new >= 1


@pytest.mark.skipif(platform.machine() != "x86_64", reason="system calls have other numbers")
def test_a_disk_that_is_full_from_any_call_on_leaves_the_old_version(digits_engine, tmp_path):
    """It is full from the first call on that needs room, then from the second, until one goes through."""
    old, refusals = tmp_path / "old", 0
    old.mkdir()
    publish(digits_engine, old, "digits")
    before = files(old)
    for at in range(1000):
        repository = tmp_path / str(at) / "models"
        repository.mkdir(parents=True)
        shutil.copytree(old, repository, dirs_exist_ok=True)
        log = tmp_path / "log"
        refused, code = killed_calls.run_on_a_full_disk(
            [ingot_command.binary(), "export-triton", digits_engine, "--repository", repository, "--name",
             "digits", "--buckets", "1"], at, log)
        now = served(repository, "digits")
        assert files(repository)[f"digits/{now}/model.engine"] == digits_engine.read_bytes()
        if refused == 0:
            assert (code, now) == (0, 2)
            break
        refusals += 1
        if now == 1:
            assert code == 1, log.read_text()
            assert "No space left on device" in log.read_text()
            found = files(repository)
            assert {name: found[name] for name in before} == before
    assert refusals >= 5


def test_loading_waits_until_ready_and_restores_on_failure(digits_engine, tmp_path):
    triton_server.needed()
    with triton_server.Server(tmp_path / "good") as good, \
            triton_server.Server(tmp_path / "bare", names=()) as bare:
        url, other = (f"http://127.0.0.1:{s.http}" for s in (good, bare))
        repository = good.repository
        told = publish(digits_engine, repository, "digits", "--load", url)
        assert told["loaded"] == [url] and good.answers("/v2/models/digits/versions/1/ready")
        images = np.load(DIGITS / "held_out_images.npy")[:4]
        scores = good.infer("digits", {"image": images})["scores"]
        publish(digits_engine, repository, "digits", "--load", url)
        assert good.answers("/v2/models/digits/versions/2/ready")
        assert not good.answers("/v2/models/digits/versions/1/ready")
        # The second server has no such backend: both serve on what they had.
        bare.repository.rmdir()
        bare.repository.symlink_to(repository)
        before = files(repository)
        code, error = publish_fails(digits_engine, repository, "digits", "--load", url, "--load", other)
        assert code == 1
        assert f"{other} does not load digits: 400 " in error and "ingot" in error
        assert "; version 2 is served again" in error
        assert files(repository) == before
        assert good.answers("/v2/models/digits/versions/2/ready")
        np.testing.assert_array_equal(good.infer("digits", {"image": images})["scores"], scores)
        # A model that was not there is not there again.
        _, error = publish_fails(digits_engine, repository, "twin", "--load", other)
        assert "; the model is removed again" in error
        assert files(repository) == before
        [port] = triton_server.free_ports(1)
        _, error = publish_fails(digits_engine, repository, "twin", "--load", f"http://127.0.0.1:{port}")
        assert f"127.0.0.1:{port}: no connection: Connection refused; the model is removed" in error
        assert not (repository / "twin").exists()


def test_wrong_command_lines_are_explained(digits_engine, repository, tmp_path):
    for options, text in (
            (["--name", "m"], "where should the model go? give --repository DIR"),
            (["--repository", repository], "how is the model called there? give --name NAME"),
            (["--repository", tmp_path / "none", "--name", "m"], "none: there is no such folder; make it first"),
            (["--repository", repository, "--name", "../m"],
             "--name '../m': letters, digits, '_', '-' and '.', not first, are expected"),
            (["--repository", repository, "--name", "m", "--cpu", "--gpus", "0"],
             "--cpu and --gpus are given: leave one of them out"),
            (["--repository", repository, "--name", "m", "--gpus", "x"], "'x': expected numbers joined by commas"),
            (["--repository", repository, "--name", "m", "--buckets", "4,2"],
             "--buckets 4,2: growing numbers of 1 to the batch limit, 8, joined by commas are expected"),
            (["--repository", repository, "--name", "m", "--load", "ftp://x"],
             "'ftp://x': http://HOST:PORT is expected")):
        done = subprocess.run([ingot_command.binary(), "export-triton", digits_engine, *options], text=True,
                              capture_output=True, timeout=120)
        assert done.returncode == 1 and text in done.stderr, (options, done.stderr)
    assert list(repository.iterdir()) == []


def test_a_check_needs_no_repository(digits_engine, tmp_path):
    assert ingot_command.call("export-triton", digits_engine, "--check-only") == "runs with every row count\n"
    done = subprocess.run([ingot_command.binary(), "export-triton", digits_engine, "--check-only", "--gpus", "all"],
                          text=True, capture_output=True, timeout=120)
    if not serving.pathlib.Path("/dev/nvidia0").exists():
        assert done.returncode == 1 and "--gpus: the model cannot be checked: " in done.stderr
    publish(digits_engine, tmp_path, "cpu", "--cpu")
    assert "instance_group [ { kind: KIND_CPU } ]" in (tmp_path / "cpu" / "config.pbtxt").read_text()


def test_staging_must_be_in_the_file_system_of_the_repository(digits_engine, repository, tmp_path):
    staging = tmp_path / "staging"
    staging.mkdir()
    publish(digits_engine, repository, "digits", "--staging", staging)
    assert list(staging.iterdir()) == [] and served(repository, "digits") == 1
    shared = serving.pathlib.Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == repository.stat().st_dev:
        pytest.skip("there is no second file system here")
    _, error = publish_fails(digits_engine, repository, "other", "--staging", shared)
    assert "are in two file systems: name a folder outside of the repository" in error
    assert not list(shared.glob(".ingot-other-*"))
