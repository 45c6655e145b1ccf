// SPDX-License-Identifier: Apache-2.0
// attention: packs keys and values once per head group; each task then computes scores, softmax and
// weighted sum for a block of query rows in its own memory. Query heads that share keys are rows of
// one block.
#include "backends/cpu/matmul_pack.h"
#include "backends/cpu/rows.h"
#include "backends/cpu/tasks.h"
#include "base/integers.h"
#include "ops/ops.h"

#include <cmath>
#include <limits>

namespace ingot::cpu {

namespace {

constexpr int64_t score_bytes = 256 << 10; // of one block of rows: stays in the L2 cache
constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

struct Sizes {
    int64_t batch, heads, groups, queries, keys, depth, values;
    int64_t share() const { return heads / groups; } // query heads per group
};

class AttentionStep : public Step {
public:
    explicit AttentionStep(const StepArgs& a)
        : attrs_(a.group.first().as<ops::Attention>()), q_(a.in[0]), k_(a.in[1]), v_(a.in[2]),
          out_(a.out[0]), tile_(vector_loops().tile), threads_(a.pool.size()) {
        const Shape& q = q_.view.shape;
        const Shape& k = k_.view.shape;
        size_ = {q[0], q[1], k[1], q[2], k[2], q[3], v_.view.shape[3]};
        require(k[0] == q[0] && k[3] == q[3] && v_.view.shape[0] == k[0] &&
                    v_.view.shape[1] == k[1] && v_.view.shape[2] == k[2] && k[1] > 0 &&
                    q[1] % k[1] == 0,
                ErrorCode::InvalidArgument, "attention of ", q, ", ", k, " and ", v_.view.shape,
                ": the shapes do not fit");
        if (a.in.size() > 3) {
            has_mask_ = true;
            mask_ = a.in[3];
            mask_.view = broadcast_mask(mask_.view, {q[0], q[1], q[2], k[2]});
            load_mask_ = load_loop(mask_.dtype);
        }
        offset_ = attrs_.causal ? attrs_.offset.eval(a.symbols) : 0;
        keys_padded_ = round_up(size_.keys, tile_.columns);
        values_padded_ = round_up(size_.values, tile_.columns);
        int64_t rows = score_bytes / (std::max<int64_t>(keys_padded_, 1) * 4);
        block_ = std::clamp<int64_t>(rows / tile_.rows, 1, 4) * tile_.rows;
        block_ = std::min(block_, round_up(size_.share() * size_.queries, tile_.rows));
        init_offsets();
    }

    Status run(const RunContext& c) noexcept override {
        auto* packed = c.scratch<float>(scratch);
        int64_t pairs = size_.batch * size_.groups;
        pack_keys_and_values(c, packed);
        float* work = packed + pairs * pair_elements();
        int64_t rows = size_.share() * size_.queries;
        int64_t blocks = (rows + block_ - 1) / block_;
        for_tasks(c.pool, pairs * blocks, [&](int64_t task, int thread) {
            run_block(c, packed, task / blocks, task % blocks * block_,
                      work + thread * work_elements());
        });
        return {};
    }

    int64_t scratch_bytes() const override {
        return (size_.batch * size_.groups * pair_elements() + threads_ * work_elements()) * 4 + 64;
    }

private:
    static View broadcast_mask(const View& mask, const Shape& shape) {
        size_t shift = shape.size() - mask.shape.size();
        for (size_t i = 0; i < mask.shape.size(); ++i) {
            require(mask.shape[i] == 1 || mask.shape[i] == shape[i + shift],
                    ErrorCode::InvalidArgument, "attention: mask of shape ", mask.shape,
                    " does not broadcast to ", shape);
        }
        return plan::broadcasted(mask, shape);
    }

    /// Elements of the packed keys of one (batch, group).
    int64_t key_elements() const { return keys_padded_ * size_.depth; }
    int64_t pair_elements() const { return key_elements() + values_padded_ * size_.keys; }
    /// Queries packed, scores, probabilities packed, sums, one row of the mask.
    int64_t work_elements() const {
        return round_up(
            block_ * (size_.depth + 2 * keys_padded_ + values_padded_) + keys_padded_ + block_, 16);
    }

    void init_offsets() {
        auto line = [](int64_t n, int64_t stride) { return plan::offsets_of({n}, {stride}); };
        key_outer_ = line(size_.keys, k_.view.strides[2]);
        key_depth_ = line(size_.depth, k_.view.strides[3]);
        value_outer_ = line(size_.values, v_.view.strides[3]);
        value_depth_ = line(size_.keys, v_.view.strides[2]);
        query_outer_ = plan::offsets_of({size_.share(), size_.queries},
                                        {q_.view.strides[1], q_.view.strides[2]});
        query_depth_ = line(size_.depth, q_.view.strides[3]);
        pack_ = pack_panel_of<float>(q_.dtype);
    }

