// SPDX-License-Identifier: Apache-2.0
#include "base/shared_library.h"

#include "base/text.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

namespace ingot {

namespace {

/// Whether a 64-bit ELF file is complete: the loader maps the sizes that its headers declare, and
/// touching a page beyond the end of a truncated file ends the process.
bool is_whole(const std::string& path) {
    auto close = [](std::FILE* f) { std::fclose(f); };
    std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "rb"), close);
    Elf64_Ehdr header = {};
    if (file == nullptr || std::fread(&header, sizeof header, 1, file.get()) != 1 ||
        std::fseek(file.get(), 0, SEEK_END) != 0) {
        return false;
    }
    auto size = static_cast<uint64_t>(std::ftell(file.get()));
    uint64_t sections = uint64_t{header.e_shnum} * header.e_shentsize;
    return header.e_shoff <= size && sections <= size - header.e_shoff;
}

std::string folder_of(const std::string& path) {
    size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

} // namespace

namespace {

struct ChosenFolder {
    std::mutex mutex;
    std::string path;
};

ChosenFolder& chosen_folder() {
    static ChosenFolder chosen;
    return chosen;
}

} // namespace

void set_own_folder(std::string folder) {
    std::scoped_lock lock(chosen_folder().mutex);
    chosen_folder().path = std::move(folder);
}

std::string own_folder() {
    {
        std::scoped_lock lock(chosen_folder().mutex);
        if (!chosen_folder().path.empty()) {
            return chosen_folder().path;
        }
    }
    Dl_info info = {};
    link_map* map = nullptr;
    if (::dladdr1(reinterpret_cast<const void*>(&own_folder), &info, reinterpret_cast<void**>(&map),
                  RTLD_DL_LINKMAP) != 0 &&
        map != nullptr && map->l_name[0] == '/') {
        return folder_of(map->l_name);
    }
    std::string path(4096, '\0');
    ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
    return length <= 0 ? std::string() : folder_of(path.substr(0, static_cast<size_t>(length)));
}

bool same_library(const void* a, const void* b) {
    Dl_info first = {};
    Dl_info second = {};
    return ::dladdr(a, &first) != 0 && ::dladdr(b, &second) != 0 &&
           first.dli_fbase == second.dli_fbase;
}

SharedLibrary SharedLibrary::open(const std::string& path, std::string& problem) {
    SharedLibrary library;
    bool is_searched = path.find('/') == std::string::npos; // the loader searches its own folders
    if (!is_searched && ::access(path.c_str(), R_OK) != 0) {
        problem = str("'", path, "' does not exist or cannot be read");
    } else if (!is_searched && !is_whole(path)) {
        problem = str("'", path, "' is not a whole shared library");
    } else {
        library.handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library.handle_ == nullptr) {
            problem = ::dlerror();
        }
    }
    return library;
}

void* SharedLibrary::symbol(const char* name) const {
    return ::dlsym(handle_, name);
}

} // namespace ingot
