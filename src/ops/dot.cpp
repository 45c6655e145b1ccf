// SPDX-License-Identifier: Apache-2.0
// dot: batched contraction. Operands are copied into [batch, rows, depth] and [batch, depth,
// columns] of the accumulation type, then multiplied in blocks.
#include "base/interrupt.h"
#include "ops/eval_util.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

namespace ingot {

using eval_util::known_one;
using eval_util::may_agree;
using eval_util::read_all;
using eval_util::require_axis;
using eval_util::require_inputs;
using eval_util::Walk;
using eval_util::write;

namespace {

using Axes = std::vector<int64_t>;

// --- types -----------------------------------------------------------------------------------

void check_dtypes(const Dot& a, DType l, DType r) {
    bool small = is_integer(l) && is_integer(r) && bit_width(l) <= 8 && bit_width(r) <= 8;
    require(l != DType::Bool && (l == r || small), ErrorCode::InvalidModel,
            "dot: the operands are ", l, " and ", r,
            ", expected one number type or two integer types of up to 8 bits");
    require(is_float(l) ? is_float(a.dtype) : is_integer(a.dtype), ErrorCode::InvalidModel,
            "dot: the result of ", l, " operands is ", a.dtype, ", expected ",
            is_float(l) ? "a float type" : "an integer type");
}

// Every axis of `used` is in range and named once.
void check_axes(std::string_view side, const Axes& batch, const Axes& contract, const Type& t) {
    Axes used = batch;
    used.insert(used.end(), contract.begin(), contract.end());
    std::vector<bool> seen(t.dims.size(), false);
    for (int64_t axis : used) {
        require_axis(str("dot: operand ", side), axis, t);
        require(!seen[static_cast<size_t>(axis)], ErrorCode::InvalidModel, "dot: operand ", side,
                ": axis ", axis, " is named twice in batch ", batch, " and contraction ", contract);
        seen[static_cast<size_t>(axis)] = true;
    }
}

void check_pairs(std::string_view what, const Axes& a, const Axes& b, const Type& l,
                 const Type& r) {
    require(a.size() == b.size(), ErrorCode::InvalidModel, "dot: got ", a.size(), " ", what,
            " axes of a and ", b.size(), " of b, expected as many");
    for (size_t i = 0; i < a.size(); ++i) {
        const Dim& x = l.dims[static_cast<size_t>(a[i])];
        const Dim& y = r.dims[static_cast<size_t>(b[i])];
        require(may_agree(x, y), ErrorCode::InvalidModel, "dot: ", what, " axis ", a[i], " of ", l,
                " has size ", x, ", but axis ", b[i], " of ", r, " has size ", y);
    }
}

Axes free_axes(size_t rank, const Axes& batch, const Axes& contract) {
    Axes out;
    for (size_t i = 0; i < rank; ++i) {
        auto axis = static_cast<int64_t>(i);
        if (std::find(batch.begin(), batch.end(), axis) == batch.end() &&
            std::find(contract.begin(), contract.end(), axis) == contract.end()) {
            out.push_back(axis);
        }
    }
    return out;
}

std::vector<Type> infer_dot(const Dot& a, std::span<const Type> in) {
    require_inputs("dot", in, 2);
    const Type& l = in[0];
    const Type& r = in[1];
    check_dtypes(a, l.dtype, r.dtype);
    check_axes("a", a.a_batch, a.a_contract, l);
    check_axes("b", a.b_batch, a.b_contract, r);
    check_pairs("batch", a.a_batch, a.b_batch, l, r);
    check_pairs("contracted", a.a_contract, a.b_contract, l, r);
    Type out{a.dtype, {}};
    for (size_t i = 0; i < a.a_batch.size(); ++i) {
        out.dims.push_back(known_one(l.dims[static_cast<size_t>(a.a_batch[i])],
                                     r.dims[static_cast<size_t>(a.b_batch[i])]));
    }
    for (int64_t axis : free_axes(l.dims.size(), a.a_batch, a.a_contract)) {
        out.dims.push_back(l.dims[static_cast<size_t>(axis)]);
    }
    for (int64_t axis : free_axes(r.dims.size(), a.b_batch, a.b_contract)) {
        out.dims.push_back(r.dims[static_cast<size_t>(axis)]);
    }
    return {out};
}

// --- operands --------------------------------------------------------------------------------

Axes join_axes(const Axes& a, const Axes& b, const Axes& c) {
    Axes out = a;
    out.insert(out.end(), b.begin(), b.end());
    out.insert(out.end(), c.begin(), c.end());
    return out;
}

int64_t size_of(const Tensor& t, const Axes& axes) {
    int64_t n = 1;
    for (int64_t axis : axes) {
        n *= t.shape()[static_cast<size_t>(axis)];
    }
    return n;
}

/// The elements of a tensor with its axes in a given order, as T: a view of the tensor if it
/// already has that order and type.
template <class T>
struct Operand {
    std::vector<T> copy;
    std::span<const T> elements;
};

/// Runs of axes that stay adjacent in this order.
struct Runs {
    Shape sizes;
    Shape strides;
};

Runs runs_of(const Shape& shape, const Axes& order) {
    Shape own = strides_of(shape);
    Runs r;
    for (int64_t axis : order) {
        int64_t size = shape[static_cast<size_t>(axis)];
        int64_t stride = own[static_cast<size_t>(axis)];
        if (size == 1) {
            continue;
        }
        if (!r.sizes.empty() && r.strides.back() == stride * size) {
            r.sizes.back() *= size;
            r.strides.back() = stride;
        } else {
            r.sizes.push_back(size);
            r.strides.push_back(stride);
        }
    }
    return r;
}

/// T has the same kind (float or integer) as the dtype.
template <class T>
Operand<T> ordered(const Tensor& t, const Axes& order) {
    Operand<T> out;
    bool aligned = reinterpret_cast<uintptr_t>(t.bytes().data()) % alignof(T) == 0;
    bool same =
        std::is_floating_point_v<T> && bit_width(t.dtype()) == static_cast<int>(8 * sizeof(T));
    if (same && aligned) {
        out.elements = t.as<T>();
    } else {
        out.copy = read_all<T>(t);
        out.elements = out.copy;
    }
    Runs r = runs_of(t.shape(), order);
    if (out.elements.empty() || r.sizes.size() <= 1) {
        return out;
    }
    int64_t length = r.sizes.back();
    int64_t step = r.strides.back();
    r.sizes.pop_back();
    r.strides.pop_back();
    std::vector<T> moved(out.elements.size());
    T* to = moved.data();
    for (Walk<1> w(r.sizes, {r.strides}); !w.done(); w.next()) {
        const T* from = out.elements.data() + w.offset(0);
        for (int64_t i = 0; i < length; ++i) {
            *to++ = from[i * step];
        }
    }
    out.copy = std::move(moved);
    out.elements = out.copy;
    return out;
}

struct Extents {
    int64_t batch, rows, depth, columns;
};

// --- the product -----------------------------------------------------------------------------

// 16 bytes of T, an extension that both compilers lower to the baseline's registers.
template <class T>
struct VectorOf {
    using type [[gnu::vector_size(16)]] = T;
};
template <class T>
inline constexpr int64_t lanes = 16 / sizeof(T);
/// Columns of a tile: two vectors.
template <class T>
inline constexpr int64_t tile_width = 2 * lanes<T>;

/// out[R][tile_width] = a[R][depth] * b[depth][tile_width], with row strides for a and b. T is a
/// float type or unsigned, so that overflow wraps.
template <class T, int R>
void multiply_tile(const T* a, int64_t a_stride, const T* b, int64_t b_stride, int64_t depth,
                   T* out) {
    using Vector = typename VectorOf<T>::type;
    Vector sums[R][2] = {};
    for (int64_t k = 0; k < depth; ++k, b += b_stride) {
        Vector b0;
        Vector b1;
        std::memcpy(&b0, b, sizeof(Vector));
        std::memcpy(&b1, b + lanes<T>, sizeof(Vector));
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
            T x = a[r * a_stride + k];
            sums[r][0] += x * b0;
            sums[r][1] += x * b1;
        }
    }
    std::memcpy(out, sums, sizeof(sums));
}

/// The columns from `first` on, fewer than a tile's width, as [depth][tile_width] padded with
/// zeros.
template <class T>
std::vector<T> last_strip(const T* b, int64_t depth, int64_t columns, int64_t first) {
    std::vector<T> out(static_cast<size_t>(depth * tile_width<T>));
    for (int64_t k = 0; k < depth; ++k) {
        std::copy(b + k * columns + first, b + (k + 1) * columns, out.data() + k * tile_width<T>);
    }
    return out;
}

/// c[rows][columns] += a[rows][depth] * b[depth][width], with width at most tile_width. Blocks of
/// the depth are summed in T, their sums in A.
template <class T, class A>
void multiply_strip(const T* a, const T* b, int64_t b_stride, A* c, Extents x, int64_t width) {
    constexpr int64_t block_depth = 128;
    constexpr int64_t block_rows = 4;
    std::array<T, block_rows * tile_width<T>> tile;
    for (int64_t k = 0; k < x.depth; k += block_depth) {
        int64_t d = std::min(block_depth, x.depth - k);
        for (int64_t i = 0; i < x.rows;) {
            int64_t n = x.rows - i >= block_rows ? block_rows : 1;
            auto multiply = n == 1 ? multiply_tile<T, 1> : multiply_tile<T, block_rows>;
            multiply(a + i * x.depth + k, x.depth, b + k * b_stride, b_stride, d, tile.data());
            for (int64_t r = 0; r < n; ++r, ++i) {
                for (int64_t j = 0; j < width; ++j) {
                    T sum = tile[static_cast<size_t>(r * tile_width<T> + j)];
                    c[i * x.columns + j] += static_cast<A>(sum);
                }
            }
        }
    }
}

template <class A>
void store(std::span<const A> c, int64_t begin, Tensor& out) {
    if constexpr (std::is_floating_point_v<A>) {
        write(c, begin, out);
    } else {
        std::vector<int64_t> wide(c.size());
        for (size_t i = 0; i < c.size(); ++i) {
            wide[i] = static_cast<std::make_signed_t<A>>(c[i]);
        }
        write(std::span<const int64_t>(wide), begin, out);
    }
}

template <class A>
std::vector<A> transposed(const std::vector<A>& c, int64_t rows, int64_t columns) {
    std::vector<A> out(c.size());
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
            out[static_cast<size_t>(j * rows + i)] = c[static_cast<size_t>(i * columns + j)];
        }
    }
    return out;
}

