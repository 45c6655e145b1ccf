// SPDX-License-Identifier: Apache-2.0
#include "plan/copy.h"

#include "plan/device.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ingot::plan {

namespace {

constexpr int64_t tile = 16;
constexpr int64_t grain_bytes = 64 << 10;

/// Loops of a copy: the target's innermost axis is last. When another axis is innermost in the
/// source, that one becomes `cross`, and both are walked in tiles.
struct CopyPlan {
    Shape sizes; // outer axes only
    Shape to;
    Shape from;
    int64_t inner = 1; // the innermost axis of the target
    int64_t inner_to = 1;
    int64_t inner_from = 1;
    int64_t cross = 1; // the innermost axis of the source, 1 when it is the same
    int64_t cross_to = 0;
    int64_t cross_from = 0;
    int64_t width = 4; // bytes of an element

    /// Whether a plane is dense on both sides.
    bool transposes() const { return cross > 1 && inner_to == 1 && cross_from == 1; }
    int64_t outer() const {
        int64_t n = 1;
        for (int64_t s : sizes) {
            n *= s;
        }
        return n;
    }
};

void take_axis(CopyPlan& p, size_t axis, int64_t& size, int64_t& to, int64_t& from) {
    size = p.sizes[axis];
    to = p.to[axis];
    from = p.from[axis];
    auto at = static_cast<std::ptrdiff_t>(axis);
    p.sizes.erase(p.sizes.begin() + at);
    p.to.erase(p.to.begin() + at);
    p.from.erase(p.from.begin() + at);
}

CopyPlan plan_copy(const Operand& from, const Operand& to) {
    View views[] = {to.view, from.view};
    LoopNest nest = merged_loops(views, stride_order(to.view));
    CopyPlan p;
    p.width = bit_width(to.dtype) / 8;
    p.sizes = nest.sizes;
    p.to = nest.strides[0];
    p.from = nest.strides[1];
    if (p.sizes.empty()) {
        return p;
    }
    take_axis(p, p.sizes.size() - 1, p.inner, p.inner_to, p.inner_from);
    if (p.inner_from != 1 && p.inner_from != 0) {
        for (size_t i = p.sizes.size(); i-- > 0;) {
            if (p.from[i] == 1 && p.sizes[i] >= 4) {
                take_axis(p, i, p.cross, p.cross_to, p.cross_from);
                break;
            }
        }
    }
    return p;
}

template <class T>
void copy_run(T* to, const T* from, int64_t n, int64_t to_stride, int64_t from_stride) {
    if (to_stride == 1 && from_stride == 1) {
        std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
    } else if (to_stride == 1 && from_stride == 0) {
        std::fill_n(to, n, *from);
    } else if (to_stride == 1) {
        for (int64_t i = 0; i < n; ++i) {
            to[i] = from[i * from_stride];
        }
    } else {
        for (int64_t i = 0; i < n; ++i) {
            to[i * to_stride] = from[i * from_stride];
        }
    }
}

// Vectors of 16 bytes. The attribute is ignored on a type that depends on a template.
template <class T>
struct Vector;
template <>
struct Vector<uint8_t> {
    using Row = uint8_t __attribute__((vector_size(16)));
};
template <>
struct Vector<uint16_t> {
    using Row = uint16_t __attribute__((vector_size(16)));
};
template <>
struct Vector<uint32_t> {
    using Row = uint32_t __attribute__((vector_size(16)));
};
template <>
struct Vector<uint64_t> {
    using Row = uint64_t __attribute__((vector_size(16)));
};

/// A square of elements: a vector a row.
template <class T>
struct Square {
    static constexpr size_t side = 16 / sizeof(T);
    using Row = typename Vector<T>::Row;
    Row rows[side];

