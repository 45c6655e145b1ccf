// SPDX-License-Identifier: Apache-2.0
// Every prefix of many small models of all kinds of operators is read and imported, or refused.
#include "base/file.h"
#include "counts.h"
#include "onnx/importer.h"
#include "onnx/reader.h"
#include "onnx/test_util.h"
#include "source_dir.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace ingot::onnx::test {
namespace {

constexpr size_t seeds = 40;

/// As many of the tree's models as asked, evenly over the list of their names.
std::vector<std::string> seed_models() {
    std::vector<std::string> all = onnx_files(source_dir() + "/tests/data/contrib");
    std::vector<std::string> chosen;
    for (size_t i = 0; i < seeds && all.size() >= seeds; ++i) {
        chosen.push_back(all[i * all.size() / seeds]);
    }
    return chosen;
}

enum class End { Refused, NotSupported, Imported };

/// From an allocation of exactly this size, so that a sanitizer sees a read past its end.
End read_and_import(std::string_view bytes) {
    const auto exact = std::make_unique<std::byte[]>(bytes.size());
    std::transform(bytes.begin(), bytes.end(), exact.get(),
                   [](char c) { return static_cast<std::byte>(c); });
    try {
        Model m = read_model({exact.get(), bytes.size()}, "", nullptr);
        ImportResult r = import_model(m);
        for (const Refusal& refusal : r.refusals) {
            EXPECT_FALSE(refusal.reason.empty());
        }
        return r.refusals.empty() ? End::Imported : End::NotSupported;
    } catch (const Error& e) {
        EXPECT_NE(e.code(), ErrorCode::Internal) << e.what();
        EXPECT_FALSE(e.message().empty());
        return End::Refused;
    }
}

TEST(SeedModels, EveryPrefixIsReadOrRefused) {
    std::vector<std::string> paths = seed_models();
    ASSERT_EQ(paths.size(), seeds);
    int64_t prefixes = 0;
    int64_t refused = 0;
    for (const std::string& path : paths) {
        SCOPED_TRACE(path);
        const std::string model = read_text_file(path);
        ASSERT_EQ(read_and_import(model), End::Imported);
        int64_t read = 0;
        for (size_t n = 0; n < model.size(); ++n) {
            read += read_and_import(std::string_view(model).substr(0, n)) == End::Refused ? 0 : 1;
            ASSERT_FALSE(HasFailure()) << "of " << n << " bytes";
        }
        // A whole model but for fields that may be absent at its end; the graph is one field.
        EXPECT_LE(read, 8);
        prefixes += std::ssize(model);
        refused += std::ssize(model) - read;
    }
    ingot::test::record_injections(prefixes, refused);
}

} // namespace
} // namespace ingot::onnx::test
