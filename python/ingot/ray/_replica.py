# SPDX-License-Identifier: Apache-2.0
"""The deployment of a model: a replica holds the versions that are served, on one device."""
import asyncio
import concurrent.futures
import logging
import os
import pathlib
import threading
import typing
from functools import partial

import numpy as np
from google.protobuf import json_format  # type: ignore[import-untyped, import-not-found, unused-ignore]
from ray import serve  # type: ignore[import-untyped, import-not-found, unused-ignore]
from tritonclient.grpc import model_config_pb2  # type: ignore[import-untyped, import-not-found, unused-ignore]

from ingot.ray import _repository, _tensors
from ingot.ray._errors import ConfigError, Refused
from ingot.ray._tensors import Array, Arrays
from ingot.ray._version import Version

EXIT_DEVICE_LOST = 86
EXIT_HANG = 87
_GPU_LIMIT_MS = 60_000  # of a run, where hang_timeout_ms is not set
_GRACE_SECONDS = 0.2  # in which the answers of the batch that failed leave the process

_GiveUp = typing.Callable[[str], None]  # gets the reason

_log = logging.getLogger("ray.serve")


class _Watch:
    """Ends the process when its device is lost or a run does not end; a replica that reports itself
    ill would go on failing requests for seconds."""

    def __init__(self) -> None:
        self.cause = ""  # why the process is about to end

    def end(self, cause: str, exit_code: int) -> None:
        self.cause = self.cause or cause
        _log.error("%s; this process ends with exit code %d, so that Ray Serve starts another", cause, exit_code)
        timer = threading.Timer(_GRACE_SECONDS, os._exit, [exit_code])
        timer.daemon = True
        timer.start()

    def run(self, subject: str, limit_ms: int, give_up: _GiveUp) -> threading.Timer | None:
        """A timer, to be cancelled when the run has ended; else give_up answers its requests."""
        if not limit_ms:
            return None

        def end() -> None:
            cause = f"{subject}: a run has not ended after {limit_ms} ms (parameter hang_timeout_ms)"
            self.end(cause, EXIT_HANG)
            give_up(cause)

        timer = threading.Timer(limit_ms / 1e3, end)
        timer.daemon = True
        timer.start()
        return timer


