// SPDX-License-Identifier: Apache-2.0
// External data on disk: locations of tensors, false sizes, and every path out of the folder.
#include "base/file.h"
#include "counts.h"
#include "onnx/external_data.h"
#include "onnx/proto_builder.h"
#include "onnx/reader.h"
#include "onnx/test_util.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

namespace ingot::onnx::test {
namespace {

namespace fs = std::filesystem;

using Entries = std::initializer_list<std::pair<const char*, std::string>>;

std::string data(const Tensor& t) {
    return {reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size()};
}

// A folder "models" for m.onnx, beside a secret that no model may read.
class ExternalData : public testing::Test {
protected:
    ExternalData() {
        fs::create_directory(folder);
        write_file(outside.file("secret"), "SECRET!!");
        write_file(folder + "/w.bin", "0123456789abcdef");
    }

    Model read(const Pb& m) {
        write_file(folder + "/m.onnx", m.bytes());
        return read_model_file(folder + "/m.onnx");
    }
    // The error of reading an initializer 'w', f32 [1], with these entries, without its location.
    std::string error(Entries entries) {
        const std::string text =
            error_of([&] { read(model_with_initializer(external_tensor("w", {1}, 1, entries))); });
        ++injections_;
        refused_ += text == "no error" ? 0 : 1;
        const std::string place = folder + "/m.onnx: graph 'g': initializer 'w': ";
        return text.starts_with(place) ? text.substr(place.size()) : text;
    }
    void expect_refused(const std::string& location) {
        const std::string text = error({{"location", location}});
        EXPECT_TRUE(text.starts_with("external data ")) << text;
        EXPECT_EQ(text.find("SECRET"), std::string::npos) << text;
        EXPECT_NE(text, "") << location;
    }

    void TearDown() override {
        if (injections_ > 0) {
            ingot::test::record_injections(injections_, refused_);
        }
    }

