# SPDX-License-Identifier: Apache-2.0
"""A model repository as Triton Inference Server's: DIR/MODEL/config.pbtxt, DIR/MODEL/VERSION/FILE."""
import dataclasses
import pathlib
import typing

from ingot._compile import _is_engine
from ingot.ray import _config
from ingot.ray._errors import ConfigError

_FOREIGN = (b"ftrt", b"ptrt")  # plans of NVIDIA's TensorRT
FILES = ("model.engine", "model.plan", "model.onnx")


@dataclasses.dataclass(frozen=True)
class Model:
    """A model as it is deployed: its settings, and the file of each version that is served."""
    settings: _config.Settings
    versions: dict[int, str]
    folder: str = ""  # where model_warmup finds its files

    @property
    def name(self) -> str:
        return self.settings.name


def read(folder: pathlib.Path, names: list[str] | None = None) -> list[Model]:
    """The models of a repository, or those named. Errors: ConfigError."""
    if not folder.is_dir():
        raise ConfigError(f"the model repository '{folder}' is no folder")
    there = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and entry.name[0] != ".")
    for name in names or ():
        if name not in there:
            raise ConfigError(f"there is no model '{name}' in '{folder}', which has: {', '.join(there)}")
    wanted = there if names is None else list(dict.fromkeys(names))
    if not wanted:
        raise ConfigError(f"the model repository '{folder}' has no model: each is a folder with config.pbtxt "
                          "and a folder for each version, such as digits/1/model.engine")
    return [read_model(folder / name) for name in wanted]


def read_model(folder: pathlib.Path) -> Model:
    """Errors: ConfigError."""
    path = folder / "config.pbtxt"
    config = _config.parse(folder.name, path if path.is_file() else None)
    settings = _config.read(config)
    there = sorted(int(entry.name) for entry in folder.iterdir()
                   if entry.is_dir() and entry.name.isascii() and entry.name.isdigit()
                   and str(int(entry.name)) == entry.name)
    versions = _chosen(config, there)
    return Model(settings, {version: _file(settings, folder / str(version)) for version in versions},
                 str(folder.absolute()))


def _chosen(config: typing.Any, there: list[int]) -> list[int]:
    """The versions that version_policy chooses."""
    if not there:
        raise ConfigError(f"model '{config.name}' has no version: put the engine into a folder with a number, "
                          f"{config.name}/1")
    policy = config.version_policy
    chosen = policy.WhichOneof("policy_choice")
    if chosen == "all":
        return there
    if chosen == "specific":
        wanted = sorted(policy.specific.versions)
        missing = [version for version in wanted if version not in there]
        if missing or not wanted:
            raise ConfigError(f"model '{config.name}': version_policy names {missing or 'no version'}, there "
                              f"are {there}")
        return wanted
    return there[-max(policy.latest.num_versions, 1):]


def _file(settings: _config.Settings, folder: pathlib.Path) -> str:
    tried = (settings.file,) if settings.file else FILES
    for name in tried:
        if (folder / name).is_file():
            try:
                check_start(folder / name)
            except ConfigError as error:
                raise ConfigError(f"model '{settings.name}', file '{name}': {error}") from None
            return str((folder / name).absolute())
    raise ConfigError(f"model '{settings.name}': the folder of version {folder.name} has no "
                      f"{', '.join(tried)}: put the engine there, or name it in default_model_filename")


def check_start(path: pathlib.Path) -> None:
    """Whether a file begins like an engine; ONNX models may begin anyhow. Errors: ConfigError."""
    with open(path, "rb") as file:
        start = file.read(8)
    if start[:4] in _FOREIGN:
        raise ConfigError("it is a plan of NVIDIA's TensorRT, which runs there alone; build an engine from the "
                          "ONNX model: ingot build model.onnx -o model.engine")
    if path.suffix != ".onnx" and not _is_engine(start):
        raise ConfigError("it is no engine of Ingot's: build one, ingot build model.onnx -o model.engine, or name "
                          "an ONNX model model.onnx")
