// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/matmul.h"

#include "backends/cpu/expr_program.h"
#include "backends/cpu/matmul_pack.h"
#include "base/integers.h"
#include "plan/program.h"

#include <algorithm>

namespace ingot::cpu {

namespace {

/// Elements in one chunk of a packed side: chunks stay in the last-level cache.
constexpr int64_t chunk_elements = 1 << 20;
/// Bytes of packed rows that a task keeps in the L2 cache.
constexpr int64_t row_block_bytes = 384 << 10;
/// Multiplications worth one task.
constexpr int64_t task_products = 1 << 18;
constexpr int64_t packing_grain = 1 << 14;
constexpr int64_t largest_tile = 1024; // elements

/// Any element type: a small block of sums in plain C++.
template <class T>
struct GenericTile {
    static constexpr TileShape shape{4, 8};
    static void run(int64_t rows, int64_t k, const T* a, const T* b, T* c, int64_t c_stride) {
        T sums[4][8] = {};
        for (int64_t i = 0; i < k; ++i, a += rows, b += 8) {
            for (int64_t r = 0; r < rows; ++r) {
                for (int64_t j = 0; j < 8; ++j) {
                    sums[r][j] += a[r] * b[j];
                }
            }
        }
        for (int64_t r = 0; r < rows; ++r) {
            std::copy(sums[r], sums[r] + 8, c + r * c_stride);
        }
    }
};

template <class T>
using TileFunction = void (*)(int64_t, int64_t, const T*, const T*, T*, int64_t);

template <class T>
struct PackedSide {
    std::shared_ptr<T> constant; // all panels of all batches, when constant
    PackPanel<T> pack = nullptr;
    int64_t width = 0;   // outer elements of a panel
    int64_t size = 0;    // outer elements
    int64_t chunk = 0;   // of them packed at a time (a multiple of width)
    int64_t scratch = 0; // offset of packed panels in scratch memory, in elements

    int64_t panels() const { return div_up(size, width); }
};

template <class T>
class MatmulOf : public Matmul {
public:
    /// depths_of_element: of bytes, which are packed in pairs or quads.
    MatmulOf(MatmulSpec spec, DType accumulator, TileShape tile, TileFunction<T> run_tile,
             PackCache& packs, int64_t depths_of_element = 1)
        : spec_(std::move(spec)), tile_(tile), run_tile_(run_tile), depths_(depths_of_element),
          depth_(div_up(static_cast<int64_t>(spec_.a.depth.size()), depths_)),
          batches_(static_cast<int64_t>(spec_.batch.size())) {
        init_side(a_, spec_.a, tile_.rows, packs);
        init_side(b_, spec_.b, tile_.columns, packs);
        bool whole = a_.chunk >= a_.size && b_.chunk >= b_.size;
        int64_t unit =
            std::max<int64_t>((a_.panels() * a_.width + b_.panels() * b_.width) * depth_, 1);
        group_ = whole ? std::clamp<int64_t>(2 * chunk_elements / unit, 1, batches_) : 1;
        int64_t elements = 0;
        if (a_.constant == nullptr) {
            a_.scratch = elements;
            elements += std::min(a_.panels() * a_.width, a_.chunk) * depth_ * group_;
        }
        if (b_.constant == nullptr) {
            b_.scratch = elements;
            elements += std::min(b_.panels() * b_.width, b_.chunk) * depth_ * group_;
        }
        scratch_bytes_ = elements * static_cast<int64_t>(sizeof(T)) + 64;
        c_width_ = bit_width(spec_.dtype) / 8;
        convert_ = spec_.dtype == accumulator ? nullptr
                   : is_float(spec_.dtype) && spec_.dtype != DType::F64 && spec_.dtype != DType::F32
                       ? store_loop(spec_.dtype)
                       : cast_loop(accumulator, spec_.dtype, false);
        row_stride_ = spec_.rows.size() > 1 ? spec_.rows[1] - spec_.rows[0] : 0;
        direct_ = convert_ == nullptr && consecutive(spec_.columns) && row_stride_ >= 0;
        for (size_t i = 1; direct_ && i < spec_.rows.size(); ++i) {
            direct_ = spec_.rows[i] - spec_.rows[i - 1] == row_stride_;
        }
        stores_rows_ = consecutive(spec_.columns);
    }

    int64_t scratch_bytes() const override { return scratch_bytes_; }

    void run(const std::byte* a, const std::byte* b, std::byte* c, std::byte* scratch,
             ThreadPool& pool) const noexcept override {
        auto* packed = reinterpret_cast<T*>(scratch);
        for (int64_t first = 0; first < batches_; first += group_) {
            int64_t count = std::min(group_, batches_ - first);
            for (int64_t row = 0; row < a_.size; row += a_.chunk) {
                pack_side(a_, spec_.a, a, first, count, row, packed, pool);
                for (int64_t column = 0; column < b_.size; column += b_.chunk) {
                    if (row == 0 || b_.chunk < b_.size) {
                        pack_side(b_, spec_.b, b, first, count, column, packed, pool);
                    }
                    multiply({first, count, row, column}, packed, c, pool);
                }
            }
        }
    }

private:
    PackPanel<T> pack_of(DType stored) const {
        if constexpr (std::is_same_v<T, uint32_t>) {
            return depths_ == 4 ? pack_quads : pack_pairs_of(stored);
        } else {
            return pack_panel_of<T>(stored);
        }
    }

