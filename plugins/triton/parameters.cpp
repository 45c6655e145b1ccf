// SPDX-License-Identifier: Apache-2.0
// The parameters of a model's configuration that this backend has.
#include "plugins/triton/config.h"
#include "plugins/triton/fields.h"

#include <charconv>

namespace ingot::triton {

namespace {

/// A context keeps this many plans (CompileOptions::cached_plans): more would push each other out.
constexpr size_t most_buckets = 16;

int64_t number(std::string_view text, std::string_view name) {
    int64_t out = 0;
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    require(error == std::errc() && at == text.data() + text.size() && out >= 1 && out <= 1 << 20,
            ErrorCode::InvalidArgument, "parameter '", name,
            "': a number of 1 to 1048576 is "
            "expected, got '",
            text, "'");
    return out;
}

void read_buckets(const std::string& text, Parameters& p) {
    if (text == "none") {
        p.pads = false;
        return;
    }
    size_t at = 0;
    while (at <= text.size()) {
        size_t end = std::min(text.find(',', at), text.size());
        int64_t bucket = number(std::string_view(text).substr(at, end - at), "buckets");
        require(p.buckets.empty() || bucket > p.buckets.back(), ErrorCode::InvalidArgument,
                "parameter 'buckets': each is larger than the one before, got '", text, "'");
        p.buckets.push_back(bucket);
        at = end + 1;
    }
    require(p.buckets.size() <= most_buckets, ErrorCode::InvalidArgument,
            "parameter 'buckets': ", p.buckets.size(), " of them, at most ", most_buckets,
            " are kept");
}

void read_threads(const std::string& text, Parameters& p) {
    p.threads = static_cast<int32_t>(number(text, "threads"));
}

void read_intra_op_threads(const std::string& text, Parameters& p) {
    p.threads = text == "0" ? 0 : static_cast<int32_t>(number(text, "intra_op_thread_count"));
}

void read_hang_timeout(const std::string& text, Parameters& p) {
    p.hang_timeout_ms = text == "0" ? 0 : number(text, "hang_timeout_ms");
}

void read_batch_invariant(const std::string& text, Parameters& p) {
    require(text == "true" || text == "false", ErrorCode::InvalidArgument,
            "parameter 'batch_invariant': true or false is expected, got '", text, "'");
    p.batch_invariant = text == "true";
}

struct ParameterRow {
    const char* name;
    void (*read)(const std::string& text, Parameters& p);
};
constexpr ParameterRow rows[] = {
    {"batch_invariant", read_batch_invariant},        {"buckets", read_buckets},
    {"hang_timeout_ms", read_hang_timeout},           {"threads", read_threads},
    {"intra_op_thread_count", read_intra_op_threads},
};

} // namespace

Parameters read_parameters(const std::map<std::string, std::string>& texts,
                           std::vector<std::string>& notes) {
    Parameters out;
    for (const auto& [name, text] : texts) {
        judge_field(Place::Parameter, name, notes);
        for (const ParameterRow& row : rows) {
            if (name == row.name) {
                row.read(text, out);
            }
        }
    }
    return out;
}

} // namespace ingot::triton