class _Served:
    """A version behind serve.batch and a thread of its own."""

    def __init__(self, model: _repository.Model, number: int, device: str, watch: _Watch) -> None:
        self._subject = f"{model.name} version {number}"
        limit_ms = model.settings.hang_timeout_ms
        self._watch, self._limit_ms = watch, limit_ms if limit_ms >= 0 else _GPU_LIMIT_MS if device == "gpu" else 0
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix=model.name)
        self.version: Version = self._thread.submit(
            Version, model.settings, model.versions[number], device).result()
        reason = self._thread.submit(self._warm_up, model).result()
        if reason:
            _log.warning("%s: not every batch size is prepared: %s", self._subject, reason)
        run = self._run_batch
        if self.version.limit > 1:
            # A size of 0 would let serve.batch gather empty requests for ever.
            self._batched: typing.Any = serve.batch(
                max_batch_size=self.version.limit, batch_wait_timeout_s=model.settings.delay_seconds,
                batch_size_fn=lambda items: sum(max(rows, 1) for _, rows in items))(
                    _unbound(run))
        else:
            self._batched = None

    def _warm_up(self, model: _repository.Model) -> str:
        reason = self.version.warm_up()
        for one in self.version.settings.message().model_warmup:
            inputs = {name: _warm_input(model, one, name) for name in one.inputs}
            for _ in range(max(one.count, 1)):
                try:
                    self.version.run([self.version.prepare(inputs)[0]])
                except Refused as error:
                    raise ConfigError(f"model '{model.name}': model_warmup '{one.name}' failed: {error}") from None
        return reason

    async def infer(self, inputs: Arrays) -> Arrays:
        """Errors: Refused."""
        if self._watch.cause:
            raise Refused("UNAVAILABLE", f"this server is about to restart: {self._watch.cause}")
        values, rows = self.version.prepare(inputs)
        if self._batched is not None:
            answer = await self._batched((values, rows))
        else:
            answer = (await self._run_batch([(values, rows)]))[0]
        if isinstance(answer, Refused):
            raise answer
        found: Arrays = answer
        return found

    async def _run_batch(self, items: list[tuple[Arrays, int]]) -> list[Arrays | Refused]:
        loop = asyncio.get_running_loop()
        answers: dict[int, Arrays | Refused] = {}
        given_up = asyncio.Event()

        def give_up(group: list[int], cause: str) -> None:
            """Without an answer, a client would send a request that does not end to another replica."""
            answers.update(dict.fromkeys(group, Refused("INTERNAL", cause)))
            loop.call_soon_threadsafe(given_up.set)

        run = loop.run_in_executor(self._thread, self._run_groups, [values for values, _ in items], answers, give_up)
        waiting = asyncio.ensure_future(given_up.wait())
        either: list[asyncio.Future[typing.Any]] = [run, waiting]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not given_up.is_set():
            run.result()
        about_to_end = Refused("UNAVAILABLE", f"this server is about to restart: {self._watch.cause}")
        return [answers.get(i, about_to_end) for i in range(len(items))]

    def _run_groups(self, requests: list[Arrays], answers: dict[int, Arrays | Refused],
                    give_up: typing.Callable[[list[int], str], None]) -> None:
        """Requests of one shape run together; those of a failed run again, each alone, so that only
        those fail that are to blame. `answers`, by request, is written."""
        groups: dict[typing.Any, list[int]] = {}
        for i, request in enumerate(requests):
            first = 1 if self.version.limit else 0
            shapes = tuple(request[name].shape[first:] for name in sorted(request))
            groups.setdefault(shapes if self.version.limit else i, []).append(i)
        for group in groups.values():
            try:
                answers |= zip(group, self._run([requests[i] for i in group], partial(give_up, group)))
            except Refused as error:
                if len(group) == 1 or self._watch.cause:
                    answers |= dict.fromkeys(group, error)
                    continue
                for i in group:
                    try:
                        answers[i] = self._run([requests[i]], partial(give_up, [i]))[0]
                    except Refused as own:
                        answers[i] = own

    def _run(self, requests: list[Arrays], give_up: _GiveUp) -> list[Arrays]:
        if self._watch.cause:
            raise Refused("UNAVAILABLE", f"this server is about to restart: {self._watch.cause}")
        timer = self._watch.run(self._subject, self._limit_ms, give_up)
        try:
            return self.version.run(requests)
        except Refused as error:
            lost = self.version.model.device_error  # the driver's word, not a guess from the error
            if lost is not None:
                self._watch.end(f"{self._subject}: the device is lost: {lost}", EXIT_DEVICE_LOST)
                raise Refused("INTERNAL", error.text) from None
            raise
        finally:
            if timer is not None:
                timer.cancel()


def _unbound(run: typing.Any) -> typing.Any:
    """A function of its own around a method: serve.batch keeps the queue of a function in it."""
    async def run_batch(items: list[tuple[Arrays, int]]) -> list[Arrays | Refused]:
        found: list[Arrays | Refused] = await run(items)
        return found
    return run_batch


def _warm_input(model: _repository.Model, sample: typing.Any, name: str) -> Array:
    """An input of model_warmup."""
    wanted = sample.inputs[name]
    shape = (*([max(sample.batch_size, 1)] if model.settings.message().max_batch_size else ()), *wanted.dims)
    datatype = model_config_pb2.DataType.Name(wanted.data_type).removeprefix("TYPE_")
    kind = _tensors.numpy_type(datatype)
    if wanted.input_data_file:
        path = pathlib.Path(model.folder) / "warmup" / wanted.input_data_file
        if pathlib.Path(wanted.input_data_file).name != wanted.input_data_file or not path.is_file():
            raise ConfigError(f"model '{model.name}': model_warmup '{sample.name}' names the file "
                              f"'{wanted.input_data_file}', which the model's folder warmup does not have")
        return _tensors.from_bytes(f"model_warmup input '{name}'", datatype, shape, path.read_bytes())
    if wanted.random_data:
        return np.random.default_rng(0).integers(0, 2, shape).astype(kind)
    return np.zeros(shape, kind)


