// SPDX-License-Identifier: Apache-2.0
// Whose engines are loaded: what the server's command line says (--backend-config).
#include "ingot.h"
#include "tests/triton/scene.h"
#include "trust_keys.h"

#include <fstream>

namespace ingot::triton {
namespace {

class Silent final : public nvinfer1::ILogger {
public:
    void log(Severity, const char*) noexcept override {}
};

std::string signed_by(const std::string& engine, const std::string& key) {
    Silent logger;
    std::unique_ptr<nvinfer1::IHostMemory> out(
        signEngine(logger, engine.data(), engine.size(), key.c_str()));
    return out == nullptr ? "" : std::string(static_cast<const char*>(out->data()), out->size());
}

/// The error of starting a model of this engine under these options of the command line.
std::string started(const std::string& engine, const std::string& options) {
    Scene scene(engine);
    scene.backend.config.json = "{\"cmdline\":{" + options + "}}";
    std::string error = scene.start();
    return error.substr(0, error.find("; "));
}

TEST(TritonTrust, OnlySignedEnginesWhereTheOperatorSaysSo) {
    Folder folder;
    std::string file = folder.path() + "/keys.pem";
    std::ofstream(file) << test::public_key_1;
    std::string keys = "\"trusted-keys\":\"" + file + "\"";
    std::string only = keys + ",\"trusted-only\":\"true\"";
    std::string engine = row_engine(8);
    EXPECT_EQ(started(engine, keys), "");
    EXPECT_EQ(started(engine, R"("allow-engine-code":"true")"), "");
    EXPECT_EQ(started(signed_by(engine, test::private_key_1), only), "");
    EXPECT_NE(started(engine, only)
                  .find("only engines signed by a trusted key are allowed, and it "
                        "is not signed"),
              std::string::npos)
        << started(engine, only);
    std::string by_other = started(signed_by(engine, test::private_key_2), only);
    EXPECT_NE(by_other.find("which is not one of the trusted keys"), std::string::npos) << by_other;
}

TEST(TritonTrust, WrongOptionsFailTheModel) {
    Folder folder;
    std::string file = folder.path() + "/keys.pem";
    std::ofstream(file) << "nonsense";
    std::string engine = row_engine(8);
    std::pair<std::string, std::string> cases[] = {
        {R"("trusted-only":"yes")",
         "--backend-config=trusted-only: true or false is expected, got 'yes'"},
        {R"("trusted-only":"true")",
         "--backend-config=trusted-only is given without trusted-keys: every engine would be "
         "refused"},
        {R"("trusted-keys":"/no/such/file")", "--backend-config=trusted-keys"},
        {"\"trusted-keys\":\"" + file + "\"", "line 1: expected a public key in PEM"},
    };
    for (const auto& [options, text] : cases) {
        std::string error = started(engine, options);
        EXPECT_NE(error.find(text), std::string::npos) << options << ": " << error;
    }
}

} // namespace
} // namespace ingot::triton
