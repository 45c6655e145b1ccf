// SPDX-License-Identifier: Apache-2.0
// Every layer of whole models is an object of its type's class.
#include "api/parsed_layers.h"
#include "base/file.h"
#include "onnx/reader.h"
#include "source_dir.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

namespace ingot::test {

namespace {

using Type = nv::LayerType;

std::string shared_models() {
    const char* variable = std::getenv("INGOT_SHARED");
    std::string root = variable != nullptr ? variable : source_dir() + "/../shared";
    return std::filesystem::is_directory(root + "/models") ? root + "/models" : "";
}

std::vector<std::string> models_below(const std::string& folder) {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (entry.path().extension() == ".onnx") {
            out.push_back(entry.path().string());
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

class ParsedModelsTest : public ParsedTest {
protected:
    /// Weights that are not there are zeros, which all of them share.
    bool parse_file(const std::string& path) {
        std::ifstream in(path, std::ios::binary);
        std::string bytes((std::istreambuf_iterator<char>(in)), {});
        network.reset(builder->createNetworkV2(0));
        parser.reset(nvonnxparser::createParser(*network, logger));
        if (!parser->loadModelProto(bytes.data(), bytes.size(), path.c_str())) {
            return false;
        }
        onnx::Model m = onnx::read_model_without_data(
            std::as_bytes(std::span(bytes)), std::filesystem::path(path).parent_path().string(),
            nullptr);
        for (const onnx::Tensor& t : m.graph.initializers) {
            if (!t.missing.empty()) {
                auto type = onnx::dtype_of(t.data_type);
                auto size = static_cast<size_t>(byte_size(*type, count_of(t.dims)));
                std::unique_ptr<void, decltype(&std::free)> zeros(std::calloc(size, 1), std::free);
                if (!parser->loadInitializer(t.name.c_str(), zeros.get(), size)) {
                    return false;
                }
                kept_.push_back(std::move(zeros));
            }
        }
        return parser->parseModelProto();
    }
    /// How many layers have a class of their own.
    int32_t walk() {
        int32_t typed = 0;
        for (int32_t i = 0; i < network->getNbLayers(); ++i) {
            nv::ILayer& l = *network->getLayer(i);
            EXPECT_TRUE(read_layer(l)) << "layer " << i << " '" << l.getName() << "', type "
                                       << static_cast<int>(l.getType());
            typed += l.getType() == Type::kPLUGIN ? 0 : 1;
            for (int32_t k = 0; k < l.getNbInputs(); ++k) {
                EXPECT_NE(l.getInput(k), nullptr) << l.getName();
            }
        }
        return typed;
    }
    std::vector<std::unique_ptr<void, decltype(&std::free)>> kept_;
};

TEST_F(ParsedModelsTest, layers_of_shared_models_are_of_their_classes) {
    std::string folder = shared_models();
    if (folder.empty()) {
        GTEST_SKIP() << "no shared/models: set INGOT_SHARED, or put shared beside the source root; "
                        "layers of whole models were NOT looked at";
    }
    std::vector<std::string> models = models_below(folder);
    ASSERT_GE(models.size(), 10U);
    for (const std::string& path : models) {
        SCOPED_TRACE(path);
        ASSERT_TRUE(parse_file(path)) << (logger.errors.empty() ? "" : logger.errors.back());
        int32_t typed = walk();
        EXPECT_GT(typed * 10, network->getNbLayers() * 8) << "of " << network->getNbLayers();
        EXPECT_TRUE(logger.errors.empty()) << logger.errors.back();
        kept_.clear();
        network.reset();
    }
}

TEST_F(ParsedModelsTest, layers_of_small_models_are_of_their_classes) {
    size_t count = 0;
    for (const char* folder : {"/examples", "/tests/data/contrib"}) {
        for (const std::string& path : models_below(source_dir() + std::string(folder))) {
            SCOPED_TRACE(path);
            if (parse_file(path)) {
                walk();
                ++count;
            }
        }
    }
    EXPECT_GE(count, 20U);
}

} // namespace

} // namespace ingot::test
