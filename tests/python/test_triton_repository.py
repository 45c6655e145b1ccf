# SPDX-License-Identifier: Apache-2.0
"""Faults of a model repository in a real Triton Inference Server: each is refused with its status and exact text,
without a path of the server's machine, and the model beside it serves on."""
import gzip
import os

import numpy as np
import onnx
import onnx.helper as oh
import pytest

import ingot_command
import triton_server
from serving_models import FLOAT, rows, scaled
from triton_server import Refused

CPU = "instance_group [{ kind: KIND_CPU }]\n"


class Place:
    """The folder of a model that is not there yet."""

    def __init__(self, server, name, sources):
        self.folder = server.repository / name
        self.version = self.folder / "1"
        self.sources = sources

    def config(self, text=""):
        self.folder.mkdir(parents=True, exist_ok=True)
        backend = "" if "backend:" in text else 'backend: "ingot"\n'
        (self.folder / "config.pbtxt").write_text(backend + text + CPU)
        return self

    def file(self, name, data):
        if not (self.folder / "config.pbtxt").exists():
            self.config()
        path = self.version / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def engine(self, change=lambda data: data):
        return self.file("model.engine", change(self.sources["engine"]))

    def onnx(self, model, **files):
        self.file("model.onnx", model if isinstance(model, bytes) else model.SerializeToString())
        for name, data in files.items():
            self.file(name, data)


def model_of(nodes, initializers=(), opset=17, domain="", inputs=None, kind=FLOAT):
    shape = ["n", 4]
    graph = oh.make_graph(nodes, "g", inputs or [oh.make_tensor_value_info("x", kind, shape)],
                          [oh.make_tensor_value_info("y", kind, shape)], list(initializers))
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", opset)] +
                         ([oh.make_opsetid(domain, 1)] if domain else []), ir_version=8)


