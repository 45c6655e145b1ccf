// SPDX-License-Identifier: Apache-2.0
#include "workflow/compare/compare.h"

#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "onnx/reader.h"
#include "ops/evaluator.h"
#include "ops/support/flops.h"
#include "plan/run_settings.h"
#include "workflow/compare/calibrated_bytes.h"
#include "workflow/compare/first_wrong.h"
#include "workflow/compare/rounding_spread.h"
#include "workflow/compare/ties.h"
#include "workflow/inputs/npy.h"
#include "workflow/quantization/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

namespace ingot {

namespace {

constexpr double gflop_limit = 50;

using Named = std::map<std::string, Tensor>;

/// Results of our run, and with CompareOptions::layers its named values in the order of steps.
struct OwnRun {
    struct Layer {
        std::string name;
        std::string node;
        int64_t step = 0;
        Tensor tensor;
    };
    std::vector<Tensor> outputs;
    std::vector<Layer> layers;
};

// Runs the model in ONNX Runtime. Arguments: model, folder, then 'layers' or nothing. Reads
// in_<i>.npy, writes out_<i>.npy and, for layers, a list of names in layers.txt with layer_<i>.npy.
constexpr const char* ort_script = R"(
import sys, numpy as np, onnxruntime as ort
model, folder, layers = sys.argv[1], sys.argv[2], len(sys.argv) > 3
options = ort.SessionOptions()
options.log_severity_level = 4
source = model
if layers:
    import onnx, os
    m = onnx.load(model, load_external_data=False)
    known = {o.name for o in m.graph.output}
    initial = {t.name for t in m.graph.initializer}
    for node in m.graph.node:
        for name in node.output:
            if name and name not in known and name not in initial:
                m.graph.output.add().name = name
                known.add(name)
    folder_of_model = os.path.dirname(os.path.abspath(model))
    options.add_session_config_entry('session.model_external_initializers_file_folder_path', folder_of_model)
    source = m.SerializeToString()
session = ort.InferenceSession(source, options, providers=['CPUExecutionProvider'])
print('version', ort.__version__)
feeds = {}
for i, x in enumerate(session.get_inputs()):
    a = np.load('%s/in_%s.npy' % (folder, i))
    feeds[x.name] = a
names = [o.name for o in session.get_outputs()]
results = session.run(names, feeds)
with open(folder + '/names.txt', 'w') as f:
    for i, (name, r) in enumerate(zip(names, results)):
        if isinstance(r, np.ndarray) and r.dtype.kind in 'biuf':
            np.save('%s/out_%d.npy' % (folder, i), np.ascontiguousarray(r).reshape(r.shape))
            f.write('%d %s\n' % (i, name))
)";

bool has_onnxruntime(const std::string& python) {
    try {
        return run_process({python, "-c", "import onnxruntime, onnx, numpy"}).exit_code == 0;
    } catch (const Error&) { // not an executable program
        return false;
    }
}

std::string find_python(const std::string& wanted) {
    std::vector<std::string> candidates;
    if (!wanted.empty()) {
        candidates.push_back(wanted);
    } else {
        const char* set = std::getenv("INGOT_PYTHON");
        candidates = {set == nullptr ? "" : set, "python3", "python"};
    }
    for (const std::string& c : candidates) {
        if (!c.empty() && has_onnxruntime(c)) {
            return c;
        }
    }
    return "";
}

/// Results of ONNX Runtime by name; `report` gets its version or the reason why it did not run.
Named run_onnxruntime(const std::string& model, const std::vector<Tensor>& inputs,
                      const CompareOptions& options, ReferenceReport& report) {
    report.reference = "ONNX Runtime";
    std::string python = find_python(options.python);
    if (python.empty()) {
        report.skipped = "no Python with onnxruntime and onnx was found; set INGOT_PYTHON to one";
        return {};
    }
    for (const Tensor& t : inputs) {
        bool plain = t.dtype() != DType::BF16 && !is_packed(t.dtype()) &&
                     bit_width(t.dtype()) * (is_float(t.dtype()) ? 1 : 2) != 8;
        if (!plain) {
            report.skipped = str("its Python interface takes no ", t.dtype(), " input");
            return {};
        }
    }
    TemporaryFolder folder;
    for (size_t i = 0; i < inputs.size(); ++i) {
        write_npy(str(folder.path(), "/in_", i, ".npy"), inputs[i]);
    }
    std::vector<std::string> command = {python, "-c", ort_script, model, folder.path()};
    if (options.layers) {
        command.emplace_back("layers");
    }
    ProcessResult r = run_process(command);
    if (r.exit_code != 0) {
        std::string text = r.output;
        while (!text.empty() && text.back() == '\n') {
            text.pop_back();
        }
        size_t line = text.rfind('\n');
        report.skipped = "it failed: " + (line == std::string::npos ? text : text.substr(line + 1));
        return {};
    }
    size_t version = r.output.find("version ");
    report.reference +=
        " " + r.output.substr(version + 8, r.output.find('\n', version) - version - 8);
    Named out;
    std::string names = read_text_file(folder.path() + "/names.txt");
    for (size_t start = 0; start < names.size();) {
        size_t end = names.find('\n', start);
        std::string line = names.substr(start, end - start);
        size_t space = line.find(' ');
        out[line.substr(space + 1)] =
            read_npy(str(folder.path(), "/out_", line.substr(0, space), ".npy"));
        start = end + 1;
    }
    return out;
}

/// The results of a float64 run: results and layers by name, and for outputs that are indices, the
/// scores that chose them.
struct Wide {
    struct Chosen {
        Choice choice;
        Tensor indices;
        Tensor scores;
    };
    Named named;
    std::vector<Chosen> chosen;
    std::optional<Graph> graph; // before its promotion to float64
};

Wide run_float64(const std::string& model_path, const std::vector<Tensor>& inputs, double gflop,
                 const CompareOptions& options, ReferenceReport& report) {
    report.reference = "float64 evaluator";
    if (gflop > gflop_limit && !options.full) {
        report.skipped =
            str("the model has ", gflop, " GFLOP, above ", gflop_limit, "; --full runs it anyway");
        return {};
    }
    onnx::ImportOptions keep;
    keep.keep_names = true;
    onnx::Model model = onnx::read_model_file(model_path);
    fix_input_sizes(model, options.build);
    Graph g = onnx::import_or_throw(model, keep);
    Graph wide = promoted_to_f64(g);
    Wide out;
    for (const Choice& c : choices(wide)) {
        out.chosen.push_back({c, {}, {}});
    }
    EvalOptions eval;
    eval.f64 = true;
    eval.observe = [&](Value v, const Tensor& t) {
        if (options.layers && !wide.value_name(v).empty()) {
            out.named[wide.value_name(v)] = t;
        }
        for (Wide::Chosen& c : out.chosen) {
            if (v == c.choice.indices) {
                c.indices = t;
            }
            if (v == c.choice.scores) {
                c.scores = t;
            }
        }
    };
    std::vector<Tensor> results = evaluate(g, inputs, eval);
    for (size_t i = 0; i < results.size(); ++i) {
        out.named[g.output_names()[i]] = results[i];
    }
    for (Wide::Chosen& c : out.chosen) {
        for (size_t i = 0; i < g.inputs().size() && !c.scores.defined(); ++i) {
            c.scores = wide.inputs()[i] == c.choice.scores ? inputs[i] : Tensor();
        }
    }
    out.graph = std::move(g);
    return out;
}

/// Accepts ties: for indices by the scores that chose them, for rows by the scores in other
/// outputs.
void accept_ties(const std::vector<Tensor>& ours, const Named& reference, const Wide& wide,
                 const Graph& g, const CompareOptions& options, ReferenceReport& report) {
    for (const Wide::Chosen& c : wide.chosen) {
        TensorDifference& d = report.outputs[c.choice.output];
        auto expected = reference.find(g.output_names()[c.choice.output]);
        const Tensor& got = ours[c.choice.output];
        if (d.within || !d.problem.empty() || expected == reference.end() || !c.scores.defined() ||
            c.indices.count() != got.count()) {
            continue;
        }
        double range = difference("", c.scores, c.scores, 0, 0).range;
        if (std::optional<int64_t> tied =
                tied_choices(got, expected->second, c.scores, c.choice.axis,
                             options.atol + options.rtol * range)) {
            d.tied = *tied;
            d.within = true;
        }
    }
    std::vector<ComparedOutput> rows;
    for (size_t i = 0; i < ours.size(); ++i) {
        auto expected = reference.find(g.output_names()[i]);
        if (expected != reference.end() && report.outputs[i].problem.empty()) {
            rows.push_back({&ours[i], &expected->second, &report.outputs[i]});
        }
    }
    accept_reordered_rows(rows, options.atol, options.rtol);
}

void accept_roundings(const Spreads& spreads, const CompareOptions& options,
                      ReferenceReport& report) {
    for (auto* list : {&report.outputs, &report.layers, &report.written}) {
        for (TensorDifference& d : *list) {
            accept_rounding(d, spreads, options.atol, options.rtol);
        }
    }
}

/// Reports which tensors of the reference exceed the tolerance against float64, and the difference
/// of ours, from the report on float64.
void find_reference_errors(const Named& reference, const Wide& wide, const Spreads& spreads,
                           const ReferenceReport& exact, const CompareOptions& options,
                           ReferenceReport& report) {
    auto look = [&](const std::vector<TensorDifference>& list,
                    const std::vector<TensorDifference>& ours) {
        for (const TensorDifference& d : list) {
            auto theirs = reference.find(d.name);
            auto best = wide.named.find(d.name);
            auto own = std::find_if(ours.begin(), ours.end(),
                                    [&](const TensorDifference& o) { return o.name == d.name; });
            if (d.within || theirs == reference.end() || best == wide.named.end() ||
                own == ours.end() || !own->within) {
                continue;
            }
            TensorDifference o =
                difference(d.name, theirs->second, best->second, options.atol, options.rtol);
            accept_rounding(o, spreads, options.atol, options.rtol);
            if (!o.within) {
                report.off.push_back(str("'", d.name, "': ", report.reference, " is off: ",
                                         o.text(), " against float64; ours: ", own->text()));
            }
        }
    };
    look(report.outputs, exact.outputs);
    look(report.layers, exact.layers);
}

/// Compares the named values that our run wrote, and lists those of the reference that it did not.
void compare_layers(const OwnRun& ours, const Graph& g, const Named& reference,
                    const CompareOptions& options, ReferenceReport& report) {
    std::set<std::string> compared(g.output_names().begin(), g.output_names().end());
    for (Value v : g.inputs()) {
        compared.insert(g.value_name(v));
    }
    std::map<std::string, CalibratedBytes> bytes;
    if (options.build.calibration) {
        bytes = calibrated_bytes(g);
    }
    for (const OwnRun::Layer& l : ours.layers) {
        std::string name = l.name;
        Tensor tensor = l.tensor;
        // Calibration inserts its rounding after the tensor that it rounds.
        if (options.build.calibration && !reference.contains(name)) {
            if (auto narrow = bytes.find(name); narrow != bytes.end()) {
                name = narrow->second.tensor;
                tensor = dequantised(tensor, narrow->second);
            } else if (name.ends_with(dequantised_suffix)) {
                name.resize(name.size() - dequantised_suffix.size());
            }
        }
        auto it = reference.find(name);
        if (it == reference.end()) {
            continue;
        }
        TensorDifference d = difference(name, tensor, it->second, options.atol, options.rtol);
        d.node = l.node;
        d.step = l.step;
        bool output = std::find(g.output_names().begin(), g.output_names().end(), name) !=
                      g.output_names().end();
        (output ? report.written : report.layers).push_back(std::move(d));
        compared.insert(name);
    }
    for (const auto& [name, tensor] : reference) {
        if (!compared.contains(name)) {
            report.not_compared.push_back(name);
        }
    }
}

void compare_all(const OwnRun& own, const Graph& g, const Named& reference,
                 const CompareOptions& options, ReferenceReport& report) {
    const std::vector<Tensor>& ours = own.outputs;
    for (size_t i = 0; i < ours.size(); ++i) {
        const std::string& name = g.output_names()[i];
        auto it = reference.find(name);
        TensorDifference d;
        if (it == reference.end()) {
            d.name = name;
            d.problem = "the reference has no such output";
        } else {
            d = difference(name, ours[i], it->second, options.atol, options.rtol);
        }
        report.outputs.push_back(std::move(d));
    }
    if (options.layers) {
        compare_layers(own, g, reference, options, report);
    }
}

OwnRun run_ours(const std::shared_ptr<const Engine>& engine, const Backend& backend,
                const CompareOptions& options, const std::vector<Tensor>& inputs) {
    OwnRun own;
    Context context(engine, backend, options.compile);
    if (options.layers) {
        context.execution().change([&](RunSettings& changed) {
            changed.observer = [&](const ObservedValue& v) {
                own.layers.push_back({std::string(v.name), std::string(v.node),
                                      static_cast<int64_t>(v.step), v.tensor.clone()});
            };
        });
    }
    own.outputs = context.run(inputs);
    return own;
}

/// The error of a run that verifies lowered graphs and plans; "" where there is none.
std::string find_fault(const std::shared_ptr<const Engine>& engine, const Backend& backend,
                       const CompareOptions& options, const std::vector<Tensor>& inputs) {
    CompileOptions verified = options.compile;
    verified.verify_passes = true;
    try {
        Context(engine, backend, verified).run(inputs);
    } catch (const Error& e) {
        if (e.code() == ErrorCode::Interrupted) {
            throw;
        }
        return e.what();
    }
    return "";
}

} // namespace

