# SPDX-License-Identifier: Apache-2.0
"""The model of Triton's python backend that bench/triton_torch.py compares with: PyTorch, compiled for each bucket and
recorded as a CUDA graph before the model is ready. A batch is put together in pinned memory, copied, run, and copied back,
all in one stream. Tensors go by DLPack: under numpy 2 the backend's arrays are empty."""
import json
import sys
import time

sys.argv = getattr(sys, "argv", None) or ["model"]  # an embedded Python has none, and torch reads it
import torch
import triton_python_backend_utils as pb_utils
from torch.utils.dlpack import from_dlpack


class Bert(torch.nn.Module):
    def __init__(self):
        import transformers
        super().__init__()
        self.model = transformers.BertModel(transformers.BertConfig(), add_pooling_layer=False)

    def forward(self, input_ids, attention_mask):
        mask = attention_mask[:, None, None, :].bool()  # of four dimensions it is used as it is
        return self.model(input_ids=input_ids, attention_mask=mask, return_dict=False)[0]


class Product(torch.nn.Module):
    """The model 'small' of bench/triton_speed.py."""

    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.full((64, 64), 1 / 64))

    def forward(self, x):
        return torch.relu(x @ self.weights)


def torchvision_model(name):
    import torchvision
    model = getattr(torchvision.models, name)()
    for layer in model.modules():  # whose biases are zeros: activations of 16 bits would vanish in deep models
        if getattr(layer, "bias", None) is not None:
            torch.nn.init.normal_(layer.bias, std=0.1)
    return model


MODELS = {"bert_base_dynamo": Bert, "small": Product, "resnet50": lambda: torchvision_model("resnet50"),
          "mobilenet_v3_large": lambda: torchvision_model("mobilenet_v3_large")}


class Step(torch.nn.Module):
    """A model of 16 bits whose inputs and outputs stay as clients have them."""

    def __init__(self, model, dtype):
        super().__init__()
        self.model, self.dtype = model, dtype

    def forward(self, *inputs):
        cast = [x.to(self.dtype, memory_format=torch.channels_last) if x.dim() == 4
                else x.to(self.dtype) if x.is_floating_point() else x for x in inputs]
        return self.model(*cast).float()


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        parameters = {name: value["string_value"] for name, value in config["parameters"].items()}
        self.device = parameters["device"]
        cuda = self.device == "cuda"
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = True
        model = MODELS[parameters["model"]]().eval().to(self.device).to(torch.half if cuda else torch.float)
        if cuda:
            model = model.to(memory_format=torch.channels_last)
        step = Step(model, torch.half if cuda else torch.float)
        sys.executable = parameters["python"]  # of the processes that compile
        self.step = torch.compile(step, mode=parameters["mode"], dynamic=False) if cuda else step
        self.inputs = [tensor["name"] for tensor in config["input"]]
        self.output = config["output"][0]["name"]
        self.buckets = json.loads(parameters["buckets"])
        self.sizes = {tensor["name"]: [int(size) for size in tensor["dims"]] for tensor in config["input"]}
        self.types = {tensor["name"]: torch.int64 if tensor["data_type"] == "TYPE_INT64" else torch.float32
                      for tensor in config["input"]}
        self.places = {bucket: self.prepare(bucket) for bucket in self.buckets}

    def prepare(self, rows):
        """Memory on the host and on the device for batches of so many rows, and a call that runs one."""
        begin, cuda = time.monotonic(), self.device == "cuda"
        host = [torch.ones([rows, *self.sizes[name]], dtype=self.types[name], pin_memory=cuda) for name in self.inputs]
        inputs = [one.to(self.device) for one in host]
        with torch.no_grad():
            result = self.step(*inputs)
        run = self.record(inputs) if cuda else lambda: self.step(*inputs)
        answer = torch.empty(result.shape, dtype=result.dtype, pin_memory=cuda)
        pb_utils.Logger.log_info(f"{rows} rows are prepared after {time.monotonic() - begin:.1f} s")
        return host, inputs, run, answer

    def record(self, inputs):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream), torch.no_grad():
            for _ in range(3):
                self.step(*inputs)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            result = self.step(*inputs)

        def run():
            graph.replay()
            return result
        return run

    def execute(self, requests):
        parts = [[from_dlpack(pb_utils.get_input_tensor_by_name(request, name).to_dlpack()) for request in requests]
                 for name in self.inputs]
        counts = [len(part) for part in parts[0]]
        rows = sum(counts)
        host, inputs, run, answer = self.places[min(bucket for bucket in self.buckets if bucket >= rows)]
        for part, gathered, there in zip(parts, host, inputs):
            torch.cat(part, out=gathered[:rows])
            there.copy_(gathered, non_blocking=True)
        with torch.no_grad():
            answer.copy_(run(), non_blocking=True)
        if self.device == "cuda":
            torch.cuda.current_stream().synchronize()
        return [pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack(self.output, piece)])
                for piece in torch.split(answer[:rows], counts)]
