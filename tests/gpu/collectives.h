// SPDX-License-Identifier: Apache-2.0
// Ranks that exchange data: one thread and one backend each, communicators of a libnccl, and the
// expected result of every collective, computed independently.
#pragma once

#include "backends/cuda/options.h"
#include "base/error.h"
#include "base/shared_library.h"
#include "ops/collective.h"
#include "ops/ops.h"
#include "plan/backend.h"
#include "plan/run_settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace ingot::test {

/// Communicators of one process, one for each device.
class Communicators {
public:
    Communicators(const std::string& library, const std::vector<int>& devices) {
        std::string problem;
        library_ = SharedLibrary::open(library, problem);
        require(static_cast<bool>(library_), ErrorCode::Unsupported, problem);
        auto init =
            reinterpret_cast<int (*)(void**, int, const int*)>(library_.symbol("ncclCommInitAll"));
        all_.resize(devices.size());
        int r = init(all_.data(), static_cast<int>(devices.size()), devices.data());
        require(r == 0, ErrorCode::Device, "ncclCommInitAll gives ", r);
    }
    ~Communicators() {
        auto destroy = reinterpret_cast<int (*)(void*)>(library_.symbol("ncclCommDestroy"));
        for (void* c : all_) {
            destroy(c);
        }
    }
    Communicators(const Communicators&) = delete;
    Communicators& operator=(const Communicators&) = delete;
    void* operator[](size_t rank) const { return all_[rank]; }

private:
    SharedLibrary library_;
    std::vector<void*> all_;
};

/// f(rank), in a thread each. The first error is thrown.
inline void each_rank(size_t ranks, const std::function<void(size_t)>& f) {
    std::vector<std::string> errors(ranks);
    std::vector<std::thread> threads;
    for (size_t r = 0; r < ranks; ++r) {
        threads.emplace_back([&, r] {
            try {
                f(r);
            } catch (const Error& e) {
                errors[r] = e.what();
            }
        });
    }
    for (std::thread& t : threads) {
        t.join();
    }
    for (size_t r = 0; r < ranks; ++r) {
        require(errors[r].empty(), ErrorCode::Internal, "rank ", r, ": ", errors[r]);
    }
}

/// y = the result of exchanging x.
inline Graph exchange_graph(const Collective& c, const Type& x) {
    Graph g;
    g.set_origin("swap");
    g.add_output("y", ops::collective(g, c, g.add_input("x", x)));
    return g;
}

inline std::unique_ptr<Execution> execution_of(Graph g, const Backend& b) {
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    return b.compile(std::make_shared<const Graph>(std::move(g)), o)->create_execution();
}

inline std::vector<Tensor> run_once(Execution& e, const std::vector<Tensor>& in) {
    std::vector<Tensor> out(1);
    Status s = e.run(in, out);
    require(s.ok(), s.code(), e.error());
    return out;
}

/// Small integers, so that every sum is exact in every type; other ones for every rank.
inline Tensor rank_data(size_t rank, DType t, const Shape& shape) {
    Tensor x = Tensor::empty(t, shape);
    for (int64_t i = 0; i < x.count(); ++i) {
        int64_t v = (i * 3 + static_cast<int64_t>(rank) * 5) % 7 + (is_signed(t) ? -2 : 1);
        x.set_f64(i, t == DType::Bool ? static_cast<double>(v % 2 != 0) : static_cast<double>(v));
    }
    return x;
}

/// The expected result of rank `at` among the participants for these inputs, in order of the parts.
inline Tensor expected_exchange(const Collective& c, size_t at, size_t root,
                                const std::vector<Tensor>& in) {
    size_t n = in.size();
    DType t = in[0].dtype();
    Shape shape = in[0].shape();
    int64_t count = in[0].count();
    int64_t part = count / static_cast<int64_t>(n);
    bool whole = c.operation == "all_gather" || c.operation == "gather";
    bool cut = c.operation == "scatter" || c.operation == "reduce_scatter";
    shape[0] = whole ? shape[0] * static_cast<int64_t>(n)
               : cut ? shape[0] / static_cast<int64_t>(n)
                     : shape[0];
    Tensor out = Tensor::zeros(t, shape);
    bool gets = at == root || (c.operation != "reduce" && c.operation != "gather");
    for (int64_t i = 0; gets && i < out.count(); ++i) {
        double v = 0;
        if (c.reduces()) {
            int64_t from = cut ? i + static_cast<int64_t>(at) * part : i;
            v = in[0].get_f64(from);
            for (size_t r = 1; r < n; ++r) {
                double x = in[r].get_f64(from);
                v = c.reduction == "prod"  ? v * x
                    : c.reduction == "min" ? std::min(v, x)
                    : c.reduction == "max" ? std::max(v, x)
                                           : v + x;
            }
            v = c.reduction == "avg" ? v / static_cast<double>(n) : v;
            v = is_integer(t) ? std::trunc(v) : v;
        } else if (whole) {
            v = in[static_cast<size_t>(i / count)].get_f64(i % count);
        } else if (c.operation == "broadcast") {
            v = in[root].get_f64(i);
        } else if (c.operation == "scatter") {
            v = in[root].get_f64(static_cast<int64_t>(at) * part + i);
        } else {
            v = in[static_cast<size_t>(i / part)].get_f64(static_cast<int64_t>(at) * part +
                                                          i % part);
        }
        out.set_f64(i, v);
    }
    return out;
}

