// SPDX-License-Identifier: Apache-2.0
// Compiles a model to an EP-context model, file to file, and measures what loading costs before,
// after, and with a cache of compiled kernels.
// Usage: sample MODEL.onnx MODEL_CTX.onnx [EMBED_MODE] [PROVIDER]
#include "common.h"

int main(int argc, char** argv) {
    return sample::main("sample", [&] {
        const auto words = sample::arguments(argc, argv, 2, {"0", ingot::kEXECUTION_PROVIDER},
                                             "MODEL.onnx MODEL_CTX.onnx [0|1] [PROVIDER]");
        const std::string& model = words[0];
        const std::string& compiled = words[1];
        const bool embed = sample::embed_mode(words[2]);
        const std::string& provider = words[3];
        Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "ep_context");

        sample::print("Original session load time", sample::timed([&] {
                          auto options = sample::options(env, provider, false);
                          Ort::Session session(env, model.c_str(), options);
                      }));
        sample::print("Compile time", sample::timed([&] {
                          auto options = sample::options(env, provider, true);
                          Ort::ModelCompilationOptions compile(env, options);
                          compile.SetInputModelPath(model.c_str());
                          compile.SetOutputModelPath(compiled.c_str());
                          compile.SetEpContextEmbedMode(embed);
                          sample::check(Ort::CompileModel(env, compile));
                      }));
        std::printf("> Compiled model saved at %s\n", compiled.c_str());
        sample::print("Context model session load time", sample::timed([&] {
                          auto options = sample::options(env, provider, false);
                          Ort::Session session(env, compiled.c_str(), options);
                      }));
        // The first session fills the cache when it ends, the second one is measured.
        for (bool filled : {false, true}) {
            const double seconds = sample::timed([&] {
                auto options = sample::options(env, provider, true);
                Ort::Session session(env, compiled.c_str(), options);
            });
            if (filled) {
                sample::print("Context model session load time with runtime cache", seconds);
            }
        }
    });
}
