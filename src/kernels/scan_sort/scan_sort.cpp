// SPDX-License-Identifier: Apache-2.0
// Family scan_sort: scan, sort and topk; dynamic.h has the steps whose result sizes depend on data.
#include "kernels/reduce/rows.h"
#include "kernels/scan_sort/scan.h"
#include "kernels/scan_sort/sort.h"

namespace ingot::kernels {

namespace {

std::optional<std::string> refuse(const Group& group) {
    if (group.nodes.size() > 1) {
        return "more than one node";
    }
    return refuse_packed(group.graph.type(group.first().inputs[0]).dtype);
}

Family family(std::string_view name, std::vector<Tactic> (*tactics)(const Problem&),
              Emitted (*emit)(const Problem&, const Tactic&)) {
    Family f{};
    f.name = name;
    f.refuse = refuse;
    f.layout = plan::any_strides;
    f.tactics = tactics;
    f.emit = emit;
    f.strided_results = true;
    return f;
}

const Family rows[] = {family("scan", scan_tactics, emit_scan),
                       family("sort", sort_tactics, emit_sort),
                       family("topk", sort_tactics, emit_sort)};

} // namespace

extern const FamilyTable scan_sort_families;
const FamilyTable scan_sort_families = rows;

} // namespace ingot::kernels
