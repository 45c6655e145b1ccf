// SPDX-License-Identifier: Apache-2.0
#include "kernels/group_run.h"

#include "base/error.h"
#include "base/hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace ingot::test {

using namespace kernels;
using namespace plan;

namespace {

struct Programs {
    std::vector<EmittedProgram> list;
    std::set<std::string> seen;
};

Programs& programs() {
    static Programs p;
    return p;
}

const Family& find_family(const Group& group, std::string_view name) {
    std::string refusals;
    for (const FamilyTable* table : all_families()) {
        for (const Family& f : *table) {
            if (f.name != name) {
                continue;
            }
            std::optional<std::string> reason;
            if (group.nodes.size() > 1 && !f.takes_groups) {
                reason = "it runs single nodes only";
            } else {
                reason = f.refuse(group);
            }
            if (!reason) {
                return f;
            }
            refusals += str(' ', *reason, ';');
        }
    }
    fail(ErrorCode::InvalidArgument, "no family '", name,
         "' takes the group:", refusals.empty() ? " there is none of that name" : refusals);
}

/// Dense in that order, or with a gap behind every row (and one element in front).
View placed(const Shape& shape, const Order& order, bool gaps) {
    if (!gaps || shape.empty()) {
        return dense(shape, order);
    }
    Shape wider = shape;
    for (size_t i = 1; i < order.size(); ++i) {
        wider[static_cast<size_t>(order[i])] += i + 1 == order.size() ? 3 : 1;
    }
    View v = dense(wider, order);
    v.shape = shape;
    v.offset = 1;
    return v;
}

int64_t extent(const View& v) {
    if (v.count() == 0) {
        return 0;
    }
    int64_t last = v.offset;
    for (size_t i = 0; i < v.shape.size(); ++i) {
        last += (v.shape[i] - 1) * v.strides[i];
    }
    return last + 1;
}

/// Calls f(row-major index, offset) for every element.
template <class F>
void for_elements(const View& v, F f) {
    std::vector<int64_t> at(v.shape.size(), 0);
    int64_t count = v.count();
    int64_t offset = v.offset;
    for (int64_t i = 0; i < count; ++i) {
        f(i, offset);
        for (size_t axis = at.size(); axis-- > 0;) {
            offset += v.strides[axis];
            if (++at[axis] < v.shape[axis]) {
                break;
            }
            offset -= at[axis] * v.strides[axis];
            at[axis] = 0;
        }
    }
}

std::vector<std::byte> stored(const Tensor& t, const View& v) {
    DType dtype = t.dtype();
    std::vector<std::byte> out(static_cast<size_t>(byte_size(dtype, extent(v))),
                               static_cast<std::byte>(emulator::poison));
    if (is_packed(dtype)) {
        require(is_dense(v) && v.offset == 0, ErrorCode::Internal,
                "packed operands are row major in tests");
        std::copy(t.bytes().begin(), t.bytes().end(), out.begin());
        return out;
    }
    auto width = static_cast<size_t>(bit_width(dtype) / 8);
    for_elements(v, [&](int64_t i, int64_t offset) {
        std::memcpy(&out[static_cast<size_t>(offset) * width],
                    &t.bytes()[static_cast<size_t>(i) * width], width);
    });
    return out;
}

/// Reads the elements, and fails the test when a byte between them was written.
Tensor gathered(std::vector<std::byte> bytes, DType dtype, const View& v, size_t result) {
    Tensor t = Tensor::empty(dtype, v.shape);
    if (is_packed(dtype)) {
        std::copy(bytes.begin(), bytes.end(), t.mutable_bytes().begin());
        return t;
    }
    auto width = static_cast<size_t>(bit_width(dtype) / 8);
    auto poison = static_cast<std::byte>(emulator::poison);
    for_elements(v, [&](int64_t i, int64_t offset) {
        std::byte* at = &bytes[static_cast<size_t>(offset) * width];
        std::memcpy(&t.mutable_bytes()[static_cast<size_t>(i) * width], at, width);
        std::memset(at, emulator::poison, width);
    });
    EXPECT_TRUE(!memory_is_poisoned() ||
                std::all_of(bytes.begin(), bytes.end(), [&](std::byte b) { return b == poison; }))
        << "result " << result << ": gaps between its elements were written";
    return t;
}

/// Compiled functions of this process by architecture, text and entry.
std::shared_ptr<const cuda::Function> function_of(cuda::Gpu& gpu, const Launch& l) {
    static std::map<std::string, std::string> binaries;
    std::string text = full_text(l.program);
    std::string& binary = binaries[str(gpu.arch().cc, text)];
    if (binary.empty()) {
        binary = gpu.compile(text);
    }
    return gpu.load(binary, l.entry, l.shared);
}

} // namespace