/// `l` is [batch][rows][depth], `r` [batch][depth][columns]. `swapped`: the operands were
/// exchanged, so the result is stored transposed.
template <class T, class A>
void multiply_batches(const Operand<T>& l, const Operand<T>& r, const Extents& x, bool swapped,
                      Tensor& out) {
    constexpr int64_t row_block = 64;
    int64_t tail = x.columns / tile_width<T> * tile_width<T>;
    for (int64_t b = 0; b < x.batch; ++b) {
        const T* right = r.elements.data() + b * x.depth * x.columns;
        std::vector<T> last = last_strip(right, x.depth, x.columns, tail);
        for (int64_t i = 0; i < x.rows; i += row_block) {
            check_interrupt();
            Extents part = x;
            part.rows = swapped ? x.rows : std::min(row_block, x.rows - i);
            const T* left = l.elements.data() + (b * x.rows + i) * x.depth;
            std::vector<A> c(static_cast<size_t>(part.rows * x.columns));
            int64_t strips = x.depth == 0 ? 0 : tail; // without a depth there are no elements
            for (int64_t j = 0; j < strips; j += tile_width<T>) {
                multiply_strip(left, right + j, x.columns, c.data() + j, part, tile_width<T>);
            }
            if (tail < x.columns) {
                multiply_strip(left, last.data(), tile_width<T>, c.data() + tail, part,
                               x.columns - tail);
            }
            c = swapped ? transposed(c, part.rows, x.columns) : std::move(c);
            store(std::span<const A>(c), (b * x.rows + i) * x.columns, out);
        }
    }
}

