// SPDX-License-Identifier: Apache-2.0
#include "api/options/slim.h"

#include "api/options/common.h"
#include "api/options/inspect.h"
#include "backends/backends.h"
#include "base/error.h"
#include "base/file.h"
#include "commands.h"
#include "common.h"
#include "onnx/data_type.h"
#include "onnx/reader.h"
#include "onnx/string_ends.h"
#include "onnx/writer.h"
#include "slim/slim.h"
#include "workflow/compare/slim_check.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace ingot::tool {

namespace {

// "a:1x3,b:2,4" -> "a:1x3,b:2x4": commas may join sizes too.
std::string joined_by_x(const std::string& spec) {
    std::string out;
    for (size_t start = 0; start <= spec.size();) {
        const size_t end = std::min(spec.find(',', start), spec.size());
        const std::string part = spec.substr(start, end - start);
        const bool size = part.find(':') == std::string::npos && !out.empty();
        out += (out.empty() ? "" : size ? "x" : ",") + part;
        start = end + 1;
    }
    return out;
}

SlimOptions slim_options(const Options& o) {
    SlimOptions s;
    for (const std::string& spec : o.slim().input_shapes) {
        for (auto& shape : parse_shapes(joined_by_x(spec))) {
            s.input_shapes.push_back(std::move(shape));
        }
    }
    s.skip = o.slim().skip_optimizations;
    s.size_threshold = static_cast<uint64_t>(o.slim().size_threshold);
    s.cut_strings = o.slim().cut_strings;
    s.keep_initializer_inputs = o.slim().keep_initializer_inputs;
    return s;
}

int64_t total(const OpCounts& counts) {
    int64_t sum = 0;
    for (const auto& [op, count] : counts) {
        sum += count;
    }
    return sum;
}

uint64_t tensor_bytes(const onnx::Graph& g) {
    uint64_t bytes = 0;
    for (const onnx::Tensor& t : g.initializers) {
        bytes += t.bytes.size();
    }
    for (const onnx::Node& n : g.nodes) {
        for (const onnx::Attribute& a : n.attributes) {
            bytes += a.t.bytes.size() + (a.g == nullptr ? 0 : tensor_bytes(*a.g));
        }
    }
    return bytes;
}

// The file, plus its external weights.
uint64_t size_on_disk(const std::string& path, uint64_t weights) {
    const uint64_t bytes = MappedFile::open(path)->bytes().size();
    return bytes < weights ? bytes + weights : bytes;
}

std::string megabytes(uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f MB", static_cast<double>(bytes) / 1e6);
    return text;
}

std::string described(const onnx::ValueInfo& v) {
    std::string dims;
    for (const onnx::ShapeDim& d : v.dims) {
        append(dims, str(dims.empty() ? "" : ",", d.value >= 0      ? str(d.value)
                                                  : d.param.empty() ? "?"
                                                                    : d.param));
    }
    return str(onnx::data_type_name(v.elem_type), "[", v.has_shape ? dims : "...", "]");
}

struct Side {
    OpCounts ops;
    uint64_t weights = 0;
    uint64_t file = 0;
};

void print_row(const std::string& what, const std::string& before, const std::string& after) {
    std::printf("| %-28s | %14s | %14s |\n", what.c_str(), before.c_str(), after.c_str());
}

void print_table(const onnx::Model& m, const Side& before, const Side& after, bool written,
                 double seconds) {
    const std::string rule = "+" + std::string(30, '-') + "+" + std::string(16, '-') + "+" +
                             std::string(16, '-') + "+\n";
    std::printf("%s", rule.c_str());
    print_row("", "before", "after");
    std::printf("%s", rule.c_str());
    for (const onnx::ValueInfo& v : m.graph.inputs) {
        std::printf("  in  %s: %s\n", v.name.c_str(), described(v).c_str());
    }
    for (const onnx::ValueInfo& v : m.graph.outputs) {
        std::printf("  out %s: %s\n", v.name.c_str(), described(v).c_str());
    }
    std::printf("%s", rule.c_str());
    for (const auto& [op, count] : before.ops) {
        auto now = after.ops.find(op);
        print_row(op, str(count), str(now == after.ops.end() ? 0 : now->second));
    }
    for (const auto& [op, count] : after.ops) {
        if (!before.ops.contains(op)) {
            print_row(op, "0", str(count));
        }
    }
    std::printf("%s", rule.c_str());
    print_row("operators", str(total(before.ops)), str(total(after.ops)));
    print_row("weights", megabytes(before.weights), megabytes(after.weights));
    print_row("size", megabytes(before.file), written ? megabytes(after.file) : "not written");
    std::printf("%s", rule.c_str());
    std::printf("Slimmed in %.2f s\n", seconds);
}

int report_check(const SlimCheck& check, int64_t seed) {
    for (const std::string& name : check.random_inputs) {
        std::printf("Using random values for input %s (seed %lld)\n", name.c_str(),
                    static_cast<long long>(seed));
    }
    for (const TensorDifference& d : check.outputs) {
        std::printf("  %-4s output %s: %s\n", d.within ? "ok" : "FAIL", d.name.c_str(),
                    d.text().c_str());
    }
    std::printf("%s\n", check.ok() ? "agrees" : "DIFFERS");
    return check.ok() ? 0 : 1;
}

// Whether results stay equal bit for bit.
bool is_exact(const SlimReport& report) {
    const std::vector<SlimRuleInfo> rules = slim_rules();
    return std::all_of(rules.begin(), rules.end(), [&](const SlimRuleInfo& r) {
        return r.exact || !report.applied.contains(std::string(r.name));
    });
}

void print_json(const Side& before, const Side& after, const SlimReport& report, double seconds) {
    const nlohmann::json out = {
        {"before",
         {{"operators", before.ops}, {"weightBytes", before.weights}, {"bytes", before.file}}},
        {"after",
         {{"operators", after.ops}, {"weightBytes", after.weights}, {"bytes", after.file}}},
        {"rules", report.applied},
        {"exact", is_exact(report)},
        {"rounds", report.rounds},
        {"seconds", seconds}};
    std::printf("%s\n", out.dump(2).c_str());
}

} // namespace