    struct Chunk {
        int64_t first; // batch
        int64_t count;
        int64_t row;
        int64_t column;
    };

    void init_side(PackedSide<T>& p, MatmulSide& side, int64_t width, PackCache& packs) {
        p.width = width;
        p.size = static_cast<int64_t>(side.outer.size());
        p.pack = pack_of(side.dtype);
        int64_t fits = std::max<int64_t>(chunk_elements / std::max<int64_t>(depth_, 1), 1);
        p.chunk = std::max(fits / width * width, width * 8);
        if (side.constant == nullptr) {
            return;
        }
        p.chunk = std::max<int64_t>(p.panels() * width, 1);
        std::string key =
            str("panels ", sizeof(T), ' ', std::is_floating_point_v<T>, ' ', depths_, ' ', width,
                ' ', reinterpret_cast<uintptr_t>(side.constant), ' ', side.dtype, ' ', side.key);
        p.constant = packs.get<T>(key, [&] {
            int64_t panel = width * depth_;
            size_t bytes = static_cast<size_t>(p.panels() * panel * batches_) * sizeof(T);
            std::shared_ptr<std::byte> memory = packs.allocate(bytes);
            std::shared_ptr<T> all(memory, reinterpret_cast<T*>(memory.get()));
            ThreadPool::shared().parallel_for(
                batches_ * p.panels(), 1, [&](int64_t from, int64_t to) {
                    for (int64_t i = from; i < to; ++i) {
                        pack_one(p, side, side.constant, i / p.panels(), i % p.panels(),
                                 all.get() + i * panel);
                    }
                });
            return std::make_pair(all, bytes);
        });
    }

    /// Row panels hold exactly their rows, so that short ones cost less; column panels are padded.
    void pack_one(const PackedSide<T>& p, const MatmulSide& side, const std::byte* base,
                  int64_t batch, int64_t panel, T* to) const {
        int64_t begin = panel * p.width;
        int64_t count = std::min(p.width, p.size - begin);
        std::span<const int64_t> outer(side.outer);
        const std::byte* from =
            base + side.batch[static_cast<size_t>(batch)] * (bit_width(side.dtype) / 8);
        bool rows = &p == &a_;
        p.pack(to, from, outer.subspan(static_cast<size_t>(begin), static_cast<size_t>(count)),
               side.depth, rows ? count : p.width);
    }

    void pack_side(const PackedSide<T>& p, const MatmulSide& side, const std::byte* base,
                   int64_t first, int64_t count, int64_t begin, T* packed, ThreadPool& pool) const {
        if (p.constant != nullptr) {
            return;
        }
        int64_t from_panel = begin / p.width;
        int64_t panels = div_up(std::min(p.chunk, p.size - begin), p.width);
        int64_t panel = p.width * depth_;
        int64_t grain = std::max<int64_t>(1, packing_grain / std::max<int64_t>(panel, 1));
        pool.parallel_for(count * panels, grain, [&](int64_t from, int64_t to) {
            for (int64_t i = from; i < to; ++i) {
                pack_one(p, side, base, first + i / panels, from_panel + i % panels,
                         packed + p.scratch + i * panel);
            }
        });
    }

    const T* panel_of(const PackedSide<T>& p, const Chunk& chunk, int64_t begin, int64_t batch,
                      int64_t panel, const T* packed) const {
        int64_t size = p.width * depth_;
        if (p.constant != nullptr) {
            return p.constant.get() + ((chunk.first + batch) * p.panels() + panel) * size;
        }
        int64_t panels = div_up(std::min(p.chunk, p.size - begin), p.width);
        return packed + p.scratch + (batch * panels + panel - begin / p.width) * size;
    }

    void multiply(const Chunk& chunk, const T* packed, std::byte* c, ThreadPool& pool) const {
        int64_t row_panels = div_up(std::min(a_.chunk, a_.size - chunk.row), a_.width);
        int64_t column_panels = div_up(std::min(b_.chunk, b_.size - chunk.column), b_.width);
        int64_t panel_bytes =
            std::max<int64_t>(a_.width * depth_ * static_cast<int64_t>(sizeof(T)), 1);
        int64_t rows_at_once = std::clamp<int64_t>(row_block_bytes / panel_bytes, 1, row_panels);
        int64_t row_blocks = div_up(row_panels, rows_at_once);
        int64_t products = std::max<int64_t>(rows_at_once * a_.width * b_.width * depth_, 1);
        int64_t grain = std::max<int64_t>(1, task_products / products);
        // One unit of work: a panel of columns times a block of row panels.
        int64_t units = chunk.count * row_blocks * column_panels;
        pool.parallel_for(units, grain, [&](int64_t from, int64_t to) {
            for (int64_t u = from; u < to;) {
                int64_t block = u / column_panels % row_blocks;
                int64_t batch = u / (column_panels * row_blocks);
                int64_t first = chunk.row / a_.width + block * rows_at_once;
                int64_t last = std::min(first + rows_at_once, chunk.row / a_.width + row_panels);
                int64_t column = u % column_panels;
                int64_t end = std::min(column_panels, column + to - u);
                u += end - column;
                const T* a = panel_of(a_, chunk, chunk.row, batch, first, packed);
                const T* b = panel_of(b_, chunk, chunk.column, batch,
                                      column + chunk.column / b_.width, packed);
                for (; column < end; ++column, b += b_.width * depth_) {
                    tiles(chunk.first + batch, first, last, column + chunk.column / b_.width, a, b,
                          c);
                }
            }
        });
    }

