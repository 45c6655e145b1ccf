// SPDX-License-Identifier: Apache-2.0
#include "golden.h"

#include "source_dir.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace ingot {

bool writes_goldens() {
    const char* v = std::getenv("INGOT_WRITE_GOLDENS");
    return v != nullptr && std::string(v) == "1";
}

namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> out;
    for (std::string line; std::getline(in, line);) {
        out.push_back(line);
    }
    return out;
}

/// The lines from `begin` to `end`, the first ones of many.
std::string shown(const std::vector<std::string>& lines, size_t begin, size_t end, char sign) {
    constexpr size_t most = 20;
    std::string out;
    for (size_t i = begin; i < std::min(end, begin + most); ++i) {
        out += sign + lines[i] + '\n';
    }
    return end <= begin + most
               ? out
               : out + sign + "... " + std::to_string(end - begin - most) + " more lines\n";
}

} // namespace

std::string line_difference(const std::string& expected, const std::string& got) {
    std::vector<std::string> a = lines_of(expected);
    std::vector<std::string> b = lines_of(got);
    size_t same = 0;
    while (same < std::min(a.size(), b.size()) && a[same] == b[same]) {
        ++same;
    }
    size_t tail = 0;
    while (tail < std::min(a.size(), b.size()) - same &&
           a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) {
        ++tail;
    }
    return expected == got
               ? ""
               : "from line " + std::to_string(same + 1) + ", '-' expected, '+' got:\n" +
                     shown(a, same, a.size() - tail, '-') + shown(b, same, b.size() - tail, '+');
}

std::string golden_difference(const std::string& path, const std::string& text) {
    std::filesystem::path file = std::filesystem::path(source_dir()) / path;
    if (writes_goldens()) {
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
        return "";
    }
    std::ifstream in(file);
    if (!in) {
        return path + " is not there: INGOT_WRITE_GOLDENS=1 writes it";
    }
    std::ostringstream expected;
    expected << in.rdbuf();
    std::string difference = line_difference(expected.str(), text);
    return difference.empty() ? ""
                              : path +
                                    " holds another text; where the new one is right, "
                                    "INGOT_WRITE_GOLDENS=1 writes it\n" +
                                    difference;
}

} // namespace ingot
