// SPDX-License-Identifier: Apache-2.0
#include "workflow/quantization/calibration_cache.h"

#include "base/error.h"
#include "base/file.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <unordered_map>

namespace ingot {

namespace {

constexpr size_t hex_digits = 8;
constexpr uint64_t size_limit = uint64_t{64} << 20U;

/// One line of the text, for messages.
struct Line {
    std::string_view where;
    size_t number;
    std::string_view text;

    template <class... Args>
    void check(bool good, const Args&... args) const {
        require(good, ErrorCode::InvalidArgument, where, ", line ", number, ": ", args...);
    }
    /// The line, quoted and truncated.
    std::string got() const {
        constexpr size_t most = 60;
        return quote(text.substr(0, most)) + (text.size() > most ? "..." : "");
    }
};

/// Removes blanks and a carriage return at the end.
std::string_view trimmed(std::string_view line) {
    size_t last = line.find_last_not_of(" \t\r");
    return line.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

void parse_header(const Line& l, CalibrationCache& out) {
    constexpr std::string_view start = "TRT-";
    std::string_view rest = l.text.starts_with(start) ? l.text.substr(start.size()) : "";
    size_t dash = rest.find('-');
    bool good = dash != std::string_view::npos && dash > 0 && dash + 1 < rest.size();
    l.check(good, "expected TRT-<version>-<algorithm>, such as TRT-8601-EntropyCalibration2, got ",
            l.text.empty() ? "nothing" : l.got());
    out.version = rest.substr(0, dash);
    out.algorithm = rest.substr(dash + 1);
}

float parse_scale(const Line& l, std::string_view name, std::string_view hex) {
    uint32_t bits = 0;
    auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), bits, 16);
    l.check(!hex.empty() && hex.size() <= hex_digits && error == std::errc() &&
                end == hex.data() + hex.size(),
            "scale of tensor ", quote(name), ": expected up to 8 hex digits, got ", quote(hex));
    auto scale = std::bit_cast<float>(bits);
    l.check(std::isfinite(scale) && scale >= 0, "scale of tensor ", quote(name),
            ": expected a number, 0 or more, got ", scale, " (", hex, ")");
    return scale;
}

void parse_tensor(const Line& l, CalibrationCache& out,
                  std::unordered_map<std::string, std::pair<float, size_t>>& seen) {
    size_t colon = l.text.rfind(": ");
    l.check(colon != std::string_view::npos, "expected 'tensor name: 8 hex digits', got ", l.got());
    std::string name(l.text.substr(0, colon));
    l.check(!name.empty(), "the tensor has no name: ", l.got());
    float scale = parse_scale(l, name, l.text.substr(colon + 2));
    auto [it, fresh] = seen.try_emplace(name, scale, l.number);
    l.check(fresh || it->second.first == scale, "tensor ", quote(name), " has scale ",
            it->second.first, " in line ", it->second.second, ", here it has ", scale);
    if (fresh) {
        out.scales.emplace_back(std::move(name), scale);
    }
}

} // namespace

const float* CalibrationCache::find(std::string_view tensor) const {
    auto it = std::find_if(scales.begin(), scales.end(),
                           [&](const auto& s) { return s.first == tensor; });
    return it == scales.end() ? nullptr : &it->second;
}

CalibrationCache parse_calibration_cache(std::string_view text, std::string_view where) {
    CalibrationCache out;
    std::unordered_map<std::string, std::pair<float, size_t>> seen;
    size_t number = 0;
    for (size_t start = 0; start < text.size() || number == 0;) {
        size_t end = std::min(text.find('\n', start), text.size());
        Line l{where, ++number, trimmed(text.substr(start, end - start))};
        if (number == 1) {
            parse_header(l, out);
        } else if (!l.text.empty()) {
            parse_tensor(l, out, seen);
        }
        start = end + 1;
    }
    return out;
}

CalibrationCache read_calibration_cache(const std::string& path) {
    std::error_code ignored; // reading reports other problems
    bool there =
        std::filesystem::status(path, ignored).type() != std::filesystem::file_type::not_found;
    require(there, ErrorCode::Io, path,
            ": there is no such calibration cache; make one from sample inputs: ingot calibrate "
            "MODEL.onnx --data DIR -o ",
            path, ", where DIR holds .npy, .png or .jpg files");
    return parse_calibration_cache(read_text_file(path, size_limit), path);
}

std::string print_calibration_cache(const CalibrationCache& cache) {
    std::string out = str("TRT-", cache.version, "-", cache.algorithm, "\n");
    for (const auto& [name, scale] : cache.scales) {
        require(!name.empty() && name.find('\n') == std::string::npos, ErrorCode::InvalidArgument,
                "calibration cache: tensor ", quote(name),
                " cannot be written: expected a name without line breaks");
        require(std::isfinite(scale) && scale >= 0, ErrorCode::InvalidArgument,
                "calibration cache: tensor ", quote(name), " has scale ", scale,
                ", expected a number, 0 or more");
        char hex[hex_digits + 1];
        std::snprintf(hex, sizeof hex, "%08x", std::bit_cast<uint32_t>(scale));
        append(out, str(name, ": ", std::string_view(hex), "\n"));
    }
    return out;
}

void write_calibration_cache(const CalibrationCache& cache, const std::string& path) {
    write_file(path, print_calibration_cache(cache));
}

} // namespace ingot
