// SPDX-License-Identifier: Apache-2.0
#include "emulator/compile.h"

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"
#include "emulator/kept.h"
#include "kernels/family.h"
#include "source_dir.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>

namespace ingot::emulator {

namespace {

const std::string headers = source_dir() + "/tests/";
constexpr const char* header_names[] = {"emulator/abi.h", "emulator/cuda_host.h",
                                        "emulator/ptx_host.h"};

// Wrap-around and type punning behave as on the GPU; misaligned vectors, out-of-range indices of
// local arrays and excessive shifts trap. Lines (-g1) would take a quarter of the time:
// with_lines() adds them for a library that had a fault.
constexpr const char* flags[] = {
    "-std=c++17",
    "-O1",
    "-shared",
    "-fPIC",
    "-w",
    "-nostdlib",
    "-pipe",
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fvisibility=hidden",
    "-fno-gnu-unique",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-math-errno",
    "-fno-stack-protector",
    "-fsanitize=alignment,bounds,shift-exponent",
    "-fsanitize-undefined-trap-on-error",
};

std::mutex mutex;

struct Known {
    std::vector<CompiledProgram> programs;
    std::set<std::pair<Hash128, int>,
             bool (*)(const std::pair<Hash128, int>&, const std::pair<Hash128, int>&)>
        seen{[](const auto& a, const auto& b) {
            return std::tuple(a.first.high, a.first.low, a.second) <
                   std::tuple(b.first.high, b.first.low, b.second);
        }};
    std::map<std::string, std::string> paths; // of libraries, by the hash of their bytes
    std::map<std::string, void*> handles;     // by path
};

Known& known() {
    static Known k;
    return k;
}

std::string hash_of(std::string_view bytes) {
    return to_text(xxh3_128(std::as_bytes(std::span(bytes.data(), bytes.size()))));
}

/// A newer g++ compiles the texts anew.
std::string compiler_version() {
#ifdef __clang__
    std::string version = run_process({"g++", "-dumpfullversion"}).output;
    return version.substr(0, version.find('\n'));
#else
    return __VERSION__; // the same g++ built this
#endif
}

const std::string& header_texts() {
    static const std::string all = [] {
        std::string t = compiler_version();
        for (const char* name : header_names) {
            t += with_parts(read_text_file(headers + name), source_dir() + "/tests");
        }
        for (const char* flag : flags) {
            t += flag;
        }
        return t;
    }();
    return all;
}

std::string without_comments(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size();) {
        if (text.substr(i, 2) == "//") {
            i = std::min(text.find('\n', i), text.size());
        } else if (text.substr(i, 2) == "/*") {
            i = std::min(text.find("*/", i), text.size() - 2) + 2;
        } else {
            out += text[i++];
        }
    }
    return out;
}

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Reads tokens of C++: words, and single characters.
struct Tokens {
    std::string_view text;
    size_t at = 0;

    std::string next() {
        while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0) {
            ++at;
        }
        size_t begin = at;
        while (at < text.size() && is_word(text[at])) {
            ++at;
        }
        if (at == begin && at < text.size()) {
            ++at;
        }
        return std::string(text.substr(begin, at - begin));
    }
    /// The text between the next parenthesis and its partner.
    std::string parenthesised() {
        next();
        size_t begin = at;
        for (int depth = 1; at < text.size(); ++at) {
            depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
            if (depth == 0) {
                break;
            }
        }
        return std::string(text.substr(begin, at++ - begin));
    }
};

/// Entries of a text with the text of their launch bounds ("" for none).
std::map<std::string, std::string> entries_of(std::string_view text) {
    std::string clean = without_comments(text);
    std::map<std::string, std::string> out;
    Tokens tokens{clean};
    for (std::string t = tokens.next(); !t.empty(); t = tokens.next()) {
        if (t == "#") { // a definition is no kernel
            tokens.at = std::min(clean.find('\n', tokens.at), clean.size());
        }
        if (t != "KERNEL" && t != "__global__") {
            continue;
        }
        std::string bounds;
        std::string name;
        for (t = tokens.next(); !t.empty() && t != "(" && t != ";"; t = tokens.next()) {
            if (t == "__launch_bounds__") {
                bounds = tokens.parenthesised();
            } else {
                name = t;
            }
        }
        if (t == "(") {
            out[name] = bounds;
        }
    }
    return out;
}

std::string host_text(const std::string& text, int cc) {
    std::string_view ptx = kernels::device_file("ptx");
    require(text.starts_with(ptx), ErrorCode::Device,
            "emulator: device text does not begin with the intrinsics file");
    std::string_view own = std::string_view(text).substr(ptx.size());
    std::map<std::string, std::string> entries = entries_of(own);
    std::string out;
    if (own.find("__CUDA_ARCH") != std::string_view::npos) {
        out = str("#define __CUDA_ARCH__ ", cc * 10, '\n');
        if (cc == 90 || cc == 100) {
            out += str("#define __CUDA_ARCH_FEAT_SM", cc, "_ALL 1\n");
        }
    }
    out += "namespace ingot_outside {\nstruct ingot_missing {};\n";
    for (const auto& [name, bounds] : entries) {
        out += str("static ingot_missing ", name, ";\n");
    }
    out += "namespace ingot_device {\n";
    for (const char* name : header_names) {
        out += str("#include \"", name, "\"\n");
    }
    out += "#line 1 \"device_text\"\n";
    out += own;
    out += "\n";
    for (const auto& [name, bounds] : entries) {
        out += str("INGOT_ENTRY(", name, ", ",
                   bounds.empty() ? "1024" : str("(INGOT_FIRST(", bounds, ", 0))"), ")\n");
    }
    return out + "}\n}\n";
}

