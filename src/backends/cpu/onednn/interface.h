// SPDX-License-Identifier: Apache-2.0
// The table of C functions between the CPU backend and libingot_cpu.so, which wraps oneDNN. Plain
// data only: each side has its own C++ runtime. Nothing here throws.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::cpu::onednn {

/// Incremented with every change to this file; both sides must agree.
constexpr int interface_version = 3;
constexpr int most_axes = 6;
constexpr int most_spatial_axes = 3;
constexpr int most_posts = 12;

/// oneDNN's threads. `begin` starts f(context, i) for i in [1, threads) and returns the team's
/// size, 1 when none can start; the caller runs part 0, then calls `end`.
struct Threads {
    void* pool;
    int count;
    int (*begin)(void* pool, int threads, void (*f)(const void*, int), const void* context);
    void (*end)(void* pool);
};

enum class Element : int32_t { F32, F16, BF16, I32, I8, U8 };

/// Sizes and strides in elements. A broadcast axis has size 1.
struct Array {
    Element element;
    int32_t rank;
    int64_t sizes[most_axes];
    int64_t strides[most_axes];
};

enum class Function : int32_t {
    // functions of the current result (x), alpha and beta
    Relu, // alpha times x below 0
    Elu,
    Linear, // alpha * x + beta
    Clip,   // alpha and beta are the limits
    HardSigmoid,
    HardSwish, // x * clip(alpha * x + beta, 0, 1)
    Swish,     // x * sigmoid(alpha * x)
    Sigmoid,
    Tanh,
    GeluErf,
    GeluTanh,
    Mish,
    Softplus,
    Square,
    Sqrt,
    Abs,
    Exp,
    Round, // to the nearest, halves to even
    // functions of the current result and an operand
    Add,
    Sub,
    Mul,
    Div,
    Max,
    Min,
};

/// One function applied after a product or a convolution; they run in order.
struct Post {
    Function function;
    float alpha;
    float beta;
    Array operand;
};

enum class Work : int32_t {
    Conv,
    ConvTranspose,
    Matmul,
    MaxPool,
    AveragePool,
    AveragePoolWithPadding
};

struct Axis {
    int64_t window;
    int64_t stride;
    int64_t dilation; // 1: adjacent taps
    int64_t low;
    int64_t high;
};

struct Problem {
    Work work;
    Array x;         // [N, C, spatial...]; Matmul: [batch..., rows, depth]
    Array w;         // [(groups,) O, I, spatial...]; Matmul: [batch..., depth, columns]
    bool constant_w; // w may be packed once, in a layout of oneDNN's choice
    int64_t groups;
    bool has_bias; // f32, one contiguous element per output channel or column
    Array out;
    Axis axes[most_spatial_axes];
    int32_t post_count;
    Post posts[most_posts];
};

/// The implementation chosen for a problem.
struct Choice {
    char name[96];         // "brgconv:avx512_core"
    char layout[256];      // of packed w: equal texts mean equal layouts
    int64_t packed_bytes;  // 0: w is read unpacked
    int64_t scratch_bytes; // of memory for each run, 64-byte aligned
};

struct Pointers {
    const void* x;
    const void* w; // packed if packed_bytes is not 0
    const void* bias;
    void* out;
    void* scratch;
    const void* operands[most_posts];
};

struct Primitive;

struct Library {
    const char* name; // "onednn 3.2.0"
    /// Null when oneDNN has no optimised loops for the problem; `why` gives the reason.
    Primitive* (*create)(const Problem& problem, const Threads& threads, Choice& choice, char* why,
                         size_t why_size) noexcept;
    void (*destroy)(Primitive* primitive) noexcept;
    /// Packs w into choice.packed_bytes bytes; w has the layout of the `problem` it was created
    /// for.
    bool (*pack)(Primitive& primitive, const Threads& threads, const void* w,
                 const Problem& problem, void* packed) noexcept;
    /// One run at a time per primitive, with the thread count it was created for.
    bool (*run)(Primitive& primitive, const Threads& threads, const Pointers& pointers) noexcept;
};

/// The only symbol that libingot_cpu.so exports for us. Unpacks and opens oneDNN at the first call;
/// null on failure or for another interface version, with the reason in `why`.
using OpenLibrary = const Library* (*)(int version, char* why, size_t why_size);
constexpr const char* open_library_symbol = "ingot_cpu_library";

} // namespace ingot::cpu::onednn
