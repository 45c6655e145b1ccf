// SPDX-License-Identifier: Apache-2.0
// Family grid_sample: an image of one to three axes at the positions of a grid, any strides, with a
// map over the result; or the sum of the samples of one or more images, each times a weight that
// all channels share, over the last axis of their grids (deformable attention). A thread computes a
// position's neighbours and weights once, and uses them for some vectors of channels; where
// channels are innermost, the threads of a position are neighbours. Traffic: grids, weights and
// result once; of the images what is read, from caches if positions are close.
#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/grid_sample/sample_job.h"
#include "kernels/pointwise/index_text.h"
#include "kernels/reduce/reduce_rows.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace ingot::kernels {

namespace {

constexpr int64_t most_unrolled = 96; // about the instructions of a loop, in 4
constexpr int64_t most_vectors = 8;   // of a thread of a sum

struct Sample {
    static constexpr std::string_view pattern = "sample_c{channels}";
    int channels = 1; // vectors of channels of a thread
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("channels", self.channels);
    }
};

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
        return offset_by(s, name, strides.size(), [&](size_t d) {
            if (strides[d] == 0) {
                return std::string("0");
            }
            std::string by = str(name, "_s", d);
            s.offset(by, strides[d]);
            return by;
        });
    }
    /// The same; `stride` gives the name of an axis' stride.
    std::string offset_by(const Signature& s, const std::string& name, size_t axes,
                          const std::function<std::string(size_t)>& stride) const {
        std::vector<std::string> at;
        std::vector<std::string> by;
        for (size_t d = 0; d < axes; ++d) {
            if (d != channel_axis && !names_[d].empty()) {
                at.push_back(names_[d]);
                by.push_back(stride(d));
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

/// Parameters of the images, of which the statements declare those of image `i`.
class ImageText {
public:
    ImageText(const SampleJob& job, Signature& s) : job_(job), s_(s) {}

    template <class Get>
    std::string offset(const std::string& name, Get get) {
        return number(s_.offset_type(), name, get);
    }
    template <class Get>
    std::string size(const std::string& name, Get get) {
        return number("i32", name, get);
    }
    std::string pointer(const std::string& type, const std::string& name, bool grid) {
        for (size_t i = 0; i < job_.images.size(); ++i) {
            s_.pointer(type, str(name, i), grid ? *job_.images[i].grid : *job_.images[i].x);
        }
        return choose(type, name);
    }
    std::string declarations;

private:
    template <class Get>
    std::string number(std::string_view type, const std::string& name, Get get) {
        int64_t first = get(job_.images[0]);
        bool same = std::all_of(job_.images.begin(), job_.images.end(),
                                [&](const Image& i) { return get(i) == first; });
        for (size_t i = 0; i < (same ? 1 : job_.images.size()); ++i) {
            std::string own = same ? name : str(name, i);
            int64_t v = get(job_.images[i]);
            type == "i32" ? s_.i32(own, v) : s_.i64(own, v);
        }
        return same ? name : choose(std::string("const ") += type, name);
    }
    std::string choose(const std::string& type, const std::string& name) {
        append(declarations, str(type, " ", name, " = "));
        size_t last = job_.images.size() - 1;
        for (size_t i = 0; i < last; ++i) {
            append(declarations, str("i == ", i, " ? ", name, i, " : "));
        }
        append(declarations, str(name, last, ";\n"));
        return name;
    }

    const SampleJob& job_;
    Signature& s_;
};

/// Statements that find the neighbours of a position: AxisTaps t0, t1, ... and their offsets o0,
/// o1, ... `at`: the offset of its coordinates.
std::string taps_text(const SampleJob& job, ImageText& images, const std::string& at,
                      std::string_view offset) {
    size_t n = job.axes();
    int taps = job.taps();
    images.offset("along_grid", [n](const Image& i) { return i.grid->view.strides[n + 1]; });
    std::string constants = str("sample_", job.attrs.mode, ", pad_", job.attrs.padding, ", ",
                                job.attrs.align_corners ? "true" : "false");
    std::string out;
    for (size_t d = 0; d < n; ++d) {
        std::string size =
            images.size(str("size_", d), [d](const Image& i) { return i.x->view.shape[d + 2]; });
        std::string stride = images.offset(
            str("stride_", d), [d](const Image& i) { return i.x->view.strides[d + 2]; });
        append(out,
               str("AxisTaps<", taps, "> t", d, ";\nset_taps<", constants, ">(t", d,
                   ", widen(grid[", at, " + ", n - 1 - d, " * along_grid]), ", size, ");\n", offset,
                   " o", d, "[", taps, "];\n#pragma unroll\nfor (int j = 0; j < ", taps, "; ++j) o",
                   d, "[j] = (", offset, ")t", d, ".at[j] * ", stride, ";\n"));
    }
    return out;
}

/// Adds the neighbours of K vectors of channels to `sum`, times `factor` if there is one.
std::string add_text(const SampleJob& job, const Places& places, std::string_view factor,
                     std::string_view offset) {
    std::string out =
        str("#pragma unroll\nfor (int k = 0; k < K; ++k) {\nconst ", offset, " c = min((", offset,
            ")", places.channel(), " + k * (", offset, ")chunks, (", offset,
            ")vectors - 1) * V;\nconst X* from = image + at_x + c * channels;\n");
    std::string at;
    std::string weight(factor);
    std::string ends;
    for (size_t i = 0; i < job.axes(); ++i) {
        append(out, str("#pragma unroll\nfor (int j", i, " = 0; j", i, " < ", job.taps(), "; ++j",
                        i, ") {\n"));
        append(at, str(i > 0 ? " + " : "", "o", i, "[j", i, "]"));
        append(weight, str(weight.empty() ? "" : " * ", "t", i, ".weight[j", i, "]"));
        append(ends, std::string("}\n"));
    }
    append(out, str("const float w = ", weight, ";\nX a[V];\nload_pack<X, V>(a, from + (", at,
                    "));\n#pragma unroll\nfor (int v = 0; v < V; ++v) sum[k][v] += w * "
                    "widen(a[v]);\n",
                    ends, "}\n"));
    return out;
}

/// Statements that add the samples of a position of image `i`, or of all that a sum has of it.
std::string image_text(const SampleJob& job, const Places& places, Signature& s, int64_t k) {
    ImageText images(job, s);
    std::string_view offset = s.offset_type();
    size_t rank = job.images[0].grid->view.strides.size();
    size_t axes = job.parts.is_sum() ? rank - 1 : rank; // of the result
    images.pointer("const X*", "image", false);
    images.pointer("const G*", "grid", true);
    images.offset("channels", [](const Image& i) { return i.x->view.strides[channel_axis]; });
    std::string body = places.offset_by(s, "at_x", axes, [&](size_t d) {
        return d > 0 ? std::string("0")
                     : images.offset("batch", [](const Image& i) { return i.x->view.strides[0]; });
    });
    // The result's axes are the grid's, behind the channels.
    append(body, places.offset_by(s, "at_grid", axes, [&](size_t d) {
        return images.offset(str("step_", d), [d](const Image& i) {
            return i.grid->view.strides[d == 0 ? 0 : d - 1];
        });
    }));
    if (!job.parts.is_sum()) {
        append(body,
               str(taps_text(job, images, "at_grid", offset), add_text(job, places, "", offset)));
        return images.declarations + body;
    }
    images.offset("next", [rank](const Image& i) { return i.grid->view.strides[rank - 2]; });
    images.size("first", [](const Image& i) { return i.first; });
    images.size("positions", [](const Image& i) { return i.positions; });
    std::string taps = taps_text(job, images, "at_place", offset);
    int64_t own = k * job.reads() * (job.vector + 3);
    uint64_t turns =
        std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(most_unrolled / own, 1, 4)));
    return str("#pragma unroll 1\nfor (int i = 0; i < ", job.images.size(), "; ++i) {\n",
               images.declarations, body, "#pragma unroll ", turns,
               "\nfor (int p = 0; p < positions; ++p) {\nconst ", offset,
               " at_place = at_grid + p * next;\nconst float factor = widen(weights[at_weight + "
               "(first + p) * next_weight]);\n",
               taps, add_text(job, places, "factor", offset), "}\n}\n");
}

/// Statements that add up all samples in `sum`.
std::string sum_text(const Problem& p, const SampleJob& job, const Places& places, Signature& s,
                     int64_t k) {
    std::string out = "float sum[K][V];\n#pragma unroll\nfor (int k = 0; k < K; ++k)\n#pragma "
                      "unroll\nfor (int v = 0; v < V; ++v) sum[k][v] = 0.0f;\n";
    if (job.parts.is_sum()) {
        const Operand& w = p.operand(job.parts.weights());
        s.pointer(str("const ", c_type(w.dtype), "*"), "weights", w);
        s.offset("next_weight", job.weights.strides.back());
        Shape strides = job.weights.strides;
        strides.pop_back();
        append(out, places.offset(s, "at_weight", strides));
    }
    return out + image_text(job, places, s, k);
}

/// Statements that make element v of the result, `r[v]`, from `sum[k][v]`.
std::string element_text(const SampleJob& job) {
    if (job.parts.map == nullptr) {
        return "r[v] = narrow<Y>(sum[k][v]);\n";
    }
    std::vector<std::string> inputs;
    for (size_t k = 0; k < job.readings.size(); ++k) {
        const Reading& r = job.readings[k];
        inputs.push_back(r.operand == nullptr
                             ? std::string("sum[k][v]")
                             : str("widen(q", k, r.stride == 0 ? "[0]" : "[v]", ")"));
    }
    ExprText e = expr_text(job.parts.map->as<Map>().body, inputs);
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
    s.pointer("Y*", "y", y);
    s.size("n", places.count()).size("chunks", chunks).size("vectors", job.vectors);
    s.offset("result_stride", y.view.strides[channel_axis]);
    places.index().add(s);
    std::string body = places.offset(s, "at_y", y.view.strides);
    for (size_t i = 0; i < job.readings.size(); ++i) {
        if (const Reading& r = job.readings[i]; r.operand != nullptr) {
            s.pointer(str("const ", c_type(r.operand->dtype), "*"), str("p", i), *r.operand);
            s.offset(str("along_", i), r.stride);
            append(body, places.offset(s, str("at_", i), r.view.strides));
        }
    }
    append(body, sum_text(p, job, places, s, k));
    std::string_view offset = s.offset_type();
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
                            " Y;\ntypedef ", c_type(job.images[0].grid->dtype), " G;\n");
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
    for (const Image& image : job.images) {
        const Shape& x = image.x->view.shape;
        const Shape& grid = image.grid->view.shape;
        if (image.grid->view.count() == 0) {
            continue;
        }
        require(image.x->view.count() > 0, ErrorCode::InvalidArgument, "grid_sample of ", x,
                ": there are no elements to read");
        require(*std::max_element(x.begin(), x.end()) < INT32_MAX, ErrorCode::Unsupported,
                "grid_sample of ", x, ", at most 2^31 elements an axis are supported");
        require(grid.back() == static_cast<int64_t>(job.axes()), ErrorCode::InvalidArgument,
                "grid_sample of ", x, " with a grid ", grid, ", expected ", job.axes(),
                " coordinates a position");
    }
    out.launches.push_back(sample_launch(p, job, t.as<Sample>()->channels));
    return out;
}

