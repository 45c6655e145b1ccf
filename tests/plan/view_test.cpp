// SPDX-License-Identifier: Apache-2.0
// Views against index sets: an array of element numbers goes through the same operations one by
// one, and each view, or composition of views, must address the same elements.
#include "base/error.h"
#include "plan/view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace ingot::plan {
namespace {

/// A row-major array of the stored element numbers.
struct Numbers {
    Shape shape;
    std::vector<int64_t> elements;
};

/// Calls f(index) for every index of a shape, row major.
template <class F>
void for_each_index(const Shape& shape, const F& f) {
    int64_t count = 1;
    for (int64_t d : shape) {
        count *= d;
    }
    for (int64_t n = 0; n < count; ++n) {
        Shape index(shape.size());
        int64_t rest = n;
        for (size_t i = shape.size(); i-- > 0;) {
            index[i] = rest % shape[i];
            rest /= shape[i];
        }
        f(index);
    }
}

int64_t place(const Shape& shape, const Shape& index) {
    int64_t n = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
        n = n * shape[i] + index[i];
    }
    return n;
}

/// The array of this shape whose element at an index is that of x at from(index).
template <class F>
Numbers taken(const Numbers& x, const Shape& shape, const F& from) {
    Numbers out{shape, {}};
    for_each_index(shape, [&](const Shape& index) {
        out.elements.push_back(x.elements[static_cast<size_t>(place(x.shape, from(index)))]);
    });
    return out;
}

Numbers numbers_of(const View& v) {
    Numbers out{v.shape, {}};
    for_each_index(v.shape, [&](const Shape& index) {
        int64_t at = v.offset;
        for (size_t i = 0; i < index.size(); ++i) {
            at += index[i] * v.strides[i];
        }
        out.elements.push_back(at);
    });
    return out;
}

/// Whether some strides address these elements.
bool is_affine(const Numbers& x) {
    if (x.elements.empty()) {
        return true;
    }
    Shape strides(x.shape.size(), 0);
    for (size_t i = 0; i < x.shape.size(); ++i) {
        if (x.shape[i] > 1) {
            Shape one(x.shape.size(), 0);
            one[i] = 1;
            strides[i] = x.elements[static_cast<size_t>(place(x.shape, one))] - x.elements[0];
        }
    }
    return numbers_of({x.shape, strides, x.elements[0]}).elements == x.elements;
}

struct Walk {
    std::mt19937 random;
    View view;
    Numbers numbers;
    std::string path;

    explicit Walk(uint32_t seed) : random(seed) {
        Shape shape(static_cast<size_t>(below(4)));
        for (int64_t& d : shape) {
            d = below(8) == 0 ? 0 : 1 + below(5);
        }
        Order order = row_major(static_cast<int>(shape.size()));
        std::shuffle(order.begin(), order.end(), random);
        view = dense(shape, order);
        numbers = numbers_of(view);
        std::vector<int64_t> all = numbers.elements;
        std::sort(all.begin(), all.end());
        for (size_t i = 0; i < all.size(); ++i) {
            EXPECT_EQ(all[i], static_cast<int64_t>(i)) << "not dense";
        }
        EXPECT_TRUE(is_dense(view, order));
        path = str("dense ", shape);
    }

