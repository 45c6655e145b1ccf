# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes: the manifests render, fit Kubernetes' schemas and KServe's classes strictly, and
agree with each other."""
import copy
import json
import pathlib
import re
import subprocess

import pytest
import yaml

import ingot_command
import manifests

DEPS = ingot_command.REPOSITORY / ".deps" / "manifests"
CHECKER = pathlib.Path(__file__).with_name("manifest_schemas.py")
# Kinds whose schemas are in no package: the tests below check what they refer to.
NO_SCHEMA = {"ServiceMonitor", "PrometheusRule", "ScaledObject", "HTTPRoute"}


def check(objects):
    """For each object its errors, None without a schema."""
    if not (DEPS / "version").is_file():
        pytest.skip(f"no schemas in {DEPS}: './dev setup' installs them; the manifests were NOT checked")
    wheel, = DEPS.glob("kserve-*.whl")
    done = subprocess.run([DEPS / "bin" / "python", CHECKER, wheel], input=yaml.safe_dump_all(objects), text=True,
                          capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def named(objects, kind):
    return [one for one in objects if one["kind"] == kind]


@pytest.mark.parametrize("name", manifests.RENDERED)
def test_manifests_fit_their_schemas(name):
    objects = manifests.render(name)
    found = check(objects)
    assert {one["kind"] for one, errors in zip(objects, found) if errors is None} <= NO_SCHEMA
    assert [(one["kind"], errors) for one, errors in zip(objects, found) if errors] == []


def changed(one, path, value):
    """A copy with another value; a path ends with the key."""
    made = copy.deepcopy(one)
    *way, last = path
    inner = made
    for step in way:
        inner = inner[step]
    inner[last] = value
    return made


POD = ("spec", "template", "spec")


@pytest.mark.parametrize("kind, path, value, text", [
    ("Deployment", (*POD, "containers", 0, "readinesProbe"), {}, "'readinesProbe' was unexpected"),
    ("Deployment", (*POD, "terminationGracePeriodSeconds"), "60", "'60' is not of type"),
    ("Deployment", (*POD, "containers", 0, "securityContext", "runAsNonRoot"), "yes", "'yes' is not of type"),
    ("PodDisruptionBudget", ("spec", "maxUnavailible"), 1, "'maxUnavailible' was unexpected"),
    ("ServingRuntime", ("spec", "supportedModelFormat"), [], "has no field 'supportedModelFormat'"),
    ("ServingRuntime", ("spec", "containers", 0, "imagePullPolice"), "Never", "'imagePullPolice' was unexpected"),
    ("InferenceService", ("spec", "predictor", "canaryTrafficPercent"), "10", "'10' is no int"),
    ("InferenceService", ("spec", "predictor", "model", "modelFormat", "nam"), "x", "has no field 'nam'"),
    ("InferenceService", ("spec", "predictor", "tolerations", 0, "operators"), "x", "'operators' was unexpected"),
])
def test_wrong_manifests_do_not(kind, path, value, text):
    one = named([*manifests.render("base"), *manifests.render("kserve")], kind)[0]
    errors, = check([changed(one, path, value)])
    assert errors and text in errors[0], errors


def matches(selector, labels):
    return selector and all(labels.get(key) == value for key, value in selector.items())


@pytest.mark.parametrize("name", [name for name in manifests.RENDERED if name != "kserve"])
def test_selectors_ports_and_names_refer_to_what_is_there(name):
    objects = manifests.render(name)
    deployments = {one["metadata"]["name"]: one for one in named(objects, "Deployment")}
    services = {one["metadata"]["name"]: one for one in named(objects, "Service")}
    ports = {port["name"] for one in deployments.values()
             for port in one["spec"]["template"]["spec"]["containers"][0]["ports"]}
    selectors = [one["spec"]["selector"] for one in services.values()]
    selectors += [one["spec"]["selector"]["matchLabels"] for one in named(objects, "PodDisruptionBudget")]
    selectors += [one["spec"]["podSelector"]["matchLabels"] for one in named(objects, "NetworkPolicy")]
    labels = [one["spec"]["template"]["metadata"]["labels"] for one in deployments.values()]
    assert len(selectors) == 3 * len(deployments)
    for selector in selectors:  # each of one Deployment alone
        assert sum(bool(matches(selector, found)) for found in labels) == 1, selector
    for one in services.values():
        assert {port["targetPort"] for port in one["spec"]["ports"]} <= ports
    for one in named(objects, "NetworkPolicy"):
        assert {port["port"] for rule in one["spec"]["ingress"] for port in rule["ports"]} == ports
    for one in named(objects, "ServiceMonitor"):
        for service in services.values():
            assert matches(one["spec"]["selector"]["matchLabels"], service["metadata"]["labels"])
            assert one["spec"]["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}
    for one in [*named(objects, "HorizontalPodAutoscaler"), *named(objects, "ScaledObject")]:
        assert one["spec"]["scaleTargetRef"]["name"] in deployments
        assert "replicas" not in deployments[one["spec"]["scaleTargetRef"]["name"]]["spec"]
    for one in named(objects, "HTTPRoute"):
        assert manifests.headers_of(one) == {"Content-Type": "application/octet-stream"}
        backends = one["spec"]["rules"][0]["backendRefs"]
        assert {backend["name"] for backend in backends} == set(services)
        assert sum(backend["weight"] for backend in backends) == 100
        assert all(backend["port"] in [port["port"] for port in services[backend["name"]]["spec"]["ports"]]
                   for backend in backends)


def pods(objects):
    return [one["spec"]["template"]["spec"] for one in named(objects, "Deployment")]


@pytest.mark.parametrize("name", [name for name in manifests.RENDERED if name != "kserve"])
def test_probes_and_grace_periods_fit_the_server(name):
    for pod in pods(manifests.render(name)):
        container, = pod["containers"]
        arguments = dict(re.findall(r"--([\w-]+)=(\S+)", "\n".join(container["args"])))
        drain = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert drain + int(arguments["exit-timeout-secs"]) < pod["terminationGracePeriodSeconds"]
        assert container["startupProbe"]["httpGet"]["path"] == "/v2/models/digits/ready"
        assert container["readinessProbe"]["httpGet"]["path"] == "/v2/models/digits/ready"
        assert container["livenessProbe"]["httpGet"]["path"] == "/v2/health/live"
        ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
        assert ports == {"http": arguments["http-port"], "grpc": arguments["grpc-port"],
                         "metrics": arguments["metrics-port"]}
        mounted = {mount["name"] for one in [container, *pod.get("initContainers", [])]
                   for mount in one["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}
        paths = [mount["mountPath"] for mount in container["volumeMounts"]]
        assert {"/cache", "/tmp"} <= set(paths) and (name == "base" or arguments["model-repository"] in paths)


@pytest.mark.parametrize("name, root", [("base", 0), ("overlays/cpu", 0), ("overlays/gpu", 1),
                                        ("overlays/gpu-image", 0), ("overlays/canary", 0)])
def test_pods_keep_the_pod_security_standard(name, root):
    """"restricted", but for the one init container that gives the node's cache its owner."""
    as_root = 0
    for pod in pods(manifests.render(name)):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            security = container["securityContext"]
            as_root += security.get("runAsUser") == 0
            assert security["readOnlyRootFilesystem"] is True and security["allowPrivilegeEscalation"] is False
            assert security["capabilities"]["drop"] == ["ALL"]
            assert security["capabilities"].get("add", ["CHOWN"]) == ["CHOWN"]
            assert "memory" in container["resources"]["limits"] and "cpu" in container["resources"]["requests"]
        host = [volume for volume in pod["volumes"] if "hostPath" in volume]
        assert len(host) == root
    assert as_root == root


