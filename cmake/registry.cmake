# SPDX-License-Identifier: Apache-2.0
# ingot_registry(OUT_VAR folder suffix header namespace Table function)
#
# Lists <folder>/*.cpp: each defines `<Table> <stem>_<suffix>`. Writes a source that collects their
# addresses in `std::span<const Table* const> function()`, in alphabetical order of the stems. A file
# that lacks its table fails at link time; adding a file is all it takes to register it.
function(ingot_registry out folder suffix header namespace table function)
  file(GLOB files RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/${folder} CONFIGURE_DEPENDS ${folder}/*.cpp)
  list(SORT files)
  set(declarations "")
  set(entries "")
  foreach(f ${files})
    get_filename_component(stem ${f} NAME_WE)
    string(APPEND declarations "extern const ${table} ${stem}_${suffix};\n")
    string(APPEND entries "    &${stem}_${suffix},\n")
  endforeach()
  if(entries)
    set(body "    static const ${table}* const list[] = {\n${entries}    };\n    return list;\n")
  else()
    set(body "    return {};\n")
  endif()
  set(path ${CMAKE_CURRENT_BINARY_DIR}/generated/${function}.cpp)
  file(CONFIGURE OUTPUT ${path} @ONLY CONTENT "// Generated from the files in ${folder}.
#include \"${header}\"

namespace ${namespace} {

${declarations}
std::span<const ${table}* const> ${function}() {
${body}}

}  // namespace ${namespace}
")
  set(${out} ${path} PARENT_SCOPE)
endfunction()