int slim(const Options& o) {
    require(o.slim().inspect || !o.common().output.empty(), ErrorCode::InvalidArgument,
            "say where to write the result with -o, or give --inspect to see the changes");
    const double start = seconds_now();
    const onnx::Model model = onnx::read_model_file(o.model);
    SlimReport report;
    const onnx::Model slimmed = with_place(
        [&] { return o.model; }, [&] { return slim_model(model, slim_options(o), &report); });
    const onnx::StringEnds strings = onnx::string_ends(model);
    if (!strings.nodes.empty()) {
        std::fprintf(stderr, "%s: %s\n", o.slim().cut_strings ? "cut" : "--cut-strings would cut",
                     strings.text().c_str());
    }
    Side before{count_operators(model), tensor_bytes(model.graph), 0};
    Side after{count_operators(slimmed), tensor_bytes(slimmed.graph), 0};
    before.file = size_on_disk(o.model, before.weights);
    if (!o.common().output.empty()) {
        onnx::WriteOptions write;
        if (o.slim().save_as_external_data) {
            write.external_threshold = 1024;
        }
        onnx::write_model_file(slimmed, o.common().output, write);
        after.file = size_on_disk(o.common().output, after.weights);
    }
    const double seconds = seconds_now() - start;
    if (o.common().json) {
        print_json(before, after, report, seconds);
    } else {
        print_table(slimmed, before, after, !o.common().output.empty(), seconds);
    }
    if (!o.slim().model_check) {
        return 0;
    }
    CompareOptions c;
    c.compile = compile_options(o);
    c.inputs = input_source(o);
    c.atol = o.inspect().atol;
    c.rtol = o.inspect().rtol;
    return report_check(
        check_slimmed(o.slim().cut_strings ? onnx::without_string_ends(model) : model, slimmed,
                      cpu_backend(), c),
        o.common().seed);
}

} // namespace ingot::tool
