# SPDX-License-Identifier: Apache-2.0
"""config.pbtxt as ingot.ray reads it: every field has a verdict, the parameters have those of the
backend for Triton Inference Server, and what cannot be had is refused by name."""
import json
import re

import ingot_command
from ray_cluster import in_ray

FIELDS = ingot_command.REPOSITORY / "plugins" / "triton" / "fields.def"
FIELD = re.compile(r'FIELD\((\w+), "(.*?)", (\w+),\s*"(.*?)"\)', re.DOTALL)


def test_parameters_mean_the_same_in_both_front_ends():
    tables = in_ray("import json; from ingot.ray import _fields as f; "
                    "print(json.dumps({'Parameter': f.PARAMETERS, 'Accelerator': f.ACCELERATOR}))")
    words = {"Honoured": "honoured", "Accepted": "no effect", "Refused": "refused"}
    rows = FIELD.findall(FIELDS.read_text(encoding="utf-8"))
    for place, table in tables.items():
        expected = {name: [words[verdict], reason] for found, name, verdict, reason in rows if found == place}
        assert table == expected and len(expected) > 10


WALK = """
import json
from ingot.ray import _fields
from tritonclient.grpc import model_config_pb2
found = []
def walk(kind, prefix):
    for field in kind.fields:
        path = prefix + field.name
        verdict = _fields.FIELDS.get(path, ("missing", ""))[0]
        found.append([path, verdict])
        if verdict == "inside":
            walk(field.message_type, path + ".")
walk(model_config_pb2.ModelConfig.DESCRIPTOR, "")
print(json.dumps([found, list(_fields.FIELDS)]))
"""


def test_every_field_of_the_format_has_a_verdict():
    found, rows = in_ray(WALK)
    assert [path for path, verdict in found if verdict == "missing"] == []
    assert {path for path, _ in found} == set(rows)


READ = """
import json, pathlib, sys
from ingot.ray import _repository
from ingot.ray._errors import ConfigError
from ingot.ray._version import Version
answers = {}
for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    try:
        model = _repository.read_model(folder / "m")
        version = Version(model.settings, next(iter(model.versions.values())), "cpu")
        answers[folder.name] = [version.limit, list(version.buckets), list(model.settings.notes)]
    except ConfigError as error:
        answers[folder.name] = str(error)
print(json.dumps(answers))
"""


def parameter(key, value):
    return f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}'


