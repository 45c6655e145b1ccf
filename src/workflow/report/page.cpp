// SPDX-License-Identifier: Apache-2.0
#include "workflow/report/page.h"

#include "base/error.h"
#include "base/hash.h"
#include "workflow/report/report_json.h"
#include "workflow/report/resources.h"

namespace ingot {

namespace {

using Ordered = nlohmann::ordered_json;

Ordered to_json(const TraceEvent& e) {
    return {{"phase", e.phase},
            {"detail", e.detail},
            {"thread", e.thread},
            {"startMs", e.start_ms},
            {"endMs", e.end_ms}};
}

Ordered to_json(const PageSubject& s) {
    Ordered events = Ordered::array();
    for (const TraceEvent& e : s.cold_start) {
        events.push_back(to_json(e));
    }
    Ordered j = {{"file", s.file},
                 {"graph", s.engine->graph().name()},
                 {"fileBytes", s.file_bytes},
                 {"weightBytes", s.engine->weight_bytes()},
                 {"properties", s.engine->metadata()}};
    j["coldStart"] = std::move(events);
    j["report"] = json_of(s.report, false);
    return j;
}

Ordered to_json(const PageContents& c) {
    Ordered j = {{"version", c.version}, {"compiler", c.compiler}};
    Ordered& subjects = j["subjects"] = Ordered::array();
    for (const PageSubject& s : c.subjects) {
        subjects.push_back(to_json(s));
    }
    j["timeline"] = Ordered();
    if (!c.timeline.empty()) {
        j["timeline"] = Ordered::parse(c.timeline, nullptr, false);
        require(!j["timeline"].is_discarded(), ErrorCode::InvalidArgument,
                "the timeline is no JSON: expected a file of 'ingot bench --timeline'");
    }
    return j;
}

/// JSON that can end no element of a page, and begins none.
std::string inert(const std::string& json) {
    std::string out;
    out.reserve(json.size());
    for (char c : json) {
        out += c == '<'   ? "\\u003c"
               : c == '>' ? "\\u003e"
               : c == '&' ? "\\u0026"
                          : std::string(1, c);
    }
    return out;
}

void replace(std::string& text, std::string_view mark, std::string_view by) {
    size_t at = text.find(mark);
    CHECK(at != std::string::npos, "the page has no ", mark);
    text.replace(at, mark.size(), by);
}

} // namespace

std::string page_json(const PageContents& c, int indent) {
    return dumped(to_json(c), indent);
}

std::string page_html(const PageContents& c) {
    std::string data = inert(page_json(c, -1));
    // Only scripts with this word run. Data that held it would have to know its own hash.
    std::string word = to_text(xxh3_128(std::as_bytes(std::span(data))));
    std::string page(report_resource("page.html"));
    replace(page, "{{POLICY}}", word);
    replace(page, "{{STYLE}}", report_resource("page.css"));
    replace(page, "{{WORD}}", word);
    replace(page, "{{SCRIPT}}",
            str(report_resource("page.js"), report_resource("drawings.js"),
                report_resource("graph.js"), report_resource("start.js")));
    replace(page, "{{DATA}}", data); // last: it may hold anything
    return page;
}

} // namespace ingot
