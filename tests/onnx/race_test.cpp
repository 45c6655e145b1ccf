// SPDX-License-Identifier: Apache-2.0
// A model's file that another writes to while it is read: numbers are counted in one state of the
// bytes and decoded in another. Nothing is written beyond what was counted.
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "onnx/proto_builder.h"
#include "onnx/reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace ingot::onnx::test {
namespace {

constexpr size_t numbers = 1 << 16; // of one byte each, or half as many of two

/// A tensor i64[numbers / 2] whose packed numbers are these bytes.
std::string tensor_of(const std::string& packed) {
    return Pb().i(1, numbers / 2).i(2, 7).s(7, packed).s(8, "w").bytes();
}

TEST(Race, NumbersAreDecodedAsTheyWereCounted) {
    TemporaryFolder folder;
    std::string path = folder.path() + "/tensor.pb";
    std::string few;
    for (size_t i = 0; i < numbers / 2; ++i) {
        few += "\x81\x01";
    }
    std::string many(numbers, '\1');
    std::string start = tensor_of(few);
    write_file(path, start);
    auto at = static_cast<off_t>(start.find(few));
    EXPECT_EQ(read_tensor_file(path).bytes.size(), numbers / 2 * 8);
    std::atomic<bool> stop{false};
    std::thread writer([&] {
        int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
        while (!stop) {
            for (const std::string* s : {&many, &few}) {
                EXPECT_EQ(::pwrite(file, s->data(), s->size(), at),
                          static_cast<ssize_t>(s->size()));
            }
        }
        ::close(file);
    });
    int read = 0;
    int raced = 0;
    for (int i = 0; i < 400; ++i) {
        try {
            EXPECT_EQ(read_tensor_file(path).bytes.size(), numbers / 2 * 8);
            ++read;
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::InvalidModel);
            std::string text = e.what();
            bool counted = text.find("int64_data has ") != std::string::npos;
            bool decoded = text.find(" values than when they were counted: the file is written to; "
                                     "read it when it is whole") != std::string::npos;
            bool cut = text.find("the data ends inside a number") != std::string::npos;
            EXPECT_TRUE(counted || decoded || cut) << text;
            raced += decoded ? 1 : 0;
        }
    }
    stop = true;
    writer.join();
    RecordProperty("whole", read);
    RecordProperty("raced", raced);
}

} // namespace
} // namespace ingot::onnx::test