def test_gpus_are_asked_for_one_a_pod():
    for name in ("overlays/gpu", "overlays/gpu-image", "overlays/canary"):
        for pod in pods(manifests.render(name)):
            assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 1
            assert "nodeSelector" not in pod and "affinity" not in pod  # any model of GPU
    assert all("nvidia.com/gpu" not in pod["containers"][0]["resources"]["limits"]
               for pod in pods(manifests.render("overlays/cpu")))


def test_the_canary_has_its_own_models():
    first, second = pods(manifests.render("overlays/canary"))
    images = {volume["image"]["reference"] for pod in (first, second) for volume in pod["volumes"] if "image" in volume}
    assert images == {"ingot-models:1", "ingot-models:2"}


def test_kserve_names_a_format_of_its_runtime():
    objects = manifests.render("kserve")
    runtime, = named(objects, "ServingRuntime")
    service, = named(objects, "InferenceService")
    model = service["spec"]["predictor"]["model"]
    assert model["runtime"] == runtime["metadata"]["name"]
    assert model["modelFormat"]["name"] in [one["name"] for one in runtime["spec"]["supportedModelFormats"]]
    assert model["protocolVersion"] in runtime["spec"]["protocolVersions"]
    container, = runtime["spec"]["containers"]
    assert container["name"] == "kserve-container" and "--model-repository=/mnt/models" in container["args"]
    assert f"--http-port={model['readinessProbe']['httpGet']['port']}" in container["args"]
    products = service["spec"]["predictor"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"]
    assert len(products) >= 3  # one engine for different GPUs
