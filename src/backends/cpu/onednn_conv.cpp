// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/onednn_conv.h"

#include "backends/cpu/epilogue.h"
#include "backends/cpu/onednn_library.h"
#include "backends/cpu/post_ops.h"

#include <algorithm>
#include <numeric>

namespace ingot::cpu {

namespace {

using onednn::Array;
using onednn::Problem;
using onednn::Work;

void set_axes(Problem& p, const std::vector<SpatialAxis>& axes) {
    for (size_t i = 0; i < axes.size(); ++i) {
        const SpatialAxis& a = axes[i];
        p.axes[i] = {a.size, a.stride, a.dilation, a.low, a.high};
    }
}

/// Whether oneDNN supports the shapes.
bool serves(const Operand& x, const Operand& out, const std::vector<SpatialAxis>& axes) {
    auto positive = [](int64_t n) { return n > 0; };
    const Shape& in = x.view.shape;
    const Shape& to = out.view.shape;
    return !axes.empty() && axes.size() <= static_cast<size_t>(onednn::most_spatial_axes) &&
           std::all_of(in.begin(), in.end(), positive) &&
           std::all_of(to.begin(), to.end(), positive) &&
           std::all_of(axes.begin(), axes.end(),
                       [](const SpatialAxis& a) { return a.low >= 0 && a.high >= 0; });
}

bool runs_backwards(const View& v) {
    return std::any_of(v.strides.begin(), v.strides.end(), [](int64_t s) { return s < 0; });
}

/// The axes as oneDNN gets them. It takes positions along the last one in blocks, so that an image
/// of width 1 would be computed one position at a time: axes of one position go before the others.
/// Both orders are the same memory, since the channels are last.
Shape axes_for_library(const std::vector<SpatialAxis>& axes) {
    Shape perm(axes.size() + 2);
    std::iota(perm.begin(), perm.end(), 0);
    std::stable_partition(perm.begin() + 2, perm.end(), [&](int64_t i) {
        const SpatialAxis& a = axes[static_cast<size_t>(i) - 2];
        return a.in == 1 && a.out == 1;
    });
    return perm;
}

ConvProblem permuted(const ConvProblem& c, const Shape& perm) {
    ConvProblem out = c;
    for (Operand* o : {&out.x, &out.w, &out.out}) {
        o->view = plan::permuted(o->view, perm);
    }
    for (size_t i = 0; i < c.axes.size(); ++i) {
        out.axes[i] = c.axes[static_cast<size_t>(perm[i + 2]) - 2];
    }
    return out;
}

/// Weights as [(groups,) O, I, spatial...]; those of a transposed convolution are [I, O,
/// spatial...].
Array weights_of(const ConvProblem& p, Work work) {
    Shape shape = p.w.view.shape;
    Shape strides = runs_backwards(p.w.view) ? plan::dense(shape).strides : p.w.view.strides;
    if (work == Work::ConvTranspose) {
        int64_t group = shape[0] / p.groups * strides[0];
        shape[0] /= p.groups;
        std::swap(shape[0], shape[1]);
        std::swap(strides[0], strides[1]);
        if (p.groups > 1) {
            shape.insert(shape.begin(), p.groups);
            strides.insert(strides.begin(), group);
        }
    } else if (p.groups > 1) {
        shape[0] /= p.groups;
        int64_t group = shape[0] * strides[0];
        shape.insert(shape.begin(), p.groups);
        strides.insert(strides.begin(), group);
    }
    int64_t reach = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
        reach = std::max(reach, shape[i] * strides[i]);
    }
    for (size_t i = 0; i < shape.size(); ++i) {
        strides[i] = shape[i] == 1 ? reach : strides[i];
    }
    return strided_array(p.w.dtype, shape, strides);
}

/// An operand with the result's shape and order, or one element per channel, or a single element.
std::optional<Array> operand_of(const Operand& o, const Order& order) {
    const View& v = o.view;
    if (plan::is_dense(v, order)) {
        return dense_array(o.dtype, v.shape, order);
    }
    Shape sizes(v.shape.size(), 1);
    for (size_t i = 0; i < v.shape.size(); ++i) {
        if (v.shape[i] == 1 || v.strides[i] == 0) {
            continue;
        }
        if (i != 1 || v.strides[i] != 1) {
            return std::nullopt;
        }
        sizes[i] = v.shape[i];
    }
    return dense_array(o.dtype, sizes, plan::row_major(v.rank()));
}

bool one_per_channel(const Array& a) {
    for (int i = 0; i < a.rank; ++i) {
        if (i != 1 && a.sizes[i] != 1) {
            return false;
        }
    }
    return true;
}

/// Adds the post-ops; false when oneDNN cannot read the layout of an operand.
bool add_posts(LibraryProblem& p, const Posts& posts, const Order& order) {
    for (size_t i = 0; i < posts.steps.size(); ++i) {
        const PostStep& s = posts.steps[i];
        onednn::Post post = {s.function, s.alpha, s.beta, {}};
        const Operand& from = posts.operands[i];
        if (s.input >= 0) {
            std::optional<Array> operand = operand_of(from, order);
            if (!operand) {
                return false;
            }
            bool is_bias = i == 0 && s.function == onednn::Function::Add &&
                           one_per_channel(*operand) && operand->sizes[1] == p.problem.out.sizes[1];
            if (is_bias) {
                p.problem.has_bias = true;
                p.bias = from;
                continue;
            }
            post.operand = *operand;
        }
        p.problem.posts[p.problem.post_count++] = post;
        p.posts.push_back(from);
    }
    return true;
}

LibraryProblem problem_of(const ConvProblem& c, Work work) {
    LibraryProblem p;
    Order order = plan::channels_last(c.x.view.rank());
    p.problem.work = work;
    p.problem.x = dense_array(c.x.dtype, c.x.view.shape, order);
    p.problem.out = dense_array(c.out.dtype, c.out.view.shape, order);
    p.problem.w = weights_of(c, work);
    p.problem.constant_w = c.w_constant != nullptr;
    p.problem.groups = c.groups;
    set_axes(p.problem, c.axes);
    p.x = c.x;
    p.w = c.w;
    p.out = c.out;
    p.w_constant = c.w_constant;
    p.w_copied = runs_backwards(c.w.view);
    return p;
}

/// Whether oneDNN may apply the functions behind the sums. Its transposed convolutions with steps
/// apply them to parts of a sum where channels times window exceed its blocks (wrong from 512 x 16
/// on with AVX2), so those whose windows overlap get none, whatever their size.
bool takes_posts(const ConvProblem& c, Work work) {
    return work != Work::ConvTranspose ||
           std::all_of(c.axes.begin(), c.axes.end(), [](const SpatialAxis& a) {
               return a.stride == 1 || (a.size - 1) * a.dilation + 1 <= a.stride;
           });
}

std::unique_ptr<Step> make_library(const ConvProblem& conv, Work work, const StepArgs& args) {
    Shape axes = axes_for_library(conv.axes);
    ConvProblem c = permuted(conv, axes);
    DType sums = c.x.dtype == DType::F32 ? DType::F32 : DType::I32;
    if (!serves(c.x, c.out, c.axes) || !library_multiplies(c.x.dtype, c.w.dtype) ||
        c.out.dtype != sums || (c.w_constant == nullptr && runs_backwards(c.w.view))) {
        return nullptr;
    }
    Order order = plan::channels_last(c.x.view.rank());
    std::optional<Posts> posts = takes_posts(c, work) ? posts_of(args) : std::nullopt;
    if (posts) {
        ConvProblem whole = c;
        whole.out = args.out[0];
        whole.out.view = plan::permuted(whole.out.view, axes);
        for (size_t i = 0; i < posts->steps.size(); ++i) {
            if (posts->steps[i].input >= 0) {
                posts->operands[i].view = plan::permuted(posts->operands[i].view, axes);
            }
        }
        LibraryProblem p = problem_of(whole, work);
        if (add_posts(p, *posts, order)) {
            if (std::unique_ptr<Step> step = make_library_step(p, args)) {
                return step;
            }
        }
    }
    std::unique_ptr<Step> step = make_library_step(problem_of(c, work), args);
    return step == nullptr ? nullptr : with_epilogue(std::move(step), args, order);
}

} // namespace

