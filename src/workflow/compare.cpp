// SPDX-License-Identifier: Apache-2.0
#include "workflow/compare.h"

#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "onnx/reader.h"
#include "ops/evaluator.h"
#include "workflow/flops.h"
#include "workflow/npy.h"
#include "workflow/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

namespace ingot {

namespace {

constexpr double gflop_limit = 50;

using Named = std::map<std::string, Tensor>;

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

std::string find_python(const std::string& wanted) {
    std::vector<std::string> candidates;
    if (!wanted.empty()) {
        candidates.push_back(wanted);
    } else {
        const char* set = std::getenv("INGOT_PYTHON");
        candidates = {set == nullptr ? "" : set, "python3", "python"};
    }
    for (const std::string& c : candidates) {
        if (!c.empty() &&
            run_process({c, "-c", "import onnxruntime, onnx, numpy"}).exit_code == 0) {
            return c;
        }
    }
    return "";
}

// Results of ONNX Runtime by name; `report` gets its version or why it did not run.
Named run_onnxruntime(const std::string& model, const Graph& g, const std::vector<Tensor>& inputs,
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
    (void)g;
    return out;
}

Named run_float64(const std::string& model_path, const std::vector<Tensor>& inputs, double gflop,
                  const CompareOptions& options, ReferenceReport& report) {
    report.reference = "float64 evaluator";
    if (gflop > gflop_limit && !options.full) {
        report.skipped = str("the model has ", gflop, " GFLOP, above ", gflop_limit,
                             "; --full runs it all the same");
        return {};
    }
    onnx::ImportOptions keep;
    keep.keep_names = true;
    Graph g = onnx::import_or_throw(onnx::read_model_file(model_path), keep);
    Graph wide = promoted_to_f64(g);
    Named out;
    EvalOptions eval;
    eval.f64 = true;
    if (options.layers) {
        eval.observe = [&](Value v, const Tensor& t) {
            if (!wide.value_name(v).empty()) {
                out[wide.value_name(v)] = t;
            }
        };
    }
    std::vector<Tensor> results = evaluate(g, inputs, eval);
    for (size_t i = 0; i < results.size(); ++i) {
        out[g.output_names()[i]] = results[i];
    }
    return out;
}

void compare_all(const Named& ours_layers, const Graph& g, const std::vector<Tensor>& ours,
                 const Named& reference, const CompareOptions& options, ReferenceReport& report) {
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
    for (const auto& [computed, tensor] : ours_layers) {
        // Calibration puts what it rounds behind the tensor that it rounds.
        bool rounded = options.build.calibration && computed.ends_with(dequantised_suffix) &&
                       !reference.contains(computed);
        const std::string name =
            rounded ? computed.substr(0, computed.size() - dequantised_suffix.size()) : computed;
        auto it = reference.find(name);
        bool output = std::find(g.output_names().begin(), g.output_names().end(), name) !=
                      g.output_names().end();
        if (it != reference.end() && !output) {
            report.layers.push_back(
                difference(name, tensor, it->second, options.atol, options.rtol));
        }
    }
}

} // namespace

TensorDifference difference(std::string name, const Tensor& ours, const Tensor& reference,
                            double atol, double rtol) {
    TensorDifference d;
    d.name = std::move(name);
    d.elements = ours.count();
    if (ours.shape() != reference.shape()) {
        d.problem = str("shape ", ours.shape(), ", the reference has ", reference.shape());
        return d;
    }
    double low = INFINITY;
    double high = -INFINITY;
    for (int64_t i = 0; i < ours.count(); ++i) {
        double a = ours.get_f64(i);
        double b = reference.get_f64(i);
        if (!std::isfinite(a) || !std::isfinite(b)) {
            bool same = (std::isnan(a) && std::isnan(b)) || a == b;
            d.mismatched_nan += same ? 0 : 1;
            continue;
        }
        low = std::min(low, b);
        high = std::max(high, b);
        d.max_absolute = std::max(d.max_absolute, std::fabs(a - b));
    }
    double range =
        high >= low ? std::max(high - low, std::max(std::fabs(high), std::fabs(low))) : 0;
    d.max_relative = d.max_absolute / std::max(range, 1e-30);
    d.within = d.mismatched_nan == 0 && d.max_absolute <= atol + rtol * range;
    return d;
}

bool ReferenceReport::ok() const {
    auto within = [](const TensorDifference& d) { return d.within; };
    return std::all_of(outputs.begin(), outputs.end(), within) &&
           std::all_of(layers.begin(), layers.end(), within);
}

bool CompareReport::ok() const {
    return std::all_of(references.begin(), references.end(),
                       [](const ReferenceReport& r) { return r.ok(); });
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
    std::vector<Shape> shapes;
    for (const Tensor& t : inputs.tensors) {
        shapes.push_back(t.shape());
    }
    report.gflop = count_flops(g, shapes) / 1e9;
    Context context(engine, backend, options.compile);
    Named layers;
    if (options.layers) {
        context.execution().set_observer(
            [&](std::string_view name, const Tensor& t) { layers[std::string(name)] = t.clone(); });
    }
    std::vector<Tensor> ours = context.run(inputs.tensors);
    ReferenceReport ort;
    Named reference = run_onnxruntime(model_path, g, inputs.tensors, options, ort);
    if (ort.skipped.empty()) {
        compare_all(layers, g, ours, reference, options, ort);
    }
    report.references.push_back(std::move(ort));
    ReferenceReport wide;
    reference = run_float64(model_path, inputs.tensors, report.gflop, options, wide);
    if (wide.skipped.empty()) {
        compare_all(layers, g, ours, reference, options, wide);
    }
    report.references.push_back(std::move(wide));
    return report;
}

} // namespace ingot
