// SPDX-License-Identifier: Apache-2.0
// nonzero and nms: the count half, the host's read of the total, the write half.
#include "kernels/harness.h"
#include "kernels/scan_sort/dynamic.h"
#include "kernels/test_device.h"
#include "ops/evaluator.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace ingot::test {
namespace {

using kernels::Args;
using kernels::Emitted;
using kernels::Launch;
using kernels::Operand;
using kernels::Problem;

/// Buffers and the launches of both halves.
class Halves {
public:
    explicit Halves(int cc)
        : device_(kernels::arch_of(cc)), gpu_(device_.gpu()), stream_(gpu_.create_stream()) {}
    ~Halves() {
        for (std::byte* b : buffers_) {
            gpu_.release(b);
        }
        gpu_.release(scratch_);
    }
    Halves(const Halves&) = delete;
    Halves& operator=(const Halves&) = delete;

    Operand add(const Tensor& t) {
        Operand o = add(t.dtype(), t.shape());
        stream_->write(buffers_.back(), t.bytes().data(), t.bytes().size());
        return o;
    }
    Operand add(DType t, const Shape& shape) {
        buffers_.push_back(gpu_.allocate(std::max<int64_t>(byte_size(t, count_of(shape)), 1)));
        return {t, static_cast<int>(buffers_.size()) - 1, plan::dense(shape)};
    }
    void run(const Emitted& e) {
        if (scratch_ == nullptr) {
            scratch_ = gpu_.allocate(e.scratch);
            bytes_ = e.scratch;
        }
        EXPECT_LE(e.scratch, bytes_);
        for (const Launch& l : e.launches) {
            launch(l);
        }
    }
    uint64_t total() {
        uint64_t n = 0;
        stream_->read(&n, scratch_, sizeof n);
        return n;
    }
    Tensor read(const Operand& o) {
        Tensor t = Tensor::empty(o.dtype, o.view.shape);
        stream_->read(t.mutable_bytes().data(), buffers_[static_cast<size_t>(o.buffer)],
                      t.bytes().size());
        return t;
    }
    const kernels::Arch& arch() const { return gpu_.arch(); }

private:
    static int64_t count_of(const Shape& s) {
        int64_t n = 1;
        for (int64_t d : s) {
            n *= d;
        }
        return n;
    }
    void launch(const Launch& l) {
        std::vector<uint64_t> memory(l.args.bytes().size() / 8 + 1);
        auto* base = reinterpret_cast<std::byte*>(memory.data());
        std::memcpy(base, l.args.bytes().data(), l.args.bytes().size());
        for (const Args::Fixup& f : l.args.fixups()) {
            std::byte* from =
                f.what == Args::Patch::Scratch ? scratch_ : buffers_[static_cast<size_t>(f.buffer)];
            std::byte* address = from + f.offset;
            std::memcpy(base + f.at, &address, sizeof address);
        }
        std::vector<void*> parameters;
        for (uint32_t offset : l.args.offsets()) {
            parameters.push_back(base + offset);
        }
        cuda::LaunchShape shape;
        for (size_t i = 0; i < 3; ++i) {
            shape.grid[i] = static_cast<uint32_t>(l.grid[i]);
        }
        shape.block = static_cast<uint32_t>(l.block);
        shape.overlap = gpu_.arch().has_pdl();
        auto f = gpu_.load(gpu_.compile(full_text(l.program)), l.entry, l.shared);
        stream_->launch(*f, shape, parameters.data());
    }

