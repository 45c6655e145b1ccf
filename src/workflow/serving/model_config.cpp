// SPDX-License-Identifier: Apache-2.0
#include "workflow/serving/model_config.h"

#include "engine/properties.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace ingot::serving {

namespace {

constexpr std::string_view first_line = "# Written by ingot export-triton; it serves version ";
constexpr size_t most_buckets = 16; // as the backend keeps

/// "" for a type that the server does not have.
std::string_view server_type(DType t) {
    switch (t) {
    case DType::Bool:
        return "TYPE_BOOL";
    case DType::I8:
        return "TYPE_INT8";
    case DType::U8:
        return "TYPE_UINT8";
    case DType::I16:
        return "TYPE_INT16";
    case DType::U16:
        return "TYPE_UINT16";
    case DType::I32:
        return "TYPE_INT32";
    case DType::U32:
        return "TYPE_UINT32";
    case DType::I64:
        return "TYPE_INT64";
    case DType::U64:
        return "TYPE_UINT64";
    case DType::F16:
        return "TYPE_FP16";
    case DType::F32:
        return "TYPE_FP32";
    case DType::F64:
        return "TYPE_FP64";
    case DType::BF16:
        return "TYPE_BF16";
    default:
        return "";
    }
}

InterfaceTensor tensor_of(const Graph& g, Value v, std::string_view what,
                          const std::string& called) {
    InterfaceTensor out;
    out.name = called;
    out.type = server_type(g.type(v).dtype);
    require(!out.type.empty(), ErrorCode::Unsupported, what, " '", out.name, "' is ",
            g.type(v).dtype,
            ", which Triton Inference Server does not have; build the engine with "
            "--inputIOFormats or --outputIOFormats of another type");
    for (const Dim& d : g.type(v).dims) {
        out.dims.push_back(d.as_const().value_or(-1));
    }
    return out;
}

bool has_open_rows(const InterfaceTensor& t) {
    return !t.dims.empty() && t.dims[0] == -1;
}

void compare(std::string_view what, const std::vector<InterfaceTensor>& served,
             const std::vector<InterfaceTensor>& next, std::vector<std::string>& out) {
    auto find = [](const std::vector<InterfaceTensor>& list, const std::string& name) {
        auto at = std::find_if(list.begin(), list.end(),
                               [&](const InterfaceTensor& t) { return t.name == name; });
        return at == list.end() ? nullptr : &*at;
    };
    for (const InterfaceTensor& t : served) {
        const InterfaceTensor* now = find(next, t.name);
        if (now == nullptr) {
            out.push_back(str(what, " '", t.name, "' is no longer there"));
        } else if (now->type != t.type || now->dims != t.dims) {
            out.push_back(str(what, " '", t.name, "' was ", t.type, t.dims, " and is ", now->type,
                              now->dims));
        } else if (t.optional && !now->optional) {
            out.push_back(str(what, " '", t.name, "' is no longer optional"));
        }
    }
    for (const InterfaceTensor& t : next) {
        if (find(served, t.name) == nullptr && !t.optional) {
            out.push_back(str(what, " '", t.name, "' is new"));
        }
    }
}

std::string list_text(const std::vector<int64_t>& numbers) {
    std::string out;
    for (int64_t n : numbers) {
        append(out, str(out.empty() ? "" : ", ", n));
    }
    return out;
}

std::string tensor_text(const InterfaceTensor& t, bool batched) {
    std::vector<int64_t> dims(t.dims.begin() + (batched ? 1 : 0), t.dims.end());
    std::string text = str("  { name: ", quote(t.name), " data_type: ", t.type, " dims: [ ",
                           dims.empty() ? "1" : list_text(dims), " ]");
    // The server refuses a tensor without sizes; without a batch the backend reads [1] as a scalar.
    return text + (dims.empty() && batched ? " reshape { shape: [ ] }" : "") +
           (t.optional ? " optional: true }" : " }");
}

std::string tensors_text(std::string_view field, const std::vector<InterfaceTensor>& tensors,
                         bool batched) {
    std::string out = str(field, " [\n");
    for (size_t i = 0; i < tensors.size(); ++i) {
        append(out, str(tensor_text(tensors[i], batched), i + 1 < tensors.size() ? ",\n" : "\n"));
    }
    return out + "]\n";
}

std::string group_text(const Placement& p) {
    if (p.kind == Placement::Kind::Auto && p.instances == 0) {
        return "";
    }
    std::array<std::string_view, 3> kinds = {"KIND_AUTO", "KIND_CPU", "KIND_GPU"};
    std::string out = str("instance_group [ { kind: ", kinds.at(static_cast<size_t>(p.kind)));
    if (p.instances > 0) {
        append(out, str(" count: ", p.instances));
    }
    std::vector<int64_t> gpus(p.gpus.begin(), p.gpus.end());
    if (!gpus.empty()) {
        append(out, str(" gpus: [ ", list_text(gpus), " ]"));
    }
    return out + " } ]\n";
}

std::string warm_up_text(const ServedModel& model, const Interface& interface) {
    std::string out = str("model_warmup [ { name: \"one request\" batch_size: ",
                          std::min<int64_t>(model.max_batch, 1), "\n");
    for (const InterfaceTensor& t : interface.inputs) {
        if (t.optional) {
            continue;
        }
        std::vector<int64_t> dims(t.dims.begin() + (model.max_batch > 0 ? 1 : 0), t.dims.end());
        require(std::count(dims.begin(), dims.end(), -1) == 0, ErrorCode::InvalidArgument,
                "--warm-up: input '", t.name, "' is ", t.type, t.dims,
                ", and the server needs every size of a warm-up request; leave --warm-up out, the "
                "backend prepares the model anyway");
        append(out,
               str("  inputs { key: ", quote(t.name), " value { data_type: ", t.type, " dims: [ ",
                   dims.empty() ? "1" : list_text(dims), " ] zero_data: true } }\n"));
    }
    return out + "} ]\n";
}

} // namespace

