# SPDX-License-Identifier: Apache-2.0
"""`ingot inspect --kernels` and `ingot report`. The page is opened in a headless Chromium that has no network: its
document after its scripts ran is what tests read."""
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot_command as ingot

BROWSERS = ("chromium-headless-shell", "chromium")
HOSTILE = [
    "</script><script>document.title='injected'</script>",
    "<img src=x onerror=\"document.title='injected'\">",
    "\"><svg onload=document.title='injected'>",
    "{{DATA}} ]]> --> <!-- \u2028 &lt;b&gt;",
    "__proto__",
    "constructor",
]


def chain(path, count, names=None, columns=16):
    """A model of `count` products, each with a ReLU, named as given."""
    nodes, weights = [], []
    for i in range(count):
        weights.append(numpy_helper.from_array(np.full((columns, columns), 0.01 * (i % 7), np.float32), f"w{i}"))
        name = names[i] if names else f"/block.{i // 10}/part.{i % 10}/MatMul"
        nodes.append(helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"p{i}"], name=name))
        nodes.append(helper.make_node("Relu", [f"p{i}"], [f"x{i + 1}"], name=name.replace("MatMul", "Relu")))
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [32, columns])],
                              [helper.make_tensor_value_info(f"x{count}", TensorProto.FLOAT, [32, columns])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def report(model, page, *options):
    text = ingot.call("report", model, "-o", page, *options)
    assert text == f"wrote {page}\n"
    return page.read_text(encoding="utf-8")


def data_of(page):
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1)
    assert "<" not in text and ">" not in text and "&" not in text
    return json.loads(text)


