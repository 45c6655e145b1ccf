// SPDX-License-Identifier: Apache-2.0
#include "kernels/nvrtc_check.h"

#include "backends/cuda/driver/nvrtc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "emulator/kept.h"
#include "source_dir.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <regex>
#include <sstream>
#include <thread>

namespace ingot::test {

namespace {

/// The most PTX of a program, which bounds the time that compiling it takes. Threads that read an
/// epilogue's operands early hold several rows of them, and have the text for each; persistent
/// blocks may have it for each result of a thread.
size_t most_ptx(std::string_view text) {
    auto has = [text](std::string_view define) { return text.find(define) != text.npos; };
    return size_t{has("#define REPEATED 2") ? 184U : has("#define EARLY 1") ? 104U : 64U} * 1024;
}
// The C library's slow path for large arguments of sin, cos and tan keeps this much in local
// memory; kernels that call them do not pay for it otherwise.
constexpr int trigonometry_bytes = 40;

const std::string& pinned() {
    static const std::string path = source_dir() + "/.deps/nvrtc/lib/libnvrtc.so.13";
    return path;
}

/// Makes the backend's loader take the pinned library and report resources. Once, before its
/// first use.
void choose_nvrtc() {
    static const bool done = [] {
        if (file_exists(pinned())) {
            setenv("INGOT_NVRTC", pinned().c_str(), 1);
        }
        setenv("INGOT_NVRTC_VERBOSE", "1", 1);
        return true;
    }();
    (void)done;
}

struct Compiled {
    std::string log;
    std::string error;
    double milliseconds = 0;
    size_t ptx_bytes = 0;
};

Compiled compile(const NvrtcProgram& p, const std::string& arch) {
    Compiled out;
    auto start = std::chrono::steady_clock::now();
    try {
        cuda::CompiledText c = cuda::nvrtc_compile(p.text, arch);
        out.log = c.log;
        out.ptx_bytes = c.ptx_bytes;
    } catch (const Error& e) {
        out.error = e.what();
    }
    out.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return out;
}

/// The file of a compilation's result: milliseconds, bytes of PTX, then the log.
std::string kept_at(const std::string& key) {
    return str(emulator::kept_folder(), "/nvrtc_", key, ".txt");
}

std::optional<Compiled> recall(const std::string& file) {
    if (!emulator::found_kept(file)) {
        return std::nullopt;
    }
    std::string kept = read_text_file(file);
    Compiled out;
    int used = 0;
    if (std::sscanf(kept.c_str(), "%lf %zu\n%n", &out.milliseconds, &out.ptx_bytes, &used) != 2) {
        return std::nullopt;
    }
    out.log = kept.substr(static_cast<size_t>(used));
    return out;
}

std::atomic<int> compilations{0};

Compiled compile_and_keep(const NvrtcProgram& p, const std::string& arch, const std::string& file) {
    ++compilations;
    Compiled out = compile(p, arch);
    if (out.error.empty()) {
        write_file(file,
                   std::string_view(str(out.milliseconds, ' ', out.ptx_bytes, '\n', out.log)));
    }
    return out;
}

/// Each text is compiled once for an architecture: by this process, whichever threads ask, and by
/// all processes of this user, until NVRTC or its options change.
const Compiled& compile_or_recall(const NvrtcProgram& p, const std::string& arch) {
    struct Slot {
        std::once_flag once;
        Compiled compiled;
    };
    static std::mutex mutex;
    static std::map<std::string, Slot> slots;
    std::string all = str(cuda::nvrtc_version(), '\n');
    for (const std::string& option : cuda::nvrtc_options(arch)) {
        all += option + '\n';
    }
    all += p.text;
    std::string key = to_text(xxh3_128(std::as_bytes(std::span(all))));
    std::unique_lock lock(mutex);
    Slot& slot = slots[key];
    lock.unlock();
    std::call_once(slot.once, [&] {
        std::string file = kept_at(key);
        std::optional<Compiled> known = recall(file);
        slot.compiled = known ? *known : compile_and_keep(p, arch, file);
    });
    return slot.compiled;
}

/// The largest number that stands before `unit` in the log.
int64_t largest(const std::string& log, const std::string& unit) {
    int64_t most = 0;
    std::regex pattern("([0-9]+) " + unit);
    for (auto it = std::sregex_iterator(log.begin(), log.end(), pattern);
         it != std::sregex_iterator(); ++it) {
        most = std::max(most, static_cast<int64_t>(std::stoll((*it)[1].str())));
    }
    return most;
}

std::string faults(const NvrtcProgram& p, const Compiled& c, const kernels::Arch& arch) {
    if (!c.error.empty()) {
        return c.error;
    }
    std::string out;
    auto check = [&out](bool ok, const auto&... text) {
        out += ok ? std::string() : str(text..., '\n');
    };
    check(c.log.find("Used ") != std::string::npos, "the log tells nothing of resources: ", c.log);
    int64_t spilled = largest(c.log, "bytes spill stores") + largest(c.log, "bytes spill loads");
    check(spilled == 0, spilled, " bytes are spilled");
    int64_t local = largest(c.log, "bytes stack frame");
    bool trigonometry = p.text.find("sinf(") != std::string::npos && local <= trigonometry_bytes;
    check(local == 0 || trigonometry, local, " bytes of local memory");
    int64_t shared = largest(c.log, "bytes smem") + p.shared;
    check(shared <= arch.shared_per_block, shared, " bytes of shared memory, a block has ",
          arch.shared_per_block);
    for (const char* warning : {"C7504", "C7509", "C7514"}) {
        check(c.log.find(warning) == std::string::npos, "wgmma is serialised (", warning, ')');
    }
    check(c.ptx_bytes > 0 && c.ptx_bytes <= most_ptx(p.text), c.ptx_bytes,
          " bytes of PTX, at most ", most_ptx(p.text));
    return out;
}

struct Allowance {
    int64_t spilled = 0;
    int64_t local = 0;
    size_t ptx_bytes = 0;
};

/// By "NAME for ARCH"; lines of name, spilled, local, PTX bytes, separated by tabs.
std::map<std::string, Allowance> read_known() {
    std::map<std::string, Allowance> known;
    std::istringstream in(read_text_file(source_dir() + "/tests/kernels/nvrtc_known.txt"));
    std::string line;
    while (std::getline(in, line)) {
        std::istringstream fields(line);
        std::string name;
        Allowance a;
        if (line.starts_with('#') || !std::getline(fields, name, '\t') ||
            !(fields >> a.spilled >> a.local >> a.ptx_bytes)) {
            continue;
        }
        known.emplace(name, a);
    }
    return known;
}

bool is_known(const std::string& name, const NvrtcReport& r) {
    static const std::map<std::string, Allowance> known = read_known();
    auto it = known.find(name);
    return it != known.end() && r.only_size && r.spilled <= it->second.spilled &&
           r.local <= it->second.local &&
           r.ptx_bytes <= std::max(it->second.ptx_bytes, most_ptx({}));
}

void append_fault(const std::string& name, const NvrtcReport& r) {
    if (const char* path = std::getenv("INGOT_NVRTC_OUT")) {
        std::ofstream(path, std::ios::app)
            << name << '\t' << r.spilled << '\t' << r.local << '\t' << r.ptx_bytes << '\n';
    }
}

} // namespace

std::string missing_nvrtc() {
    choose_nvrtc();
    return cuda::nvrtc_version().empty()
               ? "NVRTC is neither in .deps/nvrtc (./dev setup puts it there) nor installed"
               : "";
}

int nvrtc_compilations() {
    return compilations;
}

NvrtcReport check_by_nvrtc(const NvrtcProgram& p) {
    choose_nvrtc();
    const kernels::Arch& arch = kernels::arch_of(p.cc);
    const Compiled& c = compile_or_recall(p, std::string(arch.nvrtc));
    NvrtcReport r{faults(p, c, arch), c.milliseconds, c.ptx_bytes, 0, 0, false};
    r.spilled = largest(c.log, "bytes spill stores") + largest(c.log, "bytes spill loads");
    r.local = largest(c.log, "bytes stack frame");
    bool serialised = c.log.find("C75") != std::string::npos;
    int64_t shared = largest(c.log, "bytes smem") + p.shared;
    r.only_size = c.error.empty() && !serialised && shared <= arch.shared_per_block;
    return r;
}

bool expect_good_by_nvrtc(const std::vector<NvrtcProgram>& programs, const std::string& what) {
    if (std::string why = missing_nvrtc(); !why.empty()) {
        ADD_FAILURE() << why;
        return false;
    }
    int before = nvrtc_compilations();
    std::vector<NvrtcReport> reports(programs.size());
    std::atomic<size_t> next{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
        threads.emplace_back([&] {
            for (size_t k = next++; k < programs.size(); k = next++) {
                reports[k] = check_by_nvrtc(programs[k]);
            }
        });
    }
    for (std::thread& t : threads) {
        t.join();
    }
    size_t slowest = 0;
    double total = 0;
    bool good = true;
    for (size_t i = 0; i < reports.size(); ++i) {
        const NvrtcProgram& p = programs[i];
        std::string name = str(p.name, " for ", kernels::arch_of(p.cc).nvrtc);
        if (!reports[i].problems.empty()) {
            append_fault(name, reports[i]);
            bool known = is_known(name, reports[i]);
            EXPECT_TRUE(known) << name << " by NVRTC: " << reports[i].problems;
            good = good && known;
        }
        total += reports[i].milliseconds;
        slowest = reports[i].milliseconds > reports[slowest].milliseconds ? i : slowest;
    }
    if (!programs.empty()) {
        std::cout << "[  NVRTC   ] " << what << ": " << programs.size() << " programs, of which "
                  << nvrtc_compilations() - before << " were compiled now, "
                  << total / static_cast<double>(programs.size()) << " ms each, the slowest "
                  << programs[slowest].name << " for " << programs[slowest].cc << ": "
                  << reports[slowest].milliseconds << " ms\n";
    }
    return good;
}

} // namespace ingot::test