/// A warp's instructions: those of a position, and those of each vector of channels.
double warp_instructions(const SampleJob& job, int64_t k) {
    double taps = job.taps();
    double axis = 16 + taps * (job.attrs.mode == "cubic" ? 16 : 7);
    axis += job.attrs.padding == "reflection" ? 16 * (1 + taps) : 0;
    double position = 8 + static_cast<double>(job.axes()) * axis;
    double vector = job.reads() * (5 + 1.5 * job.vector);
    double store = 8 + 2 * job.vector;
    auto vectors = static_cast<double>(k);
    return 32 + static_cast<double>(job.positions()) * (position + vectors * vector) +
           vectors * store;
}

double cost(const Problem& p, const SampleJob& job, int64_t k) {
    auto result = static_cast<double>(p.out[0].view.count());
    double bytes = result * static_cast<double>(bytes_of(job.to));
    for (const Image& image : job.images) {
        double read = result * static_cast<double>(image.positions) * job.reads();
        bytes += static_cast<double>(byte_size(image.grid->dtype, image.grid->view.count()));
        bytes += std::min(read, static_cast<double>(image.x->view.count())) *
                 static_cast<double>(bytes_of(job.from));
    }
    for (size_t i = 2 * job.images.size(); i < p.in.size(); ++i) {
        bytes += static_cast<double>(byte_size(p.in[i].dtype, p.in[i].view.count()));
    }
    double units = result / static_cast<double>(job.vectors * job.vector);
    double warps = units * static_cast<double>(div_up(job.vectors, k)) / 32;
    double share = std::max(1.0, warps / (4.0 * p.arch.sms)); // of a scheduler
    constexpr double instructions_per_us = 1500;
    double issue = share * warp_instructions(job, k) / instructions_per_us;
    // A thread waits for the grid, then for the image, about once each two positions.
    double waits = job.parts.is_sum() ? 0.3 * static_cast<double>(job.positions()) : 0;
    return 1.5 + std::max({issue, bytes / (p.arch.dram_gbs * 1e3), waits});
}

