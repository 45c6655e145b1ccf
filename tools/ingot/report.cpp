// SPDX-License-Identifier: Apache-2.0
// ingot report: a page about an engine, or two beside each other.
#include "api/options/common.h"
#include "api/options/inspect.h"
#include "backends/backends.h"
#include "base/error.h"
#include "base/file.h"
#include "base/trace.h"
#include "commands.h"
#include "common.h"
#include "report_target.h"
#include "workflow/report/page.h"

#include <cstdio>

namespace ingot::tool {

static PageSubject subject(const Options& o, const std::string& path) {
    PageSubject s;
    s.file = path;
    start_trace();
    s.engine = open_model(o, path);
    s.engine->check_weights();
    auto request = [&] {
        TraceSpan span("find device");
        return report_request(o, *s.engine, target_capability(o).value_or(0) == 0);
    };
    ReportRequest q = request();
    s.report = kernel_report(s.engine, q, compile_options(o, *s.engine));
    s.cold_start = end_trace();
    if (q.backend == nullptr && !q.compiles) { // kernels were asked for, not compiled
        std::erase_if(s.cold_start, [](const TraceEvent& e) { return e.phase == "compile"; });
    }
    s.file_bytes = MappedFile::open(path)->bytes().size();
    return s;
}

int report(const Options& o) {
    require(!o.common().output.empty() || o.common().json, ErrorCode::InvalidArgument,
            "where shall the page go? Give -o FILE.html, or --json to print its data");
    PageContents c;
    c.version = INGOT_VERSION;
    c.compiler = kernel_compiler();
    if (!o.inspect().drawn_timeline.empty()) {
        auto file = MappedFile::open(o.inspect().drawn_timeline);
        std::span<const std::byte> bytes = file->bytes();
        c.timeline.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    c.subjects.push_back(subject(o, o.model));
    if (!o.inspect().compare_with.empty()) {
        c.subjects.push_back(subject(o, o.inspect().compare_with));
    }
    if (o.common().json) {
        std::printf("%s\n", page_json(c).c_str());
    }
    if (!o.common().output.empty()) {
        write_file(o.common().output, page_html(c));
        if (!o.common().json) {
            std::printf("wrote %s\n", o.common().output.c_str());
        }
    }
    return 0;
}

} // namespace ingot::tool