    void pack_keys_and_values(const RunContext& c, float* packed) const {
        int64_t key_panels = keys_padded_ / tile_.columns;
        int64_t value_panels = values_padded_ / tile_.columns;
        int64_t panels = key_panels + value_panels;
        int64_t width = bit_width(q_.dtype) / 8;
        c.pool.parallel_for(
            size_.batch * size_.groups * panels, 4, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                    int64_t pair = i / panels;
                    int64_t n = pair / size_.groups;
                    int64_t g = pair % size_.groups;
                    float* to = packed + pair * pair_elements();
                    int64_t panel = i % panels;
                    const Operand& o = panel < key_panels ? k_ : v_;
                    const std::byte* from =
                        c.bytes(o) + (n * o.view.strides[0] + g * o.view.strides[1]) * width;
                    if (panel < key_panels) {
                        pack_panel(to + panel * tile_.columns * size_.depth, from, key_outer_,
                                   key_depth_, panel);
                    } else {
                        panel -= key_panels;
                        pack_panel(to + key_elements() + panel * tile_.columns * size_.keys, from,
                                   value_outer_, value_depth_, panel);
                    }
                }
            });
    }

    void pack_panel(float* to, const std::byte* from, std::span<const int64_t> outer,
                    std::span<const int64_t> depth, int64_t panel) const {
        auto first = static_cast<size_t>(panel * tile_.columns);
        size_t count = std::min(static_cast<size_t>(tile_.columns), outer.size() - first);
        pack_(to, from, outer.subspan(first, count), depth, tile_.columns);
    }

    void run_block(const RunContext& c, const float* packed, int64_t pair, int64_t first_row,
                   float* work) const {
        const VectorLoops& loops = vector_loops();
        int64_t n = pair / size_.groups;
        int64_t g = pair % size_.groups;
        int64_t rows = std::min(block_, size_.share() * size_.queries - first_row);
        const float* keys = packed + pair * pair_elements();
        const float* values = keys + key_elements();
        float* queries = work;
        float* scores = queries + block_ * size_.depth;
        float* weights = scores + block_ * keys_padded_;
        float* sums = weights + block_ * keys_padded_;
        float* mask_row = sums + block_ * values_padded_;
        float* factors = mask_row + keys_padded_;
        int64_t visible = visible_keys(first_row, rows);

        int64_t width = bit_width(q_.dtype) / 8;
        const std::byte* from =
            c.bytes(q_) + (n * q_.view.strides[0] + g * size_.share() * q_.view.strides[1]) * width;
        std::span<const int64_t> outer(query_outer_);
        for (int64_t r = 0; r < rows; r += tile_.rows) {
            int64_t count = std::min(tile_.rows, rows - r);
            float* panel = queries + r * size_.depth;
            pack_(panel, from,
                  outer.subspan(static_cast<size_t>(first_row + r), static_cast<size_t>(count)),
                  query_depth_, count);
            for (int64_t t = 0; t < visible; t += tile_.columns) {
                loops.matmul_tile(count, size_.depth, panel, keys + t * size_.depth,
                                  scores + r * keys_padded_ + t, keys_padded_);
            }
        }
        for (int64_t r = 0; r < rows; ++r) {
            factors[r] =
                soften(c, loops, scores + r * keys_padded_, mask_row, n, g, first_row + r, visible);
        }
        weigh(loops, rows, visible, scores, weights, values, sums);
        store(c, n, g, first_row, rows, sums, factors);
    }

    /// The number of keys visible to some row of the block.
    int64_t visible_keys(int64_t first_row, int64_t rows) const {
        if (!attrs_.causal) {
            return size_.keys;
        }
        int64_t most = 0;
        for (int64_t r = first_row; r < first_row + rows; ++r) {
            most = std::max(most, r % size_.queries + offset_ + 1);
        }
        return std::clamp<int64_t>(most, 0, size_.keys);
    }

    /// Turns one row of scores into exponentials; returns their normalisation factor.
    float soften(const RunContext& c, const VectorLoops& loops, float* row, float* mask_row,
                 int64_t n, int64_t g, int64_t r, int64_t visible) const {
        auto scale = static_cast<float>(attrs_.scale);
        int64_t query = r % size_.queries;
        int64_t own =
            attrs_.causal ? std::clamp<int64_t>(query + offset_ + 1, 0, visible) : visible;
        bool plain = !has_mask_ && attrs_.softcap <= 0 && scale > 0;
        if (!plain) {
            loops.scale(row, row, scale, own);
            scale = 1;
            if (attrs_.softcap > 0) {
                auto cap = static_cast<float>(attrs_.softcap);
                loops.scale(row, row, 1 / cap, own);
                map_loop(ExprOp::Tanh, DType::F32)(row, row, nullptr, nullptr, own);
                loops.scale(row, row, cap, own);
            }
            if (has_mask_) {
                add_mask(c, row, mask_row, n, g * size_.share() + r / size_.queries, query, own);
            }
        }
        std::fill(row + own, row + visible, 0.0F);
        if (own == 0) {
            return 0;
        }
        float top = loops.maximum(row, own);
        if (top == minus_infinity && (has_mask_ || attrs_.causal)) {
            std::fill(row, row + own, 0.0F);
            return 0;
        }
        return 1 / loops.exp_sum(row, row, scale, top * scale, own);
    }

