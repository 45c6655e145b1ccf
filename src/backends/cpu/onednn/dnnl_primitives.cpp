// SPDX-License-Identifier: Apache-2.0
// Turns problems into oneDNN primitives and implements the interface.
#include "backends/cpu/onednn/calls.h"
#include "backends/cpu/onednn/gomp.h"
#include "backends/cpu/onednn/interface.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

extern "C" __attribute__((visibility("default"))) const ingot::cpu::onednn::Library*
ingot_cpu_library(int version, char* why, size_t why_size);

namespace ingot::cpu::onednn {

namespace {

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): written once, under a lock
std::mutex opening;
bool opened = false;
Calls dnnl;
dnnl_engine_t engine = nullptr;
char library_name[32];
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

/// Owns one oneDNN handle.
template <class T, dnnl_status_t (*Calls::*Destroy)(T)>
class Handle {
public:
    Handle() = default;
    ~Handle() { reset(); }
    Handle(Handle&& o) noexcept : handle_(std::exchange(o.handle_, nullptr)) {}
    Handle& operator=(Handle&& o) noexcept {
        std::swap(handle_, o.handle_);
        return *this;
    }
    T get() const { return handle_; }
    T* out() {
        reset();
        return &handle_;
    }
    explicit operator bool() const { return handle_ != nullptr; }

private:
    void reset() {
        if (handle_ != nullptr) {
            (dnnl.*Destroy)(handle_);
            handle_ = nullptr;
        }
    }
    T handle_ = nullptr;
};

using Layout = Handle<dnnl_memory_desc_t, &Calls::dnnl_memory_desc_destroy>;
using Memory = Handle<dnnl_memory_t, &Calls::dnnl_memory_destroy>;
using PostOps = Handle<dnnl_post_ops_t, &Calls::dnnl_post_ops_destroy>;
using Attributes = Handle<dnnl_primitive_attr_t, &Calls::dnnl_primitive_attr_destroy>;
using Description = Handle<dnnl_primitive_desc_t, &Calls::dnnl_primitive_desc_destroy>;
using Executable = Handle<dnnl_primitive_t, &Calls::dnnl_primitive_destroy>;
using Stream = Handle<dnnl_stream_t, &Calls::dnnl_stream_destroy>;

dnnl_data_type_t type_of(Element e) {
    switch (e) {
    case Element::F32:
        return dnnl_f32;
    case Element::F16:
        return dnnl_f16;
    case Element::BF16:
        return dnnl_bf16;
    case Element::I32:
        return dnnl_s32;
    case Element::I8:
        return dnnl_s8;
    case Element::U8:
        return dnnl_u8;
    }
    return dnnl_data_type_undef;
}

Layout layout_of(const Array& a) {
    Layout layout;
    dnnl_dims_t sizes = {};
    dnnl_dims_t strides = {};
    std::copy(a.sizes, a.sizes + a.rank, sizes);
    std::copy(a.strides, a.strides + a.rank, strides);
    dnnl.dnnl_memory_desc_create_with_strides(layout.out(), a.rank, sizes, type_of(a.element),
                                              strides);
    return layout;
}

Layout any_layout(const Array& a) {
    Layout layout;
    dnnl_dims_t sizes = {};
    std::copy(a.sizes, a.sizes + a.rank, sizes);
    dnnl.dnnl_memory_desc_create_with_tag(layout.out(), a.rank, sizes, type_of(a.element),
                                          dnnl_format_tag_any);
    return layout;
}

bool is_binary(Function f) {
    return f >= Function::Add;
}

dnnl_alg_kind_t algorithm_of(Function f) {
    static constexpr dnnl_alg_kind_t table[] = {
        dnnl_eltwise_relu,      dnnl_eltwise_elu,         dnnl_eltwise_linear,
        dnnl_eltwise_clip,      dnnl_eltwise_hardsigmoid, dnnl_eltwise_hardswish,
        dnnl_eltwise_swish,     dnnl_eltwise_logistic,    dnnl_eltwise_tanh,
        dnnl_eltwise_gelu_erf,  dnnl_eltwise_gelu_tanh,   dnnl_eltwise_mish,
        dnnl_eltwise_soft_relu, dnnl_eltwise_square,      dnnl_eltwise_sqrt,
        dnnl_eltwise_abs,       dnnl_eltwise_exp,         dnnl_eltwise_round,
        dnnl_binary_add,        dnnl_binary_sub,          dnnl_binary_mul,
        dnnl_binary_div,        dnnl_binary_max,          dnnl_binary_min,
    };
    static_assert(std::size(table) == static_cast<size_t>(Function::Min) + 1);
    return table[static_cast<size_t>(f)];
}

struct Operands {
    Layout x, w, bias, out;
    Layout posts[most_posts];
};

Attributes attributes_of(const Problem& p, Operands& operands) {
    Attributes attributes;
    PostOps posts;
    if (dnnl.dnnl_primitive_attr_create(attributes.out()) != dnnl_success ||
        dnnl.dnnl_post_ops_create(posts.out()) != dnnl_success) {
        return {};
    }
    for (int i = 0; i < p.post_count; ++i) {
        const Post& post = p.posts[i];
        dnnl_status_t status = dnnl_success;
        if (is_binary(post.function)) {
            operands.posts[i] = layout_of(post.operand);
            status = dnnl.dnnl_post_ops_append_binary(posts.get(), algorithm_of(post.function),
                                                      operands.posts[i].get());
        } else {
            status = dnnl.dnnl_post_ops_append_eltwise(posts.get(), algorithm_of(post.function),
                                                       post.alpha, post.beta);
        }
        if (status != dnnl_success) {
            return {};
        }
    }
    if (dnnl.dnnl_primitive_attr_set_post_ops(attributes.get(), posts.get()) != dnnl_success ||
        dnnl.dnnl_primitive_attr_set_scratchpad_mode(attributes.get(), dnnl_scratchpad_mode_user) !=
            dnnl_success) {
        return {};
    }
    return attributes;
}

bool is_conv(Work work) {
    return work == Work::Conv || work == Work::ConvTranspose;
}

Layout bias_layout(const Problem& p) {
    if (!p.has_bias) {
        return {};
    }
    Array bias = {};
    bias.element = Element::F32;
    bool conv = is_conv(p.work);
    bias.rank = conv ? 1 : p.out.rank;
    for (int i = 0; i < bias.rank; ++i) {
        bias.sizes[i] = 1;
        bias.strides[i] = 1;
    }
    int channels = conv ? 0 : bias.rank - 1;
    bias.sizes[channels] = p.out.sizes[conv ? 1 : p.out.rank - 1];
    for (int i = 0; i < channels; ++i) {
        bias.strides[i] = bias.sizes[channels];
    }
    return layout_of(bias);
}

struct Windows {
    dnnl_dims_t sizes = {}, strides = {}, dilations = {}, low = {}, high = {};

