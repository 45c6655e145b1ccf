// SPDX-License-Identifier: Apache-2.0
// trtexec: tensors as text, as files, and compared with expected ones.
#include "api/options/build.h"
#include "api/options/measure.h"
#include "base/error.h"
#include "base/file.h"
#include "base/page_guard.h"
#include "common.h"
#include "plan/run_settings.h"
#include "trtexec.h"
#include "workflow/compare/tensor_difference.h"
#include "workflow/inputs/npy.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace ingot::tool {

namespace {

std::string six_digits(double v) {
    char text[40];
    std::snprintf(text, sizeof(text), "%g", v);
    return text;
}

std::string element(const Tensor& t, int64_t i) {
    if (!is_float(t.dtype())) {
        return str(t.get_i64(i));
    }
    return six_digits(t.get_f64(i));
}

std::string values(const Tensor& t) {
    std::string out;
    for (int64_t i = 0; i < t.count(); ++i) {
        append(out, str(i == 0 ? "" : " ", element(t, i)));
    }
    return out;
}

/// Invalid characters of a file name become '_'.
std::string file_name(std::string_view tensor) {
    std::string out;
    for (char c : tensor) {
        bool bad = c == '/' || c == '\\' || c == ':' || static_cast<unsigned char>(c) < 32;
        out += bad ? '_' : c;
    }
    return out.empty() || out[0] == '.' ? "_" + out : out;
}

/// TensorRT's type names.
std::string_view type_name(DType t) {
    switch (t) {
    case DType::F32:
        return "Float";
    case DType::F16:
        return "Half";
    case DType::BF16:
        return "BFloat16";
    case DType::I8:
        return "Int8";
    case DType::U8:
        return "UInt8";
    case DType::I32:
        return "Int32";
    case DType::I64:
        return "Int64";
    case DType::Bool:
        return "Bool";
    default:
        return name(t);
    }
}

void dump_one(std::string_view tensor, std::string_view kind, const Tensor& t,
              const IoFormat& format) {
    std::string dims;
    for (int64_t d : t.shape()) {
        append(dims, str(dims.empty() ? "" : ".", d));
    }
    std::string path = str(file_name(tensor), ".", kind, ".", dims, dims.empty() ? "" : ".",
                           type_name(t.dtype()), ".raw");
    write_file(path, to_storage(format, t).bytes());
    info(str("Writing file for ", kind, " tensor ", tensor, " to: ", path));
}

std::string summary(std::string_view tensor, const Tensor& t) {
    double low = 0;
    double high = 0;
    double sum = 0;
    int64_t odd = 0;
    for (int64_t i = 0; i < t.count(); ++i) {
        double v = t.get_f64(i);
        odd += std::isfinite(v) ? 0 : 1;
        low = i == 0 ? v : std::min(low, v);
        high = i == 0 ? v : std::max(high, v);
        sum += v;
    }
    char text[160];
    std::snprintf(text, sizeof(text), " min %g max %g mean %g, %lld not finite", low, high,
                  t.count() > 0 ? sum / static_cast<double>(t.count()) : 0.0,
                  static_cast<long long>(odd));
    return str("Debug tensor ", tensor, " ", t.dtype(), " ", shape_text(t.shape()), ":", text);
}

void save_as(const std::string& format, std::string_view tensor, const Tensor& t) {
    if (format == "summary") {
        info(summary(tensor, t));
    } else if (format == "numpy") {
        write_npy(file_name(tensor) + ".npy", t);
    } else if (format == "raw") {
        write_file(file_name(tensor) + ".raw", t.bytes());
    } else {
        write_file(file_name(tensor) + ".txt",
                   str(tensor, ": (", shape_text(t.shape()), ")\n", values(t), "\n"));
    }
}

std::vector<std::string> debug_formats(const std::string& list) {
    std::vector<std::string> formats = parse_names(list);
    for (const std::string& f : formats) {
        require(f == "summary" || f == "numpy" || f == "string" || f == "raw",
                ErrorCode::InvalidArgument, "--saveAllDebugTensors=", list, ": '", f,
                "': expected summary, numpy, string or raw");
    }
    return formats;
}

/// |a - b|: 0 for equal infinities, infinite for NaN and unequal infinities.
double distance(double a, double b) {
    return is_mismatch(a, b) ? HUGE_VAL : a == b ? 0 : std::abs(a - b);
}

double l0(const Tensor& a, const Tensor& b, double atol, double rtol) {
    int64_t outside = 0;
    for (int64_t i = 0; i < a.count(); ++i) {
        double limit = atol + rtol * std::abs(b.get_f64(i));
        double d = distance(a.get_f64(i), b.get_f64(i));
        outside += d == 0 || (d <= limit && std::isfinite(d)) ? 0 : 1;
    }
    return static_cast<double>(outside) / static_cast<double>(std::max<int64_t>(1, a.count()));
}

/// 0 for equal tensors, larger for larger differences; except for l0, infinite where one element is
/// NaN.
double difference(const Options& o, const Tensor& a, const Tensor& b) {
    if (o.measure().accuracy_algorithm == "l0") {
        return l0(a, b, o.measure().accuracy_atol, o.measure().accuracy_rtol);
    }
    double absolute = 0;
    double squared = 0;
    double largest = 0;
    double dot = 0;
    double aa = 0;
    double bb = 0;
    for (int64_t i = 0; i < a.count(); ++i) {
        double x = a.get_f64(i);
        double y = b.get_f64(i);
        double d = distance(x, y);
        absolute += d;
        squared += d * d;
        largest = std::max(largest, d);
        bool finite = std::isfinite(x) && std::isfinite(y);
        dot += finite ? x * y : 0;
        aa += finite ? x * x : 0;
        bb += finite ? y * y : 0;
    }
    auto n = static_cast<double>(std::max<int64_t>(1, a.count()));
    double cosine = aa == 0 && bb == 0 ? 1 : dot / std::sqrt(aa * bb);
    double result = o.measure().accuracy_algorithm == "l1"    ? absolute / n
                    : o.measure().accuracy_algorithm == "l2"  ? squared / n
                    : o.measure().accuracy_algorithm == "cos" ? 1 - cosine
                                                              : largest;
    return std::isfinite(result) && std::isfinite(largest) ? result : HUGE_VAL;
}

/// A raw file holds the output's bytes.
Tensor read_reference(const std::string& path, const std::string& output, const Tensor& like,
                      const IoFormat& format) {
    if (path.ends_with(".npy")) {
        Tensor t = read_npy(path);
        require(t.shape() == like.shape(), ErrorCode::InvalidArgument, path, " has shape ",
                shape_text(t.shape()), ", output '", output, "' has ", shape_text(like.shape()));
        return t;
    }
    auto file = MappedFile::open(path);
    Shape shape = storage_shape(format, like.shape());
    auto want = static_cast<size_t>(byte_size(like.dtype(), count_of(shape)));
    require(file->bytes().size() == want, ErrorCode::InvalidArgument, path, " has ",
            file->bytes().size(), " bytes, output '", output, "' has ", want);
    Tensor t = from_storage(format, Tensor::wrap(like.dtype(), shape, file->bytes(), nullptr),
                            like.shape())
                   .clone();
    check_pages(file->bytes());
    return t;
}

} // namespace

