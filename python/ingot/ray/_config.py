# SPDX-License-Identifier: Apache-2.0
"""config.pbtxt as Ray Serve's settings. Each field is honoured, has no effect, or is refused by name;
_fields.py has the tables."""
import dataclasses
import difflib
import pathlib
import typing

from google.protobuf import text_format  # type: ignore[import-untyped, import-not-found, unused-ignore]
from tritonclient.grpc import model_config_pb2  # type: ignore[import-untyped, import-not-found, unused-ignore]

from ingot.ray import _fields
from ingot.ray._errors import ConfigError

_Message = typing.Any  # of protobuf, which has no types here
_MOST_BUCKETS = 16  # a context keeps this many plans
_MOST = 1 << 20
# The limit of a model that nothing bounds, as in Triton Inference Server.
DEFAULT_BATCH = 4
_BACKENDS = ("", "ingot", "tensorrt", "onnxruntime")
_PLATFORMS = ("", "tensorrt_plan", "onnxruntime_onnx")
_KINDS = model_config_pb2.ModelInstanceGroup


@dataclasses.dataclass(frozen=True)
class Settings:
    """All that a replica and its deployment need to know of a configuration."""
    name: str
    config: bytes  # ModelConfig, serialized
    max_batch_size: int = 0
    delay_seconds: float = 0.0  # that a batch waits for more requests
    max_queued: int = -1
    buckets: tuple[int, ...] = ()  # () and pads: powers of two
    pads: bool = True
    threads: int = 1
    hang_timeout_ms: int = -1  # 0: never; -1: a minute on a GPU, never on the CPU
    profile: int = 0
    fp16: bool = False
    batch_invariant: bool = False
    file: str = ""
    kind: str = "auto"  # gpu, cpu
    count: int = 1  # replicas
    notes: tuple[str, ...] = ()

    def message(self) -> _Message:
        """A ModelConfig, which the caller may change."""
        config = model_config_pb2.ModelConfig()
        config.ParseFromString(self.config)
        return config


def parse(name: str, path: pathlib.Path | None) -> _Message:
    """The ModelConfig of a file; an empty one for None. Errors: ConfigError with line and column."""
    config = model_config_pb2.ModelConfig()
    if path is not None:
        try:
            text_format.Parse(path.read_text(encoding="utf-8"), config)
        except (text_format.ParseError, UnicodeDecodeError) as error:
            raise ConfigError(f"model '{name}': config.pbtxt cannot be read: {error}") from None
    if config.name not in ("", name):
        raise ConfigError(f"model '{name}': name '{config.name}' is configured, the folder is '{name}'")
    config.name = name
    return config


def read(config: _Message) -> Settings:
    """Errors: ConfigError naming the model and the field that cannot be had."""
    name = config.name
    try:
        notes: list[str] = []
        _judge_message(config, "", notes)
        _check_backend(config)
        values = _parameters(config, notes)
        fp16 = _accelerators(config, notes)
        kind, count, profile = _instances(config)
        policy = config.dynamic_batching.default_queue_policy
        batching = config.dynamic_batching
        return Settings(
            name=name, config=config.SerializeToString(), max_batch_size=_batch_size(config),
            delay_seconds=batching.max_queue_delay_microseconds / 1e6,
            max_queued=policy.max_queue_size or -1, kind=kind, count=count, profile=profile, fp16=fp16,
            file=_file_name(config), notes=tuple(notes), **values)
    except ConfigError as error:
        raise ConfigError(f"model '{name}': {error}") from None


def _judge_message(message: _Message, prefix: str, notes: list[str]) -> None:
    for field, value in message.ListFields():
        path = prefix + field.name
        verdict, reason = _fields.FIELDS.get(path, (_fields.REFUSED, "this release does not know it"))
        if verdict == _fields.INSIDE:
            repeated = hasattr(value, "__len__")
            for one in value if repeated else [value]:
                _judge_message(one, path + ".", notes)
        elif verdict == _fields.REFUSED:
            raise ConfigError(f"{path} cannot be had in Ray Serve: {reason}")
        elif verdict == _fields.NO_EFFECT:
            notes.append(f"{path} has no effect: {reason}")


def _judge(what: str, table: dict[str, tuple[str, str]], key: str, notes: list[str]) -> None:
    if key not in table:
        near = difflib.get_close_matches(key, table, 1)
        raise ConfigError(f"{what} '{key}' is unknown; docs/serving.md lists those that are known"
                          + (f"; did you mean '{near[0]}'?" if near else ""))
    verdict, reason = table[key]
    if verdict == _fields.REFUSED:
        raise ConfigError(f"{what} '{key}' is refused: {reason}")
    if verdict == _fields.NO_EFFECT:
        notes.append(f"{what} '{key}' has no effect: {reason}")


