# SPDX-License-Identifier: Apache-2.0
"""Ingot as an execution provider of ONNX Runtime, 1.24 and newer.

    import ingot.onnxruntime
    ingot.onnxruntime.register()
    session = onnxruntime.InferenceSession("model.onnx", providers=["NvTensorRTRTXExecutionProvider"])

register() registers the library with ONNX Runtime, and makes sessions accept the provider's name,
which stock ONNX Runtime knows but does not pass to libraries. Importing this module changes
nothing. `python -m ingot.onnxruntime` lists the parts found, and the reason for each missing one.
"""
import contextlib
import os
import pathlib
import sys
import typing
import weakref
from collections.abc import Iterator, Mapping, Sequence

__all__ = ["get_ep_name", "get_ep_names", "get_library_path", "register", "unregister"]

_NAME = "NvTensorRTRTXExecutionProvider"
_OTHER_NAMES = ("NvTensorRtRtxExecutionProvider", "IngotExecutionProvider")
_OURS = {name.lower() for name in (_NAME, *_OTHER_NAMES)}
_LIBRARY = "libingot_onnxruntime.so"
_OLDEST = (1, 24)

_registered: str | None = None  # the library's registered name
_originals: dict[str, typing.Any] = {}  # what register() replaced
# SessionOptions: the options that our provider has in them.
_given: weakref.WeakKeyDictionary[typing.Any, dict[str, str]] = weakref.WeakKeyDictionary()
_Options = Mapping[str, typing.Any]


def get_ep_name() -> str:
    """The provider's name."""
    return _NAME


def get_ep_names() -> list[str]:
    """The names of all providers in the library: one."""
    return [_NAME]


def get_library_path() -> str:
    """The library's path, for onnxruntime.register_execution_provider_library(). Raises
    FileNotFoundError."""
    folder = pathlib.Path(__file__).absolute().parent
    places = [folder / _LIBRARY, folder.parents[1] / _LIBRARY]
    for place in places:
        if place.is_file():
            return str(place)
    raise FileNotFoundError(f"{_LIBRARY} is neither at {places[0]} nor at {places[1]}: install "
                            "ingot's wheel again")


def _onnxruntime() -> typing.Any:
    import onnxruntime  # type: ignore[import-untyped, unused-ignore]
    release = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
    if release < _OLDEST:
        raise RuntimeError(f"onnxruntime {onnxruntime.__version__} is installed, expected 1.24 or "
                           "newer: pip install --upgrade onnxruntime")
    return onnxruntime


@contextlib.contextmanager
def _cpu_allowed(allow: bool | None) -> Iterator[None]:
    """The library reads the variable while it is registered."""
    before = os.environ.get("INGOT_ALLOW_CPU")
    if allow is not None:
        os.environ["INGOT_ALLOW_CPU"] = "1" if allow else "0"
    try:
        yield
    finally:
        if allow is not None:
            os.environ.pop("INGOT_ALLOW_CPU")
            if before is not None:
                os.environ["INGOT_ALLOW_CPU"] = before


def register(name: str = _NAME, *, allow_cpu: bool | None = None) -> None:
    """Registers the library with ONNX Runtime under `name`; again is no error.

    allow_cpu: whether the CPU is offered as a device. None: as the variable INGOT_ALLOW_CPU says,
    which is no by default.
    """
    global _registered
    if _registered is not None:
        return
    onnxruntime = _onnxruntime()
    with _cpu_allowed(allow_cpu):
        onnxruntime.register_execution_provider_library(name, get_library_path())
    _registered = name
    _understand_names(onnxruntime)


def unregister() -> None:
    """Takes the library out of ONNX Runtime. Sessions that use it have to be gone."""
    global _registered
    if _registered is None:
        return
    onnxruntime = _onnxruntime()
    onnxruntime.unregister_execution_provider_library(_registered)
    _registered = None
    onnxruntime.InferenceSession.__init__ = _originals.pop("session")
    onnxruntime.SessionOptions.add_provider = _originals.pop("add_provider")


def _is_ours(name: object) -> bool:
    return isinstance(name, str) and name.lower() in _OURS