    TempFolder outside;
    std::string folder = outside.file("models");

private:
    int64_t injections_ = 0;
    int64_t refused_ = 0;
};

TEST_F(ExternalData, OffsetAndLength) {
    const Model m = read(model(
        graph()
            .m(5, external_tensor("all", {4}, 1, {{"location", "w.bin"}}))
            .m(5, external_tensor("tail", {4}, 3, {{"location", "w.bin"}, {"offset", "12"}}))
            .m(5, external_tensor(
                      "middle", {2}, 10,
                      {{"location", "w.bin"}, {"offset", "4"}, {"length", "4"}, {"checksum", "x"}}))
            .m(5, external_tensor("none", {0}, 1,
                                  {{"location", "w.bin"}, {"offset", "16"}, {"length", "0"}}))
            .m(5, external_tensor("packed", {1}, 2,
                                  {{"location", "w.bin"}, {"prepacked_0", "k|0|1"}}))));
    const std::vector<Tensor>& t = m.graph.initializers;
    EXPECT_EQ(data(t[0]), "0123456789abcdef");
    EXPECT_EQ(data(t[1]), "cdef");
    EXPECT_EQ(data(t[2]), "4567");
    EXPECT_EQ(data(t[3]), "");
    EXPECT_EQ(data(t[4]), "0");
    EXPECT_EQ(t[0].bytes.data() + 4, t[2].bytes.data()) << "one map serves all tensors";
}

TEST_F(ExternalData, InSubfolder) {
    fs::create_directory(folder + "/sub");
    write_file(folder + "/sub/v.bin", "abcd");
    const Model m =
        read(model_with_initializer(external_tensor("w", {4}, 2, {{"location", "sub/v.bin"}})));
    EXPECT_EQ(data(m.graph.initializers.at(0)), "abcd");
}

TEST_F(ExternalData, InAttributesSubgraphsAndSparseTensors) {
    const Pb eight = external_tensor("v", {1}, 7, {{"location", "w.bin"}});
    write_file(folder + "/i.bin", std::string(8, '\0'));
    const Pb index = external_tensor("", {1}, 7, {{"location", "i.bin"}});
    const Model m =
        read(model(graph()
                       .m(1, node("Op", {}, {"z"})
                                 .m(5, attribute("t", 4).m(5, eight))
                                 .m(5, attribute("g", 5).m(6, Pb().s(2, "s").m(5, eight))))
                       .m(15, Pb().m(1, eight).m(2, index).i(3, 9))));
    const std::vector<Attribute>& a = m.graph.nodes.at(1).attributes;
    EXPECT_EQ(data(a.at(0).t), "01234567");
    EXPECT_EQ(data(a.at(1).g->initializers.at(0)), "01234567");
    EXPECT_EQ(data(m.graph.sparse_initializers.at(0).values), "01234567");
}

TEST_F(ExternalData, SurvivesTheModelAndTheFile) {
    Tensor t;
    {
        const Model m =
            read(model_with_initializer(external_tensor("w", {4}, 1, {{"location", "w.bin"}})));
        t = m.graph.initializers.at(0);
    }
    fs::remove(folder + "/w.bin");
    EXPECT_EQ(data(t), "0123456789abcdef");
}

TEST_F(ExternalData, TensorFilesFindTheirFolder) {
    const std::string path = folder + "/t.pb";
    write_file(path, external_tensor("t", {2}, 10, {{"location", "w.bin"}}).bytes());
    EXPECT_EQ(data(read_tensor_file(path)), "0123");
}

TEST_F(ExternalData, SizesThatLie) {
    EXPECT_EQ(error({{"location", "w.bin"}, {"offset", "13"}}),
              "external data 'w.bin': needs 4 bytes at offset 13, but the file has 16 bytes");
    EXPECT_EQ(error({{"location", "w.bin"}, {"offset", "18446744073709551615"}}),
              "external data 'w.bin': needs 4 bytes at offset 18446744073709551615, but the file "
              "has 16 bytes");
    EXPECT_EQ(error({{"location", "w.bin"}, {"length", "8"}}),
              "external data 'w.bin': length is 8 bytes, expected 4 (f32 [1])");
    EXPECT_EQ(error({{"location", "w.bin"}, {"length", "3"}}),
              "external data 'w.bin': length is 3 bytes, expected 4 (f32 [1])");
    const Pb terabytes = external_tensor("w", {int64_t{1} << 40}, 1, {{"location", "w.bin"}});
    EXPECT_EQ(error_of([&] { read(model_with_initializer(terabytes)); }),
              folder + "/m.onnx: graph 'g': initializer 'w': external data 'w.bin': needs "
                       "4398046511104 bytes at offset 0, but the file has 16 bytes");
}

TEST_F(ExternalData, OddBoolsAreCopied) {
    write_file(folder + "/b.bin", std::string("\x00\x05\x01", 3));
    const Model m =
        read(model_with_initializer(external_tensor("w", {3}, 9, {{"location", "b.bin"}})));
    EXPECT_EQ(data(m.graph.initializers.at(0)), std::string("\x00\x01\x01", 3));
}

TEST_F(ExternalData, MissingFile) {
    const std::string text = error({{"location", "none.bin"}});
    EXPECT_TRUE(text.starts_with("external data 'none.bin': ")) << text;
    try {
        read(model_with_initializer(external_tensor("w", {1}, 1, {{"location", "none.bin"}})));
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::Io);
    }
}

TEST_F(ExternalData, PathsOutOfTheFolder) {
    fs::create_directory(folder + "/sub");
    expect_refused("../secret");
    expect_refused("sub/../../secret");
    expect_refused("sub/../w.bin");
    expect_refused("..");
    expect_refused(".");
    expect_refused("sub");
    expect_refused("sub/");
    expect_refused(outside.file("secret"));
    expect_refused("/etc/passwd");
    expect_refused("/proc/self/mem");
    expect_refused("//" + outside.file("secret"));
    expect_refused("file://" + outside.file("secret"));
    expect_refused("..\\secret");
    expect_refused(std::string(5000, 'a'));
}

TEST_F(ExternalData, SymbolicLinks) {
    fs::create_symlink(outside.file("secret"), folder + "/link");
    fs::create_symlink("../secret", folder + "/relative");
    fs::create_symlink("w.bin", folder + "/inside");
    fs::create_directory_symlink(outside.path(), folder + "/up");
    fs::create_symlink("loop", folder + "/loop");
    expect_refused("link");
    expect_refused("relative");
    expect_refused("inside");
    expect_refused("up/secret");
    expect_refused("up/models/w.bin");
    expect_refused("loop");
}

TEST_F(ExternalData, HardLink) {
    fs::create_hard_link(outside.file("secret"), folder + "/hard");
    expect_refused("hard");
}

TEST_F(ExternalData, SpecialFiles) {
    ASSERT_EQ(::mkfifo((folder + "/fifo").c_str(), 0600), 0);
    expect_refused("fifo");
}

TEST_F(ExternalData, HiddenFilesAreReadWhenAllowedByName) {
    fs::create_directory(folder + "/.ssh");
    fs::create_directory(folder + "/data");
    for (const char* name : {".ssh/id_rsa", "data/.secret", ".hidden"}) {
        fs::copy_file(folder + "/w.bin", folder + "/" + name);
        EXPECT_NE(
            error({{"location", name}})
                .find(str("external data '", name,
                          "': the name is that of a hidden file, which a model may not read")),
            std::string::npos)
            << error({{"location", name}});
    }
    std::vector<std::string> told;
    ExternalRules rules;
    rules.hidden = {".hidden"};
    rules.told = [&](const std::string& path, uint64_t bytes) {
        told.push_back(str(path, " ", bytes));
    };
    set_external_rules(rules);
    auto read = [&](const char* name) {
        const std::string bytes =
            model_with_initializer(external_tensor("w", {4}, 1, {{"location", name}})).bytes();
        return data(read_model(as_bytes(bytes), folder, nullptr).graph.initializers.at(0));
    };
    EXPECT_EQ(read(".hidden"), "0123456789abcdef");
    EXPECT_EQ(read("./w.bin"), "0123456789abcdef");
    EXPECT_NE(error({{"location", "data/.secret"}}), "");
    set_external_rules({});
    ASSERT_EQ(told.size(), 2U);
    EXPECT_EQ(told[0].substr(0, told[0].rfind(' ')), folder + "/.hidden");
    EXPECT_EQ(told[1].substr(0, told[1].rfind(' ')), folder + "/./w.bin");
}

TEST_F(ExternalData, NulInTheName) {
    EXPECT_EQ(error({{"location", std::string("w.bin\0.png", 10)}}),
              "external data: location 'w.bin\\x00.png' contains a NUL character");
}

TEST_F(ExternalData, ModelsInMemoryMayNameAFolder) {
    const std::string bytes =
        model_with_initializer(external_tensor("w", {4}, 1, {{"location", "w.bin"}})).bytes();
    EXPECT_EQ(data(read_model(as_bytes(bytes), folder, nullptr).graph.initializers.at(0)),
              "0123456789abcdef");
}

} // namespace
} // namespace ingot::onnx::test
