# SPDX-License-Identifier: Apache-2.0
"""Requests to Triton's gRPC service about the model `digits`, in an environment that has tritonclient.

  grpc_cases.py HOST:PORT    prints JSON: {name: [status, text]}, or for those that succeed [status, the
                             response without its numbers]
"""
import json
import sys

import grpc
from google.protobuf import json_format
from tritonclient.grpc import service_pb2, service_pb2_grpc

ZEROS = bytes(256)


def infer(raw=(ZEROS,), model="digits", version="", outputs=(), **changes):
    """A request of one row; None for `tensor` leaves the input out."""
    request = service_pb2.ModelInferRequest(model_name=model, model_version=version, id=changes.pop("id", ""))
    count = changes.pop("count", 1)
    for _ in range(count):
        tensor = request.inputs.add(name="image", datatype="FP32", shape=[1, 1, 8, 8])
        for key, value in changes.items():
            if key == "shape":
                del tensor.shape[:]
                tensor.shape.extend(value)
            elif key == "fp32":
                tensor.contents.fp32_contents.extend(value)
            else:
                setattr(tensor, key, value)
    request.raw_input_contents.extend(raw)
    for name in outputs:
        request.outputs.add(name=name)
    return request


CASES = {
    "good": infer(), "good with id": infer(id="7"), "good with version": infer(version="1"),
    "good with an output": infer(outputs=["scores"]), "typed": infer((), fp32=[0.5] * 64),
    "8 rows": infer((ZEROS * 8,), shape=[8, 1, 8, 8]),
    "unknown model": infer(model="letters"), "unknown version": infer(version="9"),
    "unknown input": infer(name="picture"), "no input": infer((), count=0),
    "unknown datatype": infer(datatype="FP33"), "another datatype": infer(datatype="INT32"),
    "rank 3": infer(shape=[1, 8, 8]), "another size": infer((bytes(288),), shape=[1, 1, 8, 9]),
    "9 rows": infer((ZEROS * 9,), shape=[9, 1, 8, 8]), "no rows": infer((b"",), shape=[0, 1, 8, 8]),
    "bytes too few": infer((ZEROS[:-4],)), "bytes too many": infer((ZEROS + b"abcd",)),
    "two sets of data": infer((ZEROS, ZEROS)), "elements too few": infer((), fp32=[0.5] * 63),
    "unknown output": infer(outputs=["labels"]), "with id": infer(id="7", shape=[1, 8, 8]),
}


def status(error):
    return [error.code().name, error.details()]


def plain(response):
    found = json_format.MessageToDict(response)
    found["rawOutputContents"] = len(response.raw_output_contents)
    return found


def main(address):
    found = {}
    with grpc.insecure_channel(address) as channel:
        service = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for name, request in CASES.items():
            try:
                found[name] = ["OK", plain(service.ModelInfer(request, timeout=60))]
            except grpc.RpcError as error:
                found[name] = status(error)
        for name in ("digits", "letters"):
            for call, kind in ((service.ModelMetadata, service_pb2.ModelMetadataRequest),
                               (service.ModelReady, service_pb2.ModelReadyRequest)):
                try:
                    found[f"{kind.__name__} of {name}"] = ["OK", json_format.MessageToDict(
                        call(kind(name=name), timeout=60))]
                except grpc.RpcError as error:
                    found[f"{kind.__name__} of {name}"] = status(error)
        stream = service.ModelStreamInfer(iter([CASES["good"], CASES["rank 3"], CASES["good with id"]]), timeout=60)
        found["stream"] = [[one.error_message, one.infer_response.id, len(one.infer_response.raw_output_contents)]
                           for one in stream]
        try:
            service.TraceSetting(service_pb2.TraceSettingRequest(), timeout=60)
            found["trace"] = ["OK", ""]
        except grpc.RpcError as error:
            found["trace"] = status(error)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
