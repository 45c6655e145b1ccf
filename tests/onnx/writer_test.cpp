// SPDX-License-Identifier: Apache-2.0
// Written models read back the same: built models, committed models, shared models, in memory and
// in files, with data inside and outside.
#include "base/file.h"
#include "onnx/data_type.h"
#include "onnx/proto_builder.h"
#include "onnx/reader.h"
#include "onnx/test_util.h"
#include "onnx/writer.h"
#include "source_dir.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

namespace ingot::onnx::test {
namespace {

namespace fs = std::filesystem;

// Keeps its bytes alive.
Model read_owned(std::string bytes) {
    const auto buffer = std::make_shared<const std::string>(std::move(bytes));
    return read_model(as_bytes(*buffer), "", buffer);
}

Tensor make_tensor(std::string name, int64_t bytes, int seed) {
    auto content = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes));
    for (size_t i = 0; i < content->size(); ++i) {
        (*content)[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(seed));
    }
    Tensor t;
    t.name = std::move(name);
    t.dims = {bytes};
    t.data_type = data_type_number(DType::U8);
    t.bytes = *content;
    t.owner = content;
    return t;
}

// Initializers of 10, 1023, 1024, 5000 and 4096 bytes.
Model model_with_weights() {
    Model m = read_owned(model(graph()).bytes());
    int seed = 0;
    for (const int64_t bytes : {10, 1023, 1024, 5000, 4096}) {
        m.graph.initializers.push_back(make_tensor(str("w", bytes), bytes, ++seed));
    }
    return m;
}

TEST(Writer, RichModelInMemory) {
    const Model m = read_owned(rich_model());
    const std::string bytes = write_model(m);
    const Model copy = read_owned(bytes);
    EXPECT_EQ(difference(m, copy), "");
    EXPECT_EQ(write_model(copy), bytes);
}

TEST(Writer, DifferencesAreSeen) {
    const Model m = read_owned(rich_model());
    Model other = read_owned(rich_model());
    other.graph.nodes[1].attributes[4].g->initializers[0].dims = {1, 2};
    EXPECT_EQ(difference(m, other), "graph.nodes[1].attributes[4] g.g.initializers[0].dims");
}

TEST(Writer, LargeTensorsInSubgraphs) {
    Model m = read_owned(rich_model());
    m.graph.nodes[1].attributes[4].g->initializers.push_back(make_tensor("big", 100000, 1));
    m.graph.nodes[1].attributes[3].t = make_tensor("", 70000, 2);
    m.graph.initializers.push_back(make_tensor("top", 50000, 3));
    EXPECT_EQ(difference(m, read_owned(write_model(m))), "");
}

TEST(Writer, FileWithDataInside) {
    const TempFolder folder;
    const Model m = model_with_weights();
    write_model_file(m, folder.file("m.onnx"));
    EXPECT_EQ(difference(m, read_model_file(folder.file("m.onnx"))), "");
    EXPECT_EQ(read_text_file(folder.file("m.onnx")), write_model(m));
    EXPECT_FALSE(file_exists(folder.file("m.onnx.data")));
}

TEST(Writer, ThresholdMovesDataOutside) {
    const TempFolder folder;
    const Model m = model_with_weights();
    WriteOptions options;
    options.external_threshold = 1024;
    write_model_file(m, folder.file("m.onnx"), options);
    EXPECT_EQ(difference(m, read_model_file(folder.file("m.onnx"))), "");
    // 1024 at 0, 5000 at 4096, 4096 at 12288.
    EXPECT_EQ(fs::file_size(folder.file("m.onnx.data")), 12288U + 4096);
    EXPECT_LT(fs::file_size(folder.file("m.onnx")), 2048U);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2) << "no leftovers";
}

TEST(Writer, ThresholdZeroMovesAllButEmpty) {
    const TempFolder folder;
    Model m = model_with_weights();
    m.graph.initializers.push_back(make_tensor("empty", 0, 0));
    WriteOptions options;
    options.external_threshold = 0;
    write_model_file(m, folder.file("m.onnx"), options);
    EXPECT_EQ(difference(m, read_model_file(folder.file("m.onnx"))), "");
    EXPECT_EQ(fs::file_size(folder.file("m.onnx.data")), 6U * 4096);
}