std::string first_lines(const std::string& text, int count) {
    size_t at = 0;
    for (int i = 0; i < count && at != std::string::npos; ++i) {
        at = text.find('\n', at + 1);
    }
    return text.substr(0, at);
}

/// Compiles <stem>.cpp to <stem><suffix>.
void build(const std::string& stem, const char* suffix, const std::vector<std::string>& more = {}) {
    static std::atomic<int> counter{0};
    std::string temporary = str(stem, '.', getpid(), '.', counter++, ".tmp");
    std::vector<std::string> command{"g++"};
    command.insert(command.end(), std::begin(flags), std::end(flags));
    command.insert(command.end(), more.begin(), more.end());
    command.insert(command.end(), {"-I", headers, "-o", temporary, stem + ".cpp"});
    ProcessResult r = run_process(command);
    if (r.exit_code != 0) {
        std::remove(temporary.c_str());
        fail(ErrorCode::Device, "emulator: the text does not compile (", stem, ".cpp):\n",
             first_lines(r.output, 40));
    }
    require(std::rename(temporary.c_str(), (stem + suffix).c_str()) == 0, ErrorCode::Io,
            "cannot write ", stem, suffix);
}

void note(const std::string& text, int cc, const std::string& library, const std::string& path) {
    std::lock_guard lock(mutex);
    Known& k = known();
    if (k.seen.emplace(xxh3_128(std::as_bytes(std::span(text))), cc).second) {
        k.programs.push_back({text, cc});
    }
    k.paths.emplace(hash_of(library), path);
}

/// As in cuda_host.h.
struct RawEntry {
    void (*call)(void* const*);
    const unsigned* sizes;
    int count;
    unsigned most_threads;
    Thread** current;
    char* shared;
    char* shared_end;
};

void* open_library(std::string_view library, const std::string& folder) {
    std::string hash = hash_of(library);
    std::lock_guard lock(mutex);
    Known& k = known();
    auto path = k.paths.find(hash);
    if (path == k.paths.end()) {
        std::string file = str(folder, "/loaded_", hash, ".so");
        if (!file_exists(file)) {
            write_file(file, library);
        }
        path = k.paths.emplace(hash, file).first;
    }
    void*& handle = k.handles[path->second];
    if (handle == nullptr) {
        handle = dlopen(path->second.c_str(), RTLD_LAZY | RTLD_LOCAL);
        const char* why = handle == nullptr ? dlerror() : nullptr;
        require(handle != nullptr, ErrorCode::Device,
                "emulator: cannot load a program: ", why != nullptr ? why : "");
    }
    return handle;
}

} // namespace

std::string with_parts(std::string_view text, const std::string& folder) {
    constexpr std::string_view include = "#include \"emulator/";
    constexpr std::string_view once = "#pragma once\n\n";
    std::string out;
    while (!text.empty()) {
        const std::string_view line =
            text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
        text.remove_prefix(line.size());
        if (!line.starts_with(include)) {
            out += line;
            continue;
        }
        const std::string_view name =
            line.substr(include.size(), line.find_last_of('"') - include.size());
        const std::string part = read_text_file(str(folder, "/emulator/", name));
        const size_t begin = part.find(once);
        require(begin != std::string::npos, ErrorCode::Device, "emulator: the header ", name,
                " has no line '#pragma once' with an empty one behind it");
        out += with_parts(std::string_view(part).substr(begin + once.size()), folder);
    }
    return out;
}

/// Where the library of this source is kept, less the suffix.
static std::string stem_of(const std::string& source, const std::string& folder) {
    return str(folder, '/', hash_of(source + header_texts()));
}

bool is_compiled(const std::string& text, int cc, const std::string& folder) {
    return found_kept(stem_of(host_text(text, cc), folder) + ".so");
}

std::string compile_text(const std::string& text, int cc, const std::string& folder) {
    std::string source = host_text(text, cc);
    std::string stem = stem_of(source, folder);
    if (!found_kept(stem + ".cpp")) {
        write_file(stem + ".cpp", std::string_view(source));
    }
    if (!found_kept(stem + ".so")) {
        build(stem, ".so");
    }
    std::string library = read_text_file(stem + ".so");
    note(text, cc, library, stem + ".so");
    return library;
}

std::string with_lines(const std::string& library) {
    constexpr std::string_view suffix = ".so";
    std::string stem = library.substr(0, library.size() - suffix.size());
    try {
        if (!found_kept(stem + ".lines")) {
            build(stem, ".lines", {"-g1"});
        }
        return stem + ".lines";
    } catch (const Error&) { // its text is gone
        return library;
    }
}

Entry load_entry(std::string_view library, const std::string& name, const std::string& folder) {
    void* handle = open_library(library, folder);
    void* symbol = dlsym(handle, ("ingot_entry_" + name).c_str());
    RawEntry raw{};
    if (symbol != nullptr) {
        reinterpret_cast<void (*)(RawEntry*)>(symbol)(&raw);
    }
    require(raw.call != nullptr, ErrorCode::Device, "emulator: no kernel '", name,
            "' in the program (a kernel is written `KERNEL void __launch_bounds__(n) name(...)`)");
    Entry e;
    e.name = name;
    e.call = raw.call;
    e.current = raw.current;
    e.most_threads = raw.most_threads;
    e.shared = reinterpret_cast<std::byte*>(raw.shared);
    e.shared_bytes = static_cast<size_t>(raw.shared_end - raw.shared);
    e.parameter_sizes.assign(raw.sizes, raw.sizes + raw.count);
    return e;
}

std::vector<CompiledProgram> compiled_programs() {
    std::lock_guard lock(mutex);
    return known().programs;
}

} // namespace ingot::emulator
