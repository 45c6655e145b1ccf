# SPDX-License-Identifier: Apache-2.0
"""Building ONNX models at random, node by node, for random_models.py: the values made so far with their types, weights
and inputs. Blocks of nodes (random_layers.py, random_blocks.py) are functions of a builder and a value."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
LAST = 2**63 - 1  # the end of a slice that takes the rest
IR_VERSIONS = {13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10}
BATCH = "batch"
# Exact values are multiples of it with few bits. Sums of their products are exact in f32 in any order, so that every CPU
# gives the same bits, and rounding them cannot jump.
GRID = np.float32(1 / 32)


class DoesNotApply(Exception):
    """A block cannot read this value; another one is tried."""


def require(condition, reason=""):
    if not condition:
        raise DoesNotApply(reason)


def normal(random, shape):
    return random.normal(size=shape).astype(np.float32)


def on_grid(random, shape):
    """Exact values. Their range is 255 steps, as DynamicQuantizeLinear would choose it: its scale is the grid."""
    codes = random.integers(-127, 129, size=shape)
    codes.flat[0], codes.flat[-1] = -127, 128
    return codes.astype(np.float32) * GRID


class Builder:
    """A model in the making. Each name has its element type and static shape; the model may leave first dimensions open."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.opset = self.pick(*IR_VERSIONS)
        self.dynamic = self.chance(0.5)
        self.nodes, self.initializers, self.inputs = [], [], []
        self.types = {}  # name: (element type, shape)
        self.exact = set()  # names of values that every CPU computes alike
        self.count = 0

    def chance(self, probability):
        return bool(self.random.random() < probability)

    def integer(self, low, high):
        """At least `low`, below `high`."""
        return int(self.random.integers(low, high))

    def pick(self, *choices):
        return choices[self.integer(0, len(choices))]

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def shape(self, name):
        return self.types[name][1]

    def batch(self, size):
        """The first size for a Reshape: open where the model is dynamic."""
        return -1 if self.dynamic else size

    def constant(self, array):
        name, array = self.name(), np.asarray(array)
        self.initializers.append(numpy_helper.from_array(array, name))
        self.types[name] = (helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        return name

    def scalar(self, value):
        return self.constant(np.float32(value))

    def int64(self, *values):
        return self.constant(np.array(values, np.int64))

    def weights(self, *shape, scale=1.0):
        return self.constant(normal(self.random, shape) * np.float32(scale))

    def positive(self, *shape):
        return self.constant(np.abs(normal(self.random, shape)) + np.float32(0.5))

    def filters(self, *shape):
        """Weights of a layer with outputs first: sums over the other dimensions keep the size of what they read."""
        return self.weights(*shape, scale=1 / np.sqrt(np.prod(shape[1:])))

    def matrix(self, rows, columns):
        """Weights for a product from the right."""
        return self.weights(rows, columns, scale=1 / np.sqrt(rows))

    def add(self, operator, inputs, outputs=1, **attributes):
        """Adds a node; its result, a list where it has several. The types come from `infer`."""
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def reduce(self, operator, value, axes, keepdims=1):
        """A reduction, whose axes are an input since opset 18 (of ReduceSum always)."""
        if operator == "ReduceSum" or self.opset >= 18:
            return self.add(operator, [value, self.int64(*axes)], keepdims=keepdims)
        return self.add(operator, [value], axes=list(axes), keepdims=keepdims)

    def input(self, shape, element=FLOAT, values=normal):
        """An input; `values(random, shape)` makes its values, for any first size."""
        name = self.name()
        self.types[name] = (element, tuple(shape))
        self.inputs.append((name, values))
        if values is on_grid:
            self.exact.add(name)
        return name

    def first_symbol(self, name):
        """Inputs with as many rows as the first one share its symbol."""
        same = self.shape(name)[:1] == self.shape(self.inputs[0][0])[:1]
        return BATCH if same else f"{name}_rows"

    def feeds(self, seed, more_rows=0):
        """Values for all inputs, with more rows in those that have the batch's symbol."""
        random, made = np.random.default_rng(seed), {}
        for name, values in self.inputs:
            shape = list(self.shape(name))
            if more_rows and shape and self.first_symbol(name) == BATCH:
                shape[0] += more_rows
            made[name] = values(random, tuple(shape))
        return made

    def model(self, outputs, dynamic):
        def info(name):
            element, shape = self.types[name]
            return helper.make_tensor_value_info(
                name, element, [self.first_symbol(name), *shape[1:]] if dynamic and shape else shape)
        graph = helper.make_graph(
            self.nodes, "random", [info(name) for name, _ in self.inputs],
            [helper.make_tensor_value_info(name, self.types.get(name, (FLOAT,))[0], None) for name in outputs],
            self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                 ir_version=IR_VERSIONS[self.opset])

    def infer(self, name):
        """Finds the types of what was added last. A block that ONNX's shape inference refuses does not apply."""
        try:
            found = shape_inference.infer_shapes(self.model([name], dynamic=False), strict_mode=True, data_prop=True)
        except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as e:
            raise DoesNotApply(str(e)) from e
        for value in [*found.graph.value_info, *found.graph.output]:
            kind = value.type.tensor_type
            if kind.HasField("shape") and all(d.HasField("dim_value") for d in kind.shape.dim):
                self.types[value.name] = (kind.elem_type, tuple(d.dim_value for d in kind.shape.dim))
        require(name in self.types, f"{name} has no shape")

    def apply(self, block, value):
        """The result of a block behind a value, a tensor of floats that is not too large; nothing is left of a block
        that does not apply."""
        before = (len(self.nodes), len(self.initializers), len(self.inputs), dict(self.types), set(self.exact))
        try:
            result = block(self, value)
            require(result != value)
            self.infer(result)
            if self.chance(0.25) and self.types[result] == self.types[value] and result not in self.exact:
                result = self.add("Add", [result, value])
                self.infer(result)
            element, shape = self.types[result]
            require(element == FLOAT and min(shape, default=1) > 0 and np.prod(shape) <= 60000 and len(shape) <= 6)
            return result
        except DoesNotApply:
            nodes, initializers, inputs, self.types, self.exact = before
            del self.nodes[nodes:], self.initializers[initializers:], self.inputs[inputs:]
            raise
