// SPDX-License-Identifier: Apache-2.0
#include "ir/infer.h"

#include "base/error.h"
#include "ir/graph.h"

namespace ingot {

namespace {

std::vector<Type> expanded_types(const OpDef& def, const void* attrs, std::span<const Type> in) {
    CHECK(def.expand != nullptr, "op '", def.name, "' has neither infer nor expand");
    Graph scratch("scratch");
    Values operands;
    for (const Type& t : in) {
        operands.push_back(scratch.add_input({}, t));
    }
    std::vector<Type> out;
    for (Value v : def.expand(scratch, attrs, operands)) {
        out.push_back(scratch.type(v));
    }
    return out;
}

} // namespace

void check_size(std::string_view what, const Type& t) {
    int64_t count = 1; // of plainly small types, most of all, no more is asked
    for (const Dim& d : t.dims) {
        constexpr int64_t small = int64_t{1} << 20;
        int64_t size = d.is_const() ? d.value() : 1;
        count = size >= 0 && size <= small && count <= small ? count * size : small * small;
    }
    if (count < int64_t{1} << 40) {
        return;
    }
    Shape known;
    for (const Dim& d : t.dims) {
        known.push_back(d.as_const().value_or(1));
    }
    try {
        static_cast<void>(byte_size(t.dtype, count_of(known)));
    } catch (const Error& e) {
        fail(ErrorCode::InvalidModel, what, " is ", t, ": ", e.message());
    }
}

std::vector<Type> infer_types(const OpDef& def, const void* attrs, std::span<const Type> in,
                              InferredTypes& known) {
    auto checked = [&](std::vector<Type> types) {
        for (const Type& t : types) {
            check_size(def.name, t);
        }
        return types;
    };
    if (def.infer != nullptr) {
        return checked(def.infer(attrs, in));
    }
    std::string key = str(def.name, "\n", attrs_key(def, attrs));
    for (const Type& t : in) {
        append(key, str("\n", t));
    }
    auto found = known.find(key);
    if (found == known.end()) {
        std::vector<Type> types = checked(expanded_types(def, attrs, in));
        found = known.emplace(std::move(key), std::move(types)).first;
    }
    return found->second;
}

} // namespace ingot