bool ReferenceReport::ok() const {
    auto within = [](const TensorDifference& d) { return d.within; };
    return std::all_of(outputs.begin(), outputs.end(), within) &&
           std::all_of(layers.begin(), layers.end(), within);
}

std::string ReferenceReport::first_wrong() const {
    return layers.empty() && written.empty() ? std::string()
                                             : ingot::first_wrong(layers, outputs, written);
}

const ReferenceReport* CompareReport::deciding() const {
    const ReferenceReport* last = nullptr;
    for (const ReferenceReport& r : references) {
        last = r.skipped.empty() ? &r : last;
    }
    return last;
}

bool CompareReport::ok() const {
    return deciding() != nullptr && deciding()->ok();
}

/// The layers that overflow in f16 with these inputs.
static std::vector<Overflow> find_overflows(const std::string& model_path,
                                            const CompareOptions& options) {
    std::vector<Overflow> out;
    if (options.build.precision != DType::F16) {
        return out;
    }
    BuildConfig build = options.build;
    build.half_ranges = options.build.half_ranges.value_or(HalfRangeConfig{});
    build.half_ranges->inputs = options.inputs;
    build.half_ranges->told = [&](std::span<const Overflow> found) {
        out.assign(found.begin(), found.end());
    };
    build_engine(model_path, build);
    return out;
}

