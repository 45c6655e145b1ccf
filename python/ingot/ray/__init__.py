# SPDX-License-Identifier: Apache-2.0
"""Ingot's engines in Ray Serve.

    serve run ingot.ray:app repository=models

serves a model repository, the one of Triton Inference Server with the same config.pbtxt, by the Open
Inference Protocol v2 over HTTP and, where Ray Serve's gRPC proxy is on, by Triton's gRPC service
(`grpc_servicer_functions: [ingot.ray.add_inference_service]`). In a graph of one's own:

    model = ingot.ray.deployment("digits.engine", max_batch_size=8)
    app = MyIngress.bind(model.bind())    # there: scores = await self.model.remote(images)

Needs the packages ray and tritonclient: pip install ingot[ray].
"""
import os
import pathlib
import typing

try:
    import ray  # type: ignore[import-untyped, import-not-found, unused-ignore]
    from pydantic import BaseModel, ConfigDict, Field
    from ray import serve
    from tritonclient.grpc import service_pb2_grpc  # type: ignore[import-untyped, import-not-found, unused-ignore]
except ImportError as error:
    raise ImportError(f"ingot.ray needs the packages ray[serve] and tritonclient[grpc]: pip install ingot[ray] "
                      f"({error})") from error

from ingot.ray import _config, _front, _replica, _repository
from ingot.ray._errors import ConfigError, Refused

__all__ = ["Arguments", "ConfigError", "Refused", "add_inference_service", "app", "deployment"]

add_inference_service = service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server
"""The name for `grpc_servicer_functions`: Triton's gRPC service."""

# A replica that has ended is missed after this many seconds, and another one started.
_HEALTH_SECONDS = 1.0
# Requests that a replica has at once, in batches: one that runs and one that waits.
_BATCHES = 2
_LEAST_ONGOING = 64
_DRAIN_SECONDS = 30.0
# An engine is ready in seconds: more load soon brings more replicas, which stay for a while.
_UPSCALE_SECONDS = 3.0
_DOWNSCALE_SECONDS = 120.0


class Arguments(BaseModel):
    """Arguments of the application, as `serve run ingot.ray:app NAME=VALUE` and a Serve config file
    have them."""
    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    repository: str = Field(description="The folder of the models; every node of the cluster sees it")
    models: str | None = Field(default=None, description="Names with commas between; default: all")
    num_gpus: float | None = Field(default=None, ge=0, description="Of a replica; 0: the CPU; default: "
                                                                   "instance_group says it")
    min_replicas: int | None = Field(default=None, ge=0, description="Default: count of instance_group")
    max_replicas: int | None = Field(default=None, ge=1, description="More than min_replicas: autoscaling")
    target_ongoing_requests: float | None = Field(default=None, gt=0, description="Of a replica, that "
                                                  "autoscaling aims at; default: max_batch_size")
    front_replicas: int = Field(default=1, ge=1, description="Replicas that translate the protocol")
    revision: str = Field(default="", description="Means nothing; another one makes `serve deploy` read "
                                                  "the repository anew")


def app(arguments: Arguments) -> typing.Any:
    """The application of a model repository: a deployment for each model and one in front.

    Errors: ConfigError for what cannot be had, naming model and field.
    """
    folder = pathlib.Path(arguments.repository).absolute()
    names = None if arguments.models is None else [name.strip() for name in arguments.models.split(",")]
    found = _repository.read(folder, names)
    models = {model.name: _deployment(model, arguments).bind() for model in found}
    front = serve.deployment(_front.Front).options(
        name="front", num_replicas=arguments.front_replicas, max_ongoing_requests=1000,
        health_check_period_s=_HEALTH_SECONDS, graceful_shutdown_timeout_s=_DRAIN_SECONDS,
        graceful_shutdown_wait_loop_s=0.5)
    return front.bind(models)