TENSORS = """input [{ name: "image" data_type: TYPE_FP32 dims: [1, 8, 8] }]
output [{ name: "scores" data_type: TYPE_FP32 dims: [10] }]
"""
TAKEN = {
    "": (4, [1, 2, 4]),
    "max_batch_size: 8": (8, [1, 2, 4, 8]),
    "max_batch_size: 6": (6, [1, 2, 4, 6]),
    "max_batch_size: 1": (1, [1]),
    "max_batch_size: 8 " + parameter("buckets", "3,8"): (8, [3, 8]),
    "max_batch_size: 8 " + parameter("buckets", "none"): (8, []),
    'max_batch_size: 8 platform: "tensorrt_plan" ' + TENSORS: (8, [1, 2, 4, 8]),
    TENSORS: (4, [1, 2, 4]),
    'input [{ name: "image" data_type: TYPE_FP32 dims: [64] reshape { shape: [1, 8, 8] } }]': (4, [1, 2, 4]),
    'input [{ name: "image" data_type: TYPE_FP32 dims: [2, 1, 8, 8] }]'
    'output [{ name: "scores" data_type: TYPE_FP32 dims: [2, 10] }]': (0, []),
}
NOTED = {
    "optimization { cuda { graphs: true } }": "optimization.cuda has no effect: runs are recorded where that helps",
    parameter("gpu_mem_limit", 7): "parameter 'gpu_mem_limit' has no effect: memory is planned before the first run",
    "dynamic_batching { preferred_batch_size: [4] }":
        "dynamic_batching.preferred_batch_size has no effect: a batch takes whatever waits",
    'cc_model_filenames { key: "9.0" value: "h100.plan" }':
        "cc_model_filenames has no effect: one file serves every GPU",
}
IN_RAY = "cannot be had in Ray Serve"
REFUSED = {
    "max_batch: 8": 'config.pbtxt cannot be read: 1:1 : Message type "inference.ModelConfig" has no field named '
                    '"max_batch"',
    "max_batch_size: x": "config.pbtxt cannot be read: 1:17 : 'max_batch_size: x': Couldn't parse "
                         "integer: x",
    "max_batch_size: -2": "max_batch_size is -2, expected 0 or more",
    'name: "other"': "name 'other' is configured, the folder is 'm'",
    'backend: "python"': "backend 'python' is configured, expected one that Ingot serves",
    'platform: "ensemble"': "platform 'ensemble' is configured, expected one that Ingot serves",
    "sequence_batching { }": f"sequence_batching {IN_RAY}: Ray Serve sends the requests of a sequence to any replica",
    "ensemble_scheduling { }": f"ensemble_scheduling {IN_RAY}: compose models in Python",
    "dynamic_batching { priority_levels: 2 }": f"dynamic_batching.priority_levels {IN_RAY}",
    "dynamic_batching { preserve_ordering: true }": f"dynamic_batching.preserve_ordering {IN_RAY}",
    "dynamic_batching { default_queue_policy { default_timeout_microseconds: 5 } }":
        f"dynamic_batching.default_queue_policy.default_timeout_microseconds {IN_RAY}: set request_timeout_s",
    "response_cache { enable: true }": f"response_cache.enable {IN_RAY}",
    "model_transaction_policy { decoupled: true }": f"model_transaction_policy.decoupled {IN_RAY}",
    "instance_group [{ gpus: [0] }]": f"instance_group.gpus {IN_RAY}: Ray chooses the GPU",
    "instance_group [{ kind: KIND_MODEL }]": "instance_group.kind KIND_MODEL cannot be had",
    "instance_group [{ kind: KIND_CPU }, { kind: KIND_GPU }]": "instance_group has groups of different kinds",
    'instance_group [{ profile: ["0", "1"] }]': "instance_group names several profiles, 0, 1",
    'instance_group [{ profile: ["3"] }]': "profile 3 is asked for, and the engine has 1",
    'instance_group [{ profile: ["best"] }]': "instance_group.profile 'best' is no number",
    "instance_group [{ rate_limiter { priority: 1 } }]": f"instance_group.rate_limiter {IN_RAY}",
    parameter("bucket", "4"): "parameter 'bucket' is unknown; docs/serving.md lists those that are known; did you "
                              "mean 'buckets'?",
    parameter("buckets", "4,2"): "parameter 'buckets': each is larger than the one before, got '4,2'",
    parameter("buckets", "4,x"): "parameter 'buckets': a number of 1 to 1048576 is expected, got 'x'",
    parameter("buckets", ",".join(map(str, range(1, 18)))): "parameter 'buckets': 17 of them, at most 16 are kept",
    "max_batch_size: 4 " + parameter("buckets", "8"): "parameter 'buckets' has 8, and max_batch_size is 4",
    parameter("batch_invariant", "1"): "parameter 'batch_invariant': true or false is expected, got '1'",
    parameter("batch_invariant", "true"): "batch_invariant: it is for ONNX models, and this is an engine: build it with "
                                          "'ingot build --batchInvariant' and leave the argument out",
    parameter("threads", "0.5"): "parameter 'threads': a number of 1 to 1048576 is expected, got '0.5'",
    'optimization { execution_accelerators { gpu_execution_accelerator: [{ name: "tensorrt" parameters { key: '
    '"precision_mode" value: "INT8" } }] } }': "precision_mode INT8 is refused: FP32 and FP16 are served",
    'optimization { execution_accelerators { gpu_execution_accelerator: [{ name: "tensorrt" parameters { key: '
    '"trt_dla_core" value: "0" } }] } }': "parameter of the accelerator 'tensorrt' 'trt_dla_core' is refused: there "
                                          "is no DLA",
    'default_model_filename: "../model.engine"': "default_model_filename '../model.engine' names a file elsewhere",
    'default_model_filename: "other.engine"': "the folder of version 1 has no other.engine: put the engine there",
    "version_policy { specific { versions: [3] } }": "version_policy names [3], there are [1]",
    'input [{ name: "image" data_type: TYPE_FP16 dims: [1, 8, 8] }]':
        "input 'image': data_type TYPE_FP16 is configured, the engine has TYPE_FP32",
    'input [{ name: "picture" data_type: TYPE_FP32 dims: [1, 8, 8] }]':
        "configured input 'picture' is none of the engine's, which are: image",
    'max_batch_size: 4 input [{ name: "image" data_type: TYPE_FP32 dims: [1, 8, 9] }]':
        "input 'image': shape [-1, 1, 8, 9] is configured (the first size are the rows of a batch), the engine has "
        "[-1, 1, 8, 8]",
    'input [{ name: "image" data_type: TYPE_FP32 dims: [1, 8, 8] optional: true }]':
        "input 'image' has optional, and the engine has no default for it: build it with 'ingot build "
        "--optionalInputs=image' from a model that has one",
    'input [{ name: "image" data_type: TYPE_FP32 dims: [1, 8, 8] allow_ragged_batch: true }]':
        f"input.allow_ragged_batch {IN_RAY}",
    "batch_input [{ kind: BATCH_ELEMENT_COUNT }]": f"batch_input {IN_RAY}",
    "model_operations { op_library_filename: \"x.so\" }": f"model_operations {IN_RAY}",
}


