// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/weightless.h"

#include <filesystem>

namespace ingot::ort {

namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(const TensorView& t) {
    return {static_cast<const std::byte*>(t.data), t.bytes};
}

/// The file of external data, relative to the model's folder; "" where it is outside.
std::string relative_file(const std::string& file, const std::string& model_path) {
    fs::path path = file;
    if (path.is_absolute()) {
        path = path.lexically_relative(fs::absolute(model_path).parent_path());
    } else if (fs::path folder = fs::path(model_path).parent_path(); !folder.empty()) {
        fs::path inside = path.lexically_relative(folder);
        path = inside.empty() || *inside.begin() == ".." ? path : inside;
    }
    path = path.lexically_normal();
    return path.empty() || *path.begin() == ".." ? std::string() : path.generic_string();
}

/// The weights of an engine of which the search can find each.
LeftOut findable(const std::vector<std::string>& names, const OnnxModel& model,
                 const Constants& constants, Weightless which,
                 const std::optional<std::set<std::string>>& digests,
                 const std::string& model_path) {
    LeftOut out;
    for (const std::string& name : names) {
        auto constant = constants.find(name);
        if (constant == constants.end()) {
            continue;
        }
        const TensorView& t = constant->second;
        LeftOutWeight w{name, digest_of(bytes_of(t)), t.bytes, "", 0, t.element, t.dims};
        if (auto external = model.external.find(name); external != model.external.end()) {
            w.file = relative_file(external->second.file, model_path);
            w.offset = external->second.offset;
        }
        bool in_model = which == Weightless::All && (!digests || digests->contains(w.digest));
        if (in_model || !w.file.empty()) {
            out.push_back(std::move(w));
        }
    }
    return out;
}

} // namespace

StrippedEngine build_without_weights(const OnnxModel& model, BuildRequest request, Weightless which,
                                     const SourcePlaces& places, const std::string& model_path,
                                     const std::shared_ptr<ApiLogger>& logger,
                                     const std::string& what) {
    StrippedEngine out;
    request.without_weights = true;
    out.bytes = build_engine(model, request, logger, what);
    // The engine's names are the same for all devices; the CPU needs no driver.
    LoadedEngine engine = load_engine(content_of(out.bytes), {Device::kCPU, 0}, {}, logger, what);
    std::vector<std::string> names = missing_weights(engine);
    ModelConstants constants(model, *logger);
    std::optional<std::set<std::string>> digests;
    if (which == Weightless::All) {
        digests = source_digests(places, *logger);
    }
    out.left_out = findable(names, model, constants.all(), which, digests, model_path);
    if (out.left_out.size() == names.size()) {
        return out;
    }
    // Some are the host's own, which no file has: they stay in the engine.
    std::set<std::string> named;
    for (const LeftOutWeight& w : out.left_out) {
        named.insert(w.name);
    }
    request.without_weights = !named.empty();
    request.left_out = &named;
    out.bytes = build_engine(model, request, logger, what);
    return out;
}

} // namespace ingot::ort
