# SPDX-License-Identifier: Apache-2.0
# libingot_onnxruntime.so, the execution provider for stock ONNX Runtime: a client of libingot.so, which
# it finds beside it. ONNX Runtime may unload it while sessions still use it: it stays.
set(ONNXRUNTIME_INCLUDE_DIR "" CACHE PATH "headers of ONNX Runtime 1.31 or newer, to compare the plugin's declarations with")
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
add_library(ingot_onnxruntime_parts STATIC ${sources})
target_link_libraries(ingot_onnxruntime_parts PUBLIC ingot_plugin_common)
target_include_directories(ingot_onnxruntime_parts PUBLIC ${CMAKE_SOURCE_DIR})
target_compile_definitions(ingot_onnxruntime_parts PUBLIC INGOT_NO_DEPRECATION_WARNINGS)
if(ONNXRUNTIME_INCLUDE_DIR)
  target_include_directories(ingot_onnxruntime_parts SYSTEM PRIVATE ${ONNXRUNTIME_INCLUDE_DIR})
  target_compile_definitions(ingot_onnxruntime_parts PRIVATE INGOT_COMPARE_ABI)
endif()
set(map ${CMAKE_CURRENT_LIST_DIR}/exports.map)
add_library(ingot_onnxruntime SHARED $<TARGET_OBJECTS:ingot_onnxruntime_parts>)
target_link_libraries(ingot_onnxruntime PRIVATE ingot_plugin_common)
target_link_options(ingot_onnxruntime PRIVATE ${own_standard_library} -Wl,--exclude-libs,ALL -Wl,-Bsymbolic
                    -Wl,-z,nodelete -Wl,--version-script=${map})
set_property(TARGET ingot_onnxruntime APPEND PROPERTY LINK_DEPENDS ${map})
set_target_properties(ingot_onnxruntime PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
                      BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
install(TARGETS ingot_onnxruntime LIBRARY DESTINATION lib)
