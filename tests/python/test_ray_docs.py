# SPDX-License-Identifier: Apache-2.0
"""docs/ray.md: its listings run to the letter, its tables are those of the code."""
import json
import os
import re
import socket
import subprocess

import numpy as np
import pytest

import ingot_command
import ray_cluster
from ray_cluster import in_ray

PAGE = (ingot_command.REPOSITORY / "docs" / "ray.md").read_text(encoding="utf-8")
DIGITS = ingot_command.DIGITS


def listing(kind):
    return re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL).group(1)


def test_the_table_of_fields_is_that_of_the_code():
    rows = in_ray("import json; from ingot.ray import _fields; print(json.dumps(_fields.FIELDS))")
    expected = ["| field | | |", "|---|---|---|", *(f"| `{path}` | {verdict} | {reason} |" for path, (verdict, reason)
                                                    in rows.items() if verdict != "inside")]
    found = re.search(r"<!-- fields -->\n(.*?)<!-- end of fields -->", PAGE, re.DOTALL).group(1).splitlines()
    assert found == expected


def test_the_table_of_arguments_is_that_of_the_code():
    names = in_ray("import json, ingot.ray; print(json.dumps(list(ingot.ray.Arguments.model_fields)))")
    table = PAGE.partition("| argument |")[2].partition("\n\n")[0]
    found = [name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
    assert found == names


def is_free(port):
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return one.connect_ex(("127.0.0.1", port)) != 0


def classify(cluster):
    images = np.load(DIGITS / "held_out_images.npy")[:40]
    labels = np.load(DIGITS / "held_out_labels.npy")[:40]
    scores = np.concatenate([cluster.infer("digits", {"image": images[at:at + 8]})["scores"]
                             for at in range(0, 40, 8)])
    return np.mean(np.argmax(scores, axis=1) == labels)


def test_the_first_listing_serves_digits(tmp_path):
    ray_cluster.needed()
    if not is_free(8000):
        pytest.skip("port 8000 is taken: the listing of docs/ray.md was NOT run")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ingot").symlink_to(ingot_command.binary())
    (tmp_path / "digits.onnx").symlink_to(DIGITS / "digits.onnx")
    path = f"{tmp_path / 'bin'}:{ray_cluster.DEPS / 'bin'}:{os.environ['PATH']}"
    with ray_cluster.Cluster(tmp_path / "unused", {"PATH": path},
                             command=["bash", "-e", "-c", listing("sh")], cwd=tmp_path) as cluster:
        cluster.http = 8000
        cluster.wait("ready", lambda: cluster.answers("/v2/models/digits/ready"))
        assert classify(cluster) > 0.9
        assert json.loads(cluster.call("/v2/models/digits/config")[0])["max_batch_size"] == 8


def test_the_config_file_adds_grpc_and_scaling(tmp_path):
    schema = in_ray("import json, sys, yaml; from ray.serve.schema import ServeDeploySchema; "
                    "found = ServeDeploySchema.model_validate(yaml.safe_load(sys.argv[1])); "
                    "import ingot.ray; ingot.ray.Arguments(**found.applications[0].args); "
                    "print(json.dumps([found.grpc_options.port, found.applications[0].import_path, "
                    "found.grpc_options.grpc_servicer_functions]))", listing("yaml"))
    assert schema == [9000, "ingot.ray:app", ["ingot.ray.add_inference_service"]]


def test_the_graph_of_ones_own_is_one(tmp_path):
    ray_cluster.needed()
    engine = tmp_path / "models" / "digits" / "1" / "model.engine"
    engine.parent.mkdir(parents=True)
    ingot_command.build(DIGITS / "digits.onnx", engine)
    done = subprocess.run([ray_cluster.PYTHON, "-c", listing("python") + "\nprint(type(app).__name__, engine.name)"],
                          cwd=tmp_path, env=ray_cluster.environment(), text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["Application", "engine"]
