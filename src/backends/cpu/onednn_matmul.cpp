// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/onednn_matmul.h"

#include "backends/cpu/epilogue.h"
#include "backends/cpu/onednn_library.h"
#include "backends/cpu/options.h"
#include "backends/cpu/post_ops.h"
#include "backends/cpu/simd/simd.h"

#include <algorithm>

namespace ingot::cpu {

namespace {

using onednn::Array;

// Our own loops split work into smaller pieces: they are faster when a product only streams weights
// once, and when starting a team costs more than the product. Most bytes they stream as 16 bits.
constexpr int64_t fewest_rows = 5;
constexpr int64_t fewest_rows_of_bytes = 1;
constexpr int64_t fewest_products = 1 << 17;
constexpr int64_t most_rows_of_gaps = 256;

/// The stride of a group of axes merged into one; nullopt when no single stride exists.
std::optional<int64_t> merged_stride(const Shape& sizes, const Shape& strides) {
    std::optional<int64_t> inner;
    int64_t next = 0;
    for (size_t i = sizes.size(); i-- > 0;) {
        if (sizes[i] == 1) {
            continue;
        }
        if (!inner) {
            inner = strides[i];
        } else if (strides[i] != next) {
            return std::nullopt;
        }
        next = strides[i] * sizes[i];
    }
    return inner.value_or(0);
}

int64_t product(const Shape& sizes) {
    int64_t n = 1;
    for (int64_t s : sizes) {
        n *= s;
    }
    return n;
}

/// A matrix of a batch in oneDNN's form: [batch axes..., rows, columns].
struct Matrix {
    Shape batch;
    Shape batch_strides;
    int64_t rows = 1, columns = 1;
    int64_t row_stride = 0, column_stride = 0;

    Shape sizes() const {
        Shape s = batch;
        s.insert(s.end(), {rows, columns});
        return s;
    }

    /// Axes of size 1 get strides that suit the others; nullopt when neither axis is contiguous.
    std::optional<Array> array(DType t) const {
        Shape s = sizes();
        Shape strides = batch_strides;
        int64_t row = rows == 1 ? 0 : row_stride;
        int64_t column = columns == 1 ? 0 : column_stride;
        bool plain = (columns == 1 || column == 1) && (rows == 1 || row >= columns);
        bool transposed = (rows == 1 || row == 1) && (columns == 1 || column >= rows);
        if (!plain && !transposed) {
            return std::nullopt;
        }
        if (plain) {
            column = 1;
            row = rows == 1 ? columns : row;
        } else {
            row = 1;
            column = columns == 1 ? rows : column;
        }
        strides.insert(strides.end(), {row, column});
        int64_t reach = std::max(row * rows, column * columns);
        for (size_t i = batch.size(); i-- > 0;) {
            if (batch[i] == 1) {
                strides[i] = reach;
            }
            reach = std::max(reach, strides[i] * batch[i]);
        }
        return strided_array(t, s, strides);
    }
};

/// The batch axes after dropping those of size 1 and merging those that every operand can merge.
struct Batch {
    Shape sizes, a, b, c;