AheadCompiler::AheadCompiler(const std::vector<Emitted>& emitted, const Arch& arch)
    : device_(arch) {
    for (const Emitted& e : emitted) {
        for (const Launch& l : e.launches) {
            std::string text = full_text(l.program);
            if (!by_text_.contains(text)) {
                Slot& slot = slots_.emplace_back(std::move(text));
                by_text_.emplace(slot.text, &slot);
            }
        }
    }
    size_t count =
        std::min<size_t>(std::max(1U, std::thread::hardware_concurrency()), slots_.size());
    for (size_t i = 0; i < count; ++i) {
        threads_.emplace_back([this] {
            for (size_t k = next_++; k < slots_.size(); k = next_++) {
                compile(slots_[k]);
            }
        });
    }
}

AheadCompiler::~AheadCompiler() {
    next_ = slots_.size();
    for (std::thread& t : threads_) {
        t.join();
    }
}

void AheadCompiler::compile(Slot& slot) {
    std::call_once(slot.once, [&] {
        try {
            device_.gpu().compile(slot.text);
        } catch (const Error&) {
            // The run that needs it reports it, with its case.
        }
    });
}

void AheadCompiler::wait_for(const Emitted& emitted) {
    for (const Launch& l : emitted.launches) {
        compile(*by_text_.at(full_text(l.program)));
    }
}

const std::vector<EmittedProgram>& emitted_programs() {
    return programs().list;
}

GroupCase::GroupCase(const Graph& g, std::string_view family, const Family* made)
    : kept_(g), body_(g.sibling("group")) {
    std::map<Value, Value> inside;
    auto add = [&](Value v) {
        Value inner = body_.add_input("", kept_.type(v));
        if (HostRef host = kept_.host(v)) {
            body_.set_host(inner, host);
        }
        Source s;
        s.constant = kept_.constant(v);
        for (size_t i = 0; i < kept_.inputs().size(); ++i) {
            s.graph_input = kept_.inputs()[i] == v ? i : s.graph_input;
        }
        sources_.push_back(s);
        inside[v] = inner;
    };
    for (const Node& n : kept_.nodes()) {
        if (n.is(constant_def)) {
            continue;
        }
        Values in;
        for (Value v : n.inputs) {
            if (inside.count(v) == 0) {
                add(v);
            }
            in.push_back(inside[v]);
        }
        body_.set_origin(n.name);
        Values out = body_.add(*n.def, n.attrs, in);
        for (size_t i = 0; i < out.size(); ++i) {
            inside[n.outputs[i]] = out[i];
        }
    }
    for (Value v : kept_.outputs()) {
        require(inside.count(v) != 0, ErrorCode::InvalidArgument,
                "an output of the graph is not "
                "computed by a node of it");
        body_.add_output("", inside[v]);
    }
    require(!body_.nodes().empty(), ErrorCode::InvalidArgument, "the graph has no nodes");
    group_ = std::make_unique<Group>(Group{body_, body_.nodes(), body_.inputs(), body_.outputs()});
    family_ = made != nullptr
                  ? made
                  : &find_family(*group_, family.empty() ? group_->first().def->name : family);
}

Placement::Placement(const GroupCase& c, const Arch& arch, const FamilyOptions& options)
    : case_(c), arch_(arch), options_(options) {
    const Group& g = c.group();
    std::vector<View> views;
    for (size_t i = 0; i < g.inputs.size(); ++i) {
        const Type& t = g.graph.type(g.inputs[i]);
        bool ordered = c.constant(i) == nullptr && c.graph_input(i) < options.orders.size() &&
                       !options.orders[c.graph_input(i)].empty();
        Order order = ordered ? options.orders[c.graph_input(i)] : row_major(t.rank());
        bool gaps = options.strided && c.family().layout != nullptr && !is_packed(t.dtype) &&
                    c.constant(i) == nullptr;
        views.push_back(placed(eval(t.dims, options.symbols), order, gaps));
        constants_.push_back(c.constant(i) != nullptr ? c.constant(i)->bytes().data() : nullptr);
    }
    std::vector<Shape> shapes;
    std::vector<Order> orders;
    for (Value v : g.outputs) {
        shapes.push_back(eval(g.graph.type(v).dims, options.symbols));
        orders.push_back(row_major(g.graph.type(v).rank()));
    }
    std::vector<std::optional<Order>> want(views.size());
    if (c.family().layout != nullptr) {
        LayoutArgs args{g, options.symbols, views, shapes, want, orders};
        c.family().layout(args);
    }
    for (size_t i = 0; i < views.size(); ++i) {
        bool refused = c.family().layout == nullptr ? !is_dense(views[i])
                                                    : want[i] && !is_dense(views[i], *want[i]);
        if (refused) {
            views[i] = dense(views[i].shape, want[i].value_or(row_major(views[i].rank())));
        }
        in_.push_back({g.graph.type(g.inputs[i]).dtype, static_cast<int>(i), views[i]});
    }
    for (size_t i = 0; i < shapes.size(); ++i) {
        DType t = g.graph.type(g.outputs[i]).dtype;
        bool gaps = options.strided && c.family().strided_results && !is_packed(t);
        out_.push_back({t, static_cast<int>(views.size() + i), placed(shapes[i], orders[i], gaps)});
    }
}

