// SPDX-License-Identifier: Apache-2.0
// Running another program and waiting for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ingot {

struct ProcessResult {
    int exit_code = 0;  // 127 when the program does not exist
    std::string output; // stdout and stderr together, at most 1 MiB of it
};
/// Runs `arguments[0]` (found on PATH) without a shell; standard input is empty. Errors: Io when
/// the system refuses to start it.
ProcessResult run_process(const std::vector<std::string>& arguments);

/// The peak resident memory of this process.
uint64_t peak_memory_bytes();
/// The current resident memory; 0 when the system does not report it.
uint64_t memory_bytes();

/// A fresh private folder, removed with its contents by the destructor.
class TemporaryFolder {
public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

} // namespace ingot
