// SPDX-License-Identifier: Apache-2.0
// Small models that ask for a lot: each ends soon, with a message or a result.
#include "base/error.h"
#include "base/interrupt.h"
#include "onnx/model_builder.h"
#include "onnx/reader.h"
#include "onnx/writer.h"

#include <chrono>

namespace ingot::onnx::test {
namespace {

/// f0 is a Relu; each further function calls the one before `calls` times, one after the other, or
/// beside each other.
Model functions(int count, int calls, bool chained) {
    Model m = model(graph({"x:f32[2]"}, {"y"}, {}));
    m.opset_imports["f"] = 1;
    for (int i = 0; i < count; ++i) {
        FunctionProto f;
        f.key = {"f", str("F", i), ""};
        f.inputs = {"x"};
        f.outputs = {"y"};
        f.opset_imports = m.opset_imports;
        if (i == 0) {
            f.nodes = {node("Relu", {"x"}, {"y"})};
        }
        for (int c = 0; i > 0 && c < calls; ++c) {
            Node n = node(str("F", i - 1), {chained && c > 0 ? str("t", c) : "x"},
                          {c + 1 == calls ? "y" : str("t", c + 1)});
            n.domain = "f";
            f.nodes.push_back(n);
        }
        m.functions.emplace(f.key, f);
    }
    Node n = node(str("F", count - 1), {"x"}, {"y"});
    n.domain = "f";
    m.graph.nodes = {n};
    return m;
}

TEST(Budgets, CallsOfFunctionsAreCounted) {
    EXPECT_EQ(refusal(functions(10, 2, true)), "");
    for (bool chained : {true, false}) {
        for (int calls : {2, 50}) {
            EXPECT_NE(
                refusal(functions(40, calls, chained))
                    .find("the model's functions call each other so often that they have more "
                          "than 200000 nodes"),
                std::string::npos)
                << calls;
        }
    }
}

TEST(Budgets, AnInterruptEndsThem) {
    set_time_limit(std::chrono::milliseconds(1));
    auto start = std::chrono::steady_clock::now();
    try {
        import_model(functions(40, 2, true));
        ADD_FAILURE() << "imported";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::Interrupted) << e.what();
    }
    set_time_limit(std::chrono::milliseconds(0));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
}

TEST(Budgets, AnInterruptEndsTheReading) {
    struct Cleared {
        ~Cleared() { clear_interrupt(); }
    } cleared;
    std::string bytes = write_model(functions(1, 1, true));
    request_interrupt();
    std::string message;
    try {
        read_model(std::as_bytes(std::span(bytes)), "", nullptr);
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::Interrupted);
        message = e.message();
    }
    EXPECT_EQ(message, "interrupted");
}

std::string dim_error(const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::Unsupported);
        return e.what();
    }
    return "";
}

TEST(Budgets, SizesHaveADegreeAndALength) {
    EXPECT_EQ(dim_error([] {
                  Dim d = 1;
                  for (int i = 0; i < 64; ++i) {
                      d = d * Dim::symbol("n");
                  }
                  EXPECT_EQ(to_text(d).size(), 127U);
                  d = d * Dim::symbol("n");
              }),
              "a size expression is a product of more than 64 factors");
    EXPECT_EQ(dim_error([] {
                  Dim d = Dim::symbol("n");
                  for (int i = 0; i < 64; ++i) { // each holds the one before twice
                      d = floor_div(d + Dim(1), Dim(7)) * floor_div(d + Dim(2), Dim::symbol("m"));
                  }
              }).substr(0, 50),
              "a size expression has more than 65536 characters: ");
}

TEST(Budgets, ManyDifferentSizesBroadcast) {
    auto chain = [](int count) {
        Dim d = Dim::symbol("n0");
        for (int i = 1; i < count; ++i) {
            d = *broadcast(d, Dim::symbol(str("n", i)));
        }
        return d;
    };
    Dim most = chain(256);
    Symbols values;
    for (int i = 0; i < 256; ++i) {
        values[str("n", i)] = i == 77 ? 5 : 1;
    }
    EXPECT_EQ(most.eval(values), 5);
    EXPECT_EQ(max(most, most), most);
    EXPECT_EQ(max(most, Dim::symbol("n9")), most);
    EXPECT_EQ(dim_error([&] { chain(257); }), "a size is the largest of more than 256 expressions");
    // Single symbols and other expressions mix.
    Dim a = Dim::symbol("a");
    Dim b = Dim::symbol("b");
    EXPECT_EQ(to_text(max(max(a, b), a + Dim(1))), "max(a+1,b)");
    EXPECT_EQ(to_text(min(min(a, b), a + Dim(1))), "min(a,b)");
    EXPECT_EQ(to_text(max(a, Dim(0))), "a");
    EXPECT_EQ(to_text(max(max(b, a), max(a, b))), "max(a,b)");
}

} // namespace
} // namespace ingot::onnx::test
