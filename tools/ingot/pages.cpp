// SPDX-License-Identifier: Apache-2.0
// The generated page docs/operators.md.
#include "base/error.h"
#include "base/file.h"
#include "commands.h"
#include "onnx/importer.h"

#include <map>
#include <set>
#include <vector>

namespace ingot::tool {

namespace {

struct Operator {
    std::set<int> since;
    bool refused = true; // by all its rows
};

std::string operators() {
    std::map<std::pair<std::string, std::string>, Operator> all;
    for (const onnx::ImporterTable* table : onnx::all_importers()) {
        for (const onnx::ImporterRow& row : *table) {
            Operator& op = all[{std::string(row.domain), std::string(row.type)}];
            op.since.insert(row.since);
            op.refused = op.refused && row.refuses;
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
        append(out, str("| ", key.second, " | ", op.refused ? "refused" : versions, " |\n"));
    }
    return out;
}

std::vector<std::string> fields_of(const std::string& line) {
    std::vector<std::string> out;
    for (size_t start = 0; start <= line.size();) {
        size_t end = std::min(line.find('\t', start), line.size());
        out.push_back(line.substr(start, end - start));
        start = end + 1;
    }
    return out;
}

// Counts of ONNX suite cases, and refusals with their reasons. A line of the status list has the
// name, the status on the CPU and on a GPU, and the reason.
std::string cases(const std::string& status) {
    std::string text = read_text_file(status);
    std::string refused;
    int passed[2] = {};
    int listed = 0;
    for (size_t start = 0; start < text.size();) {
        size_t end = std::min(text.find('\n', start), text.size());
        std::string line = text.substr(start, end - start);
        start = end + 1;
        if (line.empty() || line[0] == '#') {
            continue;
        }
        ++listed;
        std::vector<std::string> f = fields_of(line);
        f.resize(std::max<size_t>(f.size(), 4));
        passed[0] += f[1] == "pass" ? 1 : 0;
        passed[1] += f[2] == "pass" ? 1 : 0;
        if (f[1] != "pass" || f[2] != "pass") {
            std::string reason;
            for (char c : f[1] != "pass" ? f[3] : "on a GPU: " + f.back()) {
                append(reason, c == '|' ? "\\|" : std::string_view(&c, 1));
            }
            append(refused, str("| ", f[0], " | ", reason, " |\n"));
        }
    }
    return str("\n## The ONNX backend suite\n\nIts ", listed, " cases: ", passed[0],
               " pass on the CPU and ", passed[1],
               " on a GPU; refused are:\n\n| case | reason |\n|---|---|\n", refused);
}

} // namespace

std::string operators_page(const std::string& status_file) {
    return str(
        "# Operators\n\nGenerated from the importers and `tests/onnx/status.txt`. An operator "
        "imports at every opset from 7 on; the second column lists the opsets at which its form "
        "changes for Ingot, or says that the operator is always refused. Refusals name the reason; "
        "`ingot check model.onnx` lists them for a model.\n",
        operators(), cases(status_file));
}

} // namespace ingot::tool
