// SPDX-License-Identifier: Apache-2.0
#include "base/private_files.h"

#include "base/file.h"
#include "base/text.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace ingot {

std::string why_untrusted(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
        return "";
    }
    uid_t own = ::geteuid();
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) {
        return str("'", path, "' is neither a folder nor a file: give another path");
    }
    if (info.st_uid != own && info.st_uid != 0) {
        return str("'", path, "' belongs to user ", info.st_uid, ", this is user ", own,
                   ": give a path of your own, or remove it");
    }
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return str("'", path,
                   "' can be written by other users: chmod go-w it, once nothing in it is "
                   "theirs");
    }
    return "";
}

void make_private_folder(const std::string& path) noexcept {
    try {
        std::error_code ignored;
        std::filesystem::create_directories(parent_folder(path), ignored);
        (void)::mkdir(path.c_str(), S_IRWXU);
    } catch (const std::exception&) {
        return; // a later write there fails and reports it
    }
}

void keep_others_from_writing(const std::string& path) noexcept {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0 && (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        constexpr mode_t all = 07777;
        (void)::chmod(path.c_str(), info.st_mode & all & ~mode_t{S_IWGRP | S_IWOTH});
    }
}

} // namespace ingot
