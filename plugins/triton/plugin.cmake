# SPDX-License-Identifier: Apache-2.0
# libtriton_ingot.so, a backend of Triton Inference Server: a client of libingot.so, which it finds
# beside it. The server's functions stay undefined: the process that loads it has them.
set(TRITON_INCLUDE_DIR "" CACHE PATH "headers of Triton's core, to compare the backend's declarations with")
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
add_library(ingot_triton_parts STATIC ${sources})
target_link_libraries(ingot_triton_parts PUBLIC ingot_plugin_common)
target_include_directories(ingot_triton_parts PUBLIC ${CMAKE_SOURCE_DIR})
target_compile_definitions(ingot_triton_parts PUBLIC INGOT_NO_DEPRECATION_WARNINGS)
if(TRITON_INCLUDE_DIR)
  target_include_directories(ingot_triton_parts SYSTEM PUBLIC ${TRITON_INCLUDE_DIR})
  target_compile_definitions(ingot_triton_parts PUBLIC INGOT_COMPARE_ABI)
endif()
set(map ${CMAKE_CURRENT_LIST_DIR}/exports.map)
add_library(triton_ingot SHARED $<TARGET_OBJECTS:ingot_triton_parts>)
target_link_libraries(triton_ingot PRIVATE ingot_plugin_common)
target_link_options(triton_ingot PRIVATE ${own_standard_library} -Wl,--exclude-libs,ALL -Wl,-z,undefs
                    -Wl,--version-script=${map})
set_property(TARGET triton_ingot APPEND PROPERTY LINK_DEPENDS ${map})
set_target_properties(triton_ingot PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
                      BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN:$ORIGIN/../../..")
install(TARGETS triton_ingot LIBRARY DESTINATION lib/ingot/backends/ingot)
