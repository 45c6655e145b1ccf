#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the digits network of this example from nothing and writes it as ONNX.

Data: the 1797 handwritten 8x8 digits that scikit-learn carries; one in five is held out.
Network: two times (3x3 convolution, relu, 2x2 max pool), then one linear layer; written here in
numpy, backward pass included. Needs numpy, scikit-learn and onnx; takes half a minute.

  train.py           train, then write digits.onnx and the held-out digits beside this file
  train.py --check   train, and compare with the accuracy of the digits.onnx that is there
"""
import argparse
import pathlib
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from sklearn.datasets import load_digits

HERE = pathlib.Path(__file__).resolve().parent
SEED = 7
EPOCHS = 40
BATCH = 64
CHANNELS = (16, 32)
# The order of a BLAS library's sums differs between machines, and training amplifies it: a network
# trained again may judge a few of the 360 held-out digits differently.
CHECK_TOLERANCE = 0.01


def load_data():
    """((images, labels) to train on, (images, labels) held out); images are [n,1,8,8] in 0..1."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, None]
    labels = digits.target.astype(np.int64)
    order = np.random.default_rng(SEED).permutation(len(images))
    held, rest = np.split(order, [len(order) // 5 + 1])
    return (images[rest], labels[rest]), (images[held], labels[held])


class Conv:
    """3x3 convolution with one pixel of zero padding, as a matrix product over patches."""

    def __init__(self, rng, channels_in, channels_out):
        std = np.sqrt(2.0 / (channels_in * 9))
        weight = rng.standard_normal((channels_out, channels_in, 3, 3)) * std
        self.params = [weight.astype(np.float32), np.zeros(channels_out, np.float32)]

    def forward(self, x):
        n, c, h, w = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        self.shape = x.shape
        self.patches = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, c * 9)
        weight, bias = self.params
        y = self.patches @ weight.reshape(len(weight), -1).T + bias
        return y.reshape(n, h, w, -1).transpose(0, 3, 1, 2)

    def backward(self, dy):
        n, c, h, w = self.shape
        weight = self.params[0]
        rows = dy.transpose(0, 2, 3, 1).reshape(n * h * w, -1)
        self.grads = [(rows.T @ self.patches).reshape(weight.shape), rows.sum(axis=0)]
        patches = (rows @ weight.reshape(len(weight), -1)).reshape(n, h, w, c, 3, 3)
        dx = np.zeros((n, c, h + 2, w + 2), np.float32)
        for i in range(3):
            for j in range(3):
                dx[:, :, i:i + h, j:j + w] += patches[..., i, j].transpose(0, 3, 1, 2)
        return dx[:, :, 1:-1, 1:-1]


class Relu:
    params = ()
    grads = ()

    def forward(self, x):
        self.positive = x > 0
        return x * self.positive

    def backward(self, dy):
        return dy * self.positive


class MaxPool:
    """2x2 max pool with stride 2; of equal maxima, the first one gets the gradient."""
    params = ()
    grads = ()

    def forward(self, x):
        n, c, h, w = x.shape
        cells = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5)
        cells = cells.reshape(n, c, h // 2, w // 2, 4)
        self.winner = cells.argmax(axis=-1)[..., None] == np.arange(4)
        return cells.max(axis=-1)

    def backward(self, dy):
        n, c, h, w = dy.shape
        cells = (dy[..., None] * self.winner).reshape(n, c, h, w, 2, 2)
        return cells.transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h * 2, w * 2)


class Linear:
    """Flattens all but the batch, then a matrix product; the weight is [outputs, inputs]."""

    def __init__(self, rng, inputs, outputs):
        weight = rng.standard_normal((outputs, inputs)) * np.sqrt(1.0 / inputs)
        self.params = [weight.astype(np.float32), np.zeros(outputs, np.float32)]

    def forward(self, x):
        self.shape = x.shape
        self.flat = x.reshape(len(x), -1)
        return self.flat @ self.params[0].T + self.params[1]

    def backward(self, dy):
        self.grads = [dy.T @ self.flat, dy.sum(axis=0)]
        return (dy @ self.params[0]).reshape(self.shape)


class Adam:
    def __init__(self, params):
        self.moments = [(np.zeros_like(p), np.zeros_like(p)) for p in params]
        self.step_count = 0

    def step(self, params, grads, rate):
        self.step_count += 1
        fix1, fix2 = 1 - 0.9 ** self.step_count, 1 - 0.999 ** self.step_count
        for p, g, (m, v) in zip(params, grads, self.moments):
            m += np.float32(0.1) * (g - m)
            v += np.float32(0.001) * (g * g - v)
            p -= np.float32(rate) * (m / fix1) / (np.sqrt(v / fix2) + 1e-8)


