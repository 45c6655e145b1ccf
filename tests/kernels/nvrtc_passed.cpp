// SPDX-License-Identifier: Apache-2.0
#include "kernels/nvrtc_passed.h"

#include "backends/cuda/driver/nvrtc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "kernels/arch.h"
#include "source_dir.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <map>
#include <set>
#include <sstream>

namespace ingot::test {

namespace {

std::string hash_text(const std::string& text) {
    return to_text(xxh3_128(std::as_bytes(std::span(text))));
}

std::string digest_of(const std::vector<NvrtcProgram>& programs) {
    std::set<std::string> parts;
    for (const NvrtcProgram& p : programs) {
        std::string options;
        for (const std::string& o :
             cuda::nvrtc_options(std::string(kernels::arch_of(p.cc).nvrtc))) {
            options += o + ' ';
        }
        parts.insert(str(hash_text(p.text), ' ', p.cc, ' ', p.shared, ' ', options));
    }
    std::string all = str(cuda::nvrtc_version(), '\n');
    for (const char* rules : {"nvrtc_check.cpp", "nvrtc_known.txt"}) {
        all += read_text_file(str(source_dir(), "/tests/kernels/", rules));
    }
    for (const std::string& part : parts) {
        all += part + '\n';
    }
    return hash_text(all);
}

/// Name -> digest.
std::map<std::string, std::string> parsed(const std::string& text) {
    std::map<std::string, std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        if (size_t tab = line.find('\t'); tab != std::string::npos) {
            out[line.substr(0, tab)] = line.substr(tab + 1);
        }
    }
    return out;
}

} // namespace

std::string passed_file() {
    return source_dir() + "/tests/kernels/nvrtc_passed.txt";
}

bool have_passed(const std::string& name, const std::vector<NvrtcProgram>& programs,
                 const std::string& file) {
    if (!missing_nvrtc().empty() || !file_exists(file)) { // it chooses the pinned one
        return false;
    }
    std::map<std::string, std::string> listed = parsed(read_text_file(file));
    auto it = listed.find(name);
    return it != listed.end() && it->second == digest_of(programs);
}

void list_passed(const std::string& name, const std::vector<NvrtcProgram>& programs,
                 const std::string& file) {
    std::string digest = digest_of(programs);
    int lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock < 0 || ::flock(lock, LOCK_EX) != 0) {
        ADD_FAILURE() << file << " cannot be written";
        return;
    }
    std::map<std::string, std::string> listed = parsed(read_text_file(file));
    listed[name] = digest;
    std::string text =
        "# Sets of programs that NVRTC compiled well (nvrtc_passed.h), and digests.\n";
    for (const auto& [set, value] : listed) {
        text += str(set, '\t', value, '\n');
    }
    bool good = ::ftruncate(lock, 0) == 0 &&
                ::pwrite(lock, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
    ::close(lock);
    EXPECT_TRUE(good) << file << " is not whole";
}

} // namespace ingot::test