    /// Alternates the elements of two rows: those of the first half (0) or of the second (1).
    template <int Half, int... K>
    static Row zip(Row a, Row b, std::integer_sequence<int, K...>) {
        constexpr int lanes = side;
        return __builtin_shufflevector(a, b,
                                       (K / 2 + Half * (lanes / 2) + (K % 2 == 0 ? 0 : lanes))...);
    }
    void transpose() {
        constexpr std::make_integer_sequence<int, side> all;
        for (size_t n = 1; n < side; n *= 2) { // as often as `side` is halved
            Square next;
            for (size_t j = 0; j < side / 2; ++j) {
                next.rows[2 * j] = zip<0>(rows[j], rows[j + side / 2], all);
                next.rows[2 * j + 1] = zip<1>(rows[j], rows[j + side / 2], all);
            }
            *this = next;
        }
    }
};
/// Elements of a cache line.
template <class T>
constexpr int64_t line = 64 / sizeof(T);

/// A tile of line x line elements, of which each row is dense on both sides. Each line is read and
/// written as a whole: lines of a column often share a set of the cache, and push each other out.
template <class T>
void transpose_tile(T* to, int64_t to_stride, const T* from, int64_t from_stride) {
    constexpr auto side = static_cast<int64_t>(Square<T>::side);
    T in[line<T>][line<T>];
    T out[line<T>][line<T>];
    for (int64_t i = 0; i < line<T>; ++i) {
        std::memcpy(in[i], from + i * from_stride, sizeof in[i]);
    }
    for (int64_t r = 0; r < line<T>; r += side) {
        for (int64_t c = 0; c < line<T>; c += side) {
            Square<T> square;
            for (int64_t i = 0; i < side; ++i) {
                std::memcpy(&square.rows[i], &in[r + i][c], sizeof square.rows[i]);
            }
            square.transpose();
            for (int64_t i = 0; i < side; ++i) {
                std::memcpy(&out[c + i][r], &square.rows[i], sizeof square.rows[i]);
            }
        }
    }
    for (int64_t i = 0; i < line<T>; ++i) {
        std::memcpy(to + i * to_stride, out[i], sizeof out[i]);
    }
}

/// Columns of a plane that are transposed together. Each row of the source is often a page of its
/// own, which is looked up once for all of them; their lines of the target fit into a cache.
template <class T>
constexpr int64_t band = 8 * line<T>;

/// The whole tiles between two columns, a multiple of a line apart.
template <class T>
void transpose_tiles(const CopyPlan& p, T* to, const T* from, int64_t begin, int64_t end) {
    for (int64_t i = 0; i + line<T> <= p.inner; i += line<T>) {
        for (int64_t c = begin; c < end; c += line<T>) {
            transpose_tile(to + c * p.cross_to + i, p.cross_to, from + c + i * p.inner_from,
                           p.inner_from);
        }
    }
}

/// Columns of a plane from an element of each on, a tile at a time so that both sides stay in
/// cache.
template <class T>
void copy_columns(const CopyPlan& p, T* to, const T* from, int64_t begin, int64_t end,
                  int64_t first) {
    for (int64_t c0 = begin; c0 < end; c0 += tile) {
        int64_t c1 = std::min(c0 + tile, end);
        for (int64_t i0 = first; i0 < p.inner; i0 += tile) {
            int64_t i1 = std::min(i0 + tile, p.inner);
            for (int64_t c = c0; c < c1; ++c) {
                T* t = to + c * p.cross_to;
                const T* f = from + c * p.cross_from;
                for (int64_t i = i0; i < i1; ++i) {
                    t[i * p.inner_to] = f[i * p.inner_from];
                }
            }
        }
    }
}

/// Columns of a plane of inner x cross elements.
template <class T>
void copy_plane(const CopyPlan& p, T* to, const T* from, int64_t begin, int64_t end) {
    int64_t tiled = begin; // columns before have whole tiles
    if (p.transposes()) {
        tiled = end - (end - begin) % line<T>;
        transpose_tiles(p, to, from, begin, tiled);
        copy_columns(p, to, from, begin, tiled, p.inner / line<T> * line<T>);
    }
    copy_columns(p, to, from, tiled, end, 0);
}

/// Calls body(to offset, from offset) for outer indices [begin, end).
template <class F>
void for_outer(const CopyPlan& p, int64_t begin, int64_t end, const F& body) {
    constexpr size_t max_rank = 16;
    int64_t at[max_rank] = {};
    int64_t to = 0;
    int64_t from = 0;
    int64_t rest = begin;
    for (size_t d = p.sizes.size(); d-- > 0;) {
        at[d] = rest % p.sizes[d];
        rest /= p.sizes[d];
        to += at[d] * p.to[d];
        from += at[d] * p.from[d];
    }
    for (int64_t i = begin; i < end; ++i) {
        body(to, from);
        for (size_t d = p.sizes.size(); d-- > 0;) {
            to += p.to[d];
            from += p.from[d];
            if (++at[d] < p.sizes[d]) {
                break;
            }
            to -= p.to[d] * p.sizes[d];
            from -= p.from[d] * p.sizes[d];
            at[d] = 0;
        }
    }
}

template <class T>
void run_copy(const CopyPlan& p, T* to, const T* from, ThreadPool& pool) {
    int64_t outer = p.outer();
    int64_t grain_elements = grain_bytes / static_cast<int64_t>(sizeof(T));
    if (p.cross > 1) {
        int64_t wide = p.transposes() ? band<T> : tile;
        int64_t chunks = (p.cross + wide - 1) / wide;
        int64_t grain = std::max<int64_t>(1, grain_elements / (p.inner * wide));
        pool.parallel_for(outer * chunks, grain, [&](int64_t begin, int64_t end) {
            for (int64_t c = begin; c < end; ++c) {
                int64_t start = c % chunks * wide;
                for_outer(p, c / chunks, c / chunks + 1, [&](int64_t t, int64_t f) {
                    copy_plane(p, to + t, from + f, start, std::min(start + wide, p.cross));
                });
            }
        });
        return;
    }
    if (outer == 1) {
        pool.parallel_for(p.inner, grain_elements, [&](int64_t begin, int64_t end) {
            copy_run(to + begin * p.inner_to, from + begin * p.inner_from, end - begin, p.inner_to,
                     p.inner_from);
        });
        return;
    }
    int64_t grain = std::max<int64_t>(1, grain_elements / std::max<int64_t>(p.inner, 1));
    pool.parallel_for(outer, grain, [&](int64_t begin, int64_t end) {
        for_outer(p, begin, end, [&](int64_t t, int64_t f) {
            copy_run(to + t, from + f, p.inner, p.inner_to, p.inner_from);
        });
    });
}

void run_copy_bytes(const CopyPlan& p, std::byte* to, const std::byte* from, ThreadPool& pool) {
    switch (p.width) {
    case 1:
        run_copy(p, reinterpret_cast<uint8_t*>(to), reinterpret_cast<const uint8_t*>(from), pool);
        break;
    case 2:
        run_copy(p, reinterpret_cast<uint16_t*>(to), reinterpret_cast<const uint16_t*>(from), pool);
        break;
    case 4:
        run_copy(p, reinterpret_cast<uint32_t*>(to), reinterpret_cast<const uint32_t*>(from), pool);
        break;
    default:
        run_copy(p, reinterpret_cast<uint64_t*>(to), reinterpret_cast<const uint64_t*>(from), pool);
        break;
    }
}

/// Elements of packed types are always dense: whole bytes.
CopyPlan plan_packed_copy(const Operand& to) {
    CopyPlan p;
    p.width = 1;
    p.inner = static_cast<int64_t>(byte_size(to.dtype, to.view.count()));
    return p;
}

class CopyStep : public Step {
public:
    CopyStep(const Operand& from, const Operand& to)
        : from_(from), to_(to),
          plan_(is_packed(to.dtype) ? plan_packed_copy(to) : plan_copy(from, to)) {}
    Status run(const RunContext& c) noexcept override {
        run_copy_bytes(plan_, c.bytes(to_), c.bytes(from_), c.pool);
        return {};
    }

private:
    Operand from_;
    Operand to_;
    CopyPlan plan_;
};

} // namespace

