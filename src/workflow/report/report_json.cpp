// SPDX-License-Identifier: Apache-2.0
// The JSON of `ingot inspect --kernels --json`, which `ingot report` holds too.
#include "workflow/report/report_json.h"

#include "base/error.h"

namespace ingot {

namespace {

using Ordered = nlohmann::ordered_json;

/// A number, or null for 0, which stands for an unknown value.
Ordered known(double v) {
    return v > 0 ? Ordered(v) : Ordered();
}

Ordered to_json(const plan::DeviceFigures& f) {
    return {{"name", f.name},
            {"capability", f.capability},
            {"sms", f.sms},
            {"clockGhz", f.clock_ghz},
            {"bytesPerSecond", f.dram_gbs * 1e9},
            {"f16ProductFlops", f.peak(DType::F16)},
            {"f32ProductFlops", f.peak(DType::F32)},
            {"f8ProductFlops", f.peak(DType::F8E4M3)},
            {"i8ProductFlops", f.peak(DType::I8)},
            {"scalarFlops", f.scalar_flops}};
}

Ordered to_json(const plan::ChoiceReport& c) {
    bool second = !c.runner_up.empty();
    return {{"tactic", c.tactic},
            {"reason", std::string(name(c.reason))},
            {"predictedUs", c.predicted_us},
            {"runnerUp", second ? Ordered(c.runner_up) : Ordered()},
            {"runnerUpUs", second ? Ordered(c.runner_up_us) : Ordered()},
            {"candidates", c.candidates}};
}

Ordered to_json(const plan::LaunchReport& l) {
    const auto& r = l.resources;
    return {{"entry", l.entry},
            {"hash", kernel_hash(l.text)},
            {"grid", l.grid},
            {"block", l.block},
            {"cluster", l.cluster},
            {"dynamicShared", l.shared},
            {"staticShared", r ? Ordered(r->shared) : Ordered()},
            {"registers", r ? Ordered(r->registers) : Ordered()},
            {"localBytes", r ? Ordered(r->local) : Ordered()},
            {"blocksPerSm", l.blocks_per_sm},
            {"waves", l.waves}};
}

Ordered to_json(const LayerReport& l);

template <class T>
Ordered list_of(const std::vector<T>& items) {
    Ordered list = Ordered::array();
    for (const T& i : items) {
        list.push_back(to_json(i));
    }
    return list;
}

Ordered to_json(const LayerReport& l) {
    const plan::StepReport& s = l.step;
    bool timed = l.basis != TimeBasis::None;
    Ordered j = {{"name", s.info.name},
                 {"nodes", s.nodes},
                 {"family", s.info.kernel},
                 {"implementation", s.info.implementation},
                 {"inputs", s.info.inputs},
                 {"outputs", s.info.outputs},
                 {"depth", s.depth},
                 {"body", s.body},
                 {"readsFrom", s.reads_from},
                 {"flops", s.operations.all()},
                 {"productFlops", s.operations.products},
                 {"productType", std::string(name(s.product_type))},
                 {"bytesRead", s.bytes_read},
                 {"bytesWritten", s.bytes_written},
                 {"timeUs", timed ? Ordered(l.time_us) : Ordered()},
                 {"timeBasis", std::string(name(l.basis))},
                 {"peakUs", known(l.floor_us)},
                 {"limitedBy", l.limited_by},
                 {"shareOfPeak", known(l.share())}};
    j["choices"] = list_of(s.choices);
    j["launches"] = list_of(s.launches);
    return j;
}

} // namespace

Ordered json_of(const KernelReport& r, bool sources) {
    Ordered inputs = Ordered::array();
    for (const auto& [input, shape] : r.inputs) {
        inputs.push_back({{"name", input}, {"shape", shape}});
    }
    Ordered kernels = Ordered::array();
    for (const ReportedKernel& k : kernels_of(r)) {
        Ordered& one = kernels.emplace_back(
            Ordered{{"entry", k.entry}, {"hash", k.hash}, {"launches", k.launches}});
        if (sources) {
            one["text"] = k.text;
        }
    }
    Ordered j = {{"backend", r.backend},
                 {"device", r.device},
                 {"here", r.is_here},
                 {"figures", r.figures ? to_json(*r.figures) : Ordered()},
                 {"inputs", inputs},
                 {"timedRuns", r.timed_runs},
                 {"serialMs", known(r.serial_ms)},
                 {"plainMs", known(r.plain_ms)},
                 {"activationBytes", r.memory.activations},
                 {"persistentBytes", r.memory.persistent}};
    j["layers"] = list_of(r.layers);
    j["kernels"] = std::move(kernels);
    return j;
}

std::string dumped(const Ordered& j, int indent) {
    return j.dump(indent, ' ', false, Ordered::error_handler_t::replace);
}

std::string report_json(const KernelReport& r, bool sources) {
    return dumped(json_of(r, sources), 1);
}

} // namespace ingot
