# SPDX-License-Identifier: Apache-2.0
"""The model of Triton's python backend that bench/triton_cpu.py compares with: ONNX Runtime on the CPU, the
requests of a batch as one run. It lies beside model.onnx."""
import json
import pathlib

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        folder = pathlib.Path(args["model_repository"]) / args["model_version"]
        options = onnxruntime.SessionOptions()
        parameters = json.loads(args["model_config"]).get("parameters", {})
        options.intra_op_num_threads = int(parameters.get("threads", {"string_value": 0})["string_value"])
        self.session = onnxruntime.InferenceSession(folder / "model.onnx", options,
                                                    providers=["CPUExecutionProvider"])
        self.inputs = [tensor.name for tensor in self.session.get_inputs()]
        self.outputs = [tensor.name for tensor in self.session.get_outputs()]

    def execute(self, requests):
        parts = [[pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in self.inputs]
                 for request in requests]
        feeds = {name: np.concatenate([part[i] for part in parts]) for i, name in enumerate(self.inputs)}
        results = self.session.run(self.outputs, feeds)
        ends = np.cumsum([len(part[0]) for part in parts])[:-1]
        split = [np.split(result, ends) for result in results]
        return [pb_utils.InferenceResponse([pb_utils.Tensor(name, pieces[i])
                                            for name, pieces in zip(self.outputs, split)])
                for i in range(len(requests))]