def external(location, length=16):
    """A model whose constant lies in another file."""
    tensor = onnx.TensorProto(name="f", data_type=FLOAT, dims=[4], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", "0"), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)
    return model_of([oh.make_node("Mul", ["x", "f"], ["y"])], [tensor])


def flipped(at):
    """A change of one bit."""
    def change(data):
        index = at % len(data)
        return data[:index] + bytes([data[index] ^ 16]) + data[index + 1:]
    return change


def link(place, target):
    place.config().version.mkdir(parents=True)
    (place.version / "model.engine").symlink_to(target)


def pipe(place):
    place.config().version.mkdir(parents=True)
    os.mkfifo(place.version / "model.engine")


def folder_for_file(place):
    place.config()
    (place.version / "model.engine").mkdir(parents=True)


def version_named(name):
    def make(place):
        place.engine()
        place.version.rename(place.folder / name)
    return make


def version_is_a_file(place):
    place.config()
    place.version.write_bytes(place.sources["engine"])


def configured(text):
    def make(place):
        place.config(text).engine()
    return make


IDENTITY = [oh.make_node("Identity", ["x"], ["y"])]
NOT_POLLED = (500, "failed to load '{name}', failed to poll from model repository")
NO_VERSION = (400, "load failed for model '{name}': at least one version must be available under the version policy of "
                   "model '{name}'\n")


def unavailable(text, version=1):
    return 400, f"load failed for model '{{name}}': version {version} is at UNAVAILABLE state: {text};\n"


def of_model(text):
    return unavailable(f"Invalid argument: model '{{name}}' version 1: {text}")


def of_engine(text):
    return of_model(f"file 'model.engine': IRuntime::deserializeCudaEngine: {text}")


def of_onnx(text):
    return of_model(f"file 'model.onnx': {text}")


def no_file(name):
    return of_model(f"the folder of the version has no {name}: put the engine there, or name it in "
                    "default_model_filename")


def other_than_a_file(what):
    return of_model(f"'model.engine' in the folder of the version is {what}: put the engine there as a file")


def elsewhere(name):
    return of_model(f"default_model_filename '{name}' names a file elsewhere: it lies in the folder of the version")


NO_ENGINE = of_engine("the file is not an Ingot engine: its first bytes are not the engine magic; build one with 'ingot build'")
NVIDIA_PLAN = of_model("file 'model.plan': it is a plan of NVIDIA's TensorRT, which runs there alone; build an engine from "
                       "the ONNX model: ingot build model.onnx -o model.engine")
DAMAGED = "the file is damaged, copy it again or rebuild the engine"
SHORT = "the file has {bytes} bytes, an engine has at least 64; it is truncated or not an engine"
# Two more end the packaged server by themselves: a version whose number has more than 19 digits, and a folder in
# place of config.pbtxt.
FAULTS = {
    "no folder": (lambda place: None, NOT_POLLED),
    "no version": (lambda place: place.config(), NO_VERSION),
    "a version named by a word": (version_named("latest"), NO_VERSION),
    "a negative version": (version_named("-1"), unavailable(
        "Invalid argument: model '{name}' version 18446744073709551615: the folder of the version has no model.engine, "
        "model.plan, model.onnx: put the engine there, or name it in default_model_filename", version=-1)),
    "a version that is a file": (version_is_a_file, NO_VERSION),
    "an empty version": (lambda place: place.config().version.mkdir(),
                         no_file("model.engine, model.plan, model.onnx")),
    "a word for a number": (configured("max_batch_size: many\n"), NOT_POLLED),
    "a configuration of bytes": (configured("\0\1\2"), NOT_POLLED),
    "a field that there is not": (configured("batch_size: 4\n"), NOT_POLLED),
    "the name of another model": (configured('name: "other"\n'), NOT_POLLED),
    "a backend that there is not": (configured('backend: "ingto"\n'), unavailable(
        "Invalid argument: unable to find backend library for backend 'ingto', try specifying runtime on the model "
        "configuration.")),
    "a version policy without a version": (configured("version_policy { specific { versions: [7] } }\n"), NO_VERSION),
    "a file that is not there": (configured('default_model_filename: "other.engine"\n'), no_file("other.engine")),
    "a file elsewhere": (configured('default_model_filename: "../1/model.engine"\n'), elsewhere("../1/model.engine")),
    "an absolute file": (configured('default_model_filename: "/etc/passwd"\n'), elsewhere("/etc/passwd")),
    "the folder above as the file": (configured('default_model_filename: ".."\n'), elsewhere("..")),
    "an empty engine": (lambda place: place.file("model.engine", b""),
                        of_model("file 'model.engine': it is empty: copy it again")),
    "one byte": (lambda place: place.file("model.engine", b"I"), of_engine(SHORT.format(bytes=1))),
    "an engine of zeros": (lambda place: place.file("model.engine", bytes(4096)), NO_ENGINE),
    "a text as engine": (lambda place: place.file("model.engine", b"no engine" * 50), NO_ENGINE),
    "an ONNX model as engine": (lambda place: place.file("model.engine", place.sources["onnx"]), NO_ENGINE),
    "a plan of TensorRT": (lambda place: place.file("model.plan", b"ftrt" + bytes(100)), NVIDIA_PLAN),
    "an older plan of TensorRT": (lambda place: place.file("model.plan", b"ptrt" + bytes(100)), NVIDIA_PLAN),
    "a packed engine": (lambda place: place.engine(lambda data: gzip.compress(data, mtime=0)), NO_ENGINE),
    "an engine cut in its head": (lambda place: place.engine(lambda data: data[:20]), of_engine(SHORT.format(bytes=20))),
    "an engine cut in the middle": (
        lambda place: place.engine(lambda data: data[:2000]),
        of_engine("the file has 2000 bytes, its header says {size}; it is truncated, copy it again")),
    "an engine without its last byte": (
        lambda place: place.engine(lambda data: data[:-1]),
        of_engine("the file has {less} bytes, its header says {size}; it is truncated, copy it again")),
    "two engines in one file": (
        lambda place: place.engine(lambda data: data + data),
        of_engine("the file has {twice} bytes, its header says {size}; something was appended to it")),
    "a bit of the head": (lambda place: place.engine(flipped(0)), NO_ENGINE),
    "a bit of the table": (lambda place: place.engine(flipped(70)),
                           of_engine(f"header and table do not match their hash: {DAMAGED}")),
    "a bit between the sections": (lambda place: place.engine(flipped(2048)),
                                   of_engine(f"byte 2048 before section 0 (weights) is not zero: {DAMAGED}")),
    "a bit of the graph": (
        lambda place: place.engine(flipped(4100)),
        of_engine(f"section graph does not match its hash: {DAMAGED}")),
    "a bit of the end": (lambda place: place.engine(flipped(-2)),
                         of_engine(f"section metadata does not match its hash: {DAMAGED}")),
    "a newer format": (
        lambda place: place.engine(lambda data: data[:8] + bytes([99]) + data[9:]),
        of_engine("engine format 99 (written by Ingot 0.1.0), this is Ingot 0.1.0, which reads formats 1 to 1; use a newer "
                  "Ingot or rebuild the engine")),
    "an engine without its weights": (
        lambda place: place.file("model.engine", place.sources["stripped"]), unavailable(
            "Unsupported: instance '{name}_0_0': ICudaEngine::createExecutionContext: the engine was built without its "
            "weights (kSTRIP_PLAN, kEXCLUDE_WEIGHTS): refit it first, with createInferRefitter() or createParserRefitter()")),
    "a link to nowhere": (lambda place: link(place, "nowhere"), other_than_a_file("a link that leads to no file")),
    "a link to itself": (lambda place: link(place, "model.engine"), other_than_a_file("a link that leads to no file")),
    "a device": (lambda place: link(place, "/dev/zero"), other_than_a_file("a link that leads to no file")),
    "a pipe": (pipe, other_than_a_file("no file")),
    "a folder as the file": (folder_for_file, other_than_a_file("a folder")),
    "an empty ONNX model": (lambda place: place.file("model.onnx", b""), of_onnx("it is empty: copy it again")),
    "a text as ONNX model": (lambda place: place.file("model.onnx", b"no model" * 9),
                             of_onnx("not an ONNX model: byte 0: invalid wire type 6 of field 13")),
    "half an ONNX model": (lambda place: place.onnx(place.sources["onnx"][:50]),
                           of_onnx("byte 2: field 'graph' declares 90 bytes, but 46 are left")),
    "an operator that there is not": (
        lambda place: place.onnx(model_of([oh.make_node("Twice", ["x"], ["y"])])),
        of_onnx("node #0 (Twice, opset 17): there is no such operator at opset 17, or Ingot does not know it")),
    "an operator of another domain": (
        lambda place: place.onnx(model_of([oh.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml")], domain="ai.onnx.ml")),
        of_onnx("node #0 (ai.onnx.ml.Scaler, opset 1): Ingot does not know this operator: tree ensembles, scalers and all "
                "others of ai.onnx.ml (classical machine learning) are not covered; convert the model to tensor operators "
                "before (Hummingbird does so), or run it in ONNX Runtime")),
    "a value that nothing makes": (
        lambda place: place.onnx(model_of([oh.make_node("Add", ["x", "z"], ["y"])])),
        of_onnx("node #0 (Add, opset 17): input 'z' is neither an input, an initializer nor the output of a node")),
    "a circle": (lambda place: place.onnx(model_of(
        [oh.make_node("Add", ["x", "b"], ["a"]), oh.make_node("Relu", ["a"], ["b"]), oh.make_node("Relu", ["b"], ["y"])])),
        of_onnx("the graph has a cycle: Relu 'b' <- Add 'a'")),
    "shapes that do not fit": (lambda place: place.onnx(model_of(
        [oh.make_node("Mul", ["x", "f"], ["y"])], [onnx.numpy_helper.from_array(np.ones(5, np.float32), "f")])),
        of_onnx("node #0 (Mul, opset 17): shapes [n,4] and [5] do not broadcast")),
    "strings": (lambda place: place.onnx(model_of(IDENTITY, kind=onnx.TensorProto.STRING)),
                of_onnx("input 'x': element type string is not supported")),
    "weights that are not there": (
        lambda place: place.onnx(external("weights.bin")),
        of_onnx("graph 'g': initializer 'f': external data 'weights.bin': cannot open 'weights.bin': No such file or "
                "directory")),
    "weights that are too short": (
        lambda place: place.onnx(external("weights.bin"), **{"weights.bin": b"short"}),
        of_onnx("graph 'g': initializer 'f': external data 'weights.bin': needs 16 bytes at offset 0, but the file has 5 "
                "bytes")),
    "weights elsewhere": (
        lambda place: place.onnx(external("../../../etc/passwd")),
        of_onnx("graph 'g': initializer 'f': external data '../../../etc/passwd': file name \"../../../etc/passwd\" holds "
                "'..'; expected a relative path inside the model's folder")),
    "weights at an absolute place": (
        lambda place: place.onnx(external("/etc/passwd")),
        of_onnx("graph 'g': initializer 'f': external data '/etc/passwd': file name \"/etc/passwd\" is absolute; expected a "
                "relative path inside the model's folder")),
}


def test_there_are_forty():
    assert len(FAULTS) >= 40


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    triton_server.needed()
    folder = tmp_path_factory.mktemp("sources")
    model = scaled(folder / "double.onnx", 2, size=4)
    engine, stripped = folder / "double.engine", folder / "stripped.engine"
    ingot_command.build(model, engine)
    ingot_command.build(model, stripped, ["--stripWeights"])
    return {"engine": engine.read_bytes(), "stripped": stripped.read_bytes(), "onnx": model.read_bytes(), "model": model}


@pytest.fixture(scope="module")
def server(tmp_path_factory, sources):
    with triton_server.Server(tmp_path_factory.mktemp("triton")) as running:
        running.add("neighbour", sources["model"], "", file_name="model.onnx")
        running.load("neighbour")
        yield running


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_has_its_status_and_text(server, sources, fault):
    make, (status, text) = FAULTS[fault]
    name = f"faulty_{list(FAULTS).index(fault)}"
    make(Place(server, name, sources))
    size = len(sources["engine"])
    with pytest.raises(Refused) as refused:
        server.load(name)
    assert (refused.value.status, refused.value.text) == (
        status, text.format(name=name, size=size, less=size - 1, twice=2 * size))
    np.testing.assert_array_equal(server.infer("neighbour", {"x": rows(3)})["y"], 2 * rows(3))
    assert server.answers("/v2/models/neighbour/ready") and not server.answers(f"/v2/models/{name}/ready")
