// SPDX-License-Identifier: Apache-2.0
// Models as deep and as long as the limits allow, on a thread with a stack of 256 KiB: each is
// built and loaded, or refused with a message.
#include "backends/backends.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "counts.h"
#include "onnx/model_builder.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "workflow/build.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace ingot {
namespace {

using namespace onnx::test;

constexpr size_t stack_bytes = 256 << 10;

/// Runs f on a thread with a little stack, in a process of its own; its result, or "it crashed".
std::string on_a_little_stack(const std::function<std::string()>& f) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct Work {
            const std::function<std::string()>& f;
            std::string result;
        } work{f, ""};
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_t thread{};
        auto run = [](void* p) -> void* {
            auto* w = static_cast<Work*>(p);
            w->result = w->f();
            return nullptr;
        };
        if (pthread_attr_setstacksize(&attributes, stack_bytes) != 0 ||
            pthread_create(&thread, &attributes, run, &work) != 0) {
            _exit(3);
        }
        pthread_join(thread, nullptr);
        std::string text = work.result.substr(0, 4000);
        ssize_t n = write(ends[1], text.data(), text.size());
        _exit(n == std::ssize(text) ? 0 : 4);
    }
    close(ends[1]);
    std::string text(4000, '\0');
    ssize_t n = read(ends[0], text.data(), text.size());
    text.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text : str("it crashed, ", status);
}

/// Reads, imports, builds, writes, loads and runs on the CPU; "built", or the error.
std::string built(const std::string& path, bool runs) {
    try {
        BuildConfig config;
        AlignedBytes bytes = engine_bytes(*build_engine(path, config));
        auto engine = Engine::load(bytes, nullptr, CheckWeights::First);
        if (runs) {
            Context context(engine, cpu_backend());
            std::vector<Tensor> in;
            for (Value v : engine->graph().inputs()) {
                const Type& t = engine->graph().type(v);
                in.push_back(Tensor::zeros(t.dtype, eval(t.dims, {})));
            }
            context.run(in);
        }
        return "built";
    } catch (const Error& e) {
        return e.what();
    }
}

onnx::Model chain(std::string op, int count, const std::string& type,
                  const std::vector<onnx::Attribute>& attributes = {}) {
    std::vector<onnx::Node> nodes;
    for (int i = 0; i < count; ++i) {
        nodes.push_back(node(op, {i == 0 ? "x" : str("t", i)},
                             {i + 1 == count ? "y" : str("t", i + 1)}, attributes));
    }
    return model(graph({"x:" + type}, {"y"}, nodes));
}

/// One If in the other, `depth` graphs with the outermost.
onnx::Model nested_ifs(int depth) {
    onnx::Graph g = graph({}, {"r1"}, {node("Relu", {"x"}, {"r1"})});
    for (int i = 1; i < depth; ++i) {
        bool outermost = i + 1 == depth;
        std::string out = outermost ? "y" : str("r", i + 1);
        onnx::Graph other = graph({}, {str("o", i)}, {node("Abs", {"x"}, {str("o", i)})});
        onnx::Node n =
            node("If", {"c"}, {out}, {graph_of("then_branch", g), graph_of("else_branch", other)});
        g = graph(outermost ? std::vector<std::string>{"c:bool[]", "x:f32[2]"}
                            : std::vector<std::string>{},
                  {out}, {n});
    }
    return model(g);
}

onnx::Model nested_functions(int count) {
    onnx::Model m = model(graph({"x:f32[2]"}, {"y"}, {}));
    m.opset_imports["f"] = 1;
    for (int i = 0; i < count; ++i) {
        onnx::FunctionProto f;
        f.key = {"f", str("F", i), ""};
        f.inputs = {"x"};
        f.outputs = {"y"};
        f.opset_imports = m.opset_imports;
        onnx::Node n = i == 0 ? node("Relu", {"x"}, {"y"}) : node(str("F", i - 1), {"x"}, {"y"});
        n.domain = i == 0 ? "" : "f";
        f.nodes = {n};
        m.functions.emplace(f.key, f);
    }
    onnx::Node n = node(str("F", count - 1), {"x"}, {"y"});
    n.domain = "f";
    m.graph.nodes = {n};
    return m;
}

struct Deep {
    const char* name;
    onnx::Model model;
    const char* result; // "" where it is refused: a part of the message follows
    const char* message;
    bool runs = true;
};

std::vector<Deep> deep_models() {
    std::vector<onnx::Attribute> pool = {ints_of("kernel_shape", {2}), ints_of("strides", {2})};
    std::vector<Deep> all;
    all.push_back({"63 graphs", nested_ifs(63), "built", ""});
    all.push_back({"64 graphs", nested_ifs(64), "built", ""});
    all.push_back({"65 graphs", nested_ifs(65), "", "graphs are nested deeper than 64"});
    all.push_back({"63 functions", nested_functions(63), "built", ""});
    all.push_back({"500 functions", nested_functions(500), "", "calls are nested deeper than 64"});
    all.push_back(
        {"20,000 nodes that stay apart", chain("Softmax", 20'000, "f32[2]"), "built", ""});
    all.push_back({"20,000 nodes that become one", chain("Sin", 20'000, "f32[2]"), "built", ""});
    all.push_back({"20,000 casts of a scalar", chain("Neg", 20'000, "f32[]"), "built", ""});
    all.push_back({"sizes of sizes", chain("MaxPool", 40, "f32[1,1,N]", pool), "built", "", false});
    all.push_back({"products of sizes", chain("Flatten", 64, "f32[A,B,C,D]"), "built", "", false});
    return all;
}

TEST(LittleStack, AnOverflowIsSeen) {
    std::string result = on_a_little_stack([] {
        volatile char large[2 * stack_bytes];
        for (size_t i = sizeof large; i > 0; --i) {
            large[i - 1] = 'x';
        }
        return std::string(1, large[0]);
    });
    EXPECT_TRUE(result.starts_with("it crashed")) << result;
}

TEST(LittleStack, AsDeepAndAsLongAsTheLimitsAllow) {
    TemporaryFolder folder;
    int64_t refused = 0;
    std::vector<Deep> all = deep_models();
    for (const Deep& d : all) {
        SCOPED_TRACE(d.name);
        std::string path = folder.path() + "/m.onnx";
        write_file(path, std::string_view(onnx::write_model(d.model)));
        std::string result = on_a_little_stack([&] { return built(path, d.runs); });
        if (*d.result != 0) {
            EXPECT_EQ(result, d.result);
        } else {
            EXPECT_NE(result.find(d.message), std::string::npos) << result;
            ++refused;
        }
    }
    test::record_injections(std::ssize(all), refused);
}

} // namespace
} // namespace ingot