Problem Placement::problem() const {
    Problem p{case_.group(), options_.symbols, in_, out_, constants_, arch_, options_.tf32};
    p.backwards = options_.backwards;
    return p;
}

Emitted Placement::emit(const Tactic& t) const {
    Emitted e = case_.family().emit(problem(), t);
    for (const Launch& l : e.launches) {
        std::string text = full_text(l.program);
        std::string key = str(arch_.cc, l.entry, ' ', hash_bytes(text.data(), text.size()));
        if (programs().seen.insert(key).second) {
            programs().list.push_back(
                {text, l.entry, std::string(case_.family().name), t.name, arch_.cc, l.shared});
        }
    }
    return e;
}

std::string Placement::fingerprint(const Tactic& t) const {
    std::string out;
    Emitted emitted = emit(t);
    for (const Launch& l : emitted.launches) {
        out += str(full_text(l.program), l.entry, ' ', l.grid[0], ' ', l.grid[1], ' ', l.grid[2],
                   ' ', l.block, ' ', l.shared, ' ', l.cluster, ' ', emitted.scratch, ' ');
        out.append(reinterpret_cast<const char*>(l.args.bytes().data()), l.args.bytes().size());
        for (const Args::Fixup& f : l.args.fixups()) {
            out += str(static_cast<int>(f.what), ' ', f.at, ' ', f.buffer, ' ', f.offset, ' ',
                       f.map, ';');
        }
        for (const kernels::TensorMap& m : l.args.maps()) {
            out += str(static_cast<int>(m.dtype), ' ', m.swizzle128, ' ', m.tf32, ' ');
            for (size_t i = 0; i < static_cast<size_t>(m.rank); ++i) {
                out += str(m.sizes[i], ' ', i > 0 ? m.strides[i - 1] : 0, ' ', m.box[i], ' ');
            }
        }
    }
    return to_text(xxh3_128(std::as_bytes(std::span(out))));
}

/// Whether a result is stored by TMA. Such stores are no writes to compute-sanitizer's initcheck
/// (13.0): only the runs with poison show then that all of a result is written.
static bool stores_by_tma(const Emitted& e, size_t inputs) {
    return std::any_of(e.launches.begin(), e.launches.end(), [&](const Launch& l) {
        const std::vector<Args::Fixup>& fixups = l.args.fixups();
        return std::any_of(fixups.begin(), fixups.end(), [&](const Args::Fixup& f) {
            return f.what == Args::Patch::Map && f.buffer >= static_cast<int>(inputs);
        });
    });
}

GroupRun::GroupRun(const GroupCase& c, const Arch& arch, const FamilyOptions& options,
                   const Placement& placement)
    : case_(c), options_(options), placement_(placement), device_(arch),
      stream_(device_.gpu().create_stream()) {}

GroupRun::~GroupRun() {
    release();
}

std::byte* GroupRun::allocate(int64_t bytes, bool constant) {
    std::byte* p = device_.gpu().allocate(bytes);
    if (!constant) {
        device_.hold_until_wait(p);
    }
    return p;
}

void GroupRun::release() {
    for (std::byte* p : buffers_) {
        device_.gpu().release(p);
    }
    device_.gpu().release(scratch_);
    device_.gpu().release(error_word_);
    device_.gpu().release(run_state_);
    buffers_.clear();
    scratch_ = error_word_ = run_state_ = nullptr;
}

