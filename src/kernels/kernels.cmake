# SPDX-License-Identifier: Apache-2.0
# Kernel families: one folder each; <folder>/<folder>.cpp defines `<folder>_families`. Device text
# (*.cuh) is embedded, found by its stem.
file(GLOB family_files RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/src/kernels CONFIGURE_DEPENDS
     src/kernels/*/*.cpp)
set(family_declarations "")
set(family_entries "")
foreach(f ${family_files})
  get_filename_component(stem ${f} NAME_WE)
  get_filename_component(folder ${f} DIRECTORY)
  file(STRINGS src/kernels/${f} table REGEX "^const FamilyTable ${stem}_families")
  if(stem STREQUAL folder AND table)
    string(APPEND family_declarations "extern const FamilyTable ${stem}_families;\n")
    string(APPEND family_entries "        &${stem}_families,\n")
  endif()
endforeach()
set(family_registry ${CMAKE_CURRENT_BINARY_DIR}/generated/all_families.cpp)
if(family_entries)
  set(family_body "    static const FamilyTable* const list[] = {\n${family_entries}    };\n    return list;\n")
else()
  set(family_body "    return {};\n")
endif()
file(CONFIGURE OUTPUT ${family_registry} @ONLY CONTENT "// Generated from the folders of src/kernels.
#include \"kernels/family.h\"

namespace ingot::kernels {

${family_declarations}
std::span<const FamilyTable* const> all_families() {
${family_body}}

}  // namespace ingot::kernels
")

file(GLOB device_files CONFIGURE_DEPENDS src/kernels/*/*.cuh)
set(device_texts ${CMAKE_CURRENT_BINARY_DIR}/generated/device_files.cpp)
add_custom_command(OUTPUT ${device_texts}
  COMMAND ${CMAKE_COMMAND} -DOUT=${device_texts} "-DFILES=${device_files}"
          -DHEADER=kernels/family.h -DNAMESPACE=ingot::kernels -DFUNCTION=device_file
          -DKEY=NAME_WE -DWITHOUT_COMMENTS=ON
          -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_text.cmake
  DEPENDS ${device_files} cmake/embed_text.cmake VERBATIM)

file(GLOB kernel_sources CONFIGURE_DEPENDS src/kernels/*.cpp src/kernels/*/*.cpp)
add_library(ingot_kernels STATIC ${kernel_sources} ${family_registry} ${device_texts})
target_include_directories(ingot_kernels PUBLIC src)
target_link_libraries(ingot_kernels PUBLIC ingot_plan ingot_ops)