    int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); }
    size_t rank() const { return view.shape.size(); }

    void permute() {
        std::vector<int64_t> perm(rank());
        std::iota(perm.begin(), perm.end(), 0);
        std::shuffle(perm.begin(), perm.end(), random);
        Shape shape(rank());
        for (size_t i = 0; i < rank(); ++i) {
            shape[i] = numbers.shape[static_cast<size_t>(perm[i])];
        }
        numbers = taken(numbers, shape, [&](const Shape& index) {
            Shape from(index.size());
            for (size_t i = 0; i < index.size(); ++i) {
                from[static_cast<size_t>(perm[i])] = index[i];
            }
            return from;
        });
        view = permuted(view, perm);
        path += str(", permute ", perm);
    }

    void broadcast() {
        Shape shape = numbers.shape;
        for (int64_t& d : shape) {
            d = d == 1 ? 1 + below(3) : d;
        }
        shape.insert(shape.begin(), static_cast<size_t>(below(2)), 1 + below(3));
        if (shape.size() > 6) {
            return;
        }
        size_t shift = shape.size() - rank();
        Shape old = numbers.shape;
        numbers = taken(numbers, shape, [&](const Shape& index) {
            Shape from(index.begin() + static_cast<std::ptrdiff_t>(shift), index.end());
            for (size_t i = 0; i < from.size(); ++i) {
                from[i] = old[i] == 1 ? 0 : from[i];
            }
            return from;
        });
        view = broadcasted(view, shape);
        path += str(", broadcast ", shape);
    }

    void slice() {
        Shape starts(rank());
        Shape sizes(rank());
        std::vector<int64_t> steps(rank());
        for (size_t i = 0; i < rank(); ++i) {
            int64_t d = numbers.shape[i];
            steps[i] = (1 + below(3)) * (below(2) == 0 ? 1 : -1);
            starts[i] = d == 0 ? 0 : below(d);
            int64_t room = steps[i] > 0 ? d - 1 - starts[i] : starts[i];
            int64_t most = d == 0 ? 0 : 1 + room / std::abs(steps[i]);
            sizes[i] = below(4) == 0 ? below(most + 1) : most;
        }
        numbers = taken(numbers, sizes, [&](const Shape& index) {
            Shape from(index.size());
            for (size_t i = 0; i < index.size(); ++i) {
                from[i] = starts[i] + index[i] * steps[i];
            }
            return from;
        });
        view = sliced(view, starts, sizes, steps);
        path += str(", slice ", starts, " ", sizes, " ", steps);
    }

    void window() {
        if (rank() == 0 || rank() > 4) {
            return;
        }
        auto axis = static_cast<size_t>(below(static_cast<int64_t>(rank())));
        std::vector<int64_t> axes{static_cast<int64_t>(axis)};
        std::vector<int64_t> sizes{1 + below(3)};
        std::vector<int64_t> strides{1 + below(2)};
        std::vector<int64_t> dilations{1 + below(2)};
        int64_t span = dilations[0] * (sizes[0] - 1) + 1;
        Shape shape = numbers.shape;
        shape[axis] = shape[axis] < span ? 0 : (shape[axis] - span) / strides[0] + 1;
        shape.push_back(sizes[0]);
        numbers = taken(numbers, shape, [&](const Shape& index) {
            Shape from(index.begin(), index.end() - 1);
            from[axis] = index[axis] * strides[0] + index.back() * dilations[0];
            return from;
        });
        view = windowed(view, axes, sizes, strides, dilations);
        path += str(", window of axis ", axis, " ", sizes, strides, dilations);
    }

    /// A shape of as many elements.
    Shape other_shape() {
        int64_t rest = view.count();
        Shape shape;
        while (rest > 1 && shape.size() < 4) {
            int64_t d = 1 + below(6);
            if (rest % d == 0) {
                shape.push_back(d);
                rest /= d;
            }
        }
        shape.insert(shape.begin() + below(static_cast<int64_t>(shape.size()) + 1), rest);
        return shape;
    }

    void reshape() {
        Shape shape = other_shape();
        Numbers same{shape, numbers.elements};
        std::optional<View> v = reshaped(view, shape);
        path += str(", reshape ", shape);
        ASSERT_EQ(v.has_value(), is_affine(same)) << path;
        if (v) {
            numbers = std::move(same);
            view = *v;
        }
    }

    void step() {
        switch (below(5)) {
        case 0:
            permute();
            break;
        case 1:
            broadcast();
            break;
        case 2:
            slice();
            break;
        case 3:
            window();
            break;
        default:
            reshape();
        }
    }
};

