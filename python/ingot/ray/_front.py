# SPDX-License-Identifier: Apache-2.0
"""The application's ingress: Open Inference Protocol v2 over HTTP, and Triton's gRPC service. It
translates; queues, routing and placement are Ray Serve's."""
import asyncio
import json
import logging
import typing

import grpc  # type: ignore[import-untyped, import-not-found, unused-ignore]
from ray import exceptions, serve  # type: ignore[import-untyped, import-not-found, unused-ignore]
from ray.serve import exceptions as serve_exceptions  # type: ignore[import-untyped, import-not-found, unused-ignore]
from starlette.requests import ClientDisconnect, Request  # type: ignore[import-untyped, import-not-found, unused-ignore]
from starlette.responses import Response  # type: ignore[import-untyped, import-not-found, unused-ignore]
from starlette.routing import Match, Route  # type: ignore[import-untyped, import-not-found, unused-ignore]
from tritonclient.grpc import model_config_pb2, service_pb2  # type: ignore[import-untyped, import-not-found, unused-ignore]

import ingot
from ingot.ray import _grpc, _http
from ingot.ray._errors import Refused
from ingot.ray._replica import config_json
from ingot.ray._tensors import Arrays

_EXTENSIONS = ["model_configuration", "binary_tensor_data", "parameters", "model_repository_index"]
_NO_STREAMS = ("ModelStatistics", "RepositoryModelLoad", "RepositoryModelUnload", "SystemSharedMemoryStatus",
               "SystemSharedMemoryRegister", "SystemSharedMemoryUnregister", "CudaSharedMemoryStatus",
               "CudaSharedMemoryRegister", "CudaSharedMemoryUnregister", "TraceSetting", "LogSettings")

_log = logging.getLogger("ray.serve")


def _error(status: int, text: str) -> Response:
    return Response(json.dumps({"error": text}, separators=(",", ":")), status, media_type="application/json")


def _json(value: typing.Any) -> Response:
    return Response(json.dumps(value, separators=(",", ":")), media_type="application/json")


