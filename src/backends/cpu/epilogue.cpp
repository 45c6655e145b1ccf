// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/epilogue.h"

#include "backends/cpu/map_step.h"
#include "base/error.h"
#include "base/integers.h"
#include "ops/primitives.h"
#include "plan/epilogue.h"

#include <algorithm>

namespace ingot::cpu {

namespace {

/// The buffer of sums that are not the group's result: the first that no operand has.
int buffer_of_sums(const StepArgs& args) {
    int last = 0;
    for (std::span<const Operand> operands : {args.in, args.out}) {
        for (const Operand& o : operands) {
            last = std::max(last, o.buffer);
        }
    }
    return last + 1;
}

/// A main node and its map, which share scratch memory. The sums between lie behind it.
class SumsThenMap : public Step {
public:
    SumsThenMap(std::unique_ptr<Step> main, std::unique_ptr<Step> map, const Operand& sums,
                const StepArgs& args)
        : main_(std::move(main)), map_(std::move(map)), sums_(sums.buffer),
          begin_(round_up(std::max(main_->scratch_bytes(), map_->scratch_bytes()), 64)),
          bytes_(sums.view.count() * bit_width(sums.dtype) / 8),
          buffers_(static_cast<size_t>(sums_) + 2, nullptr) {
        for (std::span<const Operand> operands : {args.in, args.out}) {
            for (const Operand& o : operands) {
                CHECK(o.buffer >= 0, "an operand without a buffer");
                read_.push_back(o.buffer);
            }
        }
        main_->scratch = sums_ + 1;
        map_->scratch = sums_ + 1;
    }

    Status run(const RunContext& c) noexcept override {
        for (int i : read_) {
            buffers_[static_cast<size_t>(i)] = c.buffers[i];
        }
        auto* memory = c.scratch<std::byte>(scratch);
        buffers_[static_cast<size_t>(sums_)] = memory + begin_;
        buffers_[static_cast<size_t>(sums_) + 1] = memory;
        RunContext inside{buffers_.data(), c.pool, c.error, c.device, c.run, c.bodies};
        Status status = main_->run(inside);
        return status.ok() ? map_->run(inside) : status;
    }

    std::string implementation() const override { return main_->implementation() + ", then a map"; }
    int64_t scratch_bytes() const override { return begin_ + bytes_; }

private:
    std::unique_ptr<Step> main_;
    std::unique_ptr<Step> map_;
    int sums_;
    int64_t begin_; // of the sums, in scratch memory
    int64_t bytes_;
    std::vector<int> read_;           // buffers of the operands
    std::vector<std::byte*> buffers_; // the run's, then the sums, then scratch memory
};

} // namespace

std::optional<std::string> refuse_map_epilogue(const Group& group) {
    std::optional<std::string> why = plan::refuse_epilogue(group);
    const Node* map = plan::epilogue_of(group);
    if (why || map == nullptr) {
        return why;
    }
    const Type& from = group.graph.type(group.nodes[0].outputs[0]);
    const Type& to = group.graph.type(map->outputs[0]);
    return from.dtype == to.dtype ? refuse_map(group.graph, *map)
                                  : std::optional(str("the map makes ", to, " of ", from));
}

std::optional<std::string> refuse_product_epilogue(const Group& group) {
    std::optional<std::string> why = plan::refuse_epilogue(group);
    const Node* map = plan::epilogue_of(group);
    if (why || map == nullptr) {
        return why;
    }
    DType to = group.graph.type(map->outputs[0]).dtype;
    bool sums = group.graph.type(group.nodes[0].outputs[0]).dtype == DType::I32;
    return sums && (is_byte(to) || to == DType::F32) ? refuse_map(group.graph, *map)
                                                     : refuse_map_epilogue(group);
}

Operand main_result(const StepArgs& args, const Order& order) {
    const Node& main = args.group.first();
    Operand o = args.out[0];
    DType t = args.group.graph.type(main.outputs[0]).dtype;
    if (bit_width(t) != bit_width(o.dtype)) {
        o.buffer = buffer_of_sums(args);
        o.view = plan::dense(o.view.shape, order);
    }
    o.dtype = t;
    return o;
}

std::unique_ptr<Step> with_epilogue(std::unique_ptr<Step> main, const StepArgs& args) {
    return with_epilogue(std::move(main), args, plan::row_major(args.out[0].view.rank()));
}

std::unique_ptr<Step> with_epilogue(std::unique_ptr<Step> main, const StepArgs& args,
                                    const Order& order) {
    const Node* map = epilogue_of(args.group);
    if (map == nullptr) {
        return main;
    }
    Operand result = main_result(args, order);
    std::vector<Operand> in;
    for (Value v : map->inputs) {
        int index = args.group.input_index(v);
        in.push_back(index < 0 ? result : args.in[static_cast<size_t>(index)]);
    }
    std::unique_ptr<Step> second = make_map(map->as<Map>().body, in, args.out[0]);
    if (result.buffer != args.out[0].buffer) {
        return std::make_unique<SumsThenMap>(std::move(main), std::move(second), result, args);
    }
    std::vector<std::unique_ptr<Step>> steps;
    steps.push_back(std::move(main));
    steps.push_back(std::move(second));
    return std::make_unique<StepSequence>(std::move(steps));
}

Status StepSequence::run(const RunContext& context) noexcept {
    for (const auto& s : steps_) {
        s->scratch = scratch;
        Status status = s->run(context);
        if (!status.ok()) {
            return status;
        }
    }
    return {};
}

std::string StepSequence::implementation() const {
    return steps_.front()->implementation();
}

int64_t StepSequence::scratch_bytes() const {
    int64_t bytes = 0;
    for (const auto& s : steps_) {
        bytes = std::max(bytes, s->scratch_bytes());
    }
    return bytes;
}

} // namespace ingot::cpu