bool Interface::takes_batches() const {
    auto is_batch = [](const InterfaceTensor& t) { return has_open_rows(t) && !t.optional; };
    return !inputs.empty() && std::all_of(inputs.begin(), inputs.end(), is_batch) &&
           std::all_of(outputs.begin(), outputs.end(), has_open_rows);
}

Interface interface_of(const Engine& engine) {
    const Graph& g = engine.graph();
    Interface out;
    for (Value v : g.inputs()) {
        out.inputs.push_back(tensor_of(g, v, "input", g.value_name(v)));
        out.inputs.back().optional = input_default(engine, out.inputs.size() - 1).defined();
        int64_t most = 0;
        for (const Profile& p : engine.profiles()) {
            const ShapeRange* range = p.find(out.inputs.back().name);
            if (range != nullptr && has_open_rows(out.inputs.back())) {
                most = std::max(most, range->max[0]);
            }
        }
        if (most > 0) {
            out.most_rows = out.most_rows == 0 ? most : std::min(out.most_rows, most);
        }
    }
    for (size_t i = 0; i < engine.result_count(); ++i) {
        out.outputs.push_back(tensor_of(g, g.outputs()[i], "output", g.output_names()[i]));
    }
    return out;
}

std::vector<std::string> differences(const Interface& served, const Interface& next) {
    std::vector<std::string> out;
    compare("input", served.inputs, next.inputs, out);
    compare("output", served.outputs, next.outputs, out);
    return out;
}

std::vector<int64_t> default_buckets(int64_t max_batch) {
    std::vector<int64_t> out;
    for (int64_t rows = 1; rows < max_batch; rows *= 2) {
        out.push_back(rows);
    }
    if (max_batch > 0) {
        out.push_back(max_batch);
    }
    return out;
}

std::vector<int64_t> parse_buckets(const std::string& list, int64_t max_batch) {
    std::vector<int64_t> out;
    for (size_t at = 0; at <= list.size();) {
        size_t end = std::min(list.find(',', at), list.size());
        int64_t rows = 0;
        auto [last, error] = std::from_chars(list.data() + at, list.data() + end, rows);
        require(error == std::errc() && last == list.data() + end && rows >= 1 &&
                    rows <= max_batch && (out.empty() || rows > out.back()),
                ErrorCode::InvalidArgument, "--buckets ", list,
                ": growing numbers of 1 to the batch limit, ", max_batch,
                ", joined by commas are expected");
        out.push_back(rows);
        at = end + 1;
    }
    require(out.size() <= most_buckets, ErrorCode::InvalidArgument, "--buckets ", list, ": ",
            out.size(), " of them, at most ", most_buckets, " are kept");
    return out;
}

std::string config_text(const ServedModel& model, const Interface& interface) {
    bool batched = model.max_batch > 0;
    std::string out = str(first_line, model.version, ".\nname: ", quote(model.name),
                          "\nbackend: \"ingot\"\nmax_batch_size: ", model.max_batch, "\n");
    append(out, tensors_text("input", interface.inputs, batched));
    append(out, tensors_text("output", interface.outputs, batched));
    append(out, str("version_policy { specific { versions: [ ", model.version, " ] } }\n"));
    if (model.max_batch > 1) {
        append(out, model.queue_delay_us > 0
                        ? str("dynamic_batching { max_queue_delay_microseconds: ",
                              model.queue_delay_us, " }\n")
                        : std::string("dynamic_batching { }\n"));
    }
    append(out, group_text(model.placement));
    if (!model.buckets.empty()) {
        std::string list;
        for (int64_t rows : model.buckets) {
            append(list, str(list.empty() ? "" : ",", rows));
        }
        append(out,
               str("parameters { key: \"buckets\" value { string_value: \"", list, "\" } }\n"));
    }
    return model.warm_up ? out + warm_up_text(model, interface) : out;
}

std::optional<int64_t> version_in(const std::string& config_text) {
    if (!config_text.starts_with(first_line)) {
        return std::nullopt;
    }
    int64_t version = 0;
    auto [last, error] = std::from_chars(config_text.data() + first_line.size(),
                                         config_text.data() + config_text.size(), version);
    return error == std::errc() ? std::optional(version) : std::nullopt;
}

} // namespace ingot::serving
