// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/weightless.h"

#include "base/hash.h"
#include "base/json.h"

#include <cstring>
#include <filesystem>
#include <functional>

namespace ingot::ort {

namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(const TensorView& t) {
    return {static_cast<const std::byte*>(t.data), t.bytes};
}

/// Whether `at` points into `whole`.
bool is_inside(std::span<const std::byte> whole, const void* at) {
    std::less<> before;
    const auto* place = static_cast<const std::byte*>(at);
    return !before(place, whole.data()) && before(place, whole.data() + whole.size());
}

using TakeTensor = std::function<void(const ModelTensor&)>;

/// Errors: InvalidModel with the reader's reason; what `take` throws.
void visit_model(std::span<const std::byte> model, const std::string& folder, ApiLogger& logger,
                 const TakeTensor& take) {
    struct State {
        const TakeTensor& take;
        std::exception_ptr thrown;
    } state{take, nullptr};
    auto visitor = [](const ModelTensor& t, void* user) {
        auto& s = *static_cast<State*>(user);
        try {
            if (s.thrown == nullptr) {
                s.take(t);
            }
        } catch (...) {
            s.thrown = std::current_exception();
        }
    };
    bool read = visitTensors(logger, model.data(), model.size(), folder.c_str(), visitor, &state);
    if (state.thrown != nullptr) {
        std::rethrow_exception(state.thrown);
    }
    logger.require_done(read, ErrorCode::InvalidModel, "the model cannot be read");
}

TensorView view_of(const ModelTensor& t) {
    return {t.type, {t.dims, t.dims + t.nbDims}, t.data, t.bytes};
}

/// Calls `take` for each source model that can be read, until it returns true. `problems` gets a
/// line for each that cannot be.
void for_each_source(const SourcePlaces& places, ApiLogger& logger,
                     std::vector<std::string>& problems,
                     const std::function<bool(std::span<const std::byte>, const std::string& folder,
                                              std::shared_ptr<const MappedFile>)>& take) {
    auto guarded = [&](const std::string& name, const auto& f) {
        try {
            return f();
        } catch (const Error& e) {
            problems.push_back(str("'", name, "': ", e.message()));
            logger.take_errors("");
            return false;
        }
    };
    std::string folder = places.folders.empty() ? "" : places.folders.front();
    if (!places.buffer.empty() && guarded("the source model in memory",
                                          [&] { return take(places.buffer, folder, nullptr); })) {
        return;
    }
    for (const std::string& path : places.models) {
        if (guarded(path, [&] {
                auto file = MappedFile::open(path);
                std::string parent = fs::path(path).parent_path().string();
                return take(file->bytes(), parent.empty() ? "." : parent, file);
            })) {
            return;
        }
    }
}

/// A search for the tensors of one table.
class Search {
public:
    Search(const LeftOut& weights, const SourcePlaces& places, ApiLogger& logger)
        : weights_(weights), places_(places), logger_(logger) {
        for (const LeftOutWeight& w : weights) {
            by_digest_[w.digest].push_back(&w);
            by_name_.emplace(w.name, &w);
        }
    }

    FoundWeights run() {
        for (const LeftOutWeight& w : weights_) {
            if (!w.file.empty()) {
                look_in_file(w);
            }
        }
        if (found_.tensors.size() < weights_.size()) {
            for_each_source(places_, logger_, problems_,
                            [&](std::span<const std::byte> model, const std::string& folder,
                                const std::shared_ptr<const MappedFile>& file) {
                                look_in_model(model, folder, file);
                                return found_.tensors.size() == weights_.size();
                            });
        }
        if (found_.tensors.size() < weights_.size()) {
            refuse();
        }
        return std::move(found_);
    }

private:
    void look_in_file(const LeftOutWeight& w) {
        for (const std::string& folder : places_.folders) {
            try {
                std::shared_ptr<const MappedFile>& file = files_[folder + '\n' + w.file];
                file = file == nullptr ? MappedFile::open_beneath(folder, w.file) : file;
                size_t size = file->bytes().size();
                if (w.offset > size || w.bytes > size - w.offset) {
                    changed_.emplace(w.name,
                                     str("'", file->path(), "' has ", size, " bytes, expected ",
                                         w.bytes, " from ", w.offset, " on"));
                    continue;
                }
                std::span<const std::byte> data = file->bytes().subspan(w.offset, w.bytes);
                if (take(w, digest_of(data), file->path())) {
                    found_.tensors[w.name] = {w.element, w.dims, data.data(), data.size()};
                    found_.owners.push_back(file);
                    return;
                }
            } catch (const Error& e) {
                problems_.push_back(e.message());
            }
        }
    }

