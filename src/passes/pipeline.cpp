// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "ir/verify.h"
#include "passes/passes.h"

#include <algorithm>
#include <chrono>

namespace ingot {

// Constants first, so that patterns see numbers; patterns before the algebra that would break them
// up; 16-bit types last, when it is known which operations are delicate.
std::span<const Pass* const> aot_passes() {
    static const Pass* const list[] = {
        &passes::dead_code,       &passes::fold_constants,
        &passes::simplify,        &passes::share,
        &passes::fold_constants,  &passes::simplify,
        &passes::dead_code,       &passes::raise_quantization,
        &passes::raise_softmax,   &passes::raise_norm,
        &passes::raise_gelu,      &passes::raise_rope,
        &passes::raise_attention, &passes::fold_pads,
        &passes::fold_scales,     &passes::precision,
        &passes::simplify,        &passes::fold_constants,
        &passes::simplify,        &passes::share,
        &passes::dead_code,
    };
    return list;
}

std::vector<std::string> aot_pass_names() {
    std::vector<std::string> names;
    for (const Pass* p : aot_passes()) {
        if (std::find(names.begin(), names.end(), p->name) == names.end()) {
            names.emplace_back(p->name);
        }
    }
    return names;
}

const Pass& find_pass(std::string_view name) {
    for (const Pass* p : aot_passes()) {
        if (p->name == name) {
            return *p;
        }
    }
    std::vector<std::string> names = aot_pass_names();
    std::string near = nearest(name, names);
    fail(ErrorCode::InvalidArgument, "there is no pass '", name, "'",
         near.empty() ? str(", expected one of ", names) : str(", did you mean '", near, "'?"));
}

Graph run_pass(const Pass& pass, const Graph& g, const PassOptions& options) {
    return with_place(
        [&] { return str("pass '", pass.name, "'"); },
        [&] { return rewrite_all(g, [&](const Graph& one) { return pass.run(one, options); }); });
}

namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
    std::chrono::duration<double, std::milli> d = std::chrono::steady_clock::now() - start;
    return d.count();
}

} // namespace

Graph run_aot_passes(const Graph& g, const PipelineOptions& options) {
    for (const std::string& name : options.disabled) {
        find_pass(name);
    }
    auto list = aot_passes();
    Graph now = g;
    for (size_t i = 0; i < list.size(); ++i) {
        const Pass& pass = *list[i];
        const auto& off = options.disabled;
        if (std::find(off.begin(), off.end(), pass.name) != off.end()) {
            continue;
        }
        check_interrupt();
        if (options.progress) {
            options.progress(pass, i, list.size());
        }
        auto start = std::chrono::steady_clock::now();
        size_t before = count_nodes(now);
        now = run_pass(pass, now, options.pass);
        if (options.verify) {
            with_place([&] { return str("after pass '", pass.name, "'"); }, [&] { verify(now); });
        }
        log(LogLevel::Verbose, "pass ", pass.name, ": ", before, " -> ", count_nodes(now),
            " nodes in ", static_cast<int64_t>(milliseconds_since(start)), " ms");
        if (options.dump_after) {
            options.dump_after(pass, now);
        }
    }
    return now;
}

} // namespace ingot