def _device(onnxruntime: typing.Any, options: Mapping[str, str]) -> typing.Any:
    devices = [d for d in onnxruntime.get_ep_devices() if _is_ours(d.ep_name)]
    if not devices:
        raise RuntimeError(
            f"{_NAME} has no device here: there is no GPU of compute capability 8.0 or above, or no "
            "driver. `python -m ingot.onnxruntime` says more; for the CPU: "
            "ingot.onnxruntime.register(allow_cpu=True), or INGOT_ALLOW_CPU=1 before registering")
    wanted = options.get("device_id")
    if wanted is None:
        return devices[0]
    for device in devices:
        if device.ep_options.get("device_id") == wanted:
            return device
    raise ValueError(f"Invalid device ID: {wanted}, {_NAME} has the devices "
                     f"{', '.join(d.ep_options.get('device_id', '?') for d in devices)}")


def _add(onnxruntime: typing.Any, session_options: typing.Any, options: _Options | None) -> None:
    """Our provider into session options, once."""
    texts = {key: str(value) for key, value in (options or {}).items()}
    before = _given.get(session_options)
    if before is not None:
        if before != texts:
            raise ValueError(f"these SessionOptions have {_NAME} with the options {before} already, "
                             f"now with {texts}: make new ones")
        return
    session_options.add_provider_for_devices([_device(onnxruntime, texts)], texts)
    _given[session_options] = texts


def _pairs(providers: Sequence[typing.Any],
           provider_options: Sequence[_Options] | None) -> list[tuple[typing.Any, _Options]]:
    """[(name, options)] from the arguments of InferenceSession."""
    if provider_options is not None and len(providers) != len(provider_options):
        raise ValueError(f"there are {len(providers)} providers and {len(provider_options)} "
                         "provider_options, expected as many")
    pairs = []
    for i, provider in enumerate(providers):
        name, options = provider if isinstance(provider, (tuple, list)) else (provider, None)
        if provider_options is not None:
            options = {**(options or {}), **(provider_options[i] or {})}
        pairs.append((name, options or {}))
    return pairs


def _understand_names(onnxruntime: typing.Any) -> None:
    session_init = onnxruntime.InferenceSession.__init__
    add_provider = onnxruntime.SessionOptions.add_provider
    _originals.update(session=session_init, add_provider=add_provider)

    def add_any_provider(self: typing.Any, name: str, options: _Options | None = None) -> None:
        if _is_ours(name):
            _add(onnxruntime, self, options)
        else:
            add_provider(self, name, options or {})

    def init(self: typing.Any, path_or_bytes: typing.Any, sess_options: typing.Any = None,
             providers: Sequence[typing.Any] | None = None,
             provider_options: Sequence[_Options] | None = None, **more: typing.Any) -> None:
        pairs = _pairs(providers, provider_options) if providers else []
        if any(_is_ours(name) for name, _ in pairs):
            sess_options = onnxruntime.SessionOptions() if sess_options is None else sess_options
            for name, options in pairs:
                if name != "CPUExecutionProvider":  # which always comes last
                    add_any_provider(sess_options, name, options)
            providers = provider_options = None
        if sess_options is not None and sess_options in _given:
            more.setdefault("enable_fallback", False)
        session_init(self, path_or_bytes, sess_options, providers, provider_options, **more)

    onnxruntime.InferenceSession.__init__ = init
    onnxruntime.SessionOptions.add_provider = add_any_provider


def _report() -> bool:
    """Lines on the parts found; True when sessions can run."""
    try:
        onnxruntime = _onnxruntime()
    except ImportError:
        print("onnxruntime: not installed: pip install onnxruntime")
        return False
    except RuntimeError as e:
        print(f"onnxruntime: {e}")
        return False
    print(f"onnxruntime: {onnxruntime.__version__} at {pathlib.Path(onnxruntime.__file__).parent}")
    try:
        print(f"library: {get_library_path()}")
        register()
    except Exception as e:
        print(f"library: cannot be registered: {e}")
        return False
    devices = [d for d in onnxruntime.get_ep_devices() if _is_ours(d.ep_name)]
    for device in devices:
        print(f"device {device.ep_options.get('device_id', '?')}: {device.device.type.name} of "
              f"{device.device.vendor or 'an unknown vendor'}")
    if not devices:
        print("devices: none. A GPU needs compute capability 8.0 or above and NVIDIA's driver; the CPU "
              "is offered when it is asked for (INGOT_ALLOW_CPU=1)")
    return bool(devices)


if __name__ == "__main__":
    sys.exit(0 if _report() else 1)
