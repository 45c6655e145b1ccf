// SPDX-License-Identifier: Apache-2.0
#include "workflow/inputs/inputs.h"

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/page_guard.h"
#include "ops/evaluator.h"
#include "workflow/inputs/npy.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace ingot {

namespace {

uint64_t splitmix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

void check_names(const Graph& g, const InputSource& source) {
    std::vector<std::string> names;
    for (Value v : g.inputs()) {
        names.push_back(g.value_name(v));
    }
    auto check = [&](const std::string& n) {
        if (std::find(names.begin(), names.end(), n) == names.end()) {
            std::string near = nearest(n, names);
            fail(ErrorCode::InvalidArgument, "there is no input '", n, "'",
                 near.empty() ? "." : str(", did you mean '", near, "'?"),
                 " Inputs: ", join(names, ", "));
        }
    };
    for (const auto& f : source.files) {
        check(f.first);
    }
    for (const auto& s : source.shapes) {
        check(s.first);
    }
}

const Shape* given_shape(const InputSource& source, const std::string& name) {
    for (const auto& s : source.shapes) {
        if (s.first == name) {
            return &s.second;
        }
    }
    return nullptr;
}

// The sizes of an input from the known symbols; the profile's or 1 for the rest.
Shape shape_of(const Engine& e, size_t input, const InputSource& source, const Symbols& symbols) {
    const Graph& g = e.graph();
    Value v = g.inputs()[input];
    if (const Shape* s = given_shape(source, g.value_name(v))) {
        return *s;
    }
    Shape fallback = default_shape(g, input, e.profiles());
    const Dims& dims = g.type(v).dims;
    for (size_t i = 0; i < dims.size(); ++i) {
        fallback[i] = dims[i].try_eval(symbols).value_or(fallback[i]);
    }
    return fallback;
}

Tensor reinterpreted(Tensor t, DType want, const std::string& path, const std::string& name) {
    bool same_bits = bit_width(t.dtype()) == bit_width(want) &&
                     (t.dtype() == DType::U8 || t.dtype() == DType::U16);
    if (t.dtype() == want) {
        return t;
    }
    if (same_bits && is_float(want)) { // types without a NumPy name
        Tensor out = Tensor::empty(want, t.shape());
        std::memcpy(out.mutable_bytes().data(), t.bytes().data(), t.bytes().size());
        return out;
    }
    fail(ErrorCode::InvalidArgument, path, " holds ", t.dtype(), ", input '", name, "' is ", want,
         "; convert it, for example np.save(path, x.astype(...))");
}

/// The file holds the bytes of the input's memory.
Tensor read_raw(const std::string& path, DType dtype, const Shape& shape, const std::string& name,
                const IoFormat& format) {
    auto file = MappedFile::open(path);
    Tensor t = Tensor::empty(dtype, storage_shape(format, shape));
    size_t want = t.bytes().size();
    require(file->bytes().size() == want, ErrorCode::InvalidArgument, path, " has ",
            file->bytes().size(), " bytes, input '", name, "' ", dtype, shape,
            format.is_row_major() ? "" : str(" as ", format.name), " needs ", want);
    std::memcpy(t.mutable_bytes().data(), file->bytes().data(), want);
    check_pages(file->bytes());
    return from_storage(format, t, shape);
}

} // namespace

Tensor random_tensor(DType dtype, const Shape& shape, uint64_t seed, std::string_view name) {
    Tensor t = Tensor::zeros(dtype, shape);
    uint64_t key = splitmix(seed ^ hash_bytes(name.data(), name.size()));
    for (int64_t i = 0; i < t.count(); ++i) {
        uint64_t bits = splitmix(key + static_cast<uint64_t>(i));
        if (is_float(dtype)) {
            t.set_f64(i, static_cast<double>(bits >> 11) * 0x1p-52 - 1.0);
        } else if (dtype == DType::Bool) {
            t.set_i64(i, static_cast<int64_t>(bits & 1U));
        } else {
            t.set_i64(i, static_cast<int64_t>(bits % (dtype == DType::U8     ? 256
                                                      : bit_width(dtype) < 8 ? 8
                                                                             : 10)));
        }
    }
    return t;
}

std::vector<std::pair<std::string, Shape>> known_shapes(const InputSource& source) {
    std::vector<std::pair<std::string, Shape>> out = source.shapes;
    for (const auto& [name, path] : source.files) {
        // A file that is missing is an error where inputs are read, after that of an unknown name.
        std::error_code ignored;
        if (path.ends_with(".npy") && given_shape(source, name) == nullptr &&
            std::filesystem::exists(path, ignored)) {
            out.emplace_back(name, read_npy_shape(path));
        }
    }
    return out;
}

LoadedInputs load_inputs(const Engine& engine, const InputSource& source) {
    const Graph& g = engine.graph();
    check_names(g, source);
    size_t n = g.inputs().size();
    LoadedInputs out;
    out.tensors.resize(n);
    Symbols symbols;
    auto path_of = [&](const std::string& name) -> const std::string* {
        for (const auto& f : source.files) {
            if (f.first == name) {
                return &f.second;
            }
        }
        return nullptr;
    };
    // Arrays have a shape and bind symbols; given shapes do too; the remaining shapes follow.
    for (size_t i = 0; i < n; ++i) {
        Value v = g.inputs()[i];
        const std::string& name = g.value_name(v);
        const std::string* path = path_of(name);
        const Shape* shape = given_shape(source, name);
        if (path != nullptr && path->ends_with(".npy")) {
            out.tensors[i] = reinterpreted(read_npy(*path), g.type(v).dtype, *path, name);
            shape = &out.tensors[i].shape();
        }
        if (shape != nullptr) {
            bind_symbols(g.type(v).dims, *shape, symbols, str("input '", name, "'"));
        }
    }
    for (size_t i = 0; i < n; ++i) {
        Value v = g.inputs()[i];
        const std::string& name = g.value_name(v);
        const std::string* path = path_of(name);
        if (out.tensors[i].defined()) {
            continue;
        }
        Shape shape = shape_of(engine, i, source, symbols);
        bind_symbols(g.type(v).dims, shape, symbols, str("input '", name, "'"));
        DType dtype = g.type(v).dtype;
        if (path == nullptr) {
            out.tensors[i] = random_tensor(dtype, shape, source.seed, name);
            out.random.push_back(name);
        } else {
            out.tensors[i] = is_image_path(*path)
                                 ? read_image(*path, dtype, shape, source.image)
                                 : read_raw(*path, dtype, shape, name, engine.formats().input(i));
        }
    }
    return out;
}

} // namespace ingot
