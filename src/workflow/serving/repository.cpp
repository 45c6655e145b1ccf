// SPDX-License-Identifier: Apache-2.0
#include "workflow/serving/repository.h"

#include "base/error.h"
#include "base/file.h"
#include "workflow/serving/model_config.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <random>

namespace ingot::serving {

namespace {

namespace fs = std::filesystem;

/// Begins the names of folders that are put together or taken apart. No server looks at a version
/// whose name is no number.
constexpr std::string_view partial_prefix = ".ingot-";
constexpr uint64_t most_config_bytes = 16U << 20U;

void check_name(const std::string& name) {
    bool good =
        !name.empty() && name[0] != '.' && std::all_of(name.begin(), name.end(), [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   c == '_' || c == '-' || c == '.';
        });
    require(good, ErrorCode::InvalidArgument, "--name '", name,
            "': letters, digits, '_', '-' and '.', not first, are expected");
}

std::optional<int64_t> number_in(const std::string& text) {
    int64_t out = 0;
    auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    bool whole = error == std::errc() && last == text.data() + text.size() && out >= 1;
    return whole && std::to_string(out) == text ? std::optional(out) : std::nullopt;
}

std::string unique_name(const std::string& what) {
    std::random_device random;
    return str(partial_prefix, what, '-', (static_cast<uint64_t>(random()) << 32U) | random());
}

/// Runs f; the system's refusal says what was being done.
template <class F>
auto on_files(std::string_view doing, F&& f) {
    try {
        return f();
    } catch (const fs::filesystem_error& e) {
        fail(ErrorCode::Io, doing, ": ", e.what());
    }
}

void remove_leftovers(const fs::path& folder, const std::string& prefix) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
        if (entry.path().filename().string().starts_with(prefix)) {
            fs::remove_all(entry.path(), ignored);
        }
    }
}

/// Out of sight at once, then gone.
void remove_version(const std::string& model, int64_t version) {
    fs::path hidden = fs::path(model) / unique_name(str(version));
    fs::rename(fs::path(model) / str(version), hidden);
    fs::remove_all(hidden);
}

fs::path beside(const std::string& repository) {
    fs::path full = fs::absolute(repository).lexically_normal();
    return (full.has_filename() ? full : full.parent_path()).parent_path();
}

} // namespace

bool ModelFolder::has_foreign_config() const {
    return config && !version_in(*config);
}

std::string ModelFolder::file_of(int64_t version) const {
    for (const char* name : {"model.engine", "model.plan", "model.onnx"}) {
        std::string file = str(path, '/', version, '/', name);
        if (file_exists(file)) {
            return file;
        }
    }
    return "";
}

ModelFolder read_model_folder(const std::string& repository, const std::string& name) {
    check_name(name);
    std::error_code error;
    require(fs::is_directory(repository, error), ErrorCode::Io, "--repository ", repository,
            ": there is no such folder; make it first");
    return on_files("the repository cannot be read", [&] {
        ModelFolder out;
        out.path = str(repository, '/', name);
        out.exists = fs::exists(out.path);
        if (!out.exists) {
            return out;
        }
        for (const auto& entry : fs::directory_iterator(out.path)) {
            std::optional<int64_t> number = number_in(entry.path().filename().string());
            if (number && entry.is_directory()) {
                out.versions.push_back(*number);
            }
        }
        std::sort(out.versions.begin(), out.versions.end());
        std::string config = str(out.path, "/config.pbtxt");
        if (file_exists(config)) {
            out.config = read_text_file(config, most_config_bytes);
        }
        if (!out.versions.empty()) {
            out.served = out.versions.back();
        }
        if (out.config && version_in(*out.config)) {
            out.served = version_in(*out.config);
        }
        return out;
    });
}

Publication::Publication(const std::string& repository, const std::string& name, int64_t version,
                         const std::string& staging, bool tidy)
    : before_(read_model_folder(repository, name)), version_(version) {
    on_files("the version cannot be put together", [&] {
        if (before_.exists) {
            if (tidy) {
                remove_leftovers(before_.path, std::string(partial_prefix));
            }
            fs::path partial = fs::path(before_.path) / unique_name(str(version));
            partial_ = partial;
            file_ = partial / "model.engine";
            fs::create_directory(partial);
            return;
        }
        fs::path folder = staging.empty() ? beside(repository) : fs::path(staging);
        if (tidy) {
            remove_leftovers(folder, str(partial_prefix, name, '-'));
        }
        fs::path partial = folder / unique_name(name);
        partial_ = partial;
        file_ = partial / str(version) / "model.engine";
        fs::create_directories(partial / str(version));
    });
}

Publication::~Publication() {
    std::error_code ignored;
    if (!committed_ && !partial_.empty()) {
        fs::remove_all(partial_, ignored);
    }
}

void Publication::commit(const std::string& config) {
    on_files("the version cannot be published", [&] {
        if (!before_.exists) {
            write_file(partial_ + "/config.pbtxt", config);
            std::error_code error;
            fs::rename(partial_, before_.path, error);
            require(error != std::errc::cross_device_link, ErrorCode::Io, partial_, " and ",
                    before_.path,
                    " are in two file systems: name a folder outside of the repository and in its "
                    "file system by --staging");
            require(!error, ErrorCode::Io, before_.path, ": ", error.message());
        } else {
            // The configuration that is there does not serve this version yet, or it is already
            // complete: a server sees the old state or the new one.
            fs::rename(partial_, str(before_.path, '/', version_));
            try {
                write_file(before_.path + "/config.pbtxt", config);
            } catch (const Error&) {
                remove_version(before_.path, version_);
                throw;
            }
        }
        committed_ = true;
    });
}

void Publication::undo() {
    on_files("the old state cannot be restored", [&] {
        if (!before_.exists) {
            fs::rename(before_.path, partial_); // out of sight at once
            fs::remove_all(partial_);
            return;
        }
        std::string config = before_.path + "/config.pbtxt";
        if (before_.config) {
            write_file(config, *before_.config);
        } else {
            fs::remove(config);
        }
        remove_version(before_.path, version_);
    });
}

std::vector<int64_t> prune(const ModelFolder& folder, int64_t keep) {
    return on_files("old versions cannot be removed", [&] {
        std::vector<int64_t> removed;
        auto count = static_cast<int64_t>(folder.versions.size());
        for (int64_t i = 0; i < count - keep; ++i) {
            int64_t version = folder.versions[static_cast<size_t>(i)];
            if (version != folder.served) {
                remove_version(folder.path, version);
                removed.push_back(version);
            }
        }
        return removed;
    });
}

} // namespace ingot::serving
