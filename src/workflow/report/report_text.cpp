// SPDX-License-Identifier: Apache-2.0
// The table of `ingot inspect --kernels`.
#include "base/printable.h"
#include "base/text.h"
#include "workflow/report/kernel_report.h"

#include <algorithm>
#include <cstdio>

namespace ingot {

namespace {

using plan::ChoiceReason;

/// "1.23 M", three digits with a prefix; "0".
std::string scaled(double v) {
    static constexpr const char* prefixes[] = {"", " k", " M", " G", " T", " P"};
    size_t i = 0;
    while (v >= 999.5 && i + 1 < std::size(prefixes)) {
        v /= 1000;
        ++i;
    }
    char text[32];
    int decimals = i == 0 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;
    std::snprintf(text, sizeof text, "%.*f%s", decimals, v, prefixes[i]);
    return text;
}

std::string fixed(double v, int decimals) {
    char text[48];
    std::snprintf(text, sizeof text, "%.*f", decimals, v);
    return text;
}

std::string padded(const std::string& s, size_t width) {
    return s.size() >= width ? s : std::string(width - s.size(), ' ') + s;
}

std::string filled(const std::string& s, size_t width) {
    return s.size() >= width ? s : s + std::string(width - s.size(), ' ');
}

std::string reason_text(const plan::ChoiceReport& c) {
    std::string next = c.runner_up.empty()
                           ? str(" us predicted, the only one")
                           : str(" us predicted, next ", c.runner_up, " ", fixed(c.runner_up_us, 1),
                                 ", ", c.candidates, " candidates");
    std::string text = str(c.tactic, ": ", fixed(c.predicted_us, 1), next);
    switch (c.reason) {
    case ChoiceReason::Only:
        return text;
    case ChoiceReason::Model:
        return str(text, "; chosen by the cost model");
    case ChoiceReason::Preferred:
        return str(text, "; preferred by its family");
    case ChoiceReason::Timed:
        return str(text, "; chosen by the timing cache");
    case ChoiceReason::Forced:
        return str(text, "; forced by an option");
    case ChoiceReason::Shared:
        return str(text, "; chosen because other layers use its kernel too");
    case ChoiceReason::Profile:
        return str(text, "; chosen because its kernel is compiled for the engine's profiles");
    case ChoiceReason::Fallback:
        return str(text, "; the chosen one did not compile");
    }
    return text;
}

std::string launch_columns(const plan::LaunchReport& l) {
    std::string grid = str(l.grid[0]);
    if (l.grid[1] > 1 || l.grid[2] > 1) {
        append(grid, str("x", l.grid[1]));
    }
    if (l.grid[2] > 1) {
        append(grid, str("x", l.grid[2]));
    }
    const auto& r = l.resources;
    std::string registers = r ? str(r->registers) : "-";
    if (r && r->local > 0) {
        append(registers, str("+", r->local, "B"));
    }
    return str(padded(grid, 10), padded(str(l.block), 6), padded(fixed(l.waves, 2), 7),
               padded(str(l.shared + (r ? r->shared : 0)), 8), padded(registers, 7), "  ", l.entry);
}

std::string figures_columns(const LayerReport& l) {
    const plan::StepReport& s = l.step;
    std::string share = l.share() > 0 ? fixed(100 * l.share(), l.share() < 0.095 ? 1 : 0) + "% " +
                                            l.limited_by.substr(0, 3)
                                      : "-";
    return str(padded(l.basis == TimeBasis::None ? "-" : fixed(l.time_us, 2), 10), "  ",
               filled(std::string(name(l.basis)), 9), padded(share, 9),
               padded(scaled(s.operations.all()), 8),
               padded(scaled(static_cast<double>(s.bytes_read)), 8),
               padded(scaled(static_cast<double>(s.bytes_written)), 8));
}

/// Nodes of the layer; for one that no node asked for, such as a change of layout, its readers.
std::string nodes_text(const KernelReport& r, size_t index) {
    const std::string& name = r.layers[index].step.info.name;
    if (!name.empty()) {
        return printable(name);
    }
    std::vector<std::string> readers;
    for (const LayerReport& l : r.layers) {
        const std::vector<size_t>& from = l.step.reads_from;
        if (!l.step.info.name.empty() && std::find(from.begin(), from.end(), index) != from.end()) {
            readers.push_back(printable(l.step.info.name));
        }
    }
    return readers.empty() ? "" : str("no node of the model; read by ", join(readers, ", "));
}

std::string layer_text(const KernelReport& r, size_t index) {
    const LayerReport& l = r.layers[index];
    const plan::StepReport& s = l.step;
    std::string indent(static_cast<size_t>(s.depth) * 2, ' ');
    std::string text;
    if (!s.body.empty()) {
        text +=
            str(std::string(static_cast<size_t>(s.depth - 1) * 2, ' '), "      ", s.body, ":\n");
    }
    std::string figures = str(indent, padded(str(index), 5), figures_columns(l));
    std::string more(figures.size(), ' ');
    if (s.launches.empty()) {
        text += figures + "\n";
    }
    for (size_t i = 0; i < s.launches.size(); ++i) {
        text += str(i == 0 ? figures : more, launch_columns(s.launches[i]), "\n");
    }
    text += str(indent, "      ", s.info.kernel, "  ", s.info.implementation, "\n");
    for (const plan::ChoiceReport& c : s.choices) {
        text += str(indent, "      ", reason_text(c), "\n");
    }
    if (std::string nodes = nodes_text(r, index); !nodes.empty()) {
        text += str(indent, "      ", nodes, "\n");
    }
    return text;
}

std::string times_text(const KernelReport& r) {
    if (r.timed_runs > 0) {
        std::string plain = str("; a plain run takes ", fixed(r.plain_ms, 3), " ms");
        return str("times are measured, the median of ", r.timed_runs,
                   " runs that time layer by layer: ", fixed(r.serial_ms, 3), " ms a run",
                   r.plain_ms > 0 ? plain : "");
    }
    return r.figures ? str("times are predicted: 'model' by the cost model of the kernel's family, "
                           "'roofline' by bytes and operations alone")
                     : str("nothing is timed; --time runs the model and measures");
}

std::string device_text(const KernelReport& r) {
    std::string text = str("device: ", printable(r.device), r.is_here ? "" : " (not needed here)");
    if (r.figures) {
        const plan::DeviceFigures& f = *r.figures;
        text += str(", ", f.sms, " SMs at ", fixed(f.clock_ghz, 2), " GHz, ", fixed(f.dram_gbs, 0),
                    " GB/s, ", fixed(f.product_flops / 1e12, 0), " TFLOP/s of f16 products, ",
                    fixed(f.peak(DType::F32) / 1e12, 0), " of f32, ",
                    fixed(f.scalar_flops / 1e12, 0), " of scalars");
    }
    return text;
}

std::string total_text(const KernelReport& r) {
    double us = 0;
    double flops = 0;
    double bytes = 0;
    double floor = 0;
    size_t launches = 0;
    for (const LayerReport& l : r.layers) {
        launches += l.step.launches.size();
        us += l.step.depth == 0 ? l.time_us : 0;
        floor += l.step.depth == 0 ? l.floor_us : 0;
        flops += l.step.operations.all();
        bytes += l.bytes();
    }
    std::string text =
        str(r.layers.size(), " layers, ", launches, " launches of ", kernels_of(r).size(),
            " kernels, ", scaled(flops), "FLOP, ", scaled(bytes), "B");
    if (us > 0) {
        text += str(", ", fixed(us, 1), " us");
    }
    return text + (floor > 0 ? str(", ", fixed(floor, 1), " us at the device's peaks") : "") + "\n";
}

} // namespace

std::string report_text(const KernelReport& r) {
    std::string text = str(device_text(r), "\n", times_text(r), "\n");
    text += "    #   time us  basis       peak %   FLOPs    read   write      grid block  waves"
            "  shared   regs  entry\n";
    for (size_t i = 0; i < r.layers.size(); ++i) {
        text += layer_text(r, i);
    }
    return text + total_text(r);
}

} // namespace ingot