TEST(View, CompositionsNameTheElementsThatTheyShould) {
    for (uint32_t seed = 0; seed < 4000; ++seed) {
        Walk w(seed);
        for (int i = 0; i < 5 && w.view.count() < 2000; ++i) {
            w.step();
            ASSERT_EQ(w.view.shape, w.numbers.shape) << w.path;
            ASSERT_EQ(w.view.count(), static_cast<int64_t>(w.numbers.elements.size())) << w.path;
            ASSERT_EQ(numbers_of(w.view).elements, w.numbers.elements) << w.path;
        }
        if (HasFatalFailure()) {
            return;
        }
    }
}

/// The elements in the order in which axes stand in `order`.
std::vector<int64_t> walked(const View& v, const Order& order) {
    std::vector<int64_t> perm(order.begin(), order.end());
    return numbers_of(permuted(v, perm)).elements;
}

bool is_consecutive(const std::vector<int64_t>& x, int64_t first) {
    for (size_t i = 0; i < x.size(); ++i) {
        if (x[i] != first + static_cast<int64_t>(i)) {
            return false;
        }
    }
    return true;
}

std::vector<Order> all_orders(int rank) {
    std::vector<Order> out;
    Order order = row_major(rank);
    do {
        out.push_back(order);
    } while (std::next_permutation(order.begin(), order.end()));
    return out;
}

TEST(View, OrdersAreThoseInWhichElementsLie) {
    int found = 0;
    for (uint32_t seed = 0; seed < 3000; ++seed) {
        Walk w(seed);
        for (int i = 0; i < 2 && w.view.count() < 500; ++i) {
            w.step();
        }
        const View& v = w.view;
        if (v.rank() > 4 || v.count() > 500) {
            continue;
        }
        bool any = false;
        for (const Order& order : all_orders(v.rank())) {
            bool lies = is_consecutive(walked(v, order), v.offset);
            any = any || lies;
            ASSERT_EQ(is_dense(v, order), lies) << str(w.path, ": ", order);
            if (v.count() > 1 && follows(v, order)) { // each element behind the one before
                std::vector<int64_t> x = walked(v, order);
                ASSERT_TRUE(std::is_sorted(x.begin(), x.end(), std::less_equal<>())) << w.path;
            }
        }
        std::optional<Order> order = dense_order(v);
        ASSERT_EQ(order.has_value(), any) << w.path;
        if (order) {
            ++found;
            ASSERT_TRUE(is_dense(v, *order)) << w.path;
            ASSERT_EQ(is_dense(v, row_major(v.rank())), *order == row_major(v.rank())) << w.path;
        }
        if (std::optional<Order> memory = memory_order(v)) {
            ASSERT_TRUE(is_dense(v, *memory) || follows(v, *memory)) << w.path;
        }
        for (const Order& o : {stride_order(v), repeat_order(v)}) {
            Order sorted = o;
            std::sort(sorted.begin(), sorted.end());
            ASSERT_EQ(sorted, row_major(v.rank())) << str(w.path, ": ", o);
        }
    }
    EXPECT_GT(found, 500);
}

// Merging changes the number of loops, not the visited elements or their order.
TEST(View, MergedLoopsVisitTheSame) {
    int merged = 0;
    for (uint32_t seed = 0; seed < 2000; ++seed) {
        Walk w(seed);
        w.step();
        w.step();
        if (w.view.count() == 0 || w.view.count() > 500) {
            continue;
        }
        Order order = row_major(w.view.rank());
        std::shuffle(order.begin(), order.end(), w.random);
        View target = dense(w.view.shape, order);
        std::vector<View> views{w.view, target};
        LoopNest nest = merged_loops(views, order);
        for (size_t k = 0; k < views.size(); ++k) {
            std::vector<int64_t> want = walked(views[k], order);
            for (int64_t& x : want) {
                x -= views[k].offset;
            }
            ASSERT_EQ(offsets_of(nest.sizes, nest.strides[k]), want) << w.path;
        }
        merged += nest.sizes.size() < w.view.shape.size() ? 1 : 0;
        ASSERT_LE(nest.sizes.size(), w.view.shape.size());
    }
    EXPECT_GT(merged, 200);
}

} // namespace
} // namespace ingot::plan
