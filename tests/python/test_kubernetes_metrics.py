# SPDX-License-Identifier: Apache-2.0
"""The rules, queries and dashboard of deploy/kubernetes: checked and tested by promtool, and answered by
a real Prometheus that scrapes a real server."""
import contextlib
import json
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import numpy as np
import pytest
import yaml

import ingot_command
import manifests
import triton_server

PROMETHEUS = ingot_command.REPOSITORY / ".deps" / "manifests" / "prometheus" / "usr" / "bin"
DIGITS = ingot_command.DIGITS
METRIC = re.compile(r"\b(?:nv|ingot|kube)_\w+")
SECONDS = 90


def needed():
    if not (PROMETHEUS / "promtool").is_file():
        pytest.skip(f"no Prometheus in {PROMETHEUS}: './dev setup' unpacks it; rules and queries were NOT tested")


def groups():
    found, = [one for one in manifests.render("overlays/gpu") if one["kind"] == "PrometheusRule"]
    return {"groups": found["spec"]["groups"]}


def rules():
    return [rule for group in groups()["groups"] for rule in group["rules"]]


def recorded():
    return {rule["record"] for rule in rules() if "record" in rule}


def dashboard():
    found, = [one for one in manifests.render("overlays/gpu")
              if one["kind"] == "ConfigMap" and one["metadata"]["name"] == "ingot-dashboard"]
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    return json.loads(found["data"]["ingot.json"])


def keda_queries():
    found, = [one for one in manifests.render("overlays/gpu") if one["kind"] == "ScaledObject"]
    return [trigger["metadata"]["query"] for trigger in found["spec"]["triggers"]]


def queries():
    """Every expression of rules, autoscaling and dashboard."""
    found = [rule["expr"] for rule in rules()] + keda_queries()
    for panel in dashboard()["panels"]:
        found += [target["expr"].replace("$namespace", "default") for target in panel["targets"]]
    return found


def test_promtool_takes_the_rules_and_their_tests_pass(tmp_path):
    needed()
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(groups()))
    shutil.copy(ingot_command.REPOSITORY / "tests" / "data" / "ingot_alerts_test.yaml", tmp_path)
    for command in (["check", "rules", "rules.yaml"], ["test", "rules", "ingot_alerts_test.yaml"]):
        done = subprocess.run([PROMETHEUS / "promtool", *command], cwd=tmp_path, text=True, capture_output=True,
                              check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    tested = yaml.safe_load((tmp_path / "ingot_alerts_test.yaml").read_text())
    fired = {one["alertname"] for test in tested["tests"] for one in test.get("alert_rule_test", [])
             if one.get("exp_alerts")}
    assert fired == {rule["alert"] for rule in rules() if "alert" in rule}  # each of them at least once


def test_the_autoscalers_ask_for_recorded_series():
    hpa, = [one for one in manifests.render("overlays/gpu-image") if one["kind"] == "HorizontalPodAutoscaler"]
    asked = {metric["pods"]["metric"]["name"] for metric in hpa["spec"]["metrics"]}
    assert asked == {"ingot_pending_requests", "ingot_queue_seconds"} <= recorded()
    adapter = yaml.safe_load((manifests.ROOT / "components/autoscale-hpa/adapter-rules.yaml").read_text())
    assert {METRIC.search(rule["seriesQuery"]).group() for rule in adapter["rules"]["custom"]} == asked
    assert {name for query in keda_queries() for name in METRIC.findall(query)} == asked


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server whose batches wait for more requests, so that there is a queue."""
    triton_server.needed()
    with triton_server.Server(tmp_path_factory.mktemp("triton")) as running:
        engine = tmp_path_factory.mktemp("digits") / "model.engine"
        ingot_command.build(DIGITS / "digits.onnx", engine)
        running.add("digits", engine, "max_batch_size: 8 instance_group [{ count: 1 kind: KIND_CPU }] dynamic_batching "
                    "{ max_queue_delay_microseconds: 200000 preferred_batch_size: [8] }")
        running.load("digits")
        yield running


@contextlib.contextmanager
def load(server):
    stop, images = threading.Event(), np.load(DIGITS / "held_out_images.npy")[:1].astype(np.float32)

    def ask():
        while not stop.is_set():
            server.infer("digits", {"image": images})

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        stop.set()
        for one in threads:
            one.join()


def test_every_series_is_one_that_the_server_has(server):
    with load(server):
        time.sleep(1)
    there = set(re.findall(r"^# TYPE (\w+)", server.metrics(), re.MULTILINE)) | recorded()
    asked = {name for query in queries() for name in METRIC.findall(query)}
    assert len(asked) > 10 and {name for name in asked if not name.startswith("kube_")} <= there
    assert 'reason="REJECTED"' in server.metrics()


@pytest.fixture(scope="module")
def prometheus(server, tmp_path_factory):
    """Scrapes the server with the labels that the operator gives; its port."""
    needed()
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "rules.yaml").write_text(yaml.safe_dump(groups()))
    (folder / "prometheus.yaml").write_text(yaml.safe_dump({
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": ["rules.yaml"],
        "scrape_configs": [{"job_name": "triton", "static_configs": [
            {"targets": [f"127.0.0.1:{server.metrics_port}"], "labels": {"namespace": "default", "pod": "p"}}]}]}))
    port, = triton_server.free_ports(1)
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen([PROMETHEUS / "prometheus", "--config.file=prometheus.yaml",
                                    f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.path=data"],
                                   cwd=folder, stdout=log, stderr=log)
    yield port
    process.terminate()
    process.wait(timeout=30)


def ask(port, query):
    """The samples of a query, [] until Prometheus answers."""
    address = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            found = json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 503:  # it reads its rules
            return []
        raise AssertionError(f"{query}: {error.read().decode()}") from None
    except OSError:
        return []
    assert found["status"] == "success", found
    return [float(sample["value"][1]) for sample in found["data"]["result"]]


def wait_for(port, query, condition):
    end = time.monotonic() + SECONDS
    while not any(condition(value) for value in ask(port, query)):
        assert time.monotonic() < end, f"{query} gave {ask(port, query)}"
        time.sleep(0.2)


def test_a_real_prometheus_answers_every_query(server, prometheus):
    with load(server):
        for query in keda_queries():  # both rise under load
            wait_for(prometheus, query, lambda value: value > 0)
        wait_for(prometheus, "ingot_rejected_share", lambda value: value >= 0)
        for panel in dashboard()["panels"]:
            wait_for(prometheus, panel["targets"][0]["expr"].replace("$namespace", "default"), lambda value: value >= 0)
        for query in queries():
            ask(prometheus, query)  # which may be empty, but is none that Prometheus refuses
    wait_for(prometheus, "ingot_pending_requests", lambda value: value == 0)  # and falls without
