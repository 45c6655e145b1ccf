# SPDX-License-Identifier: Apache-2.0
"""Around `ingot serve`: units of systemd, a configuration of supervisord, the demo, and
the listings of docs/serving.md, each executed."""
import os
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import ingot_command
import serving
import triton_server
from serving import DIGITS, children, publish, wait_for

DEPLOY = ingot_command.REPOSITORY / "deploy"
SUPERVISOR = serving.HAPROXY.parents[2]


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    serving.needed()
    folder = tmp_path_factory.mktemp("repository") / "models"
    folder.mkdir()
    publish(DIGITS / "digits.onnx", folder, "digits")
    return folder


def client(folder, http):
    out = triton_server.Server(folder / "client", names=())
    out.http = http
    return out


def descendants(process):
    out = {}
    for child, words in children(process).items():
        out |= {child: words} | descendants(child)
    return out


def settings(unit):
    """{key: value} of a unit or configuration file."""
    return dict(line.split("=", 1) for line in unit.read_text().splitlines() if re.match(r"\w+=", line))


def test_units_of_systemd_are_sound_and_restart_whatever_the_exit_code(tmp_path):
    units = sorted((DEPLOY / "systemd").glob("*.service"))
    assert [u.name for u in units] == ["ingot-proxy.service", "ingot-serve.service", "ingot-worker@.service"]
    for unit in units:
        found = settings(unit)
        assert found["Restart"] == "always"
        assert (found["StartLimitBurst"], found["StartLimitIntervalSec"]) == ("10", "300")
        assert int(found["TimeoutStopSec"]) > 30  # longer than what is in flight may take
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze: the units' syntax was NOT checked")
    for unit in units:  # verify wants the programs to be there
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE)
        (tmp_path / unit.name.replace("@", "@0")).write_text(text)
        done = subprocess.run(["systemd-analyze", "verify", tmp_path / unit.name.replace("@", "@0")],
                              text=True, capture_output=True, timeout=60)
        if "Failed to" in done.stderr and unit.name not in done.stderr.replace("@0", "@"):
            pytest.skip(f"systemd-analyze does not work here: {done.stderr.splitlines()[0]}")
        assert done.returncode == 0 and done.stderr == "", done.stderr


def test_supervisord_guards_what_write_only_has_written(repository, tmp_path):
    if not (SUPERVISOR / "supervisor").is_dir():
        pytest.skip(f"no supervisor in {SUPERVISOR}: './dev setup' unpacks it; deploy/supervisord was NOT tested")
    http, grpc, metrics, worker = triton_server.free_ports(4)
    shutil.copy(DEPLOY / "supervisord" / "ingot.conf", tmp_path)
    ingot_command.call("serve", repository, "--workers", "2", "--write-only", tmp_path / "serve",
                       "--tritonserver", triton_server.SERVER, "--haproxy", serving.HAPROXY, "--http-port", http,
                       "--grpc-port", grpc, "--metrics-port", metrics, "--worker-port",
                       20000 + worker % 10000)
    log = tmp_path / "log"
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", "from supervisor.supervisord import main; main()", "-n", "-c",
             tmp_path / "ingot.conf"], stdout=output, stderr=output,
            env=os.environ | {"PYTHONPATH": str(SUPERVISOR)})
    asked = client(tmp_path, http)
    image = {"image": np.load(DIGITS / "held_out_images.npy")[:1]}

    def workers():
        return sorted(p for p, words in descendants(process.pid).items() if "tritonserver" in words[0])

    def both_up():
        return asked.answers("/v2/models/digits/ready") and len(workers()) == 2

    def said():
        return "".join(f.read_text(errors="replace")[-2000:] for f in [log, *tmp_path.glob("*.log")])

    try:
        wait_for(both_up, said)
        for number in (signal.SIGKILL, signal.SIGTERM):  # the second is an orderly stop: exit code 0
            before = workers()
            os.kill(before[0], number)
            wait_for(lambda: len(workers()) == 2 and before[0] not in workers(), said)
            assert asked.infer("digits", image)["scores"].shape == (1, 10)
        started = descendants(process.pid)
    finally:
        process.terminate()
        process.wait(timeout=90)
    assert not any(serving.pathlib.Path(f"/proc/{p}").exists() for p in started)


def test_the_demo_loses_nothing(repository):
    done = subprocess.run(
        [triton_server.CLIENT_PYTHON, ingot_command.REPOSITORY / "examples/serving/demo.py", "--ingot",
         ingot_command.binary(), "--tritonserver", triton_server.SERVER, "--haproxy", serving.HAPROXY],
        text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ingot serve: worker 0 ended by signal 9; it starts again in 0.1 s" in done.stdout
    assert re.search(r"^\d+ digits classified .* 98\.\d% of them right; 0 requests lost$", done.stdout, re.MULTILINE)


def test_the_ten_lines_of_the_document(repository, tmp_path):
    """docs/serving.md to the letter, on free ports; then what the page says of the machine."""
    if shutil.which("curl") is None:
        pytest.skip("no curl: the listing of docs/serving.md was NOT run")
    text = (ingot_command.REPOSITORY / "docs" / "serving.md").read_text(encoding="utf-8")
    section = text[text.index("## A guarded machine in ten lines"):]
    listing = re.search(r"```sh\n(.*?)```", section, re.DOTALL).group(1)
    assert len(listing.splitlines()) <= 10
    http, grpc, metrics = triton_server.free_ports(3)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ingot").symlink_to(ingot_command.binary())
    (programs / "tritonserver").symlink_to(triton_server.SERVER)
    (programs / "haproxy").symlink_to(serving.HAPROXY)
    shutil.copy(DIGITS / "digits.onnx", tmp_path)
    listing = listing.replace(":8000", f":{http}").replace(":8002", f":{metrics}")
    done = subprocess.run(
        ["bash", "-e", "-c", listing], cwd=tmp_path, text=True, capture_output=True, timeout=300,
        env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "INGOT_HTTP_PORT": str(http),
                          "INGOT_GRPC_PORT": str(grpc), "INGOT_METRICS_PORT": str(metrics)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "version 2 published" in done.stdout and "ingot serve: stopped" in done.stdout
    assert 'ingot_serve_worker_up{worker="1"} 1' in done.stdout
    assert (tmp_path / "models" / "digits" / "2" / "model.engine").is_file()