CompareReport compare_model(const std::string& model_path, const Backend& backend,
                            const CompareOptions& options) {
    BuildConfig build = options.build;
    build.keep_names = true;
    std::shared_ptr<const Engine> engine = build_engine(model_path, build);
    const Graph& g = engine->graph();
    LoadedInputs inputs = load_inputs(*engine, options.inputs);
    CompareReport report;
    report.random_inputs = inputs.random;
    report.overflows = find_overflows(model_path, options);
    std::vector<Shape> shapes;
    for (const Tensor& t : inputs.tensors) {
        shapes.push_back(t.shape());
    }
    report.gflop = count_flops(g, shapes) / 1e9;
    if (options.started) {
        options.started(report);
    }
    OwnRun own = run_ours(engine, backend, options, inputs.tensors);
    const std::vector<Tensor>& ours = own.outputs;
    ReferenceReport ort;
    Named reference = run_onnxruntime(model_path, inputs.tensors, options, ort);
    ReferenceReport exact;
    Wide wide = run_float64(model_path, inputs.tensors, report.gflop, options, exact);
    if (exact.skipped.empty()) {
        compare_all(own, g, wide.named, options, exact);
        accept_ties(ours, wide.named, wide, g, options, exact);
    }
    Spreads spreads;
    if (options.excuse_rounding && exact.skipped.empty() && !exact.ok()) {
        spreads =
            rounding_spreads(*wide.graph, inputs.tensors, wide.named, options.build.precision);
        accept_roundings(spreads, options, exact);
    }
    if (ort.skipped.empty()) {
        compare_all(own, g, reference, options, ort);
        accept_ties(ours, reference, wide, g, options, ort);
        accept_roundings(spreads, options, ort);
        find_reference_errors(reference, wide, spreads, exact, options, ort);
    }
    report.references.push_back(std::move(ort));
    report.references.push_back(std::move(exact));
    if (report.deciding() != nullptr && !report.ok()) {
        report.fault = find_fault(engine, backend, options, inputs.tensors);
    }
    return report;
}

} // namespace ingot
