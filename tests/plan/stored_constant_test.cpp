// SPDX-License-Identifier: Apache-2.0
// Constants that are gathered by parts, against those that are packed at once.
#include "base/text.h"
#include "base/thread_pool.h"
#include "plan/copy.h"
#include "plan/program.h"
#include "plan/stored_constant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace ingot::plan {
namespace {

constexpr DType of_width[] = {DType::U8, DType::F16, DType::F32, DType::F64};
constexpr std::byte poison{0xa5};
using Random = std::mt19937_64;

int64_t pick(Random& random, int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
}

Tensor random_tensor(DType type, const Shape& shape, uint64_t seed) {
    Random random(seed);
    Tensor t = Tensor::empty(type, shape);
    std::span<std::byte> bytes = t.mutable_bytes();
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random()); });
    return t;
}

/// A part of a tensor: steps, both ways along an axis, axes in another order, and repeated ones.
View random_view(const Shape& shape, Random& random) {
    View v = dense(shape);
    Shape starts;
    Shape sizes;
    Shape steps;
    for (int64_t n : shape) {
        int64_t step = pick(random, 0, 3) == 0 ? 2 : 1;
        int64_t first = n > 4 && pick(random, 0, 2) == 0 ? pick(random, 0, 3) : 0;
        int64_t size = (n - first + step - 1) / step;
        bool back = pick(random, 0, 7) == 0;
        starts.push_back(back ? first + (size - 1) * step : first);
        sizes.push_back(size);
        steps.push_back(back ? -step : step);
    }
    v = sliced(v, starts, sizes, steps);
    std::vector<int64_t> perm(shape.size());
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random);
    v = permuted(v, perm);
    if (pick(random, 0, 2) == 0) { // repeats an axis that is new
        Shape wide = v.shape;
        wide.insert(wide.begin(), pick(random, 1, 5));
        v = broadcasted(v, wide);
    }
    return v;
}

Order random_order(size_t rank, Random& random) {
    Order order(rank);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    return order;
}

/// The bytes of a part, and nothing beside it.
void expect_part(const StoredConstant& c, std::span<const std::byte> all, size_t at, size_t bytes) {
    static ThreadPool pool(2);
    constexpr size_t edge = 64;
    std::vector<std::byte> memory(bytes + 2 * edge, poison);
    c.read(at, {memory.data() + edge, bytes}, pool);
    auto clean = [](std::byte b) { return b == poison; };
    ASSERT_TRUE(std::all_of(memory.begin(), memory.begin() + edge, clean)) << at << ' ' << bytes;
    ASSERT_TRUE(std::all_of(memory.end() - edge, memory.end(), clean)) << at << ' ' << bytes;
    ASSERT_EQ(std::memcmp(memory.data() + edge, all.data() + at, bytes), 0) << at << ' ' << bytes;
}

/// The same tensor, joined of random parts by a random axis, of which some are joined again.
Tensor cut_and_joined(const Tensor& t, Random& random, int depth = 2) {
    if (t.rank() == 0 || t.count() == 0 || is_packed(t.dtype())) {
        return t;
    }
    auto axis = static_cast<size_t>(pick(random, 0, t.rank() - 1));
    std::vector<Tensor> parts;
    PackCache packs;
    for (int64_t at = 0, all = t.shape()[axis]; at < all;) {
        Shape starts(t.shape().size(), 0);
        Shape sizes = t.shape();
        starts[axis] = at;
        sizes[axis] = pick(random, 1, all - at);
        View part = sliced(dense(t.shape()), starts, sizes, Shape(sizes.size(), 1));
        Tensor copy =
            packed_constant(packs, {t.dtype(), 0, part}, t.bytes().data(), row_major(t.rank()));
        parts.push_back(
            depth > 1 && pick(random, 0, 2) == 0 ? cut_and_joined(copy, random, depth - 1) : copy);
        at += sizes[axis];
    }
    return Tensor::joined(std::move(parts), static_cast<int64_t>(axis));
}

/// Parts of any place and size, those that a copy takes, and the whole; of the source, or of one
/// like it that is joined and not made.
void expect_parts(const Tensor& source, const Operand& view, const Order& order, Random& random,
                  bool joined = false) {
    PackCache packs;
    Tensor packed = packed_constant(packs, view, source.bytes().data(), order);
    Tensor whole = joined ? cut_and_joined(source, random) : source;
    StoredConstant c(whole, view, order);
    SCOPED_TRACE(str(view.dtype, view.view.shape, " strides ", view.view.strides, " offset ",
                     view.view.offset, " as ", order));
    ASSERT_EQ(c.size(), packed.bytes().size());
    EXPECT_EQ(c.shape(), packed.shape());
    EXPECT_EQ(c.dtype(), packed.dtype());
    auto width = is_packed(view.dtype) ? 1 : static_cast<size_t>(bit_width(view.dtype) / 8);
    auto count = static_cast<int64_t>(c.size() / width);
    expect_part(c, packed.bytes(), 0, c.size());
    for (int i = 0; i < 8 && count > 0; ++i) {
        int64_t begin = pick(random, 0, count);
        int64_t end = pick(random, begin, count);
        expect_part(c, packed.bytes(), static_cast<size_t>(begin) * width,
                    static_cast<size_t>(end - begin) * width);
    }
    for (size_t most : {size_t{4096}, size_t{20000}, size_t{1} << 20}) {
        size_t part = c.part_bytes(most);
        ASSERT_GT(part, 0U);
        ASSERT_LE(part, most);
        for (size_t at = 0; at < c.size(); at += part) {
            expect_part(c, packed.bytes(), at, std::min(part, c.size() - at));
        }
    }
    EXPECT_EQ(whole.is_made(), !joined || source.rank() == 0);
    for (int i = 0; i < 8 && count > 0 && !is_packed(view.dtype); ++i) {
        int64_t e = pick(random, 0, count - 1);
        const std::byte* from =
            source.bytes().data() + c.source_index(e) * static_cast<int64_t>(width);
        ASSERT_EQ(std::memcmp(from, packed.bytes().data() + static_cast<size_t>(e) * width, width),
                  0);
    }
}