    explicit Batch(const AxisGroup& g) {
        for (size_t i = 0; i < g.sizes.size(); ++i) {
            if (g.sizes[i] == 1) {
                continue;
            }
            int64_t n = g.sizes[i];
            bool joins = !sizes.empty() && a.back() == g.a[i] * n && b.back() == g.b[i] * n &&
                         c.back() == g.c[i] * n;
            if (joins) {
                sizes.back() *= n;
                a.back() = g.a[i];
                b.back() = g.b[i];
                c.back() = g.c[i];
                continue;
            }
            sizes.push_back(n);
            a.push_back(g.a[i]);
            b.push_back(g.b[i]);
            c.push_back(g.c[i]);
        }
    }
};

struct Product {
    Matrix a, b, c;
};

std::optional<Product> product_of(const DotShape& s, DType a) {
    int64_t fewest = a == DType::F32 ? fewest_rows : fewest_rows_of_bytes;
    Batch batch(s.batch);
    if (batch.sizes.size() + 2 > static_cast<size_t>(onednn::most_axes)) {
        return std::nullopt;
    }
    auto a_rows = merged_stride(s.rows.sizes, s.rows.a);
    auto a_depth = merged_stride(s.depth.sizes, s.depth.a);
    auto b_depth = merged_stride(s.depth.sizes, s.depth.b);
    auto b_columns = merged_stride(s.columns.sizes, s.columns.b);
    auto c_rows = merged_stride(s.rows.sizes, s.rows.c);
    auto c_columns = merged_stride(s.columns.sizes, s.columns.c);
    if (!a_rows || !a_depth || !b_depth || !b_columns || !c_rows || !c_columns) {
        return std::nullopt;
    }
    int64_t m = product(s.rows.sizes);
    int64_t n = product(s.columns.sizes);
    int64_t k = product(s.depth.sizes);
    if (m == 0 || n == 0 || k == 0 || product(batch.sizes) == 0) {
        return std::nullopt;
    }
    if (m < fewest || product(batch.sizes) * m * n < fewest_products / k) {
        return std::nullopt;
    }
    Product p;
    p.a = {batch.sizes, batch.a, m, k, *a_rows, *a_depth};
    p.b = {batch.sizes, batch.b, k, n, *b_depth, *b_columns};
    p.c = {batch.sizes, batch.c, m, n, *c_rows, *c_columns};
    return p;
}

/// An operand of the epilogue with the axes of the product's result: broadcast axes have size 1.
std::optional<Array> operand_of(const Operand& o, const DotShape& s, const Product& p) {
    const View& v = o.view;
    size_t at = 0;
    auto take = [&](const AxisGroup& g) {
        Shape strides(v.strides.begin() + static_cast<std::ptrdiff_t>(at),
                      v.strides.begin() + static_cast<std::ptrdiff_t>(at + g.sizes.size()));
        at += g.sizes.size();
        return strides;
    };
    Shape batch = take(s.batch);
    Shape rows = take(s.rows);
    Shape columns = take(s.columns);
    Matrix m = p.c;
    auto row = merged_stride(s.rows.sizes, rows);
    auto column = merged_stride(s.columns.sizes, columns);
    auto is_zero = [](int64_t stride) { return stride == 0; };
    if (!row || !column || p.c.batch.size() > 1 ||
        !std::all_of(batch.begin(), batch.end(), is_zero)) {
        // With a batch, only operands that all its matrices share.
        return std::nullopt;
    }
    std::fill(m.batch.begin(), m.batch.end(), 1);
    m.rows = *row == 0 ? 1 : p.c.rows;
    m.columns = *column == 0 ? 1 : p.c.columns;
    m.row_stride = *row;
    m.column_stride = *column;
    if (m.columns > 1 && m.column_stride != 1) {
        return std::nullopt;
    }
    return m.array(o.dtype);
}

bool add_posts(LibraryProblem& lp, const Posts& posts, const DotShape& s, const Product& p) {
    for (size_t i = 0; i < posts.steps.size(); ++i) {
        const PostStep& step = posts.steps[i];
        onednn::Post post = {step.function, step.alpha, step.beta, {}};
        const Operand& from = posts.operands[i];
        if (step.input >= 0) {
            std::optional<Array> operand = operand_of(from, s, p);
            if (!operand) {
                return false;
            }
            int last = operand->rank - 1;
            bool is_bias = i == 0 && step.function == onednn::Function::Add &&
                           operand->sizes[last] == p.c.columns && operand->sizes[last - 1] == 1;
            if (is_bias) {
                lp.problem.has_bias = true;
                lp.bias = from;
                continue;
            }
            post.operand = *operand;
        }
        lp.problem.posts[lp.problem.post_count++] = post;
        lp.posts.push_back(from);
    }
    return true;
}

std::optional<LibraryProblem> problem_of(const Product& p, const DotOperands& o) {
    std::optional<Array> a = p.a.array(o.a.dtype);
    std::optional<Array> b = p.b.array(o.b.dtype);
    std::optional<Array> c = p.c.array(o.c.dtype);
    if (!a || !b || !c || c->strides[c->rank - 1] != 1) {
        return std::nullopt;
    }
    LibraryProblem lp;
    lp.problem.work = onednn::Work::Matmul;
    lp.problem.x = *a;
    lp.problem.w = *b;
    lp.problem.out = *c;
    lp.problem.constant_w = o.b_constant != nullptr;
    lp.x = o.a;
    lp.w = o.b;
    lp.out = o.c;
    lp.w_constant = lp.problem.constant_w ? o.b_constant : nullptr;
    return lp;
}

/// The product with its epilogue; nullopt when oneDNN cannot read an operand.
std::optional<LibraryProblem> whole_problem(const DotShape& s, const DotOperands& o,
                                            const Posts& posts) {
    DotShape of_result = s;
    size_t axis = 0;
    for (AxisGroup* g : {&of_result.batch, &of_result.rows, &of_result.columns}) {
        for (int64_t& stride : g->c) {
            stride = o.c.view.strides[axis++];
        }
    }
    std::optional<Product> p = product_of(of_result, o.a.dtype);
    std::optional<LibraryProblem> whole = p ? problem_of(*p, o) : std::nullopt;
    return whole && add_posts(*whole, posts, of_result, *p) ? whole : std::nullopt;
}

/// Whether our own loops multiply four depths at once too, with weights that are packed once.
bool multiplies_quads(const DotOperands& o) {
    return o.a.dtype == DType::U8 && o.b.dtype == DType::I8 && o.b_constant != nullptr &&
           vector_loops().quad_tile != nullptr;
}

/// Whether our own loops take less time: oneDNN's "gemm", for results with gaps, packs weights in
/// each run, which many rows of f32 repay. Below AVX-512 it has no other loops for f32.
bool own_loops_are_faster(const Step* step, const DotOperands& o, int64_t rows) {
    bool few = rows <= most_rows_of_gaps && instruction_set() >= InstructionSet::Avx512;
    bool as_fast = multiplies_quads(o) || (o.a.dtype == DType::F32 && few);
    return step != nullptr && as_fast && o.b_constant != nullptr &&
           step->implementation().starts_with("onednn gemm");
}

/// Whether the main node's result has the type of oneDNN's sums.
bool is_sum(DType result, DType x) {
    return result == (x == DType::F32 ? DType::F32 : DType::I32);
}

} // namespace

std::unique_ptr<Step> make_library_matmul(const DotShape& s, const DotOperands& o,
                                          const StepArgs& args) {
    if (!args.options.of<CpuOptions>().use_library || !library_multiplies(o.a.dtype, o.b.dtype) ||
        !is_sum(o.c.dtype, o.a.dtype)) {
        return nullptr;
    }
    std::optional<Product> p = product_of(s, o.a.dtype);
    if (!p) {
        return nullptr;
    }
    if (multiplies_quads(o) && p->a.rows <= vector_loops().tile.rows) {
        return nullptr; // the weights are read once by either
    }
    std::optional<LibraryProblem> plain = problem_of(*p, o);
    if (!plain) {
        return nullptr;
    }
    if (std::optional<Posts> posts = posts_of(args)) {
        std::optional<LibraryProblem> whole =
            whole_problem(s, {o.a, o.b, args.out[0], o.b_constant}, *posts);
        if (whole) {
            std::unique_ptr<Step> step = make_library_step(*whole, args);
            if (step != nullptr && !own_loops_are_faster(step.get(), o, p->a.rows)) {
                return step;
            }
        }
    }
    std::unique_ptr<Step> step = make_library_step(*plain, args);
    return step == nullptr || own_loops_are_faster(step.get(), o, p->a.rows)
               ? nullptr
               : with_epilogue(std::move(step), args);
}

} // namespace ingot::cpu
