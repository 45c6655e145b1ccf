// SPDX-License-Identifier: Apache-2.0
#include "gpu/engines.h"

#include "backends/backends.h"
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "base/error.h"
#include "emulator/emulated_gpu.h"
#include "ops/evaluator.h"
#include "source_dir.h"
#include "workflow/build.h"
#include "workflow/inputs/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>

namespace ingot::test {

namespace {

std::string environment(const char* name) {
    const char* v = std::getenv(name);
    return v == nullptr ? "" : v;
}

std::vector<std::string> engine_paths() {
    std::vector<std::string> out;
    std::string list = environment("INGOT_GPU_ENGINES");
    for (size_t start = 0; start < list.size();) {
        size_t end = std::min(list.find(',', start), list.size());
        out.push_back(list.substr(start, end - start));
        start = end + 1;
    }
    return out;
}

} // namespace

bool on_device() {
    return environment("INGOT_TEST_GPU") == "1";
}

const Backend& gpu_backend() {
    if (on_device()) {
        std::string why;
        const Backend* found = cuda_backend(why);
        require(found != nullptr, ErrorCode::Unsupported, "INGOT_TEST_GPU is set, but ", why);
        return *found;
    }
    static emulator::EmulatedGpu gpu(90);
    static std::unique_ptr<Backend> emulated = cuda::make_backend(gpu);
    return *emulated;
}

CompileOptions gpu_options() {
    CompileOptions o;
    if (!on_device()) {
        o.of<CudaOptions>().runtime_cache = ""; // the emulator keeps its own
    }
    return o;
}

const std::vector<std::string>& engine_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> out;
        for (const std::string& path : engine_paths()) {
            out.push_back(path.substr(path.find_last_of('/') + 1));
        }
        return out.empty() ? std::vector<std::string>{"digits"} : out;
    }();
    return names;
}

const std::shared_ptr<const Engine>& engine_at(size_t index) {
    static std::vector<std::shared_ptr<const Engine>> loaded(engine_names().size());
    std::shared_ptr<const Engine>& e = loaded.at(index);
    if (e == nullptr) {
        std::vector<std::string> paths = engine_paths();
        BuildConfig small;
        small.profiles = profile_from_specs("image:1x1x8x8", "image:2x1x8x8", "image:5x1x8x8");
        std::string digits = source_dir() + "/examples/digits/digits.onnx";
        e = !paths.empty() ? Engine::load(paths.at(index)) : build_engine(digits, small);
    }
    return e;
}

Symbols profile_symbols(const Engine& e, int which) {
    const Graph& g = e.graph();
    Symbols out;
    for (size_t i = 0; i < g.inputs().size(); ++i) {
        Value v = g.inputs()[i];
        const ShapeRange* range =
            e.profiles().empty() ? nullptr : e.profiles()[0].find(g.value_name(v));
        Shape shape = range == nullptr ? default_shape(g, i, e.profiles())
                      : which == 0     ? range->min
                      : which == 1     ? range->opt
                                       : range->max;
        bind_symbols(g.type(v).dims, shape, out, g.value_name(v));
    }
    return out;
}

Bounds input_bounds(const Engine& e) {
    Symbols low = profile_symbols(e, 0);
    Symbols high = profile_symbols(e, 2);
    Bounds out;
    for (const auto& [name, size] : low) {
        out[name] = {size, high.at(name)};
    }
    return out;
}

std::vector<Shape> input_shapes(const Engine& e, const Symbols& symbols) {
    std::vector<Shape> out;
    for (Value v : e.graph().inputs()) {
        out.push_back(eval(e.graph().type(v).dims, symbols));
    }
    return out;
}

std::vector<Tensor> random_inputs(const Engine& e, const std::vector<Shape>& shapes,
                                  uint64_t seed) {
    const Graph& g = e.graph();
    std::vector<Tensor> out;
    for (size_t i = 0; i < shapes.size(); ++i) {
        Value v = g.inputs()[i];
        out.push_back(random_tensor(g.type(v).dtype, shapes[i], seed, g.value_name(v)));
    }
    return out;
}

std::string bits_differ(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    if (a.size() != b.size()) {
        return str(a.size(), " outputs and ", b.size());
    }
    for (size_t i = 0; i < a.size(); ++i) {
        if (a[i].shape() != b[i].shape() ||
            std::memcmp(a[i].bytes().data(), b[i].bytes().data(), a[i].bytes().size()) != 0) {
            return str("output ", i, " differs");
        }
    }
    return "";
}

double range_error(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
    double worst = 0;
    for (size_t i = 0; i < want.size(); ++i) {
        double low = HUGE_VAL;
        double high = -HUGE_VAL;
        double difference = 0;
        for (int64_t k = 0; k < want[i].count(); ++k) {
            double w = want[i].get_f64(k);
            double d = std::abs(got[i].get_f64(k) - w);
            low = std::min(low, w);
            high = std::max(high, w);
            difference = std::isnan(d) ? HUGE_VAL : std::max(difference, d);
        }
        if (want[i].count() > 0) {
            worst = std::max(worst, difference / std::max(high - low, 1e-30));
        }
    }
    return worst;
}

int64_t setting(const char* name, int64_t standard) {
    std::string text = environment(name);
    return text.empty() ? standard : std::atoll(text.c_str());
}

void report(const std::string& name, const std::string& values) {
    std::cout << "RESULT " << name << ' ' << values << std::endl;
}

} // namespace ingot::test
