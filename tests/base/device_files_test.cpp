// SPDX-License-Identifier: Apache-2.0
// Device files that a user may not open. A child process gives up its rights first.
#include "base/device_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace ingot {
namespace {

class DeviceFiles : public testing::Test {
protected:
    DeviceFiles() {
        char pattern[] = "/tmp/ingot_devices_XXXXXX";
        folder_ = mkdtemp(pattern);
        chmod(folder_.c_str(), 0755);
    }
    ~DeviceFiles() override { std::filesystem::remove_all(folder_); }
    void add(const std::string& name, unsigned mode) const {
        std::ofstream(folder_ + "/" + name).put('x');
        chmod((folder_ + "/" + name).c_str(), mode);
    }
    /// forbidden_device_text() for a user without rights of its own.
    std::string text() const {
        int ends[2] = {};
        EXPECT_EQ(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            constexpr unsigned nobody = 65534;
            bool dropped = geteuid() != 0 || (setgid(nobody) == 0 && setuid(nobody) == 0);
            std::string out = dropped ? forbidden_device_text(folder_) : "still root";
            ssize_t written = write(ends[1], out.data(), out.size());
            _exit(written == static_cast<ssize_t>(out.size()) ? 0 : 1);
        }
        close(ends[1]);
        std::string out(4096, '\0');
        ssize_t bytes = read(ends[0], out.data(), out.size());
        out.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
        close(ends[0]);
        int status = 0;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
        return out;
    }
    std::string folder_;
};

TEST_F(DeviceFiles, OneThatIsClosedIsNamed) {
    EXPECT_EQ(text(), "");
    add("nvidiactl", 0666);
    add("nvidia0", 0666);
    add("nvidia-modeset", 0); // only displays need it
    add("nvidia0.bak", 0);
    EXPECT_EQ(text(), "");
    add("nvidia-uvm", 0666);
    add("nvidia1", 0);
    EXPECT_EQ(text(), "; this user may not read and write '" + folder_ +
                          "/nvidia1': let it, or run as a user or in a group that may");
    add("nvidia-uvm", 0444);
    chmod((folder_ + "/nvidia-uvm").c_str(), 0444);
    EXPECT_EQ(text(), "; this user may not read and write '" + folder_ +
                          "/nvidia-uvm': let it, or run as a user or in a group that may");
}

TEST_F(DeviceFiles, FolderThatIsNotThereHasNone) {
    EXPECT_EQ(forbidden_device_file(folder_ + "/none"), "");
}

} // namespace
} // namespace ingot
