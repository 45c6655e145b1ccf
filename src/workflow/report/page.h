// SPDX-License-Identifier: Apache-2.0
// One self-contained HTML page about an engine, or two side by side: it loads nothing, and names in
// it are data, never markup.
#pragma once

#include "base/trace.h"
#include "workflow/report/kernel_report.h"

namespace ingot {

/// One engine of a page.
struct PageSubject {
    std::string file;
    std::shared_ptr<const Engine> engine;
    uint64_t file_bytes = 0;
    KernelReport report;
    std::vector<TraceEvent> cold_start; // as end_trace() gave them
};

struct PageContents {
    std::string version;               // of Ingot
    std::string compiler;              // of kernels; "" for none
    std::vector<PageSubject> subjects; // one or two
    std::string timeline;              // JSON of `ingot bench --timeline`; "" for none
};

/// The data of the page. Errors: InvalidArgument for a timeline that is no JSON.
std::string page_json(const PageContents& c, int indent = 1);
std::string page_html(const PageContents& c);

} // namespace ingot