TEST(StoredConstant, PartsOfTransposedMatrices) {
    Random random(1);
    for (DType type : of_width) {
        for (int64_t rows : {1, 7, 33, 64, 130, 301}) {
            for (int64_t columns : {1, 9, 64, 96, 129, 257}) {
                Tensor t = random_tensor(type, {rows, columns}, 2);
                expect_parts(t, {type, 0, dense(t.shape())}, {1, 0}, random);
                expect_parts(t, {type, 0, dense(t.shape())}, {1, 0}, random, true);
            }
        }
    }
}

TEST(StoredConstant, PartsOfFilters) {
    Random random(3);
    for (DType type : of_width) {
        for (const Shape& s : {Shape{33, 17, 3, 3}, Shape{8, 64, 1, 1}, Shape{5, 66, 7, 5},
                               Shape{3, 128, 2, 2}, Shape{1, 130, 3, 1}}) {
            Tensor t = random_tensor(type, s, 4);
            expect_parts(t, {type, 0, dense(s)}, channels_last(4), random);
            expect_parts(t, {type, 0, dense(s)}, channels_last(4), random, true);
        }
    }
}

TEST(StoredConstant, PartsOfAnyView) {
    Random random(5);
    for (int i = 0; i < 400; ++i) {
        DType type = of_width[i % 4];
        Shape shape;
        for (int64_t rank = pick(random, 1, 4); rank > 0; --rank) {
            shape.push_back(pick(random, 1, rank > 2 ? 9 : 70));
        }
        Tensor t = random_tensor(type, shape, static_cast<uint64_t>(i));
        Operand view{type, 0, random_view(shape, random)};
        Order order = random_order(view.view.shape.size(), random);
        expect_parts(t, view, order, random);
        expect_parts(t, view, order, random, true);
    }
}

TEST(StoredConstant, ScalarsEmptyOnesAndHalvesOfBytes) {
    Random random(6);
    Tensor scalar = random_tensor(DType::F32, {}, 1);
    expect_parts(scalar, {DType::F32, 0, dense(Shape{})}, {}, random);
    Tensor empty = random_tensor(DType::F16, {3, 0, 2}, 1);
    expect_parts(empty, {DType::F16, 0, dense(empty.shape())}, {2, 1, 0}, random);
    Tensor halves = random_tensor(DType::I4, {6, 35}, 1);
    Operand rest{DType::I4, 0, dense({4, 35})};
    rest.view.offset = 70;
    expect_parts(halves, rest, {0, 1}, random);
}

TEST(StoredConstant, TheSameElementsAreOneWhateverTheView) {
    Tensor t = random_tensor(DType::F16, {48, 80}, 1);
    Operand whole{DType::F16, 0, dense(t.shape())};
    Operand turned{DType::F16, 3, permuted(whole.view, std::vector<int64_t>{1, 0})};
    Operand deeper{DType::F16, 4, *reshaped(turned.view, {1, 80, 48})};
    StoredConstant a(t, whole, {1, 0});
    EXPECT_EQ(a, StoredConstant(t, turned, {0, 1}));
    EXPECT_EQ(a, StoredConstant(t, deeper, {0, 1, 2}));
    EXPECT_NE(a, StoredConstant(t));
    EXPECT_NE(StoredConstant(t), a);
    EXPECT_EQ(StoredConstant(t), StoredConstant(t.reshaped({80, 48})));
    EXPECT_NE(a, StoredConstant(t.clone(), whole, {1, 0}));
    Operand part = whole;
    part.view = sliced(whole.view, {0, 0}, {48, 40}, std::vector<int64_t>{1, 1});
    EXPECT_NE(a, StoredConstant(t, part, {1, 0}));
    part.view.offset = 40;
    EXPECT_NE(StoredConstant(t, part, {1, 0}),
              StoredConstant(
                  t,
                  {DType::F16, 0, sliced(whole.view, {0, 0}, {48, 40}, std::vector<int64_t>{1, 1})},
                  {1, 0}));
    Operand integers = whole;
    integers.dtype = DType::I16; // the same bytes
    EXPECT_EQ(a, StoredConstant(t, integers, {1, 0}));
    std::vector<StoredConstant> all = {a, StoredConstant(t), StoredConstant(t, integers, {1, 0}),
                                       StoredConstant(t, part, {1, 0})};
    for (const StoredConstant& x : all) {
        for (const StoredConstant& y : all) {
            EXPECT_EQ(x<y, y> x);
            EXPECT_EQ(x == y, !(x < y) && !(y < x));
            for (const StoredConstant& z : all) {
                EXPECT_TRUE(!(x < y && y < z) || x < z);
            }
        }
    }
}

} // namespace
} // namespace ingot::plan
