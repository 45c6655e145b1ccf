// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/plugin/size_exprs.h"

#include "base/error.h"

#include <algorithm>

namespace ingot::api {

using nvinfer1::DimensionOperation;
using nvinfer1::IDimensionExpr;

namespace {

/// 1 where a < b, else 0.
Dim less(const Dim& a, const Dim& b) {
    return min(Dim(1), max(Dim(0), b - a));
}

Dim compute(DimensionOperation op, const Dim& a, const Dim& b) {
    bool divides = op == DimensionOperation::kFLOOR_DIV || op == DimensionOperation::kCEIL_DIV;
    require(!divides || !b.is_const(0), ErrorCode::InvalidArgument, "division by zero");
    switch (op) {
    case DimensionOperation::kSUM:
        return a + b;
    case DimensionOperation::kPROD:
        return a * b;
    case DimensionOperation::kMAX:
        return max(a, b);
    case DimensionOperation::kMIN:
        return min(a, b);
    case DimensionOperation::kSUB:
        return a - b;
    case DimensionOperation::kEQUAL:
        return Dim(1) - max(less(a, b), less(b, a));
    case DimensionOperation::kLESS:
        return less(a, b);
    case DimensionOperation::kFLOOR_DIV:
        return floor_div(a, b);
    case DimensionOperation::kCEIL_DIV:
        return ceil_div(a, b);
    }
    fail(ErrorCode::InvalidArgument, "operation ", static_cast<int32_t>(op),
         " does not exist, expected 0 to 8");
}

} // namespace

template <class F>
const IDimensionExpr* SizeExprs::guarded(const F& f) noexcept {
    try {
        return f();
    } catch (const std::bad_alloc&) {
        problem_ = "no memory"; // short enough not to allocate
    } catch (const std::exception& e) {
        try {
            problem_ = e.what();
        } catch (const std::bad_alloc&) {
            problem_ = "no memory";
        }
    }
    return nullptr;
}

const IDimensionExpr* SizeExprs::make(Dim d, bool of_data) {
    all_.emplace_back(std::move(d), of_data);
    return &all_.back();
}

const Dim& SizeExprs::value(const IDimensionExpr* e, const std::string& what) const {
    auto it = std::find_if(all_.begin(), all_.end(), [e](const SizeExpr& x) { return &x == e; });
    if (it == all_.end()) {
        bool explains = e == nullptr && !problem_.empty();
        fail(ErrorCode::InvalidArgument, what, " is ",
             e == nullptr ? "nullptr" : "not an expression of this call's IExprBuilder",
             explains ? str(" (an operation failed: ", problem_, ")") : std::string());
    }
    return it->value();
}

const IDimensionExpr* SizeExprs::constant(int64_t value) noexcept {
    return guarded([&] { return make(value); });
}

const IDimensionExpr* SizeExprs::operation(DimensionOperation op, const IDimensionExpr& first,
                                           const IDimensionExpr& second) noexcept {
    return guarded([&] {
        return make(compute(op, value(&first, "an operand"), value(&second, "an operand")));
    });
}

const IDimensionExpr* SizeExprs::declareSizeTensor(int32_t output, const IDimensionExpr& opt,
                                                   const IDimensionExpr& upper) noexcept {
    return guarded([&] {
        SizeTensor s{output, fresh_(), value(&opt, "the expected size"),
                     value(&upper, "the largest size")};
        size_tensors_.push_back(s);
        return make(s.symbol, true);
    });
}

} // namespace ingot::api