void print_outputs(const Graph& g, const std::vector<Tensor>& outputs) {
    info("Output Tensors:");
    for (size_t i = 0; i < outputs.size(); ++i) {
        info(str(g.output_names()[i], ": (", shape_text(outputs[i].shape()), ")"));
        info(values(outputs[i]));
    }
}

void dump_raw(const Engine& engine, const std::vector<Tensor>& inputs,
              const std::vector<Tensor>& outputs) {
    const Graph& g = engine.graph();
    info("Dumping I/O Bindings to RAW Files:");
    for (size_t i = 0; i < inputs.size(); ++i) {
        dump_one(g.value_name(g.inputs()[i]), "input", inputs[i], engine.formats().input(i));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
        dump_one(g.output_names()[i], "output", outputs[i], engine.formats().output(i));
    }
}

void save_debug_tensors(const Options& o, Context& context, const std::vector<Tensor>& inputs) {
    std::map<std::string, std::string, std::less<>> files;
    for (auto& [name, file] : parse_files("--saveDebugTensors", o.measure().save_debug)) {
        files[name] = file;
    }
    std::vector<std::string> formats = debug_formats(o.measure().save_all_debug);
    std::vector<std::string> marked = parse_names(o.build().mark_debug);
    std::set<std::string, std::less<>> wanted(marked.begin(), marked.end());
    std::map<std::string, Tensor, std::less<>> seen;
    bool all = o.build().mark_all_debug || (marked.empty() && !formats.empty());
    context.execution().change([&](RunSettings& changed) {
        changed.observer = [&](const ObservedValue& v) {
            if (all || wanted.count(v.name) != 0 || files.count(v.name) != 0) {
                seen[std::string(v.name)] = v.tensor.clone();
            }
        };
    });
    std::vector<Tensor> outputs = context.run(inputs);
    context.execution().change([&](RunSettings& changed) { changed.observer = nullptr; });
    const Graph& g = context.engine().graph();
    for (size_t i = 0; i < outputs.size(); ++i) { // including those of --markDebug
        const std::string& name = g.output_names()[i];
        if (wanted.count(name) != 0 || files.count(name) != 0) {
            seen[name] = outputs[i];
        }
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
        const std::string& name = g.value_name(g.inputs()[i]);
        if (wanted.count(name) != 0 || files.count(name) != 0) {
            seen[name] = inputs[i];
        }
    }
    for (const auto& [name, tensor] : seen) {
        auto file = files.find(name);
        if (file != files.end()) {
            file->second.ends_with(".npy") ? write_npy(file->second, tensor)
                                           : write_file(file->second, tensor.bytes());
        }
        for (const std::string& f :
             all || wanted.count(name) != 0 ? formats : std::vector<std::string>()) {
            save_as(f, name, tensor);
        }
    }
    for (const auto& [name, file] : files) {
        wanted.insert(name);
    }
    for (const std::string& name : wanted) {
        if (seen.count(name) == 0) {
            warning(str("debug tensor '", name,
                        "' does not occur: there is no such tensor, or it became part of a larger "
                        "layer; build the engine with --markDebug=",
                        name));
        }
    }
}

