# SPDX-License-Identifier: Apache-2.0
# Writes OUT, a C++ source with the text of FILES, found by name (report_resource in
# workflow/report/resources.h). A string literal may be limited to 65,536 characters: parts join.
set(entries "")
foreach(path ${FILES})
  get_filename_component(name ${path} NAME)
  file(READ ${path} text)
  string(LENGTH "${text}" length)
  set(parts "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 8000 part)
    string(APPEND parts "     R\"PAGE(${part})PAGE\"\n")
    math(EXPR at "${at} + 8000")
  endwhile()
  string(APPEND entries "    {\"${name}\",\n${parts}    },\n")
endforeach()
file(WRITE ${OUT} "// Generated from src/workflow/report/resources.
#include \"workflow/report/resources.h\"

#include \"base/error.h\"

namespace ingot {

namespace {

struct File {
    std::string_view name;
    std::string_view text;
};

const File files[] = {
${entries}};

} // namespace

std::string_view report_resource(std::string_view file) {
    for (const File& f : files) {
        if (f.name == file) {
            return f.text;
        }
    }
    CHECK(false, \"there is no resource \", file);
    return {};
}

} // namespace ingot
")