    void add_mask(const RunContext& c, float* row, float* mask_row, int64_t n, int64_t head,
                  int64_t query, int64_t count) const {
        const Shape& s = mask_.view.strides;
        int64_t at = n * s[0] + head * s[1] + query * s[2];
        if (mask_.dtype == DType::Bool) {
            const auto* m = c.at<const uint8_t>(mask_) + at;
            for (int64_t t = 0; t < count; ++t) {
                row[t] = m[t * s[3]] != 0 ? row[t] : minus_infinity;
            }
            return;
        }
        const auto* m = c.at<const float>(mask_) + at;
        if (load_mask_ != nullptr) {
            const auto* small = c.at<const uint16_t>(mask_) + at;
            for (int64_t t = 0; t < count; ++t) {
                load_mask_(mask_row + t, small + t * s[3], nullptr, nullptr, 1);
            }
        } else if (s[3] != 1) {
            for (int64_t t = 0; t < count; ++t) {
                mask_row[t] = m[t * s[3]];
            }
        } else {
            mask_row = const_cast<float*>(m);
        }
        map_loop(ExprOp::Add, DType::F32)(row, row, mask_row, nullptr, count);
    }

    /// sums = exponentials * values.
    void weigh(const VectorLoops& loops, int64_t rows, int64_t visible, const float* scores,
               float* weights, const float* values, float* sums) const {
        for (int64_t r = 0; r < rows; r += tile_.rows) {
            int64_t count = std::min(tile_.rows, rows - r);
            float* panel = weights + r * keys_padded_;
            transpose_panel(panel, scores + r * keys_padded_, count, visible);
            for (int64_t e = 0; e < values_padded_; e += tile_.columns) {
                loops.matmul_tile(count, visible, panel, values + e * size_.keys,
                                  sums + r * values_padded_ + e, values_padded_);
            }
        }
    }

    void transpose_panel(float* to, const float* from, int64_t count, int64_t n) const {
        constexpr int64_t run = 16;
        for (int64_t t0 = 0; t0 < n; t0 += run) {
            int64_t t1 = std::min(t0 + run, n);
            for (int64_t r = 0; r < count; ++r) {
                for (int64_t t = t0; t < t1; ++t) {
                    to[t * count + r] = from[r * keys_padded_ + t];
                }
            }
        }
    }

    void store(const RunContext& c, int64_t n, int64_t g, int64_t first_row, int64_t rows,
               float* sums, const float* factors) const {
        const VectorLoops& loops = vector_loops();
        MapLoop convert = store_loop(out_.dtype);
        const Shape& s = out_.view.strides;
        int64_t width = bit_width(out_.dtype) / 8;
        for (int64_t r = 0; r < rows; ++r) {
            int64_t head = g * size_.share() + (first_row + r) / size_.queries;
            int64_t query = (first_row + r) % size_.queries;
            std::byte* to = c.bytes(out_) + (n * s[0] + head * s[1] + query * s[2]) * width;
            float* row = sums + r * values_padded_;
            if (convert == nullptr) {
                loops.scale(reinterpret_cast<float*>(to), row, factors[r], size_.values);
            } else {
                loops.scale(row, row, factors[r], size_.values);
                convert(to, row, nullptr, nullptr, size_.values);
            }
        }
    }

    ops::Attention attrs_;
    Operand q_;
    Operand k_;
    Operand v_;
    Operand out_;
    Operand mask_;
    bool has_mask_ = false;
    MapLoop load_mask_ = nullptr;
    Sizes size_{};
    TileShape tile_;
    int threads_;
    int64_t offset_ = 0;
    int64_t keys_padded_ = 0;
    int64_t values_padded_ = 0;
    int64_t block_ = 0; // query rows of a task
    std::vector<int64_t> key_outer_, key_depth_, value_outer_, value_depth_;
    std::vector<int64_t> query_outer_, query_depth_;
    PackPanel<float> pack_ = nullptr;
};

std::optional<std::string> refuse(const Group& group) {
    const Node& n = group.first();
    for (size_t i = 0; i < n.inputs.size(); ++i) {
        DType t = group.graph.type(n.inputs[i]).dtype;
        if (!is_small_float(t) && !(i == 3 && t == DType::Bool)) {
            return str("elements are ", t);
        }
    }
    return std::nullopt;
}

/// Results have the layout of the queries, so that heads are joined without a copy. Rows of values
/// are always contiguous.
void layout(LayoutArgs& args) {
    Order order = plan::stride_order(args.in[0]);
    if (order.size() == 4 && order.back() == 3) {
        args.order[0] = order;
    }
}

/// Without keys, each row is a sum over nothing.
std::unique_ptr<Step> prepare(const StepArgs& args) {
    return std::make_unique<AttentionStep>(args);
}

const Kernel rows[] = {
    {.name = "attention", .refuse = refuse, .prepare = prepare, .layout = layout}};

} // namespace

extern const KernelTable attention_kernels;
const KernelTable attention_kernels = rows;

} // namespace ingot::cpu
