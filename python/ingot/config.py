# SPDX-License-Identifier: Apache-2.0
"""Configuration of builds and inference as pydantic models, loadable from YAML:

    tensorrt:
      onnx_path: models/model.onnx
      engine_path: models/model.engine
      fp16: true
      min_shape: [1, 3, 640, 640]

    config = BuildConfig.from_yaml("configs/tensorrt.yaml")
    config.build()
    model = InferenceConfig(engine_path=config.engine_path).load()

Needs the packages pydantic and, for YAML, PyYAML: pip install ingot[config].
"""
import importlib
import os
import pathlib
import typing

try:
    from pydantic import BaseModel, ConfigDict, Field, model_validator
except ImportError as error:
    raise ImportError("ingot.config needs the package pydantic: pip install ingot[config]") from error

import ingot
from ingot._compile import CompiledModel

_Self = typing.TypeVar("_Self", bound="_Config")

Shape = tuple[int, ...]


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def from_yaml(cls: type[_Self], path: str | os.PathLike[str],
                  section: str | None = "tensorrt") -> _Self:
        """The mapping under `section` of a YAML file; the whole file for None.

        Errors: KeyError for a missing section, pydantic.ValidationError for wrong values and field
        names.
        """
        try:
            yaml = importlib.import_module("yaml")
        except ImportError as error:
            raise ImportError("from_yaml needs the package PyYAML: pip install ingot[config]"
                              ) from error
        content = yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8"))
        if section is not None:
            if not isinstance(content, dict) or section not in content:
                raise KeyError(f"{path}: there is no section '{section}'")
            content = content[section]
        return cls.model_validate(content)

    def to_yaml(self, path: str | os.PathLike[str], section: str | None = "tensorrt") -> None:
        """Writes what from_yaml() reads."""
        yaml = importlib.import_module("yaml")
        content = self.model_dump(mode="json")
        text = yaml.safe_dump({section: content} if section is not None else content,
                              sort_keys=False)
        pathlib.Path(path).write_text(text, encoding="utf-8")


class BuildConfig(_Config):
    """Settings of a build from an ONNX model."""

    onnx_path: str = Field(description="Path of the ONNX model")
    engine_path: str = Field(description="Where the engine is written")
    fp16: bool = Field(default=True, description="Compute in FP16 where that is safe")
    int8: bool = Field(default=False, description="Compute in INT8 by Q/DQ or calibration_cache")
    max_workspace_gb: int = Field(default=4, ge=1, le=32, description="Scratch memory of a layer")
    max_batch_size: int = Field(default=1, ge=1, description="Largest size of dimension 0")
    min_shape: Shape = Field(default=(1, 3, 640, 640), description="Smallest shape of the input")
    opt_shape: Shape = Field(default=(1, 3, 640, 640), description="Shape that is tuned for")
    max_shape: Shape = Field(default=(1, 3, 640, 640), description="Largest shape of the input")
    calibration_cache: str | None = Field(default=None, description="INT8 calibration cache path")

    @model_validator(mode="after")
    def _check_shapes(self) -> "BuildConfig":
        shapes = (self.min_shape, self.opt_shape, self.max_shape)
        if len({len(shape) for shape in shapes}) != 1:
            raise ValueError("min_shape, opt_shape and max_shape have different ranks: "
                             + ", ".join(str(list(shape)) for shape in shapes))
        for low, middle, high in zip(*shapes):
            if not 0 <= low <= middle <= high:
                raise ValueError("shapes need 0 <= min <= opt <= max in every dimension: "
                                 + ", ".join(str(list(shape)) for shape in shapes))
        return self

    def shapes(self, inputs: list[tuple[str, Shape]]) -> dict[str, tuple[Shape, Shape, Shape]]:
        """Shapes for the model's dynamic inputs, given as a list of (name, shape): those of the
        configuration, with max_batch_size where it is larger. At most one input may be dynamic."""
        dynamic = [(name, shape) for name, shape in inputs if -1 in shape]
        if len(dynamic) > 1:
            raise ValueError("the configuration has shapes for one input with sizes known only at "
                             "run time; the model has " + ", ".join(name for name, _ in dynamic))
        result = {}
        for name, shape in dynamic:
            largest = list(self.max_shape)
            if shape and shape[0] == -1:
                largest[0] = max(largest[0], self.max_batch_size)
            result[name] = (self.min_shape, self.opt_shape, tuple(largest))
        return result

    def build(self, logger: ingot.ILogger | None = None,
              device: str | int = "auto") -> CompiledModel:
        """Builds the engine, writes it to engine_path, and returns it ready to run. Errors: those
        of ingot.compile()."""
        calibrator = None
        if self.calibration_cache is not None:
            calibrator = _CachedCalibrator(self.calibration_cache)
        return ingot.compile(self.onnx_path, fp16=self.fp16, int8=self.int8, calibrator=calibrator,
                             shapes=self.shapes, workspace=self.max_workspace_gb << 30,
                             logger=logger, device=device, save=self.engine_path)


class InferenceConfig(_Config):
    """The path of an engine and its device."""

    engine_path: str = Field(description="Path of the engine")
    device_id: int = Field(default=0, ge=0, description="Ordinal of the GPU; 0 without a GPU: CPU")
    priority: typing.Literal["low", "normal", "high"] = Field(
        default="normal", description="How urgent runs are to a GPU that other programs use too")

    def load(self, logger: ingot.ILogger | None = None) -> CompiledModel:
        """The engine, ready to run: on GPU device_id; on the CPU where there is no GPU and
        device_id is 0."""
        place: str | int = self.device_id if self.device_id > 0 else "auto"
        return ingot.compile(self.engine_path, device=place, logger=logger, priority=self.priority)


class _CachedCalibrator(ingot.IInt8EntropyCalibrator2):
    """Ranges from a cache file alone."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.cache = pathlib.Path(path).read_bytes()

    def get_batch_size(self) -> int:
        return 1

    def get_batch(self, names: list[str]) -> None:
        return None

    def read_calibration_cache(self) -> bytes:
        return self.cache

    def write_calibration_cache(self, cache: object) -> None:
        pass
