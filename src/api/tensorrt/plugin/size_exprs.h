// SPDX-License-Identifier: Apache-2.0
// IExprBuilder over Dim, for the shape rules of plugins.
#pragma once

#include "NvInfer.h"
#include "ir/dim.h"

#include <deque>
#include <functional>
#include <string>

namespace ingot::api {

class SizeExpr final : public nvinfer1::IDimensionExpr {
public:
    SizeExpr(Dim value, bool of_data) : value_(std::move(value)), of_data_(of_data) {}
    virtual ~SizeExpr() = default;
    bool isConstant() const noexcept override { return value_.is_const(); }
    int64_t getConstantValue() const noexcept override {
        return value_.as_const().value_or(INT64_MIN);
    }
    bool isSizeTensor() const noexcept override { return of_data_; }
    const Dim& value() const { return value_; }

private:
    Dim value_;
    bool of_data_;
};

class SizeExprs final : public nvinfer1::IExprBuilder {
public:
    /// `fresh` makes a symbol for a data-dependent size.
    explicit SizeExprs(std::function<Dim()> fresh) : fresh_(std::move(fresh)) {}
    virtual ~SizeExprs() = default;

    struct SizeTensor {
        int32_t output = 0;
        Dim symbol;
        Dim opt;
        Dim most;
    };
    const std::vector<SizeTensor>& size_tensors() const { return size_tensors_; }
    const nvinfer1::IDimensionExpr* make(Dim d, bool of_data = false);
    /// The value of an expression. Errors: InvalidArgument for null, or an expression of another
    /// builder.
    const Dim& value(const nvinfer1::IDimensionExpr* e, const std::string& what) const;

    const nvinfer1::IDimensionExpr* constant(int64_t value) noexcept override;
    const nvinfer1::IDimensionExpr*
    operation(nvinfer1::DimensionOperation op, const nvinfer1::IDimensionExpr& first,
              const nvinfer1::IDimensionExpr& second) noexcept override;
    const nvinfer1::IDimensionExpr*
    declareSizeTensor(int32_t output, const nvinfer1::IDimensionExpr& opt,
                      const nvinfer1::IDimensionExpr& upper) noexcept override;

private:
    template <class F>
    const nvinfer1::IDimensionExpr* guarded(const F& f) noexcept;
    std::function<Dim()> fresh_;
    std::deque<SizeExpr> all_;
    std::vector<SizeTensor> size_tensors_;
    std::string problem_; // the reason why an operation returned null
};

} // namespace ingot::api