    void look_in_model(std::span<const std::byte> model, const std::string& folder,
                       const std::shared_ptr<const MappedFile>& file) {
        if (file != nullptr) {
            found_.owners.push_back(file);
        }
        std::string where = file == nullptr ? "the source model in memory" : file->path();
        visit_model(model, folder, logger_, [&](const ModelTensor& t) {
            if (t.data == nullptr) {
                changed_.emplace(t.name, t.missing);
                return;
            }
            TensorView view = view_of(t);
            std::string digest = digest_of(bytes_of(view));
            auto it = by_digest_.find(digest);
            if (it != by_digest_.end()) {
                keep(it->second, view, model);
            }
            auto named = by_name_.find(t.name);
            if (named != by_name_.end() && !found_.tensors.contains(named->first)) {
                take(*named->second, digest, where);
            }
        });
    }

    void keep(const std::vector<const LeftOutWeight*>& wanted, TensorView view,
              std::span<const std::byte> model) {
        if (!is_inside(model, view.data) && view.bytes > 0) { // it lasts for the visit alone
            std::shared_ptr<std::byte[]> copy(new std::byte[view.bytes]);
            std::memcpy(copy.get(), view.data, view.bytes);
            view.data = copy.get();
            found_.owners.push_back(copy);
        }
        for (const LeftOutWeight* w : wanted) {
            TensorView& out = found_.tensors[w->name];
            out = view;
            out.element = w->element;
            out.dims = w->dims;
        }
    }

    bool take(const LeftOutWeight& w, const std::string& digest, const std::string& where) {
        if (digest != w.digest) {
            changed_.emplace(w.name, str("'", where, "' has ", digest, ", expected ", w.digest));
        }
        return digest == w.digest;
    }

    [[noreturn]] void refuse() const {
        size_t missing = 0;
        const LeftOutWeight* first = nullptr;
        for (const LeftOutWeight& w : weights_) {
            if (!found_.tensors.contains(w.name)) {
                ++missing;
                first = first == nullptr ||
                                (!changed_.contains(first->name) && changed_.contains(w.name))
                            ? &w
                            : first;
            }
        }
        auto changed = changed_.find(first->name);
        std::vector<std::string> searched = places_.models;
        if (!places_.buffer.empty()) {
            searched.insert(searched.begin(), "the source model in memory");
        }
        fail(ErrorCode::InvalidModel, "weights '", first->name, "'",
             missing > 1 ? str(" and ", missing - 1, " more") : std::string(),
             changed != changed_.end()
                 ? str(" changed since the model was compiled: ", changed->second)
                 : str(" are missing: expected ", first->digest, " in ",
                       searched.empty() ? std::string("the source model") : join(searched, ", ")),
             problems_.empty() ? std::string() : str(" (", join(problems_, "; "), ")"),
             "; the model was compiled without its weights: put its source model beside it, name "
             "it with ep.context_source_model_path, or compile the model again");
    }

    const LeftOut& weights_;
    const SourcePlaces& places_;
    ApiLogger& logger_;
    FoundWeights found_;
    std::map<std::string, std::vector<const LeftOutWeight*>> by_digest_;
    std::map<std::string, const LeftOutWeight*> by_name_;
    std::map<std::string, std::shared_ptr<const MappedFile>> files_;
    std::map<std::string, std::string> changed_; // how, by name
    std::vector<std::string> problems_;
};

} // namespace

