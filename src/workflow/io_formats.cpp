// SPDX-License-Identifier: Apache-2.0
#include "workflow/io_formats.h"

#include "base/error.h"

#include <algorithm>

namespace ingot {

namespace {

std::string fitting(const Type& t) {
    std::vector<std::string> names;
    for (const IoFormat& f : io_formats()) {
        if (refusal(f, t).empty()) {
            names.emplace_back(f.api_name);
        }
    }
    return join(names, ", ");
}

const IoFormat& chosen(std::string_view kind, const std::string& name, const Type& t,
                       const std::vector<const IoFormat*>& allowed, bool direct) {
    std::string refused;
    for (const IoFormat& f : io_formats()) {
        if (std::find(allowed.begin(), allowed.end(), &f) == allowed.end()) {
            continue;
        }
        std::string why = refusal(f, t);
        if (why.empty()) {
            require(!direct || f.is_row_major(), ErrorCode::InvalidArgument, kind, " '", name,
                    "' would be stored as ", f.api_name,
                    ", which engines reformat when they run, but kDIRECT_IO (--directIO) forbids "
                    "that: clear it, or allow kLINEAR (chw)");
            return f;
        }
        append(refused, str(refused.empty() ? "" : "; ", f.api_name, " (", f.name, ") ", why));
    }
    fail(ErrorCode::InvalidArgument, kind, " '", name, "' ", t,
         " has no allowed memory format: ", refused.empty() ? "none is allowed" : refused,
         ". Formats that fit: ", fitting(t),
         ": allow one of these, or change the type of the tensor");
}

} // namespace

IoFormats choose_formats(const Graph& g, const AllowedFormats& allowed) {
    auto listed = [&](std::string_view kind, const AllowedFormats::Named& named,
                      const std::vector<std::string>& names, std::span<const Value> values) {
        for (const auto& [name, formats] : named) {
            if (std::find(names.begin(), names.end(), name) == names.end()) {
                std::string near = nearest(name, names);
                fail(ErrorCode::InvalidArgument, "formats: there is no ", kind, " '", name, "'",
                     near.empty() ? "" : str(", did you mean '", near, "'?"));
            }
        }
        std::vector<const IoFormat*> out;
        for (size_t i = 0; i < names.size(); ++i) {
            auto it = named.find(names[i]);
            out.push_back(it == named.end() ? &row_major()
                                            : &chosen(kind, names[i], g.type(values[i]), it->second,
                                                      allowed.direct));
        }
        return out;
    };
    std::vector<std::string> names;
    for (Value v : g.inputs()) {
        names.push_back(g.value_name(v));
    }
    IoFormats formats;
    formats.inputs = listed("input", allowed.inputs, names, g.inputs());
    formats.outputs = listed("output", allowed.outputs, g.output_names(), g.outputs());
    check_formats(g, formats);
    return formats;
}

} // namespace ingot