def deployment(model: str | os.PathLike[str], *, name: str | None = None, max_batch_size: int | None = None,
               buckets: typing.Sequence[int] | None = None, queue_delay_us: int = 0, threads: int = 1,
               hang_timeout_ms: int | None = None, fp16: bool = False, num_gpus: float | None = None,
               **options: typing.Any) -> typing.Any:
    """A Ray Serve deployment of one engine or ONNX model, for a graph of one's own.

    model: the path of the engine or ONNX model, which every node sees. name: of the deployment;
    default: the file's. max_batch_size, buckets, queue_delay_us, threads, hang_timeout_ms: as in
    config.pbtxt; default: from the engine. fp16: for ONNX models. num_gpus: of a replica, or a
    fraction of one; 0 is the CPU; default: 1 where there are GPUs. options: of serve.deployment(),
    such as num_replicas, autoscaling_config and ray_actor_options.

    Returns a serve.Deployment. Its handle is called with arrays that have an axis of rows, and gives
    an array, or a tuple for several outputs.
    Errors: FileNotFoundError, ConfigError.
    """
    path = pathlib.Path(model).absolute()
    if not path.is_file():
        raise FileNotFoundError(f"there is no model '{path}'")
    config = _config.parse(name or path.stem, None)
    config.max_batch_size = max_batch_size or 0
    if queue_delay_us:
        config.dynamic_batching.max_queue_delay_microseconds = queue_delay_us
    texts = {"threads": str(threads)}
    if hang_timeout_ms is not None:
        texts["hang_timeout_ms"] = str(hang_timeout_ms)
    if buckets is not None:
        texts["buckets"] = ",".join(map(str, buckets)) or "none"
    for key, text in texts.items():
        config.parameters[key].string_value = text
    if fp16:
        accelerator = config.optimization.execution_accelerators.gpu_execution_accelerator.add(name="tensorrt")
        accelerator.parameters["precision_mode"] = "FP16"
    found = _repository.Model(_config.read(config), {1: str(path)})
    arguments = Arguments(repository=str(path.parent), num_gpus=num_gpus)
    made = _deployment(found, arguments)
    if "ray_actor_options" in options:
        options["ray_actor_options"] = made.ray_actor_options | options["ray_actor_options"]
    return made.options(**options) if options else made


def _has_gpus() -> bool:
    """Whether the cluster has GPUs; before ray.init(), whether this machine has."""
    if ray.is_initialized():
        return bool(ray.cluster_resources().get("GPU"))
    return any(pathlib.Path("/dev").glob("nvidia[0-9]*"))


def _gpus(settings: _config.Settings, arguments: Arguments) -> float:
    """GPUs of a replica: instances of a group share one."""
    if arguments.num_gpus is not None:
        return arguments.num_gpus
    if settings.kind == "cpu" or (settings.kind == "auto" and not _has_gpus()):
        return 0.0
    return 1 / settings.count


def _deployment(model: _repository.Model, arguments: Arguments) -> typing.Any:
    settings = model.settings
    gpus = _gpus(settings, arguments)
    least = settings.count if arguments.min_replicas is None else arguments.min_replicas
    most = max(least, 1) if arguments.max_replicas is None else arguments.max_replicas
    if least > most:
        raise ConfigError(f"model '{model.name}': min_replicas is {least} and max_replicas {most}")
    ongoing = _BATCHES * max(settings.max_batch_size, 1)
    if settings.max_queued < 0:  # else the queue in front has the limit
        ongoing = max(ongoing, _LEAST_ONGOING)
    scale: dict[str, typing.Any] = {"num_replicas": most}
    if least < most:
        target = arguments.target_ongoing_requests or settings.max_batch_size or _config.DEFAULT_BATCH
        scale = {"autoscaling_config": {"min_replicas": least, "max_replicas": most,
                                        "target_ongoing_requests": target, "upscale_delay_s": _UPSCALE_SECONDS,
                                        "downscale_delay_s": _DOWNSCALE_SECONDS}}

    class Model(_replica.Replica):
        """A replica of this model; bind() takes no arguments."""

        def __init__(self) -> None:
            super().__init__(model, "gpu" if gpus else "cpu")

    return serve.deployment(Model).options(
        name=model.name, max_ongoing_requests=ongoing, max_queued_requests=settings.max_queued,
        ray_actor_options={"num_cpus": 1 if gpus else settings.threads, "num_gpus": gpus},
        health_check_period_s=_HEALTH_SECONDS, graceful_shutdown_timeout_s=_DRAIN_SECONDS,
        graceful_shutdown_wait_loop_s=0.5, **scale)
