// SPDX-License-Identifier: Apache-2.0
// The seeds of fuzz_emulated run on the emulator; arguments that lead a kernel out of its memory
// are found.
#include "base/file.h"
#include "counts.h"
#include "emulator/cluster.h"
#include "fuzz/emulated_run.h"
#include "source_dir.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace ingot::test {
namespace {

using hostile::Counts;
using hostile::Fault;

std::vector<std::string> seeds() {
    std::vector<std::string> paths;
    for (const auto& entry :
         std::filesystem::directory_iterator(source_dir() + "/tests/fuzz/seeds/emulated")) {
        paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

/// The fault's text; "" for none.
std::string fault_of(const std::string& input, Counts& counts,
                     const emulator::EmulatedGpu::Meddler& meddler = {}) {
    hostile::CompileBudget budget;
    try {
        hostile::run_emulated({reinterpret_cast<const uint8_t*>(input.data()), input.size()},
                              budget, counts, meddler);
    } catch (const Fault& f) {
        return f.text;
    }
    return {};
}

TEST(HostileRuns, SeedsRunTheirKernels) {
    Counts all;
    std::vector<std::string> paths = seeds();
    ASSERT_GE(paths.size(), 40U);
    for (const std::string& path : paths) {
        SCOPED_TRACE(path);
        Counts counts;
        EXPECT_EQ(fault_of(read_text_file(path), counts), "");
        EXPECT_GE(counts.planned, 1);
        EXPECT_GE(counts.launches, 1);
        EXPECT_EQ(counts.lacking, 0);
        all.planned += counts.planned;
        all.refused += counts.refused;
    }
    EXPECT_GE(all.refused, 1);
    record_injections(all.planned, all.refused);
}

/// Changes a parameter; false where it is not of the kind.
using Move = std::function<bool(const emulator::Memory&, unsigned size, void* parameter)>;

/// Moves parameter `which` of every launch; `moved` tells whether there was one.
emulator::EmulatedGpu::Meddler moving(size_t which, const Move& move, bool& moved) {
    return [=, &moved](const emulator::Memory& m, const emulator::Entry& e, void* const* p) {
        if (which < e.parameter_sizes.size() && move(m, e.parameter_sizes[which], p[which])) {
            moved = true;
        }
    };
}

/// To the end of its allocation.
bool move_pointer(const emulator::Memory& m, unsigned size, void* parameter) {
    std::byte* p = nullptr;
    if (size != sizeof p) {
        return false;
    }
    std::memcpy(&p, parameter, sizeof p);
    int64_t left = m.left(p);
    p += (left + 15) / 16 * 16;
    std::memcpy(parameter, &p, sizeof p);
    return left > 0;
}

/// A size, index or stride of 32 bits becomes far too large.
bool grow_number(const emulator::Memory&, unsigned size, void* parameter) {
    uint32_t n = 0;
    if (size != sizeof n) {
        return false;
    }
    std::memcpy(&n, parameter, sizeof n);
    bool is_small = n > 0 && n <= most_elements;
    n = is_small ? n + (1U << 16) : n;
    std::memcpy(parameter, &n, sizeof n);
    return is_small;
}

struct Planted {
    int all = 0;
    int found = 0;
};

/// Moves the first parameters of each seed's kernels, one in each run.
Planted plant(size_t parameters, const Move& move, std::string_view fault) {
    Planted n;
    for (const std::string& path : seeds()) {
        std::string input = read_text_file(path);
        for (size_t which = 0; which < parameters; ++which) {
            bool moved = false;
            Counts counts;
            std::string text = fault_of(input, counts, moving(which, move, moved));
            EXPECT_TRUE(moved || text.empty()) << path << ": " << text;
            n.all += moved ? 1 : 0;
            n.found += !text.empty() && text.find(fault) != std::string::npos ? 1 : 0;
        }
    }
    return n;
}

TEST(HostileRuns, PointersBehindTheirAllocationsAreFound) {
    Planted n = plant(2, move_pointer, "of an allocation of");
    EXPECT_GE(n.all, 200);
    EXPECT_EQ(n.found, n.all);
}

TEST(HostileRuns, NumbersThatAreTooLargeAreFound) {
    Planted n = plant(6, grow_number, "kernel '");
    EXPECT_GE(n.all, 60);
    EXPECT_GE(n.found, n.all * 3 / 4); // the others lead nowhere: an axis of one element
}

} // namespace
} // namespace ingot::test