    explicit Windows(const Problem& p) {
        for (int i = 0; i + 2 < p.x.rank; ++i) {
            sizes[i] = p.axes[i].window;
            strides[i] = p.axes[i].stride;
            dilations[i] = p.axes[i].dilation - 1;
            low[i] = p.axes[i].low;
            high[i] = p.axes[i].high;
        }
    }
};

dnnl_status_t describe(const Problem& p, Operands& o, Description& out) {
    Attributes attributes = attributes_of(p, o);
    if (!attributes) {
        return dnnl_unimplemented;
    }
    o.x = layout_of(p.x);
    o.out = layout_of(p.out);
    bool pools = !is_conv(p.work) && p.work != Work::Matmul;
    if (!pools) {
        o.w = p.constant_w ? any_layout(p.w) : layout_of(p.w);
        o.bias = bias_layout(p);
    }
    if (!o.x || !o.out || (!pools && !o.w) || (p.has_bias && !o.bias)) {
        return dnnl_invalid_arguments;
    }
    Windows windows(p);
    if (p.work == Work::Matmul) {
        return dnnl.dnnl_matmul_primitive_desc_create(out.out(), engine, o.x.get(), o.w.get(),
                                                      o.bias.get(), o.out.get(), attributes.get());
    }
    if (p.work == Work::Conv) {
        return dnnl.dnnl_convolution_forward_primitive_desc_create(
            out.out(), engine, dnnl_forward_inference, dnnl_convolution_direct, o.x.get(),
            o.w.get(), o.bias.get(), o.out.get(), windows.strides, windows.dilations, windows.low,
            windows.high, attributes.get());
    }
    if (p.work == Work::ConvTranspose) {
        return dnnl.dnnl_deconvolution_forward_primitive_desc_create(
            out.out(), engine, dnnl_forward_inference, dnnl_deconvolution_direct, o.x.get(),
            o.w.get(), o.bias.get(), o.out.get(), windows.strides, windows.dilations, windows.low,
            windows.high, attributes.get());
    }
    dnnl_alg_kind_t algorithm = p.work == Work::MaxPool       ? dnnl_pooling_max
                                : p.work == Work::AveragePool ? dnnl_pooling_avg_exclude_padding
                                                              : dnnl_pooling_avg_include_padding;
    return dnnl.dnnl_pooling_forward_primitive_desc_create(
        out.out(), engine, dnnl_forward_inference, algorithm, o.x.get(), o.out.get(),
        windows.strides, windows.sizes, windows.dilations, windows.low, windows.high,
        attributes.get());
}

/// Text that identifies a packed layout; false for layouts that are not plainly blocked.
bool describe_layout(const_dnnl_memory_desc_t layout, const Array& w, char* text, size_t size) {
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    int rank = 0;
    int blocks = 0;
    const dnnl_dims_t* strides = nullptr;
    const dnnl_dims_t* padded = nullptr;
    const dnnl_dims_t* inner = nullptr;
    const dnnl_dims_t* axes = nullptr;
    auto ask = [layout](dnnl_query_t what, void* to) {
        return dnnl.dnnl_memory_desc_query(layout, what, to) == dnnl_success;
    };
    if (!ask(dnnl_query_format_kind, &kind) || kind != dnnl_blocked ||
        !ask(dnnl_query_ndims_s32, &rank) || !ask(dnnl_query_strides, &strides) ||
        !ask(dnnl_query_padded_dims, &padded) || !ask(dnnl_query_inner_nblks_s32, &blocks) ||
        !ask(dnnl_query_inner_blks, &inner) || !ask(dnnl_query_inner_idxs, &axes)) {
        return false;
    }
    size_t at = 0;
    auto add = [&](const char* format, long long value) {
        if (at < size) {
            at += static_cast<size_t>(std::snprintf(text + at, size - at, format, value));
        }
    };
    for (int i = 0; i < rank; ++i) {
        add(" %lld", (*padded)[i]);
        add(":%lld", (*strides)[i]);
        add("/%lld", w.sizes[i]);
        add(":%lld", w.strides[i]);
    }
    for (int i = 0; i < blocks; ++i) {
        add(" %lld", (*inner)[i]);
        add("@%lld", (*axes)[i]);
    }
    return at < size;
}

} // namespace