std::vector<Tactic> tactics(const Problem& p) {
    SampleJob job = sample_job(p);
    int64_t most = (job.reads() > 8      ? 8
                    : job.parts.is_sum() ? 32
                                         : 16) /
                   job.vector; // elements of a thread
    std::vector<Tactic> out;
    most = job.parts.is_sum() ? std::min(most, most_vectors) : most;
    for (int k = 1; k == 1 || (k <= most && k < 2 * job.vectors); k *= 2) {
        out.push_back(make_tactic(Sample{k}, cost(p, job, k)));
    }
    std::stable_sort(out.begin(), out.end(), cheaper);
    return out;
}

/// The result in the order of x.
void layout(LayoutArgs& args) {
    int x = args.group.input_index(args.group.first().inputs[0]);
    if (auto order = plan::memory_order(args.in[static_cast<size_t>(x)])) {
        std::erase_if(*order,
                      [&](int axis) { return axis >= static_cast<int>(args.out[0].size()); });
        args.order[0] = *order;
    }
}

const Family rows[] = {{.name = "grid_sample",
                        .refuse = refuse_samples,
                        .layout = layout,
                        .tactics = tactics,
                        .emit = emit,
                        .strided_results = true,
                        .takes_groups = true}};

} // namespace

extern const FamilyTable grid_sample_families;
const FamilyTable grid_sample_families = rows;

} // namespace ingot::kernels
