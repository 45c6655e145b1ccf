// SPDX-License-Identifier: Apache-2.0
// Family grid_sample: an image of one to three axes at the positions of a grid, any strides, with a
// map over the result. A thread computes one position's neighbours and weights, and uses them for
// some vectors of channels; where channels are innermost, the threads of a position are neighbours.
// Traffic: grid and result once; of the image what is read, from caches if positions are close.
#include "ops/grid_sample.h"

#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/pointwise/index_text.h"
#include "kernels/reduce/reduce_rows.h"
#include "plan/epilogue.h"

#include <algorithm>
#include <array>

namespace ingot::kernels {

namespace {

constexpr size_t most_axes = 3;
constexpr int channel_axis = 1;

struct Sample {
    static constexpr std::string_view pattern = "sample_c{channels}";
    int channels = 1; // vectors of channels of a thread
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("channels", self.channels);
    }
};

/// An operand of the map, as the result is indexed.
struct Reading {
    const Operand* operand = nullptr; // null: the sample
    View view;
    int64_t stride = 0;  // between channels
    bool packed = false; // read in vectors
};

struct SampleJob {
    ops::GridSample attrs;
    const Operand* x = nullptr;
    const Operand* grid = nullptr;
    const Node* map = nullptr;
    std::vector<Reading> readings; // of the map's inputs
    DType from = DType::F32;       // of the sample
    DType to = DType::F32;
    bool wide = false;
    int vector = 1;
    int64_t vectors = 1; // of channels

    size_t axes() const { return x->view.shape.size() - 2; }
    int taps() const { return attrs.mode == "nearest" ? 1 : attrs.mode == "linear" ? 2 : 4; }
    int reads() const { // of an element of the result
        int n = 1;
        for (size_t i = 0; i < axes(); ++i) {
            n *= taps();
        }
        return n;
    }
};

std::vector<int64_t> strides_but_channels(const View& v) {
    std::vector<int64_t> out = v.strides;
    out.erase(out.begin() + channel_axis);
    return out;
}

bool fits(const Operand& o, const View& v, int64_t vector) {
    std::vector<int64_t> multiples = strides_but_channels(v);
    return v.strides[channel_axis] == 1 &&
           vector_width({o.dtype, o.buffer, v}, multiples, static_cast<int>(vector)) == vector;
}

SampleJob sample_job(const Problem& p) {
    const Node& n = p.group.first();
    SampleJob job;
    job.attrs = n.as<ops::GridSample>();
    job.x = &p.operand(n.inputs[0]);
    job.grid = &p.operand(n.inputs[1]);
    job.map = plan::epilogue_of(p.group);
    job.from = job.x->dtype;
    job.to = p.out[0].dtype;
    const Operand& y = p.out[0];
    constexpr int64_t most = int64_t{1} << 30;
    job.wide = std::max({y.view.count(), span_of(job.x->view), span_of(job.grid->view),
                         span_of(y.view)}) >= most;
    for (Value v : job.map != nullptr ? job.map->inputs : Values()) {
        Reading r;
        if (v != n.outputs[0]) {
            r.operand = &p.operand(v);
            r.view = plan::broadcasted(r.operand->view, y.view.shape);
            r.stride = r.view.strides[channel_axis];
            job.wide = job.wide || span_of(r.view) >= most;
        }
        job.readings.push_back(std::move(r));
    }
    int64_t channels = y.view.shape[channel_axis];
    int64_t widest = std::max(bytes_of(job.from), bytes_of(job.to));
    int64_t v = 16 / widest;
    while (v > 1 && (channels % v != 0 || !fits(*job.x, job.x->view, v) || !fits(y, y.view, v))) {
        v /= 2;
    }
    job.vector = static_cast<int>(v);
    job.vectors = channels / v;
    for (Reading& r : job.readings) {
        r.packed = v > 1 && r.operand != nullptr && bytes_of(r.operand->dtype) * v <= 16 &&
                   fits(*r.operand, r.view, v);
    }
    return job;
}

/// Coordinates of the result's axes: names of device variables, empty where the size is 1.
class Places {
public:
    Places(const View& y, int64_t chunks, bool wide) : names_(y.shape.size()) {
        Shape sizes;
        for (int axis : plan::stride_order(y)) {
            int64_t size = axis == channel_axis ? chunks : y.shape[static_cast<size_t>(axis)];
            if (size != 1) {
                names_[static_cast<size_t>(axis)] = str("x", sizes.size());
                sizes.push_back(size);
            }
            count_ *= size;
        }
        index_ = IndexText(sizes, wide);
    }

