# SPDX-License-Identifier: Apache-2.0
"""Requests to a server of the Open Inference Protocol that serves the digits engine as model
`digits`, version 1, with max_batch_size 8: good ones, and ones that are wrong in one thing each."""
import dataclasses
import gzip
import http.client
import json
import zlib

import numpy as np

INFER = "/v2/models/digits/infer"


@dataclasses.dataclass
class Case:
    name: str
    body: bytes | None = None
    path: str = INFER
    headers: dict = dataclasses.field(default_factory=dict)


def image(rows, seed=0):
    return np.random.default_rng(seed).uniform(0, 16, (rows, 1, 8, 8)).astype(np.float32)


def tensor(**changes):
    """The JSON of an input of one row; None removes a key."""
    made = {"name": "image", "datatype": "FP32", "shape": [1, 1, 8, 8],
            "data": image(1).ravel().tolist()} | changes
    return {key: value for key, value in made.items() if value is not None}


def text(*inputs, **more):
    return json.dumps({"inputs": list(inputs), **more}).encode()


def as_json(name, *inputs, **more):
    return Case(name, text(*(inputs or [tensor()]), **more))


def binary(name, header, data, length=None):
    head = json.dumps(header).encode()
    said = str(len(head) if length is None else length)
    return Case(name, head + data, headers={"Inference-Header-Content-Length": said})


def binary_tensor(size, **changes):
    return tensor(data=None, parameters={"binary_data_size": size}, **changes)


def good(count):
    """So many requests that are answered with 200, in every spelling of the protocol."""
    cases = []
    for i in range(count):
        rows = 1 + i % 8
        array = image(rows, i)
        shape = list(array.shape)
        spelling = i % 5
        if spelling == 0:
            cases.append(as_json(f"flat {i}", tensor(shape=shape, data=array.ravel().tolist())))
        elif spelling == 1:
            cases.append(as_json(f"nested {i}", tensor(shape=shape, data=array.tolist()), id=str(i)))
        elif spelling == 2:
            cases.append(as_json(f"outputs named {i}", tensor(shape=shape, data=array.astype(int).tolist()),
                                 outputs=[{"name": "scores"}]))
        else:
            wanted = ({"parameters": {"binary_data_output": True}} if spelling == 3 else
                      {"outputs": [{"name": "scores", "parameters": {"binary_data": True}}]})
            cases.append(binary(f"binary {i}", {"inputs": [binary_tensor(array.nbytes, shape=shape)],
                                                "id": f"b{i}", **wanted}, array.tobytes()))
    return cases


def packed(name, coding, pack):
    return Case(name, pack(text(tensor())), headers={"Content-Encoding": coding})


