# SPDX-License-Identifier: Apache-2.0
"""The cases of make_contrib.py: one model each, and the numbers that they are made of."""
import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CASES = {}
ELEMENT = {np.dtype(k): v for k, v in {
    "float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "float64": TensorProto.DOUBLE,
    "uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "uint16": TensorProto.UINT16,
    "int16": TensorProto.INT16, "uint32": TensorProto.UINT32, "int32": TensorProto.INT32,
    "uint64": TensorProto.UINT64, "int64": TensorProto.INT64, "bool": TensorProto.BOOL,
    ml_dtypes.bfloat16: TensorProto.BFLOAT16, ml_dtypes.float8_e4m3fn: TensorProto.FLOAT8E4M3FN,
    ml_dtypes.float8_e5m2: TensorProto.FLOAT8E5M2}.items()}


class Case:
    """One model: inputs by name in the order given; arrays in `constants` become initializers.
    Sizes of inputs in `dynamic` are symbolic; "x:1" names one axis.
    `oracle` computes the result, or a tuple of results, from all inputs by name where ONNX Runtime
    has no CPU kernel."""

    def __init__(self, name, op, inputs, outputs=1, constants=None, domain="com.microsoft",
                 opset=21, dynamic=(), oracle=None, **attributes):
        self.name = name
        self.op = op
        self.inputs = inputs
        self.outputs = outputs
        self.constants = constants or {}
        self.domain = domain
        self.opset = opset
        self.dynamic = dynamic
        self.oracle = oracle
        self.attributes = attributes
        CASES[name] = self

    def names(self):
        """Input names of the node, in order; '' for one left out."""
        out = []
        for key, value in self.inputs.items():
            out.append("" if value is None else key)
        while out and out[-1] == "":
            out.pop()
        return out

    def model(self):
        names = self.names()
        results = [f"y{i}" if keep else "" for i, keep in enumerate(
            [True] * self.outputs if isinstance(self.outputs, int) else self.outputs)]
        node = helper.make_node(self.op, names, results, name=self.op, domain=self.domain,
                                **self.attributes)
        infos, initializers = [], []
        for key, value in self.inputs.items():
            if value is None:
                continue
            if key in self.constants:
                initializers.append(numpy_helper.from_array(value, key))
                continue
            shape = [f"{key}_{i}" if key in self.dynamic or f"{key}:{i}" in self.dynamic else d
                     for i, d in enumerate(value.shape)]
            infos.append(helper.make_tensor_value_info(key, ELEMENT[value.dtype], shape))
        outs = [onnx.ValueInfoProto(name=r) for r in results if r]
        if self.oracle is not None:
            outs = [helper.make_tensor_value_info(r, ELEMENT[y.dtype], None)
                    for r, y in zip([r for r in results if r], self.expected())]
        graph = helper.make_graph([node], self.name, infos, outs, initializers)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def expected(self):
        """The results of the oracle."""
        y = self.oracle(**{k: v for k, v in self.inputs.items() if v is not None})
        return y if isinstance(y, tuple) else (y,)

    def feeds(self):
        return {k: v for k, v in self.inputs.items() if v is not None and k not in self.constants}


def values(seed, *shape, low=-2.0, high=2.0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return (rng.random(shape) * (high - low) + low).astype(dtype)


def whole(seed, low, high, *shape, dtype=np.uint8):
    return np.random.default_rng(seed).integers(low, high, shape, dtype=np.int64).astype(dtype)


def f32(x):
    return np.array(x, np.float32)


def u8(x):
    return np.array(x, np.uint8)


def i8(x):
    return np.array(x, np.int8)


def heads(seed, *shape):
    return values(seed, *shape, low=-1, high=1)
