# SPDX-License-Identifier: Apache-2.0
"""Errors that cross processes: requests that are answered with a text, configurations that are
refused before anything is deployed."""

# The codes of Triton Inference Server, with their HTTP status and the name of the gRPC status.
CODES = {
    "INVALID_ARG": (400, "INVALID_ARGUMENT"),
    "NOT_FOUND": (404, "NOT_FOUND"),
    "UNAVAILABLE": (503, "UNAVAILABLE"),
    "UNSUPPORTED": (400, "UNIMPLEMENTED"),
    "INTERNAL": (500, "INTERNAL"),
}


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: str, text: str, about_request: bool = False) -> None:
        """about_request: whether the text is shown behind the request's id."""
        super().__init__(code, text, about_request)  # all, since Ray pickles it
        self.code, self.text, self.about_request = code, text, about_request

    def shown(self, request_id: str) -> str:
        """The text that a client gets."""
        return f"[request id: {request_id or '<id_unknown>'}] {self.text}" if self.about_request else self.text

    def __str__(self) -> str:
        return self.text

    @property
    def http_status(self) -> int:
        return CODES[self.code][0]

    @property
    def grpc_status(self) -> str:
        return CODES[self.code][1]


class ConfigError(ValueError):
    """A model that cannot be served as its configuration says. The text names model and field."""