def _check_backend(config: _Message) -> None:
    if config.backend not in _BACKENDS or config.platform not in _PLATFORMS:
        found = f"backend '{config.backend}'" if config.backend else f"platform '{config.platform}'"
        raise ConfigError(f"{found} is configured, expected one that Ingot serves: ingot, tensorrt or "
                          "onnxruntime")


def _batch_size(config: _Message) -> int:
    if config.max_batch_size < 0:
        raise ConfigError(f"max_batch_size is {config.max_batch_size}, expected 0 or more")
    return int(config.max_batch_size)


def _number(key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= _MOST):
        raise ConfigError(f"parameter '{key}': a number of 1 to {_MOST} is expected, got '{text}'")
    return int(text)


def _buckets(text: str) -> dict[str, typing.Any]:
    if text == "none":
        return {"pads": False}
    buckets = [_number("buckets", part) for part in text.split(",")]
    if any(one >= other for one, other in zip(buckets, buckets[1:])):
        raise ConfigError(f"parameter 'buckets': each is larger than the one before, got '{text}'")
    if len(buckets) > _MOST_BUCKETS:
        raise ConfigError(f"parameter 'buckets': {len(buckets)} of them, at most {_MOST_BUCKETS} are kept")
    return {"buckets": tuple(buckets)}


def _parameters(config: _Message, notes: list[str]) -> dict[str, typing.Any]:
    """Fields of Settings."""
    found: dict[str, typing.Any] = {}
    for key in sorted(config.parameters):
        text = config.parameters[key].string_value
        _judge("parameter", _fields.PARAMETERS, key, notes)
        if key == "batch_invariant":
            if text not in ("true", "false"):
                raise ConfigError(f"parameter 'batch_invariant': true or false is expected, got '{text}'")
            found[key] = text == "true"
        elif key == "buckets":
            found |= _buckets(text)
        elif key == "hang_timeout_ms":
            found[key] = 0 if text == "0" else _number(key, text)
        elif key in ("threads", "intra_op_thread_count") and text != "0":
            found["threads"] = _number(key, text)
    return found


def _accelerators(config: _Message, notes: list[str]) -> bool:
    """Whether FP16 is asked for."""
    fp16 = False
    wanted = config.optimization.execution_accelerators
    for accelerator in [*wanted.gpu_execution_accelerator, *wanted.cpu_execution_accelerator]:
        if accelerator.name != "tensorrt":
            notes.append(f"accelerator '{accelerator.name}' has no effect: Ingot runs the model")
            continue
        for key in sorted(accelerator.parameters):
            value = accelerator.parameters[key]
            _judge("parameter of the accelerator 'tensorrt'", _fields.ACCELERATOR, key, notes)
            if key == "precision_mode":
                if value not in ("FP32", "FP16"):
                    raise ConfigError(f"precision_mode {value} is refused: FP32 and FP16 are served; build "
                                      "an engine with ingot build --int8 --calib for others")
                fp16 = value == "FP16"
    return fp16


def _instances(config: _Message) -> tuple[str, int, int]:
    """Kind, number of replicas, optimisation profile."""
    kinds = {_KINDS.KIND_AUTO: "auto", _KINDS.KIND_GPU: "gpu", _KINDS.KIND_CPU: "cpu"}
    found, profiles = set(), set()
    count = 0
    for group in config.instance_group:
        if group.kind not in kinds:
            raise ConfigError("instance_group.kind KIND_MODEL cannot be had: choose KIND_GPU or KIND_CPU")
        found.add(kinds[group.kind])
        count += group.count or 1
        profiles |= {text for text in group.profile}
    if len(found) > 1:
        raise ConfigError("instance_group has groups of different kinds: replicas of a deployment are of one "
                          "kind; deploy the model twice")
    if len(profiles) > 1:
        raise ConfigError(f"instance_group names several profiles, {', '.join(sorted(profiles))}: name one, a "
                          "replica runs with one")
    profile = profiles.pop() if profiles else "0"
    if not profile.isdigit():
        raise ConfigError(f"instance_group.profile '{profile}' is no number")
    return found.pop() if found else "auto", count or 1, int(profile)


def _file_name(config: _Message) -> str:
    name = str(config.default_model_filename)
    if "/" in name or name == "..":
        raise ConfigError(f"default_model_filename '{name}' names a file elsewhere: it lies in the folder of "
                          "the version")
    return name
