// SPDX-License-Identifier: Apache-2.0
// FieldList: the attributes of one op as names and typed pointers, for code that reads or writes
// them one by one (the text and binary forms).
#pragma once

#include "ir/graph.h"

#include <variant>

namespace ingot {

/// The order of the alternatives is part of the engine format: append only.
using Field =
    std::variant<bool*, int64_t*, double*, std::string*, DType*, Dim*, std::vector<int64_t>*,
                 std::vector<double>*, std::vector<std::string>*, Dims*, Expr*, Tensor*, GraphRef*>;

struct FieldList : AttrVisitor {
    std::vector<std::pair<std::string_view, Field>> fields;

    FieldList() = default;
    /// The fields of `attrs`, which must outlive the list.
    FieldList(const OpDef& def, void* attrs) { def.visit(attrs, *this); }
    /// SIZE_MAX when no field has that name.
    size_t find(std::string_view name) const {
        for (size_t i = 0; i < fields.size(); ++i) {
            if (fields[i].first == name) {
                return i;
            }
        }
        return SIZE_MAX;
    }
    std::vector<std::string> names() const {
        std::vector<std::string> out;
        for (const auto& f : fields) {
            out.emplace_back(f.first);
        }
        return out;
    }

    void field(std::string_view n, bool& v) override { fields.emplace_back(n, &v); }
    void field(std::string_view n, int64_t& v) override { fields.emplace_back(n, &v); }
    void field(std::string_view n, double& v) override { fields.emplace_back(n, &v); }
    void field(std::string_view n, std::string& v) override { fields.emplace_back(n, &v); }
    void field(std::string_view n, DType& v) override { fields.emplace_back(n, &v); }
    void field(std::string_view n, Dim& v) override { fields.emplace_back(n, &v); }
    void field(std::string_view n, std::vector<int64_t>& v) override { fields.emplace_back(n, &v); }
    void field(std::string_view n, std::vector<double>& v) override { fields.emplace_back(n, &v); }
    void field(std::string_view n, std::vector<std::string>& v) override {
        fields.emplace_back(n, &v);
    }
    void field(std::string_view n, Dims& v) override { fields.emplace_back(n, &v); }
    void field(std::string_view n, Expr& v) override { fields.emplace_back(n, &v); }
    void field(std::string_view n, Tensor& v) override { fields.emplace_back(n, &v); }
    void field(std::string_view n, GraphRef& v) override { fields.emplace_back(n, &v); }
};

} // namespace ingot
