// SPDX-License-Identifier: Apache-2.0
// Eight threads on one runtime of libingot_dispatch.so and one of libingot_lean.so, and on runtimes
// of their own; the first of them that needs a library opens it for all.
#include "threads/fixture.h"

#include <dlfcn.h>

namespace ingot::test {
namespace {

/// A library opened separately from the test program's.
class Apart {
public:
    explicit Apart(const char* path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
        EXPECT_NE(handle_, nullptr) << dlerror();
    }
    template <class F>
    F* function(const char* name) const {
        return reinterpret_cast<F*>(dlsym(handle_, name));
    }
    std::unique_ptr<nv::IRuntime> runtime() const {
        auto create = function<void*(void*, int32_t)>("createInferRuntime_INTERNAL");
        return std::unique_ptr<nv::IRuntime>(
            static_cast<nv::IRuntime*>(create(&logger(), NV_TENSORRT_VERSION)));
    }
    void use_cpu(nv::IRuntime& runtime) const {
        auto set = function<bool(nv::IRuntime*, int32_t, int32_t)>("ingotSetRuntimeDevice");
        EXPECT_TRUE(set(&runtime, static_cast<int32_t>(Device::kCPU), 0)) << logger().take_error();
    }

private:
    void* handle_;
};

void use(nv::IRuntime& runtime, const nv::IHostMemory& bytes, int64_t rows) {
    auto size = static_cast<int64_t>(bytes.size());
    EXPECT_EQ(runtime.getEngineValidity(bytes.data(), size, nullptr), nv::EngineValidity::kVALID);
    auto engine = load(runtime, bytes);
    ASSERT_NE(engine, nullptr) << logger().take_error();
    std::unique_ptr<nv::IExecutionContext> c(engine->createExecutionContext());
    ASSERT_NE(c, nullptr) << logger().take_error();
    engine.reset();
    run(*c, rows, 3);
}

class LeanThreads : public Threads {};

TEST_F(LeanThreads, RuntimesOfLeanAndDispatch) {
    std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(logger()));
    auto bytes = build(*builder, 3);
    ASSERT_NE(bytes, nullptr) << logger().take_error();
    Apart dispatch(DISPATCH_LIBRARY);
    Apart lean(LEAN_LIBRARY);
    auto through_dispatch = dispatch.runtime();
    dispatch.use_cpu(*through_dispatch);
    auto through_lean = lean.runtime();
    lean.use_cpu(*through_lean);
    std::unique_ptr<nv::ICudaEngine> engine(load(*through_dispatch, *bytes));
    in_threads([&](int t) {
        for (int64_t rows = 1; rows <= 4; ++rows) {
            use(*through_dispatch, *bytes, rows);
            use(*through_lean, *bytes, rows);
            auto own = dispatch.runtime();
            dispatch.use_cpu(*own);
            use(*own, *bytes, rows);
            std::unique_ptr<nv::IRuntime> loaded(own->loadRuntime(LEAN_LIBRARY));
            ASSERT_NE(loaded, nullptr) << logger().take_error();
            lean.use_cpu(*loaded);
            use(*loaded, *bytes, rows);
            auto device = dispatch.function<int32_t(const nv::ICudaEngine*)>("ingotGetDevice");
            EXPECT_EQ(device(engine.get()), static_cast<int32_t>(Device::kCPU));
            std::unique_ptr<nv::IExecutionContext> c(engine->createExecutionContext());
            run(*c, 1 + (t + rows) % 4, 3);
        }
    });
    EXPECT_EQ(logger().take_error(), "");
}

} // namespace
} // namespace ingot::test