TEST(Writer, PassingTheLimitMovesDataOutside) {
    const TempFolder folder;
    const Model m = model_with_weights();
    WriteOptions options;
    options.message_limit = 5000;
    write_model_file(m, folder.file("m.onnx"), options);
    EXPECT_EQ(difference(m, read_model_file(folder.file("m.onnx"))), "");
    EXPECT_TRUE(file_exists(folder.file("m.onnx.data")));
    options.message_limit = 1000;
    const std::string error =
        error_of([&] { write_model_file(m, folder.file("n.onnx"), options); });
    EXPECT_TRUE(error.starts_with(folder.file("n.onnx") + ": the model needs ")) << error;
    EXPECT_TRUE(error.ends_with(" bytes beside its external data, at most 1000 are possible"))
        << error;
    EXPECT_FALSE(file_exists(folder.file("n.onnx")));
    EXPECT_FALSE(file_exists(folder.file("n.onnx.data")));
}

TEST(Writer, OverwritesTheFilesItReadsFrom) {
    const TempFolder folder;
    const Model m = model_with_weights();
    WriteOptions options;
    options.external_threshold = 1000;
    write_model_file(m, folder.file("m.onnx"), options);
    Model mapped = read_model_file(folder.file("m.onnx"));
    std::reverse(mapped.graph.initializers.begin(), mapped.graph.initializers.end());
    write_model_file(mapped, folder.file("m.onnx"), options);
    EXPECT_EQ(difference(mapped, read_model_file(folder.file("m.onnx"))), "");
}

TEST(Writer, SameModelSameBytes) {
    const TempFolder folder;
    WriteOptions options;
    options.external_threshold = 100;
    write_model_file(model_with_weights(), folder.file("a.onnx"), options);
    const std::string first = read_text_file(folder.file("a.onnx"));
    const std::string first_data = read_text_file(folder.file("a.onnx.data"));
    write_model_file(model_with_weights(), folder.file("a.onnx"), options);
    EXPECT_EQ(read_text_file(folder.file("a.onnx")), first);
    EXPECT_EQ(read_text_file(folder.file("a.onnx.data")), first_data);
}

TEST(Writer, RefusesWhatWasNotKept) {
    const Model strings =
        read_owned(model_with_initializer(tensor("s", {1}, 8).s(6, "text")).bytes());
    EXPECT_EQ(
        error_of([&] { write_model(strings); }),
        "tensor 's' holds strings, which cannot be written back; where they only make labels at "
        "the ends, ingot slim --cut-strings removes them");
    const Model type = read_owned(model_with_attribute(attribute("a", 13).m(14, Pb())).bytes());
    EXPECT_EQ(error_of([&] { write_model(type); }),
              "node 'n' (Op): attribute 'a' has type type_proto, which cannot be written back");
}

TEST(Writer, UnwritableFolder) {
    const Model m = model_with_weights();
    EXPECT_NE(error_of([&] { write_model_file(m, "/nonexistent/folder/m.onnx"); }), "");
}

void round_trip(const std::string& path) {
    SCOPED_TRACE(path);
    const TempFolder folder;
    const Model m = read_model_file(path);
    write_model_file(m, folder.file("inside.onnx"));
    EXPECT_EQ(difference(m, read_model_file(folder.file("inside.onnx"))), "");
    WriteOptions options;
    options.external_threshold = 256;
    write_model_file(m, folder.file("outside.onnx"), options);
    EXPECT_EQ(difference(m, read_model_file(folder.file("outside.onnx"))), "");
}

TEST(Writer, CommittedModels) {
    const std::string root = source_dir();
    std::vector<std::string> paths = onnx_files(root + "/tests/data");
    const std::vector<std::string> examples = onnx_files(root + "/examples");
    paths.insert(paths.end(), examples.begin(), examples.end());
    EXPECT_FALSE(paths.empty());
    for (const std::string& path : paths) {
        round_trip(path);
    }
}

TEST(Writer, PretrainedModels) {
    const std::string shared = shared_folder();
    if (shared.empty()) {
        GTEST_SKIP() << "no shared folder: set INGOT_SHARED, or put it beside the source root";
    }
    const std::vector<std::string> paths = onnx_files(shared + "/models/pretrained");
    EXPECT_EQ(paths.size(), 3U);
    for (const std::string& path : paths) {
        round_trip(path);
    }
}

} // namespace
} // namespace ingot::onnx::test
