// SPDX-License-Identifier: Apache-2.0
// The generated page docs/operators.md.
#include "base/error.h"
#include "base/file.h"
#include "commands.h"
#include "onnx/importer.h"

#include <map>
#include <set>

namespace ingot::tool {

namespace {

struct Operator {
    std::set<int> since;
};

std::string operators() {
    std::map<std::pair<std::string, std::string>, Operator> all;
    for (const onnx::ImporterTable* table : onnx::all_importers()) {
        for (const onnx::ImporterRow& row : *table) {
            all[{std::string(row.domain), std::string(row.type)}].since.insert(row.since);
        }
    }
    std::string out;
    std::string domain = "none";
    for (const auto& [key, op] : all) {
        if (key.first != domain) {
            domain = key.first;
            append(out, str("\n## ", domain.empty() ? "ai.onnx" : domain,
                            "\n\n| operator | forms since opset |\n|---|---|\n"));
        }
        std::string versions;
        for (int v : op.since) {
            append(versions, str(versions.empty() ? "" : ", ", v));
        }
        append(out, str("| ", key.second, " | ", versions, " |\n"));
    }
    return out;
}

// Cases of the ONNX suite: counts, and what is refused with the reason.
std::string cases(const std::string& status) {
    std::string text = read_text_file(status);
    std::string refused;
    int passed = 0;
    int listed = 0;
    for (size_t start = 0; start < text.size();) {
        size_t end = std::min(text.find('\n', start), text.size());
        std::string line = text.substr(start, end - start);
        start = end + 1;
        if (line.empty() || line[0] == '#') {
            continue;
        }
        ++listed;
        size_t tab = line.find('\t');
        size_t second = line.find('\t', tab + 1);
        bool pass = line.substr(tab + 1, second - tab - 1) == "pass";
        passed += pass ? 1 : 0;
        if (!pass) {
            std::string reason;
            for (char c : second == std::string::npos ? std::string() : line.substr(second + 1)) {
                append(reason, c == '|' ? "\\|" : std::string_view(&c, 1));
            }
            append(refused, str("| ", line.substr(0, tab), " | ", reason, " |\n"));
        }
    }
    return str("\n## The ONNX backend suite\n\n", passed, " of ", listed,
               " cases pass; the others are refused:\n\n| case | reason |\n|---|---|\n", refused);
}

} // namespace

std::string operators_page(const std::string& status_file) {
    return str(
        "# Operators\n\nGenerated from the importers and `tests/onnx/status.txt`. An operator "
        "imports at every opset from 7 on; the second column lists the opsets at which its form "
        "changes for Ingot. Refusals name the reason; `ingot check model.onnx` lists them for a "
        "model.\n",
        operators(), cases(status_file));
}

} // namespace ingot::tool
