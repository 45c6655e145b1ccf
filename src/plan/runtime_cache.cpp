// SPDX-License-Identifier: Apache-2.0
#include "plan/runtime_cache.h"

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace ingot::plan {

namespace {

namespace fs = std::filesystem;

constexpr char magic[8] = {'I', 'N', 'G', 'O', 'T', 'K', 'R', 'N'};
constexpr uint32_t format_version = 1;
/// Part of every key: counts changes of how kernels are called.
constexpr uint32_t kernel_abi = 1;
constexpr std::string_view suffix = ".kernel";
constexpr size_t longest_text = 256;

/// The fixed part of an entry; compiler and NVRTC version follow as text, then the binary.
struct Header {
    char magic[8];
    uint32_t version;
    uint32_t compiler_bytes;
    uint32_t nvrtc_bytes;
    uint32_t reserved;
    uint64_t binary_bytes;
    uint64_t hash_high; // XXH3-128 of everything behind the header
    uint64_t hash_low;
};

struct Parsed {
    std::string_view compiler;
    std::string_view nvrtc;
    std::string_view binary;
    std::string problem;
};

Parsed parse(std::span<const std::byte> bytes) {
    Parsed p;
    Header h{};
    if (bytes.size() < sizeof h) {
        p.problem = str("it has ", bytes.size(), " bytes, a header has ", sizeof h);
        return p;
    }
    std::memcpy(&h, bytes.data(), sizeof h);
    std::span<const std::byte> rest = bytes.subspan(sizeof h);
    if (std::memcmp(h.magic, magic, sizeof magic) != 0 || h.version != format_version) {
        p.problem = "it is not a kernel of this version";
        return p;
    }
    if (h.compiler_bytes > longest_text || h.nvrtc_bytes > longest_text ||
        h.binary_bytes !=
            rest.size() - std::min<size_t>(rest.size(), h.compiler_bytes + h.nvrtc_bytes) ||
        rest.size() < h.compiler_bytes + h.nvrtc_bytes) {
        p.problem = str("its parts do not add up to ", bytes.size(), " bytes");
        return p;
    }
    Hash128 hash = xxh3_128(rest);
    if (hash.high != h.hash_high || hash.low != h.hash_low) {
        p.problem = "its checksum is wrong";
        return p;
    }
    std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
    p.compiler = text.substr(0, h.compiler_bytes);
    p.nvrtc = text.substr(h.compiler_bytes, h.nvrtc_bytes);
    p.binary = text.substr(h.compiler_bytes + h.nvrtc_bytes);
    return p;
}

std::string path_of(const std::string& folder, const CacheKey& key) {
    return folder + "/" + to_text(key.hash) + std::string(suffix);
}

} // namespace

CacheKey cache_key(std::string_view text, std::string_view compiler) {
    HashStream s(false);
    std::string head = str("abi ", kernel_abi, ' ', compiler, '\n');
    s.add(std::as_bytes(std::span(head)));
    s.add(std::as_bytes(std::span(text)));
    return {s.xxh3(), std::string(compiler)};
}

RuntimeCache::RuntimeCache(std::string folder) : folder_(std::move(folder)) {}

std::string RuntimeCache::default_folder() {
    if (const char* chosen = std::getenv("INGOT_RUNTIME_CACHE")) {
        return chosen;
    }
    if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != 0) {
        return str(xdg, "/ingot/kernels");
    }
    if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0) {
        return str(home, "/.cache/ingot/kernels");
    }
    return {};
}

std::optional<std::string> RuntimeCache::find(const CacheKey& key) {
    std::string path = path_of(folder_, key);
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
        return std::nullopt;
    }
    try {
        auto file = MappedFile::open(path);
        Parsed p = parse(file->bytes());
        if (p.problem.empty() && p.compiler == key.compiler) {
            return std::string(p.binary);
        }
        log(LogLevel::Warning, "runtime cache: ", path,
            " is left out: ", p.problem.empty() ? "it was made by another compiler" : p.problem);
        fs::remove(path, ignored);
    } catch (const Error& e) {
        log(LogLevel::Verbose, "runtime cache: ", e.what());
    }
    return std::nullopt;
}

void RuntimeCache::add(const CacheKey& key, std::string_view binary,
                       const std::string& nvrtc) noexcept {
    static std::atomic<bool> warned{false};
    try {
        std::error_code problem;
        fs::create_directories(folder_, problem);
        std::string rest = key.compiler + nvrtc;
        rest += binary;
        Hash128 hash = xxh3_128(std::as_bytes(std::span(rest)));
        Header h{};
        std::memcpy(h.magic, magic, sizeof magic);
        h.version = format_version;
        h.compiler_bytes = static_cast<uint32_t>(key.compiler.size());
        h.nvrtc_bytes = static_cast<uint32_t>(nvrtc.size());
        h.binary_bytes = binary.size();
        h.hash_high = hash.high;
        h.hash_low = hash.low;
        AtomicFile file(path_of(folder_, key));
        file.write(std::as_bytes(std::span(&h, 1)));
        file.write(rest);
        file.commit();
    } catch (const std::exception& e) {
        if (!warned.exchange(true)) {
            log(LogLevel::Warning, "runtime cache: nothing is kept: ", e.what());
        }
    }
}

std::vector<RuntimeCache::Entry> RuntimeCache::list() const {
    std::vector<Entry> all;
    std::error_code problem;
    for (const auto& f : fs::directory_iterator(folder_, problem)) {
        std::string name = f.path().filename().string();
        if (!name.ends_with(suffix)) {
            continue;
        }
        Entry e{name, f.file_size(problem), {}, {}, {}};
        try {
            auto file = MappedFile::open(f.path().string());
            Parsed p = parse(file->bytes());
            e.compiler = p.compiler;
            e.nvrtc = p.nvrtc;
            e.problem = p.problem;
        } catch (const Error& error) {
            e.problem = error.message();
        }
        all.push_back(std::move(e));
    }
    std::sort(all.begin(), all.end(),
              [](const Entry& a, const Entry& b) { return a.file < b.file; });
    return all;
}

int RuntimeCache::clear() {
    int removed = 0;
    std::error_code problem;
    for (const Entry& e : list()) {
        removed += fs::remove(fs::path(folder_) / e.file, problem) ? 1 : 0;
    }
    return removed;
}

} // namespace ingot::plan