class Replica:
    """A replica of a model. Other deployments of a graph call it by its handle: with arrays, by
    position or by name, as ingot.compile()'s models are called."""

    def __init__(self, model: _repository.Model, device: str) -> None:
        """Loads and warms the versions; Ray Serve sends requests afterwards. Errors: ConfigError."""
        self._model = model
        self._watch = _Watch()
        for note in model.settings.notes:
            _log.info("%s: %s", model.name, note)
        self._served = {number: _Served(model, number, device, self._watch) for number in model.versions}

    def _find(self, version: str) -> tuple[int, _Served]:
        if version == "":
            return max(self._served.items())
        number = int(version) if version.isascii() and version.isdigit() else -1
        if number not in self._served:
            raise Refused("NOT_FOUND", f"Request for unknown model: '{self._model.name}' version {version} is not "
                                       "found")
        return number, self._served[number]

    async def __call__(self, *arrays: typing.Any, **named: typing.Any) -> typing.Any:
        """Arrays for the newest version's inputs, with an axis of rows where it takes batches; one
        array for one output, a tuple for several. Errors: TypeError, ValueError, RuntimeError."""
        _, served = self._find("")
        names = [tensor.name for tensor in served.version.inputs]
        if len(arrays) > len(names):
            raise TypeError(f"got {len(arrays)} inputs, expected {len(names)}: {', '.join(names)}")
        given = dict(zip(names, arrays)) | named
        try:
            outputs = await served.infer({name: np.asarray(value) for name, value in given.items()})
        except Refused as error:
            raise (ValueError if error.code == "INVALID_ARG" else RuntimeError)(error.text) from None
        values = tuple(outputs.values())
        return values[0] if len(values) == 1 else values

    async def infer(self, version: str, inputs: Arrays, outputs: list[str]) -> tuple[str, Arrays]:
        """The version that ran, and the outputs asked for, or all for []. Errors: Refused."""
        number, served = self._find(version)
        there = [tensor.name for tensor in served.version.outputs]
        for name in outputs:
            if name not in there:
                raise Refused("INVALID_ARG", f"unexpected inference output '{name}' for model "
                                             f"'{self._model.name}'")
        found = await served.infer(inputs)
        return str(number), {name: found[name] for name in outputs or there}

    def metadata(self, version: str) -> dict[str, typing.Any]:
        """The protocol's description. Errors: Refused."""
        number, served = self._find(version)

        def described(tensors: typing.Any) -> list[dict[str, typing.Any]]:
            return [{"name": t.name, "datatype": t.datatype, "shape": list(t.wire)} for t in tensors]

        return {"name": self._model.name, "versions": [str(v) for v in ([number] if version else self._served)],
                "platform": served.version.config.platform or served.version.config.backend,
                "inputs": described(served.version.inputs), "outputs": described(served.version.outputs)}

    def config(self, version: str) -> bytes:
        """ModelConfig, completed from the engine, serialized. Errors: Refused."""
        data: bytes = self._find(version)[1].version.config.SerializeToString()
        return data

    def check_health(self) -> None:
        """Ray Serve asks; a replica that cannot serve has ended already."""


def config_json(data: bytes) -> dict[str, typing.Any]:
    """A serialized ModelConfig as the JSON of the protocol, with numbers of 64 bits as numbers."""
    config = model_config_pb2.ModelConfig.FromString(data)
    found: dict[str, typing.Any] = json_format.MessageToDict(
        config, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    _numbers(config.DESCRIPTOR, found)
    return found


def _numbers(kind: typing.Any, found: dict[str, typing.Any]) -> None:
    for field in kind.fields:
        value = found.get(field.name)
        if value is None or kind.GetOptions().map_entry:
            continue
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for one in value if isinstance(value, list) else [value]:
                _numbers(field.message_type, one)
        elif field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64):
            found[field.name] = [int(one) for one in value] if isinstance(value, list) else int(value)