    TestDevice device_;
    cuda::Gpu& gpu_;
    std::unique_ptr<cuda::Stream> stream_;
    std::vector<std::byte*> buffers_;
    std::byte* scratch_ = nullptr;
    int64_t bytes_ = 0;
};

using Half = Emitted (*)(const Problem&);

/// `stored`: the content of the first operand's memory, where it is not row major, with its
/// strides.
void check(const Graph& g, const std::vector<Tensor>& inputs, Half count, Half write,
           const Tensor& stored = {}, const Shape& strides = {}) {
    Tensor expected = evaluate(g, inputs)[0];
    Halves h(90);
    std::vector<Operand> in;
    for (const Tensor& t : inputs) {
        in.push_back(h.add(in.empty() && !strides.empty() ? stored : t));
    }
    if (!strides.empty()) {
        in[0].view = {inputs[0].shape(), strides, 0};
    }
    plan::Group group = plan::group_of(g, g.nodes().back());
    EXPECT_FALSE(kernels::refuse_dynamic(group));
    Symbols symbols;
    std::vector<const std::byte*> constants(in.size());
    h.run(count(Problem{group, symbols, in, {}, constants, h.arch()}));
    bool rows = expected.shape()[1] == 3 && g.nodes().back().is(nms_def);
    ASSERT_EQ(h.total(), static_cast<uint64_t>(expected.shape()[rows ? 0 : 1]));
    std::vector<Operand> out{h.add(DType::I64, expected.shape())};
    h.run(write(Problem{group, symbols, in, out, constants, h.arch()}));
    Tensor got = h.read(out[0]);
    for (int64_t i = 0; i < expected.count(); ++i) {
        ASSERT_EQ(got.get_i64(i), expected.get_i64(i)) << "element " << i;
    }
}

Graph nonzero_graph(const std::string& type) {
    Graph g;
    Value a = g.add_input("a", parse_type(type));
    g.add_output("y", g.add1(nonzero_def, NonZero{g.fresh_symbol()}, {a}));
    return g;
}

TEST(NonZero, MatchesTheEvaluator) {
    for (const char* t : {"i32[5,7]", "bool[3,4,900]", "i8[5000]", "f16[2,3,4,5]", "f32[]",
                          "f32[4096]", "f32[3,2801]", "i64[5003]", "f16[8195]", "bf16[70,129]",
                          "u8[4097]", "f64[2,3,700]", "i4[301]", "f32[1]"}) {
        Graph g = nonzero_graph(t);
        const Type& type = g.type(g.inputs()[0]);
        Tensor x = random_elements(type.dtype, *as_const(type.dims), 7, -2, 2);
        check(g, {x}, kernels::emit_nonzero_count, kernels::emit_nonzero_write);
    }
    Graph columns = nonzero_graph("f16[70,129]");
    Tensor stored = random_elements(DType::F16, {129, 70}, 3, -1, 1);
    Tensor x = Tensor::empty(DType::F16, {70, 129});
    for (int64_t i = 0; i < x.count(); ++i) {
        stored.set_f64(i, i % 3 == 0 ? 0 : stored.get_f64(i));
    }
    for (int64_t i = 0; i < x.count(); ++i) {
        x.set_f64(i, stored.get_f64(i % 129 * 70 + i / 129));
    }
    check(columns, {x}, kernels::emit_nonzero_count, kernels::emit_nonzero_write, stored, {1, 70});
    // All of them, and none.
    for (double v : {1.0, 0.0}) {
        Graph g = nonzero_graph("f16[5000]");
        check(g, {random_elements(DType::F16, {5000}, 1, v, v)}, kernels::emit_nonzero_count,
              kernels::emit_nonzero_write);
    }
    Graph g = nonzero_graph("i32[4,0]");
    check(g, {Tensor::empty(DType::I32, {4, 0})}, kernels::emit_nonzero_count,
          kernels::emit_nonzero_write);
}

void check_nms(DType t, const Shape& scores, int64_t most, float iou, float score, bool center,
               double spread = 4) {
    Graph g;
    Shape boxes{scores[0], scores[2], 4};
    std::vector<Value> in{
        g.add_input("boxes", {t, to_dims(boxes)}), g.add_input("scores", {t, to_dims(scores)}),
        g.add_input("most", {DType::I64, {}}), g.add_input("iou", {DType::F32, {}}),
        g.add_input("score", {DType::F32, {}})};
    g.add_output("y", g.add1(nms_def, Nms{center, g.fresh_symbol()}, in));
    check(g,
          {random_elements(t, boxes, 5, center ? 0.5 : -spread, spread),
           random_elements(t, scores, 6, 0, 1), Tensor::of<int64_t>(DType::I64, {}, {{most}}),
           Tensor::of<float>(DType::F32, {}, {{iou}}),
           Tensor::of<float>(DType::F32, {}, {{score}})},
          kernels::emit_nms_count, kernels::emit_nms_write);
}

TEST(Nms, MatchesTheEvaluator) {
    check_nms(DType::F32, {2, 3, 100}, 1000, 0.3F, 0.4F, false);
    check_nms(DType::F32, {1, 1, 200}, 5, 0.5F, 0.0F, true);
    check_nms(DType::F64, {1, 2, 70}, 1000, 0.2F, 0.1F, false);
    check_nms(DType::F16, {1, 2, 130}, 1000, 0.2F, 0.1F, false);
}

TEST(Nms, NothingIsLeftOrAskedFor) {
    check_nms(DType::F32, {1, 2, 70}, 1000, 0.3F, 2.0F, false);
    check_nms(DType::F32, {1, 2, 70}, 0, 0.3F, 0.1F, false);
    check_nms(DType::F32, {1, 2, 0}, 10, 0.3F, 0.1F, false);
}

TEST(Nms, MoreThanOnePanel) {
    check_nms(DType::F32, {1, 1, 2200}, 100000, 0.1F, 0.0F, false, 60);
}

} // namespace
} // namespace ingot::test