struct Primitive {
    Operands operands;
    const_dnnl_memory_desc_t packed_w = nullptr; // owned by the description
    Description description;
    Executable executable;
    Stream stream;
    Memory x, w, bias, out, scratch;
    Memory posts[most_posts];
    dnnl_exec_arg_t arguments[5 + most_posts] = {};
    int argument_count = 0;
    int post_count = 0;
    bool failed = false;

    void add(Memory& memory, const_dnnl_memory_desc_t layout, int argument) {
        if (dnnl.dnnl_memory_create(memory.out(), layout, engine, nullptr) != dnnl_success) {
            failed = true;
            return;
        }
        arguments[argument_count].arg = argument;
        arguments[argument_count].memory = memory.get();
        ++argument_count;
    }
};

namespace {

void bind(const Memory& memory, const void* at) {
    if (memory) {
        dnnl.dnnl_memory_set_data_handle(memory.get(), const_cast<void*>(at));
    }
}

bool add_arguments(Primitive& m, const Problem& p, const_dnnl_memory_desc_t scratch) {
    m.add(m.x, m.operands.x.get(), DNNL_ARG_SRC);
    if (m.operands.w) {
        m.add(m.w, m.packed_w != nullptr ? m.packed_w : m.operands.w.get(), DNNL_ARG_WEIGHTS);
    }
    if (p.has_bias) {
        m.add(m.bias, m.operands.bias.get(), DNNL_ARG_BIAS);
    }
    m.add(m.out, m.operands.out.get(), DNNL_ARG_DST);
    m.add(m.scratch, scratch, DNNL_ARG_SCRATCHPAD);
    m.post_count = p.post_count;
    for (int i = 0; i < p.post_count; ++i) {
        if (is_binary(p.posts[i].function)) {
            m.add(m.posts[i], m.operands.posts[i].get(),
                  DNNL_ARG_ATTR_MULTIPLE_POST_OP(i) | DNNL_ARG_SRC_1);
        }
    }
    return !m.failed;
}

/// Chooses the layout of constant weights. False when the layout cannot be identified.
bool choose_weights(Primitive& m, const Problem& p, Choice& choice) {
    if (!p.constant_w || !m.operands.w) {
        return true;
    }
    Layout plain = layout_of(p.w);
    const_dnnl_memory_desc_t chosen =
        dnnl.dnnl_primitive_desc_query_md(m.description.get(), dnnl_query_weights_md, 0);
    m.packed_w = chosen;
    if (plain && dnnl.dnnl_memory_desc_equal(plain.get(), chosen) != 0) {
        return true;
    }
    choice.packed_bytes = static_cast<int64_t>(dnnl.dnnl_memory_desc_get_size(chosen));
    return describe_layout(chosen, p.w, choice.layout, sizeof choice.layout);
}

bool optimised(const char* name) {
    return std::strstr(name, "ref") == nullptr && std::strstr(name, "simple") == nullptr;
}

Primitive* create(const Problem& problem, const Threads& threads, Choice& choice, char* why,
                  size_t why_size) noexcept {
    ThreadsInUse scope(threads);
    choice = {};
    std::unique_ptr<Primitive> m(new (std::nothrow) Primitive);
    auto refused = [&](const char* text) {
        std::snprintf(why, why_size, "%s", text);
        return nullptr;
    };
    if (m == nullptr) {
        return refused("the system has no memory left");
    }
    if (describe(problem, m->operands, m->description) != dnnl_success) {
        return refused("oneDNN has no such primitive");
    }
    const char* name = nullptr;
    if (dnnl.dnnl_primitive_desc_query(m->description.get(), dnnl_query_impl_info_str, 0,
                                       static_cast<void*>(&name)) != dnnl_success ||
        name == nullptr || !optimised(name)) {
        return refused("oneDNN has reference loops only");
    }
    std::snprintf(choice.name, sizeof choice.name, "%s", name);
    const_dnnl_memory_desc_t scratch =
        dnnl.dnnl_primitive_desc_query_md(m->description.get(), dnnl_query_scratchpad_md, 0);
    choice.scratch_bytes = static_cast<int64_t>(dnnl.dnnl_memory_desc_get_size(scratch));
    if (!choose_weights(*m, problem, choice)) {
        return refused("oneDNN needs weights in a layout that cannot be shared");
    }
    if (dnnl.dnnl_primitive_create(m->executable.out(), m->description.get()) != dnnl_success ||
        dnnl.dnnl_stream_create(m->stream.out(), engine, dnnl_stream_default_flags) !=
            dnnl_success ||
        !add_arguments(*m, problem, scratch)) {
        return refused("oneDNN failed to create the primitive");
    }
    return m.release();
}

void destroy(Primitive* primitive) noexcept {
    const std::unique_ptr<Primitive> owned(primitive);
}

bool pack(Primitive& m, const Threads& threads, const void* w, const Problem& problem,
          void* packed) noexcept {
    ThreadsInUse scope(threads);
    Layout plain = layout_of(problem.w);
    Memory from;
    Memory to;
    Description description;
    Executable reorder;
    if (!plain || m.packed_w == nullptr ||
        dnnl.dnnl_memory_create(from.out(), plain.get(), engine, const_cast<void*>(w)) !=
            dnnl_success ||
        dnnl.dnnl_memory_create(to.out(), m.packed_w, engine, packed) != dnnl_success ||
        dnnl.dnnl_reorder_primitive_desc_create(description.out(), plain.get(), engine, m.packed_w,
                                                engine, nullptr) != dnnl_success ||
        dnnl.dnnl_primitive_create(reorder.out(), description.get()) != dnnl_success) {
        return false;
    }
    dnnl_exec_arg_t arguments[2] = {};
    arguments[0].arg = DNNL_ARG_FROM;
    arguments[0].memory = from.get();
    arguments[1].arg = DNNL_ARG_TO;
    arguments[1].memory = to.get();
    return dnnl.dnnl_primitive_execute(reorder.get(), m.stream.get(), 2, arguments) ==
               dnnl_success &&
           dnnl.dnnl_stream_wait(m.stream.get()) == dnnl_success;
}

bool run(Primitive& m, const Threads& threads, const Pointers& pointers) noexcept {
    ThreadsInUse scope(threads);
    bind(m.x, pointers.x);
    bind(m.w, pointers.w);
    bind(m.bias, pointers.bias);
    bind(m.out, pointers.out);
    bind(m.scratch, pointers.scratch);
    for (int i = 0; i < m.post_count; ++i) {
        bind(m.posts[i], pointers.operands[i]);
    }
    return dnnl.dnnl_primitive_execute(m.executable.get(), m.stream.get(), m.argument_count,
                                       m.arguments) == dnnl_success;
}

/// oneDNN uses the threads of the first loaded copy of this library: the entry point of that copy,
/// or null when it is this one.
OpenLibrary other_copy() {
    void* first = ::dlopen("ingot_cpu.so", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    auto open = first == nullptr
                    ? nullptr
                    : reinterpret_cast<OpenLibrary>(::dlsym(first, open_library_symbol));
    return open == &ingot_cpu_library ? nullptr : open;
}

bool open_once(char* why, size_t why_size) {
    std::lock_guard lock(opening);
    if (opened) {
        return true;
    }
    if (!open_calls(dnnl, why, why_size)) {
        return false;
    }
    if (dnnl.dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) {
        std::snprintf(why, why_size, "oneDNN does not support this CPU");
        return false;
    }
    const dnnl_version_t* version = dnnl.dnnl_version();
    std::snprintf(library_name, sizeof library_name, "onednn %d.%d.%d", version->major,
                  version->minor, version->patch);
    opened = true;
    return true;
}

} // namespace

} // namespace ingot::cpu::onednn

extern "C" const ingot::cpu::onednn::Library* ingot_cpu_library(int version, char* why,
                                                                size_t why_size) {
    using namespace ingot::cpu::onednn;
    if (version != interface_version) {
        std::snprintf(why, why_size, "it has interface version %d, not %d", interface_version,
                      version);
        return nullptr;
    }
    if (OpenLibrary other = other_copy()) {
        return other(version, why, why_size);
    }
    if (!open_once(why, why_size)) {
        return nullptr;
    }
    static const Library library = {library_name, create, destroy, pack, run};
    return &library;
}
