# SPDX-License-Identifier: Apache-2.0
# The files of the page of `ingot report` are in the program.
file(GLOB report_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/workflow/report/resources/*)
set(report_resources ${CMAKE_CURRENT_BINARY_DIR}/generated/report_resources.cpp)
add_custom_command(OUTPUT ${report_resources}
  COMMAND ${CMAKE_COMMAND} -DOUT=${report_resources} "-DFILES=${report_files}"
          -DHEADER=workflow/report/resources.h -DNAMESPACE=ingot -DFUNCTION=report_resource -DKEY=NAME
          -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_text.cmake
  DEPENDS ${report_files} cmake/embed_text.cmake VERBATIM)
# JavaScript may look like declarations to tools/compile_unit.py.
set_source_files_properties(${report_resources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