def wrong():
    """Requests that are answered with an error."""
    data = image(1).tobytes()
    whole = {"inputs": [binary_tensor(256)]}
    return [
        as_json("unknown input", tensor(name="picture")),
        as_json("no name", tensor(name=None)),
        as_json("name is a number", tensor(name=3)),
        as_json("two inputs", tensor(), tensor(name="other")),
        as_json("one input twice", tensor(), tensor()),
        Case("no inputs", b'{"inputs": []}'),
        Case("inputs missing", b'{"id": "7"}'),
        Case("inputs is an object", b'{"inputs": {"name": "image"}}'),
        Case("an input is a number", b'{"inputs": [7]}'),
        as_json("no datatype", tensor(datatype=None)),
        as_json("unknown datatype", tensor(datatype="FP33")),
        as_json("datatype is a number", tensor(datatype=32)),
        as_json("another datatype", tensor(datatype="INT32", data=[1] * 64)),
        as_json("FP64", tensor(datatype="FP64")),
        as_json("FP16 as JSON", tensor(datatype="FP16")),
        as_json("BYTES", tensor(datatype="BYTES", data=["a"] * 64)),
        as_json("no shape", tensor(shape=None)),
        as_json("shape is a number", tensor(shape=64)),
        as_json("shape of texts", tensor(shape=["1", "1", "8", "8"])),
        as_json("shape of fractions", tensor(shape=[1.5, 1, 8, 8])),
        as_json("no sizes", tensor(shape=[], data=[1.0])),
        as_json("rank 3", tensor(shape=[1, 8, 8])),
        as_json("rank 5", tensor(shape=[1, 1, 1, 8, 8])),
        as_json("another size", tensor(shape=[1, 1, 8, 9], data=[0.0] * 72)),
        as_json("a negative size", tensor(shape=[-1, 1, 8, 8])),
        as_json("a negative size inside", tensor(shape=[1, 1, -8, -8])),
        as_json("a size of 0 inside", tensor(shape=[1, 1, 0, 8], data=[])),
        as_json("too many rows", tensor(shape=[9, 1, 8, 8], data=[0.0] * 576)),
        as_json("a huge size", tensor(shape=[2 ** 62, 1, 8, 8])),
        as_json("a size above 64 bits", tensor(shape=[2 ** 70, 1, 8, 8])),
        as_json("no data", tensor(data=None)),
        as_json("data is a number", tensor(data=3)),
        as_json("data is an object", tensor(data={"a": 1})),
        as_json("too few elements", tensor(data=[1.0] * 63)),
        as_json("too many elements", tensor(data=[1.0] * 65)),
        as_json("texts as elements", tensor(data=["1.0"] * 64)),
        as_json("null as an element", tensor(data=[None] + [1.0] * 63)),
        as_json("truth as an element", tensor(data=[True] * 64)),
        as_json("unknown output", tensor(), outputs=[{"name": "labels"}]),
        as_json("output without name", tensor(), outputs=[{}]),
        as_json("outputs is a text", tensor(), outputs="scores"),
        as_json("id is a number", tensor(), id=7),
        Case("broken JSON", text(tensor())[:-9]),
        Case("empty body", b""),
        Case("no object", b"[1, 2]"),
        Case("no JSON", b"\x00\xff\x13" * 9),
        Case("text behind the JSON", text(tensor()) + b"}}"),
        binary("bytes too few", {"inputs": [binary_tensor(252)]}, data[:252]),
        binary("bytes too many", {"inputs": [binary_tensor(260)]}, data + b"abcd"),
        binary("bytes that are not there", {"inputs": [binary_tensor(256)]}, data[:100]),
        binary("bytes left over", {"inputs": [binary_tensor(256)]}, data + b"abcd"),
        binary("a negative size of bytes", {"inputs": [binary_tensor(-1)]}, data),
        binary("size of bytes is a text", {"inputs": [binary_tensor("256")]}, data),
        binary("data and bytes", {"inputs": [tensor(parameters={"binary_data_size": 256})]}, data),
        binary("header too long", whole, data, 10 ** 9),
        binary("header too short", whole, data, 20),
        binary("header length is a word", whole, data, "twenty"),
        binary("header length is negative", whole, data, -5),
        binary("a string that ends behind", {"inputs": [binary_tensor(256, datatype="BYTES")]}, data),
        packed("gzip that is none", "gzip", lambda b: b),
        packed("gzip cut short", "gzip", lambda b: gzip.compress(b)[:-20]),
        packed("deflate that is none", "deflate", lambda b: b),
        Case("unknown model", text(tensor()), "/v2/models/letters/infer"),
        Case("unknown version", text(tensor()), "/v2/models/digits/versions/7/infer"),
        Case("version is a word", text(tensor()), "/v2/models/digits/versions/new/infer"),
        Case("version 0", text(tensor()), "/v2/models/digits/versions/0/infer"),
        Case("metadata of an unknown model", None, "/v2/models/letters"),
        Case("metadata of an unknown version", None, "/v2/models/digits/versions/7"),
        Case("config of an unknown model", None, "/v2/models/letters/config"),
        Case("ready of an unknown model", None, "/v2/models/letters/ready"),
        Case("ready of an unknown version", None, "/v2/models/digits/versions/7/ready"),
        Case("unknown path", None, "/v2/modelss"),
        Case("unknown verb", text(tensor()), "/v2/models/digits/infers"),
        Case("path of another protocol", text(tensor()), "/v1/models/digits:predict"),
        Case("infer without a body", None, INFER),
    ]


def other_good():
    return [
        packed("gzip", "gzip", gzip.compress), packed("deflate", "deflate", zlib.compress),
        Case("version 1", text(tensor()), "/v2/models/digits/versions/1/infer"),
        as_json("no rows", tensor(shape=[0, 1, 8, 8], data=[])),
        Case("metadata", None, "/v2/models/digits"),
        Case("metadata of a version", None, "/v2/models/digits/versions/1"),
        Case("live", None, "/v2/health/live"), Case("ready", None, "/v2/health/ready"),
        Case("model ready", None, "/v2/models/digits/ready"),
        Case("version ready", None, "/v2/models/digits/versions/1/ready"),
    ]


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