std::vector<Tensor> GroupRun::execute(const Emitted& e, const std::vector<Tensor>& inputs,
                                      bool reversed) {
    release();
    device_.set_reversed(reversed);
    for (size_t i = 0; i < placement_.in().size(); ++i) {
        const Operand& o = placement_.in()[i];
        const Tensor* constant = case_.constant(i);
        std::vector<std::byte> bytes =
            stored(constant != nullptr ? *constant : inputs[case_.graph_input(i)], o.view);
        buffers_.push_back(allocate(static_cast<int64_t>(bytes.size()), constant != nullptr));
        stream_->write(buffers_.back(), bytes.data(), bytes.size());
    }
    bool unseen = !memory_is_poisoned() && stores_by_tma(e, placement_.in().size());
    for (const Operand& o : placement_.out()) {
        int64_t bytes = byte_size(o.dtype, extent(o.view));
        buffers_.push_back(allocate(bytes, false));
        if (unseen) {
            stream_->fill(buffers_.back(), emulator::poison, static_cast<size_t>(bytes));
        }
    }
    scratch_ = allocate(e.scratch, false);
    error_word_ = allocate(4, false);
    stream_->fill(error_word_, 0, 4);
    run_state_ = allocate(16, false);
    stream_->fill(run_state_, 0, 16);
    for (const Launch& l : e.launches) {
        launch(l);
    }
    uint32_t word = 0;
    stream_->read(&word, error_word_, 4);
    EXPECT_EQ(word, options_.error_word) << "error word";
    std::vector<Tensor> out;
    for (size_t i = 0; i < placement_.out().size(); ++i) {
        const Operand& o = placement_.out()[i];
        std::vector<std::byte> bytes(static_cast<size_t>(byte_size(o.dtype, extent(o.view))));
        read(bytes, buffers_[placement_.in().size() + i], o);
        out.push_back(gathered(std::move(bytes), o.dtype, o.view, i));
    }
    release();
    EXPECT_EQ(device_.problems(), "");
    return out;
}

void GroupRun::read(std::vector<std::byte>& bytes, const std::byte* from, const Operand& o) {
    if (memory_is_poisoned() || is_packed(o.dtype)) {
        stream_->read(bytes.data(), from, bytes.size());
        return;
    }
    // Gaps between elements are uninitialised, which a checker of initialisation would report.
    auto width = static_cast<size_t>(bit_width(o.dtype) / 8);
    if (is_dense(o.view)) {
        size_t first = static_cast<size_t>(o.view.offset) * width;
        stream_->read(bytes.data() + first, from + first, bytes.size() - first);
        return;
    }
    for_elements(o.view, [&](int64_t, int64_t offset) {
        size_t at = static_cast<size_t>(offset) * width;
        stream_->read(bytes.data() + at, from + at, width);
    });
}

void GroupRun::launch(const Launch& l) {
    if (l.grid[0] == 0 || l.grid[1] == 0 || l.grid[2] == 0) {
        return;
    }
    struct alignas(64) Line {
        std::byte bytes[64];
    };
    std::vector<Line> memory(l.args.bytes().size() / sizeof(Line) + 1);
    auto* base = reinterpret_cast<std::byte*>(memory.data());
    std::memcpy(base, l.args.bytes().data(), l.args.bytes().size());
    for (const Args::Fixup& f : l.args.fixups()) {
        bool own = f.what == Args::Patch::Scratch || f.buffer == in_scratch;
        std::byte* address = own                                ? scratch_ + f.offset
                             : f.what == Args::Patch::ErrorWord ? error_word_
                             : f.what == Args::Patch::RunState
                                 ? run_state_
                                 : buffers_.at(static_cast<size_t>(f.buffer)) + f.offset;
        if (f.what == Args::Patch::Map) {
            device_.gpu().encode(l.args.maps()[f.map], address, base + f.at);
        } else {
            std::memcpy(base + f.at, &address, sizeof address);
        }
    }
    std::vector<void*> parameters;
    for (uint32_t offset : l.args.offsets()) {
        parameters.push_back(base + offset);
    }
    std::shared_ptr<const cuda::Function> f = function_of(device_.gpu(), l);
    cuda::LaunchShape shape;
    for (size_t i = 0; i < 3; ++i) {
        shape.grid[i] = static_cast<uint32_t>(l.grid[i]);
    }
    shape.block = static_cast<uint32_t>(l.block);
    shape.shared = static_cast<uint32_t>(l.shared);
    shape.cluster = static_cast<uint32_t>(l.cluster);
    shape.overlap = device_.gpu().arch().has_pdl();
    stream_->launch(*f, shape, parameters.data());
}

} // namespace ingot::test
