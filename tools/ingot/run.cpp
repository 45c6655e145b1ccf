// SPDX-License-Identifier: Apache-2.0
#include "api/options/run.h"

#include "api/options/common.h"
#include "base/error.h"
#include "commands.h"
#include "common.h"
#include "output.h"
#include "workflow/finite.h"
#include "workflow/inputs/npy.h"

#include <cstdio>
#include <filesystem>

namespace ingot::tool {

namespace {

// A file name for a tensor: invalid characters become '_'.
std::string file_name(const std::string& tensor) {
    std::string out;
    for (char c : tensor) {
        out += c == '/' || c == '\\' || c == '\0' || c == ':' ? '_' : c;
    }
    return out.empty() || out == "." || out == ".." ? "_" : out;
}

void print_summary(const std::string& name, const Tensor& t) {
    double low = 0;
    double high = 0;
    double sum = 0;
    for (int64_t i = 0; i < t.count(); ++i) {
        double v = t.get_f64(i);
        low = i == 0 ? v : std::min(low, v);
        high = i == 0 ? v : std::max(high, v);
        sum += v;
    }
    std::printf("%s: %s%s min %g max %g mean %g\n", name.c_str(),
                std::string(ingot::name(t.dtype())).c_str(), str(t.shape()).c_str(), low, high,
                t.count() > 0 ? sum / static_cast<double>(t.count()) : 0.0);
}

} // namespace

/// Names the first layer that is not finite; whether there is none.
static bool print_not_finite(const Engine& engine, const Backend& backend,
                             const CompileOptions& options, std::span<const Tensor> inputs) {
    std::vector<NotFinite> found = find_not_finite(engine, backend, options, inputs);
    for (size_t i = 0; i < found.size(); ++i) {
        std::printf("%s: %s\n", i == 0 ? "not finite" : "first nan", found[i].text().c_str());
    }
    if (found.empty()) {
        std::printf("all values are finite\n");
    }
    return found.empty();
}

int run(const Options& o) {
    print_lines_at_once();
    std::shared_ptr<const Engine> engine = open_model(o, o.model);
    const Backend& backend = choose_backend(o);
    std::printf("Device: %s (%s)\n", std::string(backend.name()).c_str(),
                backend.description().c_str());
    warn_of_gpu_options(o, backend);
    Context context(engine, backend, compile_options(o, *engine));
    LoadedInputs inputs = load_inputs(*engine, input_source(o));
    for (const std::string& n : inputs.random) {
        std::printf("Using random values for input %s (seed %lld)\n", n.c_str(),
                    static_cast<long long>(o.common().seed));
    }
    std::vector<Tensor> outputs = context.run(inputs.tensors);
    if (!o.run().save_outputs.empty()) {
        std::error_code error;
        std::filesystem::create_directories(o.run().save_outputs, error);
        require(!error, ErrorCode::Io, o.run().save_outputs,
                ": cannot create the folder: ", error.message());
    }
    const Graph& g = engine->graph();
    for (size_t i = 0; i < outputs.size(); ++i) {
        print_summary(g.output_names()[i], outputs[i]);
        if (!o.run().save_outputs.empty()) {
            write_npy(o.run().save_outputs + "/" + file_name(g.output_names()[i]) + ".npy",
                      outputs[i]);
        }
    }
    return !o.run().check_finite ||
                   print_not_finite(*engine, backend, compile_options(o, *engine), inputs.tensors)
               ? 0
               : 1;
}

} // namespace ingot::tool