def shift_randomly(rng, images):
    """Each picture moved by at most one pixel each way, so that 1437 pictures teach more."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    moves = rng.integers(0, 3, size=(len(images), 2))
    return np.stack([p[:, i:i + 8, j:j + 8] for p, (i, j) in zip(padded, moves)])


def loss_and_gradient(scores, labels):
    """Mean cross-entropy of softmax(scores), and its gradient by the scores."""
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(p[rows, labels] + 1e-12).mean()
    p[rows, labels] -= 1
    return loss, (p / len(labels)).astype(np.float32)


def train(images, labels):
    """A trained network, as the list of its layers."""
    rng = np.random.default_rng(SEED)
    first, second = CHANNELS
    layers = [Conv(rng, 1, first), Relu(), MaxPool(), Conv(rng, first, second), Relu(), MaxPool(),
              Linear(rng, second * 4, 10)]
    params = [p for layer in layers for p in layer.params]
    optimizer = Adam(params)
    for epoch in range(EPOCHS):
        rate = 3e-3 * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        order = rng.permutation(len(images))
        total = 0.0
        for start in range(0, len(order), BATCH):
            chosen = order[start:start + BATCH]
            x = shift_randomly(rng, images[chosen])
            for layer in layers:
                x = layer.forward(x)
            loss, dy = loss_and_gradient(x, labels[chosen])
            total += loss * len(chosen)
            for layer in reversed(layers):
                dy = layer.backward(dy)
            optimizer.step(params, [g for layer in layers for g in layer.grads], rate)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: training loss {total / len(order):.4f}")
    return layers


def to_onnx(layers):
    """The trained layers as an ONNX model: image [batch,1,8,8] -> scores [batch,10]."""
    conv1, conv2, linear = (layer for layer in layers if layer.params)
    names = ["conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "linear.weight",
             "linear.bias"]
    values = [*conv1.params, *conv2.params, *linear.params]
    conv = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        helper.make_node("Conv", ["image", *names[0:2]], ["conv1"], "conv1", **conv),
        helper.make_node("Relu", ["conv1"], ["relu1"], "relu1"),
        helper.make_node("MaxPool", ["relu1"], ["pool1"], "pool1", **pool),
        helper.make_node("Conv", ["pool1", *names[2:4]], ["conv2"], "conv2", **conv),
        helper.make_node("Relu", ["conv2"], ["relu2"], "relu2"),
        helper.make_node("MaxPool", ["relu2"], ["pool2"], "pool2", **pool),
        helper.make_node("Flatten", ["pool2"], ["flat"], "flatten", axis=1),
        helper.make_node("Gemm", ["flat", *names[4:6]], ["scores"], "linear", transB=1),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 10])
    weights = [numpy_helper.from_array(v, n) for v, n in zip(values, names)]
    graph = helper.make_graph(nodes, "digits", [image], [scores], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                              producer_name="ingot examples/digits/train.py")
    onnx.checker.check_model(model, full_check=True)
    return model


def accuracy(model, images, labels):
    """The fraction of the pictures that the ONNX model classifies correctly."""
    scores = ReferenceEvaluator(model).run(["scores"], {"image": images})[0]
    return float((scores.argmax(axis=1) == labels).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    start = time.perf_counter()
    (images, labels), (held_images, held_labels) = load_data()
    model = to_onnx(train(images, labels))
    reached = accuracy(model, held_images, held_labels)
    print(f"trained on {len(images)} digits in {time.perf_counter() - start:.1f} s")
    print(f"accuracy on {len(held_images)} held-out digits: {reached:.2%}")
    if check:
        stored = accuracy(onnx.load(HERE / "digits.onnx"), held_images, held_labels)
        print(f"accuracy of digits.onnx: {stored:.2%}")
        if abs(stored - reached) > CHECK_TOLERANCE:
            sys.exit(f"the two differ by more than {CHECK_TOLERANCE:.0%}")
        return
    onnx.save(model, HERE / "digits.onnx")
    np.save(HERE / "held_out_images.npy", held_images)
    np.save(HERE / "held_out_labels.npy", held_labels.astype(np.uint8))


if __name__ == "__main__":
    main()
