# SPDX-License-Identifier: Apache-2.0
"""The cluster's program of bench/ray_speed.py: tests/python/ray_program.py with one command more, which serves the
repository by ONNX Runtime in the Ray Serve class of ingot.ray: same front, batching, buckets and threads. A version's
folder has peer.txt with the path of the ONNX model, beside the engine, which describes inputs and outputs."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "python"))
import ray_program  # noqa: E402
from ray import serve  # noqa: E402

import ingot.ray  # noqa: E402
from ingot.ray import _front, _repository  # noqa: E402


def peer_of(model, arguments):
    """The deployment of a model, run by ONNX Runtime on the CPU. Its class lies inside this function, so that replicas
    get its code and need not import this file."""
    import pathlib

    from ingot.ray import _replica

    class Session:
        """Runs ONNX Runtime, and describes itself as the model of ingot.compile that it replaces."""

        def __init__(self, described, path, threads):
            import onnxruntime
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            self._described = described
            self._names = [output.name for output in described.outputs]

        def __getattr__(self, name):
            return getattr(self._described, name)

        def __call__(self, **inputs):
            return tuple(self._session.run(self._names, inputs))

    class Model(_replica.Replica):
        def __init__(self):
            super().__init__(model, "cpu")
            for number, served in self._served.items():
                version = served.version
                onnx = pathlib.Path(model.versions[number]).with_name("peer.txt").read_text()
                version.model = Session(version.model, onnx, model.settings.threads)
                served._thread.submit(version.warm_up).result()

    return ingot.ray._deployment(model, arguments).options(func_or_class=Model)


class Program(ray_program.Program):
    def run_peer(self, arguments):
        asked = ingot.ray.Arguments(**arguments)
        models = {model.name: peer_of(model, asked).bind()
                  for model in _repository.read(pathlib.Path(asked.repository).absolute(), None)}
        front = serve.deployment(_front.Front).options(name="front", max_ongoing_requests=1000)
        serve.run(front.bind(models), name="default")


if __name__ == "__main__":
    ray_program.main(*sys.argv[1:], kind=Program)