std::unique_ptr<Step> make_library_conv(const ConvProblem& c, const StepArgs& args) {
    return make_library(c, Work::Conv, args);
}

std::unique_ptr<Step> make_library_conv_transpose(const ConvProblem& c, const StepArgs& args) {
    return make_library(c, Work::ConvTranspose, args);
}

std::unique_ptr<Step> make_library_pool(PoolKind kind, const std::vector<SpatialAxis>& axes,
                                        const StepArgs& args) {
    const Operand& x = args.in[0];
    const Operand& out = args.out[0];
    // A window that lies entirely in the padding has no maximum and no average.
    bool reaches = std::all_of(axes.begin(), axes.end(), [](const SpatialAxis& a) {
        int64_t last = (a.out - 1) * a.stride - a.low;
        return a.low <= (a.size - 1) * a.dilation && last < a.in;
    });
    if (x.dtype != DType::F32 || out.dtype != DType::F32 || !serves(x, out, axes) || !reaches) {
        return nullptr;
    }
    LibraryProblem p;
    Order order = plan::channels_last(x.view.rank());
    p.problem.work = kind == PoolKind::Max       ? Work::MaxPool
                     : kind == PoolKind::Average ? Work::AveragePool
                                                 : Work::AveragePoolWithPadding;
    p.problem.x = dense_array(x.dtype, x.view.shape, order);
    p.problem.out = dense_array(out.dtype, out.view.shape, order);
    set_axes(p.problem, axes);
    p.x = x;
    p.out = out;
    return make_library_step(p, args);
}

} // namespace ingot::cpu