template <class T, class A>
void eval_as(const Dot& a, EvalArgs& e) {
    const Tensor& l = e.in[0];
    const Tensor& r = e.in[1];
    Axes l_free = free_axes(l.shape().size(), a.a_batch, a.a_contract);
    Axes r_free = free_axes(r.shape().size(), a.b_batch, a.b_contract);
    Extents x{size_of(l, a.a_batch), size_of(l, l_free), size_of(l, a.a_contract),
              size_of(r, r_free)};
    bool swapped = x.columns < 16 && x.columns < x.rows; // the inner loop runs over columns
    if (swapped) {
        Axes left = join_axes(a.b_batch, r_free, a.b_contract);
        Axes right = join_axes(a.a_batch, a.a_contract, l_free);
        std::swap(x.rows, x.columns);
        return multiply_batches<T, A>(ordered<T>(r, left), ordered<T>(l, right), x, true, e.out[0]);
    }
    Axes left = join_axes(a.a_batch, l_free, a.a_contract);
    Axes right = join_axes(a.b_batch, a.b_contract, r_free);
    multiply_batches<T, A>(ordered<T>(l, left), ordered<T>(r, right), x, false, e.out[0]);
}

void check_sizes(const char* what, const Axes& a, const Axes& b, const EvalArgs& e) {
    for (size_t i = 0; i < a.size(); ++i) {
        int64_t x = e.in[0].shape()[static_cast<size_t>(a[i])];
        int64_t y = e.in[1].shape()[static_cast<size_t>(b[i])];
        require(x == y, ErrorCode::InvalidArgument, "dot: ", what, " axis ", a[i], " of shape ",
                e.in[0].shape(), " has size ", x, ", but axis ", b[i], " of shape ",
                e.in[1].shape(), " has size ", y);
    }
}

