// SPDX-License-Identifier: Apache-2.0
// The same from memory to memory: the model and the file of its weights are read into buffers, the
// EP-context model is made in one, which is written to a file at the end.
// Usage: sample_buffer MODEL.onnx MODEL.onnx.data MODEL_CTX.onnx DATA_NAME [EMBED_MODE] [PROVIDER]
#include "common.h"

namespace {

/// Bytes that an allocator of ONNX Runtime has made.
struct Buffer {
    Ort::AllocatorWithDefaultOptions allocator;
    void* data = nullptr;
    size_t bytes = 0;
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
        if (data != nullptr) {
            allocator.Free(data);
        }
    }
};

} // namespace

int main(int argc, char** argv) {
    return sample::main("sample_buffer", [&] {
        const auto words = sample::arguments(
            argc, argv, 4, {"0", ingot::kEXECUTION_PROVIDER},
            "MODEL.onnx MODEL.onnx.data MODEL_CTX.onnx DATA_NAME [0|1] [PROVIDER]");
        const std::vector<char> model = sample::read(words[0]);
        std::vector<char> weights = sample::read(words[1]);
        const std::string& compiled = words[2];
        const std::string& data_name = words[3];
        const bool embed = sample::embed_mode(words[4]);
        const std::string& provider = words[5];
        Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "ep_context");

        // The weights' file is named as the model names it, and is the buffer.
        auto source = [&](bool cached) {
            auto options = sample::options(
                env, provider, cached,
                {{onnxruntime::nv::provider_option_names::kUseExternalDataInitializer, "1"}});
            options.AddExternalInitializersFromFilesInMemory({data_name}, {weights.data()},
                                                             {weights.size()});
            return options;
        };
        // Where files of an EP-context model in memory are: beside the output.
        auto context = [&](bool cached) {
            auto options = sample::options(env, provider, cached);
            options.AddConfigEntry("ep.context_file_path", compiled.c_str());
            return options;
        };

        sample::print("Original session load time", sample::timed([&] {
                          auto options = source(false);
                          Ort::Session session(env, model.data(), model.size(), options);
                      }));
        Buffer result;
        sample::print("Compile time", sample::timed([&] {
                          auto options = source(true);
                          Ort::ModelCompilationOptions compile(env, options);
                          compile.SetInputModelFromBuffer(model.data(), model.size());
                          compile.SetOutputModelBuffer(result.allocator, &result.data,
                                                       &result.bytes);
                          compile.SetEpContextEmbedMode(embed);
                          if (!embed) {
                              // Only a path that ends in a slash counts as a folder.
                              const auto path = std::filesystem::absolute(compiled);
                              compile.SetEpContextBinaryInformation(
                                  (path.parent_path() / "").c_str(), path.filename().c_str());
                          }
                          sample::check(Ort::CompileModel(env, compile));
                      }));
        std::ofstream(compiled, std::ios::binary)
            .write(static_cast<const char*>(result.data),
                   static_cast<std::streamsize>(result.bytes));
        std::printf("> Compiled model saved at %s\n", compiled.c_str());
        sample::print("Context model session load time", sample::timed([&] {
                          auto options = context(false);
                          Ort::Session session(env, result.data, result.bytes, options);
                      }));
        for (bool filled : {false, true}) {
            const double seconds = sample::timed([&] {
                auto options = context(true);
                Ort::Session session(env, result.data, result.bytes, options);
            });
            if (filled) {
                sample::print("Context model session load time with runtime cache", seconds);
            }
        }
    });
}