    /// Row panels [first, last) times one panel of columns.
    void tiles(int64_t batch, int64_t first, int64_t last, int64_t column, const T* a, const T* b,
               std::byte* c) const {
        for (int64_t row = first; row < last; ++row, a += a_.width * depth_) {
            tile(batch, row, column, a, b, c);
        }
    }

    void tile(int64_t batch, int64_t row_panel, int64_t column_panel, const T* a, const T* b,
              std::byte* c) const {
        int64_t row = row_panel * a_.width;
        int64_t column = column_panel * b_.width;
        int64_t rows = std::min(a_.width, a_.size - row);
        int64_t columns = std::min(b_.width, b_.size - column);
        int64_t base = spec_.batch[static_cast<size_t>(batch)];
        if (direct_ && columns == b_.width) {
            int64_t at = base + spec_.rows[static_cast<size_t>(row)] +
                         spec_.columns[static_cast<size_t>(column)];
            run_tile_(rows, depth_, a, b, reinterpret_cast<T*>(c) + at, row_stride_);
            return;
        }
        alignas(64) T sums[largest_tile];
        run_tile_(rows, depth_, a, b, sums, b_.width);
        for (int64_t r = 0; r < rows; ++r) {
            int64_t at = base + spec_.rows[static_cast<size_t>(row + r)];
            store_row(sums + r * b_.width, c, at, column, columns);
        }
    }

    void store_row(const T* sums, std::byte* c, int64_t at, int64_t column, int64_t columns) const {
        alignas(64) std::byte converted[largest_tile * sizeof(T)];
        const auto* from = reinterpret_cast<const std::byte*>(sums);
        if (convert_ != nullptr) {
            convert_(converted, sums, nullptr, nullptr, columns);
            from = converted;
        }
        const int64_t* to = spec_.columns.data() + column;
        if (stores_rows_) {
            std::copy(from, from + columns * c_width_, c + (at + to[0]) * c_width_);
            return;
        }
        for (int64_t j = 0; j < columns; ++j) {
            std::copy(from + j * c_width_, from + (j + 1) * c_width_, c + (at + to[j]) * c_width_);
        }
    }

    MatmulSpec spec_;
    TileShape tile_;
    TileFunction<T> run_tile_;
    int64_t depths_; // in one packed element
    int64_t depth_;  // packed elements
    int64_t batches_;
    PackedSide<T> a_;
    PackedSide<T> b_;
    int64_t group_ = 1; // batches packed at a time
    int64_t scratch_bytes_ = 0;
    MapLoop convert_ = nullptr;
    int64_t c_width_ = 4;
    int64_t row_stride_ = 0;
    bool direct_ = false;      // whole tiles are written straight to c
    bool stores_rows_ = false; // columns of c are contiguous
};

} // namespace

std::unique_ptr<Matmul> make_matmul(MatmulSpec spec, PackCache& packs) {
    DType t = spec.a.dtype;
    if (t == DType::F64) {
        return std::make_unique<MatmulOf<double>>(std::move(spec), DType::F64,
                                                  GenericTile<double>::shape,
                                                  GenericTile<double>::run, packs);
    }
    if (is_float(t)) {
        const VectorLoops& loops = vector_loops();
        auto run_tile = spec.in_order ? loops.matmul_tile_in_order : loops.matmul_tile;
        return std::make_unique<MatmulOf<float>>(std::move(spec), DType::F32, loops.tile, run_tile,
                                                 packs);
    }
    if (bit_width(t) <= 8) {
        const VectorLoops& loops = vector_loops();
        bool quads = t == DType::U8 && spec.b.dtype == DType::I8 && loops.quad_tile != nullptr;
        return std::make_unique<MatmulOf<uint32_t>>(std::move(spec), DType::I32, loops.tile,
                                                    quads ? loops.quad_tile : loops.byte_tile,
                                                    packs, quads ? 4 : 2);
    }
    return std::make_unique<MatmulOf<uint64_t>>(std::move(spec), DType::I64,
                                                GenericTile<uint64_t>::shape,
                                                GenericTile<uint64_t>::run, packs);
}

} // namespace ingot::cpu