void eval_dot(const Dot& a, EvalArgs& e) {
    check_sizes("batch", a.a_batch, a.b_batch, e);
    check_sizes("contracted", a.a_contract, a.b_contract, e);
    DType t = e.in[0].dtype();
    if (t == DType::F64) {
        eval_as<double, double>(a, e);
    } else if (is_float(t)) {
        eval_as<float, double>(a, e);
    } else if (bit_width(t) <= 8) {
        eval_as<uint32_t, uint32_t>(a, e);
    } else {
        eval_as<uint64_t, uint64_t>(a, e);
    }
}

} // namespace

const OpDef dot_def = primitive<Dot>(
    "dot",
    {Rounding::Smooth,
     [](const Graph& g, const Node& n) {
         const Dims& d = g.type(n.inputs[0]).dims;
         const auto& axes = n.as<Dot>().a_contract;
         bool outer = std::all_of(axes.begin(), axes.end(), [&d](int64_t axis) {
             return d[static_cast<size_t>(axis)].is_const(1);
         });
         // An outer product, as of positions and frequencies.
         return outer ? InHalf::AsOperands : InHalf::Narrow;
     },
     like_result},
    [](const Dot& a, std::span<const Type> in) { return infer_dot(a, in); },
    [](const Dot& a, EvalArgs& e) { eval_dot(a, e); });

extern const OpTable dot_ops;
static const OpDef* const list[] = {&dot_def};
const OpTable dot_ops = list;

} // namespace ingot
