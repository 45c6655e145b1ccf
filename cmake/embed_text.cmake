# SPDX-License-Identifier: Apache-2.0
# Writes OUT, a C++ source that holds the text of FILES, found by stem (device_file in
# kernels/family.h). Comments that stand alone on a line are left out: NVRTC need not read them.
set(entries "")
foreach(path ${FILES})
  get_filename_component(stem ${path} NAME_WE)
  file(READ ${path} text)
  string(REGEX REPLACE "(^|\n)[ \t]*//[^\n]*" "\\1" text "${text}")
  string(REGEX REPLACE "\n\n+" "\n" text "${text}")
  string(APPEND entries "    {\"${stem}\", R\"CUDA(${text})CUDA\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT "// Generated from the .cuh files of src/kernels.
#include \"kernels/family.h\"

#include \"base/error.h\"

namespace ingot::kernels {

namespace {

struct File {
    std::string_view stem;
    std::string_view text;
};

const File files[] = {
${entries}};

} // namespace

std::string_view device_file(std::string_view stem) {
    for (const File& f : files) {
        if (f.stem == stem) {
            return f.text;
        }
    }
    CHECK(false, \"there is no device file \", stem);
    return {};
}

} // namespace ingot::kernels
")