    int64_t count() const { return count_; }
    const IndexText& index() const { return index_; }
    std::string channel() const {
        return names_[channel_axis].empty() ? "0" : names_[channel_axis];
    }
    /// `name`: the offset by these strides, one per axis of the result; those of 0 are skipped.
    std::string offset(Signature& s, const std::string& name, const Shape& strides) const {
        std::vector<std::string> at;
        std::vector<std::string> by;
        for (size_t d = 0; d < strides.size(); ++d) {
            if (strides[d] != 0 && !names_[d].empty() && d != channel_axis) {
                at.push_back(names_[d]);
                by.push_back(str(name, "_s", d));
                s.offset(by.back(), strides[d]);
            }
        }
        return str("const ", s.offset_type(), " ", name, " = ",
                   offset_text(s.offset_type(), at, by), ";\n");
    }

private:
    std::vector<std::string> names_;
    IndexText index_{{}, false};
    int64_t count_ = 1;
};

/// Statements that find the neighbours: AxisTaps t0, t1, ... and their offsets o0, o1, ...
std::string taps_text(const SampleJob& job, const Places& places, Signature& s) {
    const View& x = job.x->view;
    const View& grid = job.grid->view;
    size_t n = job.axes();
    Shape strides(n + 2, 0);
    strides[0] = grid.strides[0];
    for (size_t i = 0; i < n; ++i) {
        strides[i + 2] = grid.strides[i + 1];
    }
    std::string out = places.offset(s, "at_grid", strides);
    s.offset("along_grid", grid.strides[n + 1]);
    int taps = job.taps();
    std::string_view offset = s.offset_type();
    std::string constants = str("sample_", job.attrs.mode, ", pad_", job.attrs.padding, ", ",
                                job.attrs.align_corners ? "true" : "false");
    for (size_t i = 0; i < n; ++i) {
        s.i32(str("size", i), x.shape[i + 2]).offset(str("stride", i), x.strides[i + 2]);
        append(out,
               str("AxisTaps<", taps, "> t", i, ";\nset_taps<", constants, ">(t", i,
                   ", widen(grid[at_grid + ", n - 1 - i, " * along_grid]), size", i, ");\n", offset,
                   " o", i, "[", taps, "];\n#pragma unroll\nfor (int j = 0; j < ", taps, "; ++j) o",
                   i, "[j] = (", offset, ")t", i, ".at[j] * stride", i, ";\n"));
    }
    return out;
}

/// Adds up the neighbours of K vectors of channels in `sum`.
std::string sum_text(const SampleJob& job, const Places& places, std::string_view offset) {
    std::string out =
        str("float sum[K][V];\n#pragma unroll\nfor (int k = 0; k < K; ++k) {\nconst ", offset,
            " c = min((", offset, ")", places.channel(), " + k * (", offset, ")chunks, (", offset,
            ")vectors - 1) * V;\nconst X* from = x + at_x + c * "
            "channel_stride;\n#pragma unroll\nfor (int v = 0; v < V; ++v) sum[k][v] = "
            "0.0f;\n");
    std::string at;
    std::string weight;
    std::string ends;
    for (size_t i = 0; i < job.axes(); ++i) {
        append(out, str("#pragma unroll\nfor (int j", i, " = 0; j", i, " < ", job.taps(), "; ++j",
                        i, ") {\n"));
        append(at, str(i > 0 ? " + " : "", "o", i, "[j", i, "]"));
        append(weight, str(i > 0 ? " * " : "", "t", i, ".weight[j", i, "]"));
        append(ends, std::string("}\n"));
    }
    append(out, str("const float w = ", weight, ";\nX a[V];\nload_pack<X, V>(a, from + (", at,
                    "));\n#pragma unroll\nfor (int v = 0; v < V; ++v) sum[k][v] += w * "
                    "widen(a[v]);\n",
                    ends, "}\n"));
    return out;
}

/// Statements that make element v of the result, `r[v]`, from `sum[k][v]`.
std::string element_text(const SampleJob& job) {
    if (job.map == nullptr) {
        return "r[v] = narrow<Y>(sum[k][v]);\n";
    }
    std::vector<std::string> inputs;
    for (size_t k = 0; k < job.readings.size(); ++k) {
        const Reading& r = job.readings[k];
        inputs.push_back(r.operand == nullptr
                             ? std::string("sum[k][v]")
                             : str("widen(q", k, r.stride == 0 ? "[0]" : "[v]", ")"));
    }
    ExprText e = expr_text(job.map->as<Map>().body, inputs);
    return str(e.statements, "r[v] = narrow<Y>((", compute_c_type(job.to), ")(", e.result, "));\n");
}

/// Statements that load the map's operands for the channels from `c` on.
std::string readings_text(const SampleJob& job) {
    std::string out;
    for (size_t k = 0; k < job.readings.size(); ++k) {
        const Reading& r = job.readings[k];
        if (r.operand == nullptr) {
            continue;
        }
        std::string_view type = c_type(r.operand->dtype);
        if (r.stride == 0) {
            append(out, str(type, " q", k, "[1] = {p", k, "[at_", k, "]};\n"));
        } else if (r.packed) {
            append(out, str(type, " q", k, "[V];\nload_pack<", type, ", V>(q", k, ", p", k,
                            " + at_", k, " + c);\n"));
        } else {
            append(out, str(type, " q", k, "[V];\n#pragma unroll\nfor (int v = 0; v < V; ++v) q", k,
                            "[v] = p", k, "[at_", k, " + (c + v) * along_", k, "];\n"));
        }
    }
    return out;
}

Launch sample_launch(const Problem& p, const SampleJob& job, int64_t k) {
    const Operand& y = p.out[0];
    int64_t chunks = div_up(job.vectors, k);
    Places places(y.view, chunks, job.wide);
    Signature s(job.wide);
    s.pointer("Y*", "y", y).pointer("const X*", "x", *job.x).pointer("const G*", "grid", *job.grid);
    s.size("n", places.count()).size("chunks", chunks).size("vectors", job.vectors);
    s.offset("channel_stride", job.x->view.strides[channel_axis]);
    s.offset("result_stride", y.view.strides[channel_axis]);
    places.index().add(s);
    std::string body = places.offset(s, "at_y", y.view.strides);
    Shape image(y.view.shape.size(), 0);
    image[0] = job.x->view.strides[0];
    append(body, places.offset(s, "at_x", image));
    for (size_t i = 0; i < job.readings.size(); ++i) {
        if (const Reading& r = job.readings[i]; r.operand != nullptr) {
            s.pointer(str("const ", c_type(r.operand->dtype), "*"), str("p", i), *r.operand);
            s.offset(str("along_", i), r.stride);
            append(body, places.offset(s, str("at_", i), r.view.strides));
        }
    }
    append(body, taps_text(job, places, s));
    std::string_view offset = s.offset_type();
    append(body, sum_text(job, places, offset));
    std::string index(s.size_type());
    Launch l = std::move(s).launch(
        "grid_sample",
        str("grid_wait();\nconst ", index, " i = (", index, ")", block_number,
            " * 256u + threadIdx.x;\nif (i >= n) return;\n", places.index().split("i"), body,
            "end_main_loop();\n#pragma unroll\nfor (int k = 0; k < K; ++k) {\nconst ", offset,
            " unit = (", offset, ")", places.channel(), " + k * (", offset,
            ")chunks;\nif (unit >= (", offset, ")vectors) break;\nconst ", offset,
            " c = unit * V;\n", readings_text(job),
            "Y r[V];\n#pragma unroll\nfor (int v = 0; v < V; ++v) {\n", element_text(job),
            "}\nstore_pack<Y, V>(y + at_y + c * result_stride, r);\n}\n"));
    l.program.uses.emplace_back("grid_sample");
    l.program.defines = str("typedef ", c_type(job.from), " X;\ntypedef ", c_type(job.to),
                            " Y;\ntypedef ", c_type(job.grid->dtype), " G;\n");
    l.program.kernel->constants = {{"V", str(job.vector)}, {"K", str(k)}};
    l.grid = {blocks_for(places.count()), 1, 1};
    return l;
}

Emitted emit(const Problem& p, const Tactic& t) {
    Emitted out;
    if (p.out[0].view.count() == 0) {
        return out;
    }
    SampleJob job = sample_job(p);
    const Shape& x = job.x->view.shape;
    require(job.x->view.count() > 0, ErrorCode::InvalidArgument, "grid_sample of ", x,
            ": there are no elements to read");
    require(*std::max_element(x.begin(), x.end()) < INT32_MAX, ErrorCode::Unsupported,
            "grid_sample of ", x, ", at most 2^31 elements an axis are supported");
    require(job.grid->view.shape.back() == static_cast<int64_t>(job.axes()),
            ErrorCode::InvalidArgument, "grid_sample of ", x, " with a grid ", job.grid->view.shape,
            ", expected ", job.axes(), " coordinates a position");
    out.launches.push_back(sample_launch(p, job, t.as<Sample>()->channels));
    return out;
}

/// A warp's instructions: those of a position, and those of each vector of channels.
double warp_instructions(const SampleJob& job, int64_t k) {
    double taps = job.taps();
    double axis = 16 + taps * (job.attrs.mode == "cubic" ? 16 : 7);
    axis += job.attrs.padding == "reflection" ? 16 * (1 + taps) : 0;
    double position = 40 + static_cast<double>(job.axes()) * axis;
    double vector = job.reads() * (5 + 1.5 * job.vector) + 8 + 2 * job.vector;
    return position + static_cast<double>(k) * vector;
}

double cost(const Problem& p, const SampleJob& job, int64_t k) {
    double result = static_cast<double>(p.out[0].view.count());
    double bytes = result * static_cast<double>(bytes_of(job.to));
    bytes += static_cast<double>(byte_size(job.grid->dtype, job.grid->view.count()));
    bytes += std::min(result * job.reads(), static_cast<double>(job.x->view.count())) *
             static_cast<double>(bytes_of(job.from));
    for (const Reading& r : job.readings) {
        bytes += r.operand != nullptr
                     ? static_cast<double>(byte_size(r.operand->dtype, r.operand->view.count()))
                     : 0;
    }
    double units = result / static_cast<double>(job.vectors * job.vector);
    double warps = units * static_cast<double>(div_up(job.vectors, k)) / 32;
    double share = std::max(1.0, warps / (4.0 * p.arch.sms)); // of a scheduler
    constexpr double instructions_per_us = 1500;
    double issue = share * warp_instructions(job, k) / instructions_per_us;
    return 1.5 + std::max(issue, bytes / (p.arch.dram_gbs * 1e3));
}

std::vector<Tactic> tactics(const Problem& p) {
    SampleJob job = sample_job(p);
    int64_t most = (job.reads() > 8 ? 8 : 16) / job.vector; // elements of a thread
    std::vector<Tactic> out;
    for (int k = 1; k == 1 || (k <= most && k < 2 * job.vectors); k *= 2) {
        out.push_back(make_tactic(Sample{k}, cost(p, job, k)));
    }
    std::stable_sort(out.begin(), out.end(), cheaper);
    return out;
}

bool is_single_or_half(DType t) {
    return t == DType::F32 || t == DType::F16 || t == DType::BF16;
}

std::optional<std::string> refuse(const Group& group) {
    if (auto why = refuse_rows(group)) {
        return why;
    }
    const Node& n = group.first();
    const Type& x = group.graph.type(n.inputs[0]);
    const Type& grid = group.graph.type(n.inputs[1]);
    if (!is_single_or_half(x.dtype) || !is_single_or_half(grid.dtype)) {
        return str("elements are ", x.dtype, " and ", grid.dtype);
    }
    size_t axes = x.dims.size() - 2;
    return axes > most_axes || (axes == most_axes && n.as<ops::GridSample>().mode == "cubic")
               ? std::optional(str(n.as<ops::GridSample>().mode, " over ", axes, " axes"))
               : std::nullopt;
}

/// The result in the order of x.
void layout(LayoutArgs& args) {
    int x = args.group.input_index(args.group.first().inputs[0]);
    if (auto order = plan::memory_order(args.in[static_cast<size_t>(x)])) {
        args.order[0] = *order;
    }
}

const Family rows[] = {{.name = "grid_sample",
                        .refuse = refuse,
                        .layout = layout,
                        .tactics = tactics,
                        .emit = emit,
                        .strided_results = true,
                        .takes_groups = true}};

} // namespace

extern const FamilyTable grid_sample_families;
const FamilyTable grid_sample_families = rows;

} // namespace ingot::kernels