void check_accuracy(const TrtexecOptions& t, Context& context, const InputSource& source) {
    const Graph& g = context.engine().graph();
    std::string failed;
    for (size_t p = 0; p < t.pairs.size() && !t.pairs[p].outputs.empty(); ++p) {
        InputSource own = source;
        own.files = parse_files("--loadInputs", t.pairs[p].inputs);
        std::vector<Tensor> outputs =
            context.run(trtexec_load_inputs(t, context.engine(), own).tensors);
        for (const auto& [name, file] : parse_files("--loadRefOutputs", t.pairs[p].outputs)) {
            const std::vector<std::string>& names = g.output_names();
            auto it = std::find(names.begin(), names.end(), name);
            require(it != names.end(), ErrorCode::InvalidArgument,
                    "--loadRefOutputs: there is no output '", name,
                    "'; outputs: ", join(names, ", "));
            auto index = static_cast<size_t>(it - names.begin());
            const Tensor& actual = outputs[index];
            Tensor expected =
                read_reference(file, name, actual, context.engine().formats().output(index));
            double loss = difference(t.o, actual, expected);
            std::string odd = mismatches(actual, expected).text;
            std::string text = str(six_digits(loss), odd.empty() ? "" : "; ", odd);
            info(str("Accuracy loss for tensor ", name, " of pair ", p, " (",
                     t.o.measure().accuracy_algorithm, "): ", text));
            if (!(loss <= t.o.measure().accuracy_threshold)) {
                append(failed, str(failed.empty() ? "" : ", ", name, " of pair ", p, " by ", text));
            }
        }
    }
    require(failed.empty(), ErrorCode::InvalidArgument,
            "outputs differ from the expected ones by more than --accuracyThreshold=",
            t.o.measure().accuracy_threshold, ": ", failed);
}

} // namespace ingot::tool