class Front:
    """Threads: Ray Serve calls it in one event loop."""

    def __init__(self, models: dict[str, typing.Any]) -> None:
        """models: the handle of each model's deployment."""
        self._models = models
        one = "/v2/models/{model}"
        self._routes = [
            Route(path + verb, function, methods=methods)
            for path in (one, one + "/versions/{version:int}")
            for verb, function, methods in (("", self._http_metadata, ["GET"]), ("/ready", self._http_ready, ["GET"]),
                                            ("/config", self._http_config, ["GET"]),
                                            ("/infer", self._http_infer, ["POST"]))
        ] + [Route("/v2", self._http_server, methods=["GET"]),
             Route("/v2/health/live", self._http_live, methods=["GET"]),
             Route("/v2/health/ready", self._http_all_ready, methods=["GET"]),
             Route("/v2/repository/index", self._http_index, methods=["POST"])]

    async def __call__(self, request: Request) -> Response:
        """Answers a request over HTTP."""
        try:
            allowed = True
            for route in self._routes:
                match, child = route.matches(request.scope)
                if match == Match.FULL:
                    request.scope.update(child)
                    return await route.endpoint(request, **child["path_params"])
                allowed = allowed and match != Match.PARTIAL
            return _error(404, "Not Found") if allowed else _error(405, "Method Not Allowed")
        except Refused as error:
            return _error(error.http_status, error.text)
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it

    def _handle(self, model: str, version: str = "") -> typing.Any:
        if model not in self._models:
            raise Refused("NOT_FOUND", f"Request for unknown model: '{model}'"
                                       f"{f' version {version}' if version else ''} is not found")
        return self._models[model]

    async def _call(self, model: str, method: str, *arguments: typing.Any) -> typing.Any:
        """The result of a method of a replica. Errors: Refused, also for a replica that ends meanwhile."""
        handle = self._handle(model, str(arguments[0]))
        try:
            return await getattr(handle, method).remote(*arguments)
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, Refused):
                raise Refused(*error.cause.args) from None
            _log.exception("model '%s' failed", model)
            raise Refused("INTERNAL", f"model '{model}' failed; the server's log says why") from None
        except serve_exceptions.BackPressureError:
            raise Refused("UNAVAILABLE", f"the queue of model '{model}' is full") from None
        except (exceptions.RayActorError, serve_exceptions.DeploymentUnavailableError, exceptions.RaySystemError):
            raise Refused("UNAVAILABLE", f"the replica of model '{model}' that had the request has ended; send it "
                                         "again") from None

    async def _infer(self, model: str, version: str, request: _http.Request) -> tuple[str, Arrays]:
        try:
            found: tuple[str, Arrays] = await self._call(model, "infer", version, request.inputs,
                                                         list(request.outputs))
            return found
        except Refused as error:
            raise Refused(error.code, error.shown(request.id)) from None

    async def _is_ready(self, model: str, version: str = "") -> bool:
        """Whether a replica runs: the controller's word, which no queue delays."""
        if model not in self._models:
            return False
        name = serve.get_replica_context().app_name
        status = await asyncio.to_thread(serve.status)
        found = status.applications[name].deployments.get(self._models[model].deployment_name)
        states = {} if found is None else {str(getattr(state, "value", state)): count
                                           for state, count in found.replica_states.items()}
        if not states.get("RUNNING"):
            return False
        if version:
            try:
                await self._call(model, "metadata", version)
            except Refused:
                return False
        return True

    async def _http_infer(self, request: Request, model: str, version: int | None = None) -> Response:
        wanted = "" if version is None else str(version)
        self._handle(model, wanted)
        body = _http.unpack(await request.body(), request.headers.get("Content-Encoding", ""))
        try:
            asked = _http.read(body, request.headers.get(_http.HEADER_LENGTH), model)
        except Refused as error:
            raise Refused(error.code, error.shown("")) from None
        ran, outputs = await self._infer(model, wanted, asked)
        content, headers = _http.write(model, ran, asked, outputs)
        return Response(content, headers=headers)

    async def _http_metadata(self, request: Request, model: str, version: int | None = None) -> Response:
        return _json(await self._call(model, "metadata", "" if version is None else str(version)))

    async def _http_config(self, request: Request, model: str, version: int | None = None) -> Response:
        data = await self._call(model, "config", "" if version is None else str(version))
        return _json(config_json(data))

    async def _http_ready(self, request: Request, model: str, version: int | None = None) -> Response:
        if await self._is_ready(model, "" if version is None else str(version)):
            return Response(status_code=200)
        return _error(400, "Model version not ready")

    async def _http_live(self, request: Request) -> Response:
        return Response(status_code=200)

    async def _all_ready(self) -> bool:
        return all(await asyncio.gather(*(self._is_ready(model) for model in self._models)))

    async def _http_all_ready(self, request: Request) -> Response:
        return Response(status_code=200) if await self._all_ready() else _error(503, "Server is not ready")

    async def _http_server(self, request: Request) -> Response:
        return _json({"name": "ingot.ray", "version": ingot.__version__, "extensions": _EXTENSIONS})

    async def _index(self) -> list[dict[str, str]]:
        found = []
        for model in self._models:
            ready = await self._is_ready(model)
            versions = (await self._call(model, "metadata", ""))["versions"] if ready else [""]
            found += [{"name": model, "version": version, "state": "READY" if ready else "UNAVAILABLE"}
                      for version in versions]
        return found

    async def _http_index(self, request: Request) -> Response:
        return _json(await self._index())

    # Triton's gRPC service: Ray Serve calls the method that has the name of the RPC.

    async def ServerLive(self, request: typing.Any) -> typing.Any:
        """Whether the application answers."""
        return service_pb2.ServerLiveResponse(live=True)

    async def ServerReady(self, request: typing.Any) -> typing.Any:
        """Whether a replica of each model runs."""
        return service_pb2.ServerReadyResponse(ready=await self._all_ready())

    async def ModelReady(self, request: typing.Any) -> typing.Any:
        """Whether a replica of the model runs."""
        return service_pb2.ModelReadyResponse(ready=await self._is_ready(request.name, request.version))

    async def ServerMetadata(self, request: typing.Any) -> typing.Any:
        """Name, version and extensions."""
        return service_pb2.ServerMetadataResponse(name="ingot.ray", version=ingot.__version__, extensions=_EXTENSIONS)

    async def ModelMetadata(self, request: typing.Any, grpc_context: typing.Any) -> typing.Any:
        """Inputs and outputs."""
        try:
            return service_pb2.ModelMetadataResponse(**await self._call(request.name, "metadata", request.version))
        except Refused as error:
            return _refuse(grpc_context, error, service_pb2.ModelMetadataResponse())

    async def ModelConfig(self, request: typing.Any, grpc_context: typing.Any) -> typing.Any:
        """The configuration, completed from the engine."""
        try:
            data = await self._call(request.name, "config", request.version)
            return service_pb2.ModelConfigResponse(config=model_config_pb2.ModelConfig.FromString(data))
        except Refused as error:
            return _refuse(grpc_context, error, service_pb2.ModelConfigResponse())

    async def RepositoryIndex(self, request: typing.Any, grpc_context: typing.Any) -> typing.Any:
        """All models and versions."""
        try:
            return service_pb2.RepositoryIndexResponse(models=await self._index())
        except Refused as error:
            return _refuse(grpc_context, error, service_pb2.RepositoryIndexResponse())

    async def _grpc_infer(self, request: typing.Any) -> typing.Any:
        self._handle(request.model_name, request.model_version)
        try:
            asked = _grpc.read(request)
        except Refused as error:
            raise Refused(error.code, error.shown(request.id)) from None
        ran, outputs = await self._infer(request.model_name, request.model_version, asked)
        return _grpc.write(request.model_name, ran, asked, outputs)

    async def ModelInfer(self, request: typing.Any, grpc_context: typing.Any) -> typing.Any:
        """Runs a model."""
        try:
            return await self._grpc_infer(request)
        except Refused as error:
            return _refuse(grpc_context, error, service_pb2.ModelInferResponse())

    async def ModelStreamInfer(self, request_stream: typing.Any) -> typing.Any:
        """Runs a model for each request of a stream, in order; an error ends no stream."""
        async for request in request_stream:
            try:
                yield service_pb2.ModelStreamInferResponse(infer_response=await self._grpc_infer(request))
            except Refused as error:
                yield service_pb2.ModelStreamInferResponse(
                    error_message=error.text, infer_response=service_pb2.ModelInferResponse(id=request.id))


def _refuse(context: typing.Any, error: Refused, answer: typing.Any) -> typing.Any:
    context.set_code(grpc.StatusCode[error.grpc_status])
    context.set_details(error.text)
    return answer


def _add_unsupported() -> None:
    """Methods for RPCs that ask for what a cluster does not have."""
    service = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
    for name in _NO_STREAMS:
        answer = service_pb2.__dict__[service.methods_by_name[name].output_type.name]

        async def refuse(self: Front, request: typing.Any, grpc_context: typing.Any, *, name: str = name,
                         answer: typing.Any = answer) -> typing.Any:
            return _refuse(grpc_context, Refused("UNSUPPORTED", f"{name} is not supported by this server"), answer())

        setattr(Front, name, refuse)


_add_unsupported()