def test_configurations_are_taken_or_refused_by_name(digits_engine, tmp_path):
    texts = [*TAKEN, *NOTED, *REFUSED]
    assert len(REFUSED) >= 35
    for i, text in enumerate(texts):
        folder = tmp_path / f"{i:03}" / "m"
        (folder / "1").mkdir(parents=True)
        (folder / "1" / "model.engine").symlink_to(digits_engine)
        (folder / "config.pbtxt").write_text(text)
    answers = list(in_ray(READ, tmp_path).values())
    for text, answer in zip(texts, answers):
        if text in TAKEN:
            assert answer[:2] == list(TAKEN[text]), (text, answer)
        elif text in NOTED:
            assert answer[2] == [NOTED[text]], text
        else:
            assert isinstance(answer, str) and answer.startswith("model 'm'"), (text, answer)
            assert REFUSED[text] in answer and str(tmp_path) not in answer, (text, answer)


def test_broken_engines_are_refused_by_name(digits_engine, tmp_path):
    contents = {"truncated": digits_engine.read_bytes()[:-40], "foreign": b"ftrt" + bytes(400),
                "text": b"no engine" * 50, "empty": b""}
    for name, content in contents.items():
        (tmp_path / name / "m" / "1").mkdir(parents=True)
        (tmp_path / name / "m" / "1" / "model.engine").write_bytes(content)
    (tmp_path / "versionless" / "m").mkdir(parents=True)
    answers = in_ray(READ, tmp_path)
    for name in contents:
        assert answers[name].startswith("model 'm', file 'model.engine': "), answers[name]
        assert str(tmp_path) not in answers[name]
    for name in ("text", "empty"):
        assert "it is no engine of Ingot's" in answers[name]
    assert "it is a plan of NVIDIA's TensorRT, which runs there alone" in answers["foreign"]
    assert "has no version: put the engine into a folder with a number, m/1" in answers["versionless"]


DEPLOY = """
import json, pathlib, sys
import ingot.ray
from ingot.ray import _repository
answers = []
for text, arguments in json.loads(sys.argv[2]):
    pathlib.Path(sys.argv[1], "config.pbtxt").write_text(text)
    try:
        made = ingot.ray._deployment(_repository.read_model(pathlib.Path(sys.argv[1])),
                                     ingot.ray.Arguments(repository="models", **arguments))
        scale = made._deployment_config.autoscaling_config
        answers.append([made.ray_actor_options, None if scale else made.num_replicas, scale and [
            scale.min_replicas, scale.max_replicas, scale.target_ongoing_requests], made.max_queued_requests])
    except ValueError as error:
        answers.append(str(error))
print(json.dumps(answers))
"""


def test_instances_become_replicas_with_their_share_of_a_gpu(digits_engine, tmp_path):
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.engine").symlink_to(digits_engine)
    gpu, cpu = "instance_group [{ kind: KIND_GPU count: 4 }]", "instance_group [{ kind: KIND_CPU count: 2 }]"
    cases = [
        (gpu, {}, [{"num_cpus": 1, "num_gpus": 0.25}, 4, None, -1]),
        (gpu, {"num_gpus": 1}, [{"num_cpus": 1, "num_gpus": 1}, 4, None, -1]),
        (gpu, {"num_gpus": 0}, [{"num_cpus": 1, "num_gpus": 0}, 4, None, -1]),
        (cpu + parameter("threads", 3), {}, [{"num_cpus": 3, "num_gpus": 0}, 2, None, -1]),
        (cpu + "max_batch_size: 8", {"max_replicas": 6}, [{"num_cpus": 1, "num_gpus": 0}, None, [2, 6, 8.0], -1]),
        (cpu, {"min_replicas": 1, "max_replicas": 6, "target_ongoing_requests": 3},
         [{"num_cpus": 1, "num_gpus": 0}, None, [1, 6, 3.0], -1]),
        (cpu + "dynamic_batching { default_queue_policy { max_queue_size: 9 } }", {},
         [{"num_cpus": 1, "num_gpus": 0}, 2, None, 9]),
        (cpu, {"min_replicas": 3, "max_replicas": 2}, "model 'm': min_replicas is 3 and max_replicas 2"),
        (cpu, {"max_replica": 2}, "Extra inputs are not permitted"),
        (cpu, {"num_gpus": -1}, "greater than or equal to 0"),
    ]
    answers = in_ray(DEPLOY, tmp_path / "m", json.dumps([case[:2] for case in cases]))
    for (text, arguments, expected), answer in zip(cases, answers):
        if isinstance(expected, str):
            assert expected in answer, arguments
        else:
            assert answer == expected, (text, arguments)
