// SPDX-License-Identifier: Apache-2.0
#include "ir/profile.h"

#include "base/error.h"

#include <algorithm>
#include <charconv>

namespace ingot {

const ShapeRange* Profile::find(std::string_view input) const {
    auto it = std::find_if(inputs.begin(), inputs.end(),
                           [&](const ShapeRange& r) { return r.input == input; });
    return it == inputs.end() ? nullptr : &*it;
}

void check_profile(const Graph& g, const Profile& p) {
    std::vector<std::string> names;
    for (Value v : g.inputs()) {
        names.push_back(g.value_name(v));
    }
    for (const ShapeRange& r : p.inputs) {
        auto it = std::find(names.begin(), names.end(), r.input);
        if (it == names.end()) {
            std::string near = nearest(r.input, names);
            fail(ErrorCode::InvalidArgument, "profile: there is no input '", r.input, "'",
                 near.empty() ? "." : str(", did you mean '", near, "'?"),
                 " Inputs: ", join(names, ", "));
        }
        const Type& t = g.type(g.inputs()[static_cast<size_t>(it - names.begin())]);
        for (const Shape* s : {&r.min, &r.opt, &r.max}) {
            require(s->size() == t.dims.size(), ErrorCode::InvalidArgument, "profile: input '",
                    r.input, "' has rank ", t.rank(), " ", t.dims, ", got ", shape_text(*s));
        }
        for (size_t i = 0; i < t.dims.size(); ++i) {
            require(r.min[i] >= 0 && r.min[i] <= r.opt[i] && r.opt[i] <= r.max[i],
                    ErrorCode::InvalidArgument, "profile: input '", r.input, "' dimension ", i,
                    ": min ", r.min[i], ", opt ", r.opt[i], ", max ", r.max[i],
                    ", expected min <= opt <= max");
            require(!t.dims[i].is_const() ||
                        (r.min[i] == t.dims[i].value() && r.max[i] == t.dims[i].value()),
                    ErrorCode::InvalidArgument, "profile: input '", r.input, "' dimension ", i,
                    " is fixed to ", t.dims[i], ", got ", r.min[i], " to ", r.max[i]);
        }
    }
}

void check_shape(const Graph& g, size_t input, const Shape& shape,
                 std::span<const Profile> profiles) {
    Value v = g.inputs()[input];
    const std::string& name = g.value_name(v);
    const Type& t = g.type(v);
    if (shape.size() != t.dims.size()) { // each run comes here: texts are for errors alone
        fail(ErrorCode::InvalidArgument, "input '", name, "' has rank ", shape.size(), " (",
             shape_text(shape), "), expected rank ", t.rank(), " ", t.dims);
    }
    for (size_t i = 0; i < shape.size(); ++i) {
        require(!t.dims[i].is_const() || t.dims[i].value() == shape[i], ErrorCode::InvalidArgument,
                "input '", name, "' dimension ", i, " is ", shape[i], ", expected ", t.dims[i]);
    }
    std::string allowed;
    for (const Profile& p : profiles) {
        const ShapeRange* r = p.find(name);
        if (r == nullptr) {
            return;
        }
        std::string outside;
        for (size_t i = 0; i < shape.size() && outside.empty(); ++i) {
            if (shape[i] < r->min[i] || shape[i] > r->max[i]) {
                outside = str("dimension ", i, " is ", shape[i], ", allowed ", r->min[i], " to ",
                              r->max[i]);
            }
        }
        if (outside.empty()) {
            return;
        }
        append(allowed, str(allowed.empty() ? "" : "; ",
                            profiles.size() > 1 ? str("profile ", &p - profiles.data(), ": ")
                                                : std::string(),
                            outside));
    }
    if (!profiles.empty()) {
        fail(ErrorCode::InvalidArgument, "input '", name, "' with shape ", shape_text(shape),
             " is outside the engine's profile: ", allowed);
    }
}

Bounds symbol_bounds(const Graph& g, const std::vector<Profile>& profiles) {
    Bounds all;
    for (size_t n = 0; n < profiles.size(); ++n) {
        Bounds one;
        for (Value v : g.inputs()) {
            const ShapeRange* r = profiles[n].find(g.value_name(v));
            const Dims& dims = g.type(v).dims;
            for (size_t i = 0; r != nullptr && i < dims.size(); ++i) {
                std::string symbol(dims[i].symbol_name());
                if (symbol.empty()) {
                    continue;
                }
                auto [it, fresh] = one.emplace(symbol, Interval{r->min[i], r->max[i]});
                if (!fresh) {
                    it->second = {std::max(it->second.low, r->min[i]),
                                  std::min(it->second.high, r->max[i])};
                }
            }
        }
        if (n == 0) {
            all = std::move(one);
            continue;
        }
        for (auto it = all.begin(); it != all.end();) {
            auto other = one.find(it->first);
            if (other == one.end()) {
                it = all.erase(it);
                continue;
            }
            it->second = {std::min(it->second.low, other->second.low),
                          std::max(it->second.high, other->second.high)};
            ++it;
        }
    }
    return all;
}

Shape default_shape(const Graph& g, size_t input, const std::vector<Profile>& profiles) {
    Value v = g.inputs()[input];
    if (!profiles.empty()) {
        if (const ShapeRange* r = profiles[0].find(g.value_name(v))) {
            return r->opt;
        }
    }
    Shape out;
    for (const Dim& d : g.type(v).dims) {
        std::set<std::string, std::less<>> names;
        d.collect_symbols(names);
        Symbols ones;
        for (const std::string& n : names) {
            ones[n] = 1;
        }
        out.push_back(d.eval(ones));
    }
    return out;
}

std::string shape_text(const Shape& s) {
    std::string out;
    for (size_t i = 0; i < s.size(); ++i) {
        append(out, str(i == 0 ? "" : "x", s[i]));
    }
    return out.empty() ? "scalar" : out;
}

Shape parse_shape(std::string_view text) {
    Shape out;
    if (text == "scalar" || text.empty()) {
        return out;
    }
    for (size_t start = 0; start <= text.size();) {
        size_t end = std::min(text.find('x', start), text.size());
        int64_t v = 0;
        auto [last, error] = std::from_chars(text.data() + start, text.data() + end, v);
        require(error == std::errc() && last == text.data() + end && v >= 0,
                ErrorCode::InvalidArgument, "shape '", text,
                "': expected sizes joined by x, such as 1x3x224x224");
        out.push_back(v);
        start = end + 1;
    }
    return out;
}

} // namespace ingot