std::string digest_of(std::span<const std::byte> bytes) {
    return str("xxh3=", to_text(xxh3_128(bytes)), " bytes=", bytes.size());
}

ModelConstants::ModelConstants(const OnnxModel& model, ApiLogger& logger) {
    std::span<const std::byte> bytes = std::as_bytes(std::span(model.bytes));
    visit_model(bytes, "", logger, [&](const ModelTensor& t) {
        if (t.data == nullptr) {
            return; // it is among the weights beside the model
        }
        TensorView& view = all_[t.name] = view_of(t);
        if (!is_inside(bytes, t.data)) {
            view.data = copies_.emplace_back(static_cast<const char*>(t.data), t.bytes).data();
        }
    });
    for (const auto& [name, view] : model.weights) {
        all_[name] = view;
    }
}

std::string to_json_text(const LeftOut& weights) {
    Json j;
    j.set("format", 1);
    Json& list = j.set("weights", Json::list());
    for (const LeftOutWeight& w : weights) {
        Json& one = list.add();
        one.set("bytes", static_cast<int64_t>(w.bytes));
        one.set("digest", w.digest);
        one.set("file", w.file);
        one.set("name", w.name);
        one.set("offset", static_cast<int64_t>(w.offset));
        one.set("shape", w.dims);
        one.set("type", w.element);
    }
    return j.dump();
}

namespace {

size_t size_of(const Json& j) {
    auto v = j.get<int64_t>();
    require(v >= 0, ErrorCode::InvalidEngine, v, " is negative");
    return static_cast<size_t>(v);
}

} // namespace

LeftOut left_out_from_json(const std::string& text) {
    try {
        Json j = Json::parse(text);
        require(j.at("format").get<int64_t>() == 1, ErrorCode::InvalidEngine, "its format is ",
                j.at("format").get<int64_t>(), ", expected 1");
        LeftOut out;
        for (const Json& w : j.at("weights").items()) {
            LeftOutWeight& one = out.emplace_back();
            one.name = w.at("name").get<std::string>();
            one.digest = w.at("digest").get<std::string>();
            one.file = w.at("file").get<std::string>();
            one.bytes = size_of(w.at("bytes"));
            one.offset = size_of(w.at("offset"));
            one.element = w.at("type").get<int32_t>();
            one.dims = w.at("shape").get<std::vector<int64_t>>();
        }
        return out;
    } catch (const Error& e) {
        fail(ErrorCode::InvalidEngine,
             "the table of the weights that were left out "
             "(ep_refit_table) is damaged: ",
             e.message(), "; compile the model again");
    }
}

std::optional<std::set<std::string>> source_digests(const SourcePlaces& places, ApiLogger& logger) {
    std::optional<std::set<std::string>> out;
    std::vector<std::string> problems;
    for_each_source(places, logger, problems,
                    [&](std::span<const std::byte> model, const std::string& folder,
                        const std::shared_ptr<const MappedFile>&) {
                        std::set<std::string> digests;
                        visit_model(model, folder, logger, [&](const ModelTensor& t) {
                            if (t.data != nullptr) {
                                digests.insert(digest_of(bytes_of(view_of(t))));
                            }
                        });
                        out = std::move(digests);
                        return true;
                    });
    return out;
}

FoundWeights find_weights(const LeftOut& weights, const SourcePlaces& places, ApiLogger& logger) {
    return Search(weights, places, logger).run();
}

void restore_weights(const LoadedEngine& engine, const std::vector<std::string>& names,
                     const std::string& left_out, const SourcePlaces& places,
                     const std::string& what) {
    require(!left_out.empty(), ErrorCode::InvalidEngine,
            "its engine has no weights, and the node has no attribute 'ep_refit_table', which says "
            "where they are: compile the model again");
    FoundWeights found = find_weights(left_out_from_json(left_out), places, *engine.logger);
    for (const std::string& name : names) {
        require(found.tensors.contains(name), ErrorCode::InvalidEngine,
                "the table of the weights that were left out (ep_refit_table) lacks '", name,
                "': compile the model again");
    }
    give_weights(engine, found.tensors, what);
}

} // namespace ingot::ort