class Elements(html.parser.HTMLParser):
    """Counts of elements by (tag, first class), texts of titles, and attributes that load or run something."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.counts, self.loads, self.title, self.result, self.inside = {}, [], "", "", None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        key = (tag, (values.get("class") or "").split(" ")[0])
        self.counts[key] = self.counts.get(key, 0) + 1
        self.loads += [f"{tag} {name}" for name, _ in attributes
                       if name in ("src", "href", "srcset", "action") or name.startswith("on")]
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "title" and not self.title:
            self.title = data
        if self.inside == "output":
            self.result += data

    def count(self, tag, name=""):
        return self.counts.get((tag, name), 0)


def opened(path, folder):
    """The document of a page after its scripts ran, in a browser that resolves no name; what its console says, and
    the addresses that it asked for."""
    browser = next((found for found in map(shutil.which, BROWSERS) if found), None)
    if browser is None:
        pytest.skip("no headless Chromium (Debian: chromium-headless-shell): the page was NOT opened in a browser")
    log = folder / "net.json"
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
         "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'user'}",
         f"--log-net-log={log}", "--enable-logging=stderr", "--virtual-time-budget=20000", "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    asked = set(re.findall(r'"url":"([a-z]+:[^"]*)"', log.read_text(errors="replace"))) if log.exists() else set()
    return Elements(done.stdout), console, {url for url in asked if not url.startswith(("file:", "data:", "about:"))}


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    model = chain(folder / "many.onnx", 1000)
    page = folder / "many.html"
    return page, report(model, page, "--for=sm_90", "--noCompile")


def test_kernels_of_an_absent_gpu_and_of_the_cpu(tmp_path):
    model = chain(tmp_path / "two.onnx", 2)
    text = ingot.call("inspect", model, "--kernels", "--for=sm_90", "--noCompile")
    assert text.startswith("device: sm_90a (not needed here), 132 SMs") and "times are predicted" in text
    assert "/block.0/part.0/MatMul + /block.0/part.0/Relu" in text and "candidates" in text
    assert text.splitlines()[-1].startswith("2 layers, 2 launches of ")
    for same in ("90", "9.0"):
        assert ingot.call("inspect", model, "--kernels", f"--for={same}", "--noCompile") == text
    assert "sm_80" in ingot.call("inspect", model, "--kernels", "--for=8.0", "--noCompile")
    on_cpu = ingot.call("inspect", model, "--kernels", "--for=cpu")
    assert "nothing is timed; --time runs the model and measures" in on_cpu
    timed = json.loads(ingot.call("inspect", model, "--kernels", "--for=cpu", "--time", "--json"))
    assert {layer["timeBasis"] for layer in timed["layers"]} == {"measured"}
    assert all(layer["timeUs"] > 0 and layer["flops"] > 0 for layer in timed["layers"])


def test_forced_tactics_and_sources(tmp_path):
    model = chain(tmp_path / "two.onnx", 2)
    forced = ingot.call("inspect", model, "--kernels", "--for=90", "--noCompile", "--forceTactic=simt")
    assert forced.count("forced by an option") == 2
    listed = json.loads(ingot.call("inspect", model, "--kernels", "--for=90", "--noCompile", "--json"))
    kernel = listed["kernels"][0]
    text = ingot.call("inspect", model, "--for=90", "--noCompile", f"--source={kernel['entry']}")
    assert text.startswith(f"// {kernel['entry']} {kernel['hash']}, {kernel['launches']} launches\n")
    assert kernel["text"] in text and "__global__" in text
    assert ingot.call("inspect", model, "--for=90", "--noCompile", "--source=all").count("\n// ") + 1 >= len(listed["kernels"])


@pytest.mark.parametrize("options, message", [
    (["--kernels", "--for=gpu"], "--for gpu: expected cpu, or a compute capability such as sm_90, 90 or 9.0"),
    (["--kernels", "--for=70"], "compute capability 7.0 is not supported"),
    (["--kernels", "--for=91"], "compute capability 9.1 is not known; known are 80, 86, 89, 90, 100, 120"),
    (["--for=90", "--noCompile", "--source=nothing"], "--source nothing: no kernel has this entry or hash, expected 'all' or one of ["),
    (["--kernels", "--for=89", "--time"], "--time: there is no GPU of --for 89 here"),
    (["--layers", "--for=90"], "--for 90: belongs to --kernels, --source, --plan or --dump-after; --layers lists the steps on the "
                               "device that is here, --kernels or --plan those of another"),
    (["--for=90"], "--for 90: belongs to --kernels, --source, --plan or --dump-after\n"),
    (["--dump-after=zzzzzzzz", "--for=90"], "--dump-after: there is no pass 'zzzzzzzz'. Passes: import, "),
    (["--for=cpu", "--source=all"], "(the plan launches none; --for names a GPU)"),
])
def test_wrong_words_are_said(tmp_path, options, message):
    done = subprocess.run([ingot.binary(), "inspect", chain(tmp_path / "one.onnx", 1), *options], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 1 and message in done.stderr, done.stderr


def test_a_report_without_a_place_or_with_a_bad_timeline(tmp_path):
    model = chain(tmp_path / "one.onnx", 1)
    (tmp_path / "bad").write_text("{")
    for options, message in ((["--for=90"], "Give -o FILE.html, or --json to print its data"),
                             (["--json", "--for=cpu", f"--timeline={tmp_path / 'bad'}"], "the timeline is no JSON")):
        done = subprocess.run([ingot.binary(), "report", model, *options], text=True, capture_output=True, check=False)
        assert done.returncode == 1 and message in done.stderr, done.stderr


def test_registers_come_from_the_compiled_kernels(tmp_path):
    model = chain(tmp_path / "one.onnx", 1)
    listed = json.loads(ingot.call("inspect", model, "--kernels", "--for=80", "--json"))
    launches = [launch for layer in listed["layers"] for launch in layer["launches"]]
    if all(launch["registers"] is None for launch in launches):
        pytest.skip("no NVRTC: registers were NOT read")
    assert all(8 <= launch["registers"] <= 255 for launch in launches)
    assert all(launch["waves"] > 0 and launch["blocksPerSm"] >= 1 for launch in launches)


def test_the_page_holds_what_inspect_prints(tmp_path):
    model = chain(tmp_path / "three.onnx", 3)
    page = data_of(report(model, tmp_path / "page.html", "--for=sm_90", "--noCompile"))
    listed = json.loads(ingot.call("inspect", model, "--kernels", "--for=sm_90", "--noCompile", "--json"))
    for kernel in listed["kernels"]:
        del kernel["text"]
    assert page["subjects"][0]["report"] == listed
    printed = json.loads(ingot.call("report", model, "--json", "--for=sm_90", "--noCompile"))
    assert printed["subjects"][0]["report"] == listed
    phases = {event["phase"] for event in page["subjects"][0]["coldStart"]}
    assert {"read model", "import", "optimise", "lower", "plan"} <= phases and "compile" not in phases


def test_the_cold_start_of_the_cpu_ends_with_a_run(tmp_path):
    engine = tmp_path / "e.engine"
    ingot.build(chain(tmp_path / "three.onnx", 3), engine)
    events = data_of(report(engine, tmp_path / "page.html", "--for=cpu"))["subjects"][0]["coldStart"]
    phases = [event["phase"] for event in events]
    assert phases[0] == "read engine" and {"lower", "plan", "first run"} <= set(phases)
    assert all(0 <= event["startMs"] <= event["endMs"] for event in events)


def test_a_thousand_kernels_stay_small_and_load_nothing(many):
    path, page = many
    layers = data_of(page)["subjects"][0]["report"]["layers"]
    assert len(layers) == 1000 and sum(len(layer["launches"]) for layer in layers) == 1000
    assert len(page.encode()) < 2_500_000, "about 2 kB a layer"
    elements = Elements(page)
    assert elements.loads == [] and elements.title == "Ingot report"
    assert "default-src 'none'" in page and page.count("<script") == 2


def test_a_thousand_kernels_in_a_browser(many, tmp_path):
    elements, console, asked = opened(many[0], tmp_path)
    assert console == [] and asked == set()
    assert elements.count("tr", "layer") == 1000
    assert elements.count("circle", "dot") == 1000
    assert 10 <= elements.count("g", "node") <= 150, "boxes of a graph that one can read"
    assert elements.count("rect", "span") >= 5
    assert elements.count("path", "roof") == 4, "memory, and three peaks"


# The actions of a reader, as a script that runs behind the page's own.
READER = """
const result = {};
const all = (selector) => [...document.querySelectorAll(selector)];
const event = (node, name) => node.dispatchEvent(new Event(name, { bubbles: true }));
const text = document.querySelector("input");
text.value = "block.7/"; event(text, "input");
result.filtered = all("tr.layer").length;
text.value = ""; event(text, "input");
event(all("th.sorts").find((th) => th.textContent === "#"), "click");
result.first = all("tr.layer")[0].textContent;
event(all("tr.layer")[0], "click");
result.detail = all("tr.detail")[0].textContent;
event(all("tr.layer")[0], "click");
result.closed = all("tr.detail").length;
result.boxes = all("g.node").length;
event(all("g.node")[0], "click");
result.opened = all("g.node").length;
const level = document.querySelector("select.detail-level");
level.value = "Infinity"; event(level, "change");
result.everyLayer = all("g.node").length;
result.edges = all("path.edge").length;
const out = document.createElement("output");
out.className = "result";
out.textContent = JSON.stringify(result);
document.body.appendChild(out);
"""


def test_sorting_filtering_and_opening_in_a_browser(many, tmp_path):
    page = tmp_path / "read.html"
    page.write_text(many[1].replace("start();\n</script>", f"start();\n{READER}</script>"), encoding="utf-8")
    elements, console, _ = opened(page, tmp_path)
    assert console == []
    result = json.loads(elements.result)
    assert result["filtered"] == 10
    assert "/block.99/part.9/MatMul" in result["first"], "the second click on a heading turns the order"
    assert "chosen" in result["detail"] and "gemm" in result["detail"] and result["closed"] == 0
    assert result["boxes"] == 100 and result["opened"] == 109, "one box of ten layers was opened"
    assert result["everyLayer"] == 1000 and result["edges"] == 999


def test_layers_with_flat_names_join_by_number_in_a_browser(tmp_path):
    model = chain(tmp_path / "flat.onnx", 300, [f"layer{i}" for i in range(300)])
    report(model, tmp_path / "page.html", "--for=sm_90", "--noCompile")
    elements, console, _ = opened(tmp_path / "page.html", tmp_path)
    assert console == [] and elements.count("g", "node") == 100, "three layers a box"


def test_hostile_names_stay_names(tmp_path):
    model = chain(tmp_path / "hostile.onnx", len(HOSTILE), HOSTILE)
    page = report(model, tmp_path / "page.html", "--for=sm_90", "--noCompile")
    static = Elements(page)
    assert static.count("img") == 0 and page.count("<script") == 2
    assert {name for layer in data_of(page)["subjects"][0]["report"]["layers"] for name in layer["nodes"]} >= set(HOSTILE)
    elements, console, asked = opened(tmp_path / "page.html", tmp_path)
    assert console == [] and asked == set()
    assert elements.title == "Ingot report" and elements.count("img") == 0 and elements.loads == []
    assert elements.count("tr", "layer") == len(HOSTILE)


def test_two_engines_and_a_timeline_in_a_browser(tmp_path):
    one, two = chain(tmp_path / "one.onnx", 4), chain(tmp_path / "two.onnx", 6)
    launches = [{"step": f"<b>{i}", "tactic": "wgmma_64x64_s1", "kernel": "k", "start": [1000 * i, 1000 * i + 100, -1],
                 "ready": [1000 * i + 200], "end": [1000 * i + 1200, 1000 * i + 900, -1]} for i in range(5)]
    (tmp_path / "timeline.json").write_text(json.dumps({"device": "a GPU", "replay": 4, "launches": launches}))
    report(one, tmp_path / "page.html", f"--compare={two}", "--for=sm_90", "--noCompile",
           f"--timeline={tmp_path / 'timeline.json'}")
    elements, console, asked = opened(tmp_path / "page.html", tmp_path)
    assert console == [] and asked == set()
    assert elements.count("tr", "layer") == 10 and elements.count("table", "layers") == 2
    assert elements.count("svg", "roofline") == 2 and elements.count("svg", "cold") == 2
    assert elements.count("rect", "launch") == 5


def test_control_flow_and_unknown_sizes_in_a_browser(tmp_path):
    """Layers in bodies, layers that cannot be planned yet, and the CPU, whose peaks are unknown."""
    body = helper.make_graph([helper.make_node("Tanh", ["a"], ["b"], name="inner"), helper.make_node("Identity", ["c"], ["d"])],
                             "body", [helper.make_tensor_value_info("i", TensorProto.INT64, []),
                                      helper.make_tensor_value_info("c", TensorProto.BOOL, []),
                                      helper.make_tensor_value_info("a", TensorProto.FLOAT, [4, 4])],
                             [helper.make_tensor_value_info("d", TensorProto.BOOL, []),
                              helper.make_tensor_value_info("b", TensorProto.FLOAT, [4, 4])])
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["y"], name="loop", body=body),
             helper.make_node("NonZero", ["y"], ["z"], name="found")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 4]),
                                           helper.make_tensor_value_info("n", TensorProto.INT64, [])],
                              [helper.make_tensor_value_info("z", TensorProto.INT64, [2, None])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "loop.onnx")
    for target in ("cpu", "sm_90"):
        page = report(tmp_path / "loop.onnx", tmp_path / f"{target}.html", f"--for={target}", "--noCompile")
        layers = data_of(page)["subjects"][0]["report"]["layers"]
        assert [layer["body"] for layer in layers if layer["depth"] == 1][:1] == ["body"]
        elements, console, asked = opened(tmp_path / f"{target}.html", tmp_path)
        assert console == [] and asked == set() and elements.count("tr", "layer") == len(layers)


def test_a_shared_kernel_has_other_layers(tmp_path):
    """A layer that says "other layers use its kernel too" launches a kernel that another one launches."""
    models = [(ingot.REPOSITORY / "examples/digits/digits.onnx", "--fp16"), (chain(tmp_path / "nine.onnx", 9), "--bf16")]
    for model, precision in models:
        ingot.build(model, tmp_path / "e.engine", [precision])
        for target in ("80", "90"):
            data = json.loads(ingot.call("inspect", tmp_path / "e.engine", "--kernels", f"--for={target}", "--noCompile",
                                         "--json"))
            kernels = [{launch["hash"] for launch in layer["launches"]} for layer in data["layers"]]
            for i, layer in enumerate(data["layers"]):
                if any(choice["reason"] == "shared" for choice in layer["choices"]):
                    others = set().union(*kernels[:i], *kernels[i + 1:])
                    assert kernels[i] & others, (layer["name"], target)


def test_conversions_are_named_by_the_layer_that_reads_them(tmp_path):
    """An input's conversion to f16 belongs to the node that reads it, not to the constant before it."""
    ingot.build(ingot.REPOSITORY / "examples/digits/digits.onnx", tmp_path / "e.engine", ["--fp16"])
    data = json.loads(ingot.call("inspect", tmp_path / "e.engine", "--kernels", "--for=90", "--noCompile", "--json"))
    first = data["layers"][0]
    assert first["inputs"] == ["f32[1,1,8,8] 'image'"] and first["nodes"] == ["conv1"]