/// "" where they are equal, but for the rounding of an average.
inline std::string differs(const Tensor& got, const Tensor& want) {
    if (got.shape() != want.shape() || got.dtype() != want.dtype()) {
        return str("shape ", got.shape(), ", expected ", want.shape());
    }
    double slack = is_float(got.dtype()) ? (bit_width(got.dtype()) > 16 ? 1e-6 : 2e-2) : 0;
    for (int64_t i = 0; i < got.count(); ++i) {
        if (!(std::abs(got.get_f64(i) - want.get_f64(i)) <= slack * std::abs(want.get_f64(i)))) {
            return str("element ", i, " is ", got.get_f64(i), ", expected ", want.get_f64(i));
        }
    }
    return "";
}

/// Runs every operation with every reduction and type on these ranks; returns the errors, one a
/// line.
inline std::string wrong_exchanges(const std::vector<const Backend*>& backends,
                                   const Communicators& communicators, const Shape& shape) {
    size_t n = backends.size();
    std::vector<Collective> all;
    for (const char* op : {"all_reduce", "reduce", "reduce_scatter"}) {
        for (const char* f : {"sum", "prod", "min", "max", "avg"}) {
            all.push_back({op, f, static_cast<int64_t>(n), {}, -1});
        }
    }
    for (const char* op : {"broadcast", "all_gather", "gather", "scatter", "all_to_all"}) {
        all.push_back({op, "", static_cast<int64_t>(n), {}, -1});
    }
    std::string wrong;
    for (Collective& c : all) {
        c.root = c.has_root() ? static_cast<int64_t>(n) - 1 : -1;
        for (DType t : {DType::F32, DType::F16, DType::BF16, DType::I32, DType::F64, DType::I64,
                        DType::I8, DType::U8, DType::Bool, DType::F8E4M3}) {
            bool reducible = t != DType::F8E4M3 &&
                             (t != DType::Bool || c.reduction == "min" || c.reduction == "max");
            if (c.reduces() && !reducible) {
                continue;
            }
            std::vector<Tensor> in;
            for (size_t r = 0; r < n; ++r) {
                in.push_back(rank_data(r, t, shape));
            }
            std::vector<std::string> differences(n);
            each_rank(n, [&](size_t r) {
                auto e = execution_of(exchange_graph(c, {t, to_dims(shape)}), *backends[r]);
                e->change([&](RunSettings& changed) { changed.communicator = communicators[r]; });
                Tensor got = run_once(*e, {in[r]})[0];
                differences[r] =
                    differs(got, expected_exchange(c, r, static_cast<size_t>(c.root), in));
            });
            for (size_t r = 0; r < n; ++r) {
                wrong += differences[r].empty()
                             ? std::string()
                             : str(c.operation, " ", c.reduction, " of ", name(t), ", rank ", r,
                                   ": ", differences[r], "\n");
            }
        }
    }
    return wrong;
}

/// x of each rank plus 1, summed over ranks, doubled: n runs with different data; returns the
/// errors.
inline std::string wrong_repetitions(const std::vector<const Backend*>& backends,
                                     const Communicators& communicators, int runs) {
    size_t n = backends.size();
    std::vector<std::string> wrong(n);
    each_rank(n, [&](size_t r) {
        Graph g;
        Value x = g.add_input("x", parse_type("f32[N,8]"));
        Collective c{"all_reduce", "sum", static_cast<int64_t>(n), {}, -1};
        Value sum = ops::collective(g, c, ops::add(g, x, 1.0));
        g.add_output("y", ops::mul(g, sum, 2.0));
        auto e = execution_of(std::move(g), *backends[r]);
        e->change([&](RunSettings& changed) { changed.communicator = communicators[r]; });
        for (int i = 0; i < runs; ++i) {
            Tensor data = Tensor::empty(DType::F32, {4 + i % 2, 8});
            for (int64_t k = 0; k < data.count(); ++k) {
                data.set_f64(k, static_cast<double>(k + i * 10 + static_cast<int64_t>(r)));
            }
            Tensor got = run_once(*e, {data})[0];
            auto ranks = static_cast<double>(n);
            for (int64_t k = 0; k < got.count(); ++k) {
                double want =
                    2 * (ranks * static_cast<double>(k + i * 10 + 1) + ranks * (ranks - 1) / 2);
                if (got.get_f64(k) != want && wrong[r].empty()) {
                    wrong[r] = str("rank ", r, " run ", i, " element ", k, " is ", got.get_f64(k),
                                   ", expected ", want, "\n");
                }
            }
        }
    });
    std::string all;
    for (const std::string& w : wrong) {
        all += w;
    }
    return all;
}

} // namespace ingot::test