std::unique_ptr<Step> make_copy(const Operand& from, const Operand& to, Device&) {
    CHECK(from.view.shape == to.view.shape && from.dtype == to.dtype, "copy of ", from.view.shape,
          " to ", to.view.shape);
    require(to.view.rank() <= 16, ErrorCode::Unsupported, "copy of rank ", to.view.rank(),
            ", expected at most 16");
    return std::make_unique<CopyStep>(from, to);
}

void copy_elements(const Operand& from, const std::byte* from_base, const Operand& to,
                   std::byte* to_base, ThreadPool& pool) {
    auto* bases = const_cast<std::byte*>(from_base);
    std::byte* buffers[] = {bases, to_base};
    Operand f = from;
    Operand t = to;
    f.buffer = 0;
    t.buffer = 1;
    ErrorText error;
    Status status = CopyStep(f, t).run({buffers, pool, error, host_device()});
    CHECK(status.ok(), "a copy cannot fail");
}

Tensor packed_constant(PackCache& packs, const Operand& constant, const std::byte* base,
                       const Order& order) {
    std::string key =
        str("copy ", reinterpret_cast<uintptr_t>(base), ' ', constant.dtype, ' ',
            constant.view.offset, ' ', constant.view.shape, ' ', constant.view.strides, ' ', order);
    return *packs.get<Tensor>(key, [&] {
        Shape memory;
        for (int axis : order) {
            memory.push_back(constant.view.shape[static_cast<size_t>(axis)]);
        }
        size_t bytes = byte_size(constant.dtype, count_of(memory));
        std::shared_ptr<std::byte> at = packs.allocate(bytes);
        auto t = std::make_shared<Tensor>(
            Tensor::wrap_mutable(constant.dtype, memory, {at.get(), bytes}, at));
        Operand to{constant.dtype, 1, dense(constant.view.shape, order)};
        if (to.view.count() != 0) {
            copy_elements(constant, base, to, t->mutable_bytes().data(), ThreadPool::shared());
        }
        return std::make_pair(t, t->bytes().size());
    });
}

} // namespace ingot::plan