def test_a_layer_without_a_node_names_its_readers(tmp_path):
    """The product wants its input dense, after a pool whose channels are last: a copy that no node asked for."""
    model = ingot.REPOSITORY / "examples/digits/digits.onnx"
    ingot.build(model, tmp_path / "e.engine", ["--fp16"])
    for target, options in (("90", ["--noCompile"]), ("cpu", [])):
        text = ingot.call("inspect", tmp_path / "e.engine", "--kernels", f"--for={target}", *options)
        assert re.search(r"^      copy  .*\n      no node of the model; read by linear$", text, re.MULTILINE), text


# Opens the details of every layer.
OPENER = """
const out = document.createElement("output");
out.className = "result";
const rows = [...document.querySelectorAll("tr.layer")];
rows.forEach((row) => row.dispatchEvent(new Event("click", { bubbles: true })));
out.textContent = JSON.stringify([...document.querySelectorAll("tr.detail")].map((detail) => detail.textContent));
document.body.appendChild(out);
"""


def test_a_layer_without_a_node_names_its_readers_in_a_browser(tmp_path):
    model = ingot.REPOSITORY / "examples/digits/digits.onnx"
    ingot.build(model, tmp_path / "e.engine", ["--fp16"])
    page = report(tmp_path / "e.engine", tmp_path / "page.html", "--for=90", "--noCompile")
    (tmp_path / "open.html").write_text(page.replace("start();\n</script>", f"start();\n{OPENER}</script>"), encoding="utf-8")
    elements, console, _ = opened(tmp_path / "open.html", tmp_path)
    assert console == []
    details = json.loads(elements.result)
    assert [d for d in details if "no node of the model; read by: linear" in d], details
    assert not [d for d in details if "no node" in d and "ONNX nodes" in d]


def test_listings_of_the_page(tmp_path):
    """docs/inspecting.md to the letter."""
    text = (pathlib.Path(ingot.REPOSITORY) / "docs/inspecting.md").read_text(encoding="utf-8")
    listing, compared = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert listing.count("ingot ") == 2 and compared.count("ingot compare model.onnx") == 4
    ingot.build(ingot.REPOSITORY / "examples/digits/digits.onnx", tmp_path / "model.engine")
    shutil.copy(ingot.REPOSITORY / "examples/digits/digits.onnx", tmp_path / "model.onnx")
    environment = os.environ | {"PATH": f"{ingot.binary().parent}:{os.environ['PATH']}"}
    for lines in (compared, listing):
        done = subprocess.run(["bash", "-euc", lines], cwd=tmp_path, text=True, capture_output=True, check=False,
                              env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("agrees\n") == lines.count("ingot compare")
    assert "device: sm_90a" in done.stdout and "wrote report.html" in done.stdout
    elements, console, asked = opened(tmp_path / "report.html", tmp_path)
    assert console == [] and asked == set() and elements.count("tr", "layer") >= 5
