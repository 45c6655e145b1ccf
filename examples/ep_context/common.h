// SPDX-License-Identifier: Apache-2.0
// Shared by the three samples: arguments, clocks, session options with the provider, and the cache
// of compiled kernels beside the work of the program.
#pragma once

// ONNX Runtime's library is opened, not linked, also with its own headers.
#define ORT_API_MANUAL_INIT
#include "ingot_onnxruntime.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace sample {

inline constexpr const char* cache_folder = "ort_runtime_cache";

/// Seconds that f takes.
template <class F>
double timed(F&& f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// "0" or "1": 1 puts the compiled engine into the model, 0 into a file beside it.
inline bool embed_mode(const std::string& text) {
    if (text != "0" && text != "1") {
        throw std::runtime_error("embed mode: got '" + text +
                                 "', expected 0 (a file beside the model) or 1 (in the model)");
    }
    return text == "1";
}

/// The words of the command line; those that are not given are as in `defaults`, from its end on.
inline std::vector<std::string> arguments(int argc, char** argv, size_t needed,
                                          std::vector<std::string> defaults, const char* usage) {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() < needed || words.size() > needed + defaults.size()) {
        throw std::runtime_error("got " + std::to_string(words.size()) +
                                 " arguments; usage: " + argv[0] + " " + usage);
    }
    defaults.erase(defaults.begin(),
                   defaults.begin() + static_cast<std::ptrdiff_t>(words.size() - needed));
    words.insert(words.end(), defaults.begin(), defaults.end());
    return words;
}

inline std::vector<char> read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        throw std::runtime_error("cannot read " + path);
    }
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Options of a session on the provider, whose kernels are kept in the cache where that is asked.
inline Ort::SessionOptions options(Ort::Env& env, const std::string& provider, bool cached,
                                   ingot::ProviderOptions more = {}) {
    Ort::SessionOptions made;
    if (cached) {
        more[onnxruntime::nv::provider_option_names::kRuntimeCacheFile] = cache_folder;
    }
    if (provider != "CPUExecutionProvider") {
        ingot::appendExecutionProvider(env, made, more, provider.c_str());
    }
    return made;
}

inline void print(const char* what, double seconds) {
    std::printf("> %s: %g sec\n", what, seconds);
    std::fflush(stdout);
}

inline void check(const Ort::Status& status) {
    if (!status.IsOK()) {
        throw std::runtime_error(status.GetErrorMessage());
    }
}

/// Runs a sample's steps; an error is one line and exit code 1.
template <class F>
int main(const char* name, F&& steps) {
    try {
        Ort::InitApi(&ingot::onnxRuntimeApi(ingot::openOnnxRuntime()));
        std::filesystem::remove_all(cache_folder);
        steps();
        std::printf("Program finished successfully.\n");
        return 0;
    } catch (const std::exception& e) {
        std::fflush(stdout);
        std::fprintf(stderr, "%s: error: %s\n", name, e.what());
        return 1;
    }
}

} // namespace sample
