// SPDX-License-Identifier: Apache-2.0
#include "op_case.h"

#include "base/error.h"
#include "base/hash.h"
#include "ir/text.h"
#include "op_test.h"
#include "ops/op_table.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace ingot::test {

namespace {

std::vector<std::string> split(std::string_view text, char by) {
    std::vector<std::string> out;
    while (true) {
        size_t end = text.find(by);
        out.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            return out;
        }
        text.remove_prefix(end + 1);
    }
}

std::vector<std::string> words(std::string_view text) {
    std::vector<std::string> out;
    for (std::string& w : split(text, ' ')) {
        if (!w.empty()) {
            out.push_back(std::move(w));
        }
    }
    return out;
}

template <class T>
T number(std::string_view text) {
    T v{};
    auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), v);
    require(failed == std::errc() && end == text.data() + text.size(), ErrorCode::InvalidArgument,
            "'", text, "' is not a number");
    return v;
}

CaseInput parse_input(std::string_view text) {
    CaseInput in;
    in.operand = !text.starts_with('-');
    text.remove_prefix(in.operand ? 0 : 1);
    size_t colon = text.find(':');
    in.type = parse_type(text.substr(0, colon));
    if (colon == std::string_view::npos) {
        return in;
    }
    std::string_view fill = text.substr(colon + 1);
    if (fill.starts_with('=')) {
        in.values = fill.size() == 1 ? std::vector<std::string>{} : split(fill.substr(1), ',');
        return in;
    }
    size_t dots = fill.find("..");
    require(dots != std::string_view::npos, ErrorCode::InvalidArgument, "'", text,
            "': expected type:from..to or type:=values");
    in.from = fill.substr(0, dots);
    in.to = fill.substr(dots + 2);
    return in;
}

void parse_options(OpCase& c, const std::vector<std::string>& options) {
    for (size_t i = 0; i < options.size(); ++i) {
        bool last = i + 1 == options.size();
        if (options[i] == "tol" && !last) {
            c.tolerance = number<double>(options[++i]);
        } else if (options[i] == "evaluator-only") {
            c.evaluator_only = true;
        } else if (options[i] == "exact") {
            c.exact = true;
        } else if (options[i] == "want" && !last) {
            c.want.push_back(split(options[++i], ','));
        } else if (size_t equals = options[i].find('='); equals != std::string::npos) {
            std::vector<int64_t>& values = c.sizes[options[i].substr(0, equals)];
            for (const std::string& v : split(options[i].substr(equals + 1), ',')) {
                values.push_back(number<int64_t>(v));
            }
        } else {
            fail(ErrorCode::InvalidArgument, "'", options[i], "' is not an option of a case");
        }
    }
}

// Symbols without given values take 1, 3 and 4, each starting at another one.
void complete_sizes(OpCase& c) {
    std::set<std::string, std::less<>> names;
    for (const CaseInput& in : c.inputs) {
        for (const Dim& d : in.type.dims) {
            d.collect_symbols(names);
        }
    }
    std::vector<int64_t> usual = {1, 3, 4};
    for (const std::string& n : names) {
        if (c.sizes.try_emplace(n, usual).second) {
            std::rotate(usual.begin(), usual.begin() + 1, usual.end());
        }
    }
}

void fill_random(Tensor& t, const CaseInput& in, const Symbols& symbols, Numbers& numbers) {
    DType d = t.dtype();
    if (is_float(d)) {
        double from = in.from.empty() ? -2 : number<double>(in.from);
        double to = in.to.empty() ? 2 : number<double>(in.to);
        for (int64_t i = 0; i < t.count(); ++i) {
            t.set_f64(i, from + (to - from) * numbers.unit());
        }
        return;
    }
    int64_t from = is_signed(d) ? -4 : 0;
    int64_t to = d == DType::Bool ? 2 : from + 8;
    if (!in.from.empty()) {
        from = parse_dim(in.from).eval(symbols);
        to = parse_dim(in.to).eval(symbols);
    }
    require(from < to || t.count() == 0, ErrorCode::InvalidArgument, "no values in ", from, "..",
            to);
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_i64(i, from + numbers.below(to - from));
    }
}

} // namespace

OpCase parse_case(const std::string& place, const std::string& text) {
    OpCase c;
    c.place = place;
    c.text = text;
    std::vector<std::string> parts = split(text, '|');
    require(parts.size() <= 3 && parts[0].starts_with("op "), ErrorCode::InvalidArgument,
            "expected 'op NAME ATTRIBUTES | TYPES | OPTIONS'");
    std::string_view head = std::string_view(parts[0]).substr(3);
    size_t end = head.find(' ');
    std::string_view name = head.substr(0, end);
    c.def = find_op(name);
    require(c.def != nullptr, ErrorCode::InvalidArgument, "'", name, "' is not an op");
    ParseOptions options;
    options.find_op = find_op;
    std::string_view attrs = end == std::string_view::npos ? "" : head.substr(end);
    c.attrs = parse_attrs(*c.def, attrs, options);
    for (const std::string& w : words(parts.size() > 1 ? parts[1] : "")) {
        c.inputs.push_back(parse_input(w));
    }
    parse_options(c, words(parts.size() > 2 ? parts[2] : ""));
    require(!c.exact || !c.want.empty(), ErrorCode::InvalidArgument,
            "'exact' says how well a 'want' is met, and there is none");
    complete_sizes(c);
    return c;
}

std::vector<CaseLine> list_cases(const std::string& folder) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() == ".case") {
            files.push_back(entry.path().filename().string());
        }
    }
    std::sort(files.begin(), files.end());
    std::vector<CaseLine> out;
    for (const std::string& file : files) {
        std::ifstream in(folder + "/" + file);
        std::string line;
        for (int n = 1; std::getline(in, line); ++n) {
            if (line.empty() || line[0] == '#') {
                continue;
            }
            if (line[0] == ' ' && !out.empty()) {
                out.back().text += line;
            } else {
                out.push_back({str(file, ":", n), line});
            }
        }
    }
    return out;
}

size_t evaluation_count(const OpCase& c) {
    size_t count = 1;
    for (const auto& size : c.sizes) {
        count = std::max(count, size.second.size());
    }
    return count;
}

Symbols symbols_of(const OpCase& c, size_t k) {
    Symbols out;
    for (const auto& [name, values] : c.sizes) {
        out[name] = values[k % values.size()];
    }
    return out;
}

std::vector<Tensor> inputs_of(const OpCase& c, size_t k) {
    Symbols symbols = symbols_of(c, k);
    Numbers numbers(hash_bytes(c.text.data(), c.text.size(), k));
    std::vector<Tensor> out;
    for (const CaseInput& in : c.inputs) {
        Tensor t = Tensor::zeros(in.type.dtype, eval(in.type.dims, symbols));
        if (in.values.empty()) {
            fill_random(t, in, symbols, numbers);
        } else {
            require(static_cast<int64_t>(in.values.size()) == t.count(), ErrorCode::InvalidArgument,
                    "got ", in.values.size(), " values for ", in.type);
        }
        for (size_t i = 0; i < in.values.size(); ++i) {
            auto at = static_cast<int64_t>(i);
            if (is_float(t.dtype())) {
                t.set_f64(at, number<double>(in.values[i]));
            } else {
                t.set_i64(at, number<int64_t>(in.values[i]));
            }
        }
        out.push_back(std::move(t));
    }
    return out;
}

} // namespace ingot::test
