# SPDX-License-Identifier: Apache-2.0
"""Requests to a real Triton Inference Server that are wrong in one thing each: status and exact text are those of
wrong_requests.json, which INGOT_WRITE_GOLDENS=1 writes, and a neighbour is served all the while. test_ray_serve.py compares
the same requests to Ray Serve with this server."""
import json
import os
import pathlib
import threading

import numpy as np
import pytest

import serving_cases
import triton_server

GOLDEN = pathlib.Path(__file__).with_name("wrong_requests.json")
CONFIG = "max_batch_size: 8\ninstance_group [{ kind: KIND_CPU }]\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory, digits_engine):
    triton_server.needed()
    with triton_server.Server(tmp_path_factory.mktemp("triton")) as running:
        running.add("digits", digits_engine, CONFIG)
        running.load("digits")
        yield running


class Neighbour(threading.Thread):
    """Asks for the same answer until it is told to stop."""

    def __init__(self, server):
        super().__init__()
        self.server, self.stop, self.answers, self.failures = server, threading.Event(), 0, []
        self.image = serving_cases.image(3)
        self.expected = server.infer("digits", {"image": self.image})["scores"]

    def run(self):
        while not self.stop.is_set():
            try:
                got = self.server.infer("digits", {"image": self.image})["scores"]
                np.testing.assert_allclose(got, self.expected, rtol=1e-4, atol=1e-4)
                self.answers += 1
            except Exception as error:  # whatever it is, a request was lost
                self.failures.append(repr(error))


def test_each_wrong_request_has_its_status_and_text(server):
    cases = serving_cases.wrong()
    assert len(cases) >= 60 and len({case.name for case in cases}) == len(cases)
    neighbour = Neighbour(server)
    neighbour.start()
    answers = serving_cases.answers_of(server, cases)
    neighbour.stop.set()
    neighbour.join()
    assert neighbour.answers > 0 and neighbour.failures == []
    found = {case.name: [status, head["error"]] for case, (status, head, _) in zip(cases, answers)}
    if os.environ.get("INGOT_WRITE_GOLDENS"):
        lines = (f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in found.items())
        GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    assert found == json.loads(GOLDEN.read_text(encoding="utf-8"))
    for status, text in found.values():
        assert 400 <= status < 600 and str(server.folder) not in text and "0x" not in text
    assert server.answers("/v2/health/ready")  # nothing ended
