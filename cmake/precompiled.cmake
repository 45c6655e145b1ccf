# SPDX-License-Identifier: Apache-2.0
# INGOT_PCH: a build from nothing is faster with the standard library's headers compiled once. What
# ships is compiled without in the default build, where a header that forgets an include has to show.
# TESTS: tests/CMakeLists.txt; ALL: that, and what the fuzz targets link.
set(standard_headers <algorithm> <array> <atomic> <cmath> <cstring> <filesystem> <fstream> <functional>
    <iostream> <limits> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream>
    <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>)

# The targets share the first one's, which needs equal flags.
function(ingot_precompile headers)
  set(first "")
  foreach(target ${ARGN})
    if(first)
      target_precompile_headers(${target} REUSE_FROM ${first})
    else()
      set(first ${target})
      target_precompile_headers(${target} PRIVATE ${headers})
    endif()
    # So that ccache may keep what was compiled with them.
    # What GCC 12 says of bounds where it inlines std::string from such a header is wrong; builds
    # without one still check it.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
                           "$<$<CXX_COMPILER_ID:GNU>:SHELL:-Wno-array-bounds -Wno-stringop-overflow -Wno-restrict>"
                           "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  endforeach()
endfunction()

if(INGOT_PCH STREQUAL "ALL")
  ingot_precompile("${standard_headers}" ingot_base ingot_ir ingot_ops ingot_onnx ingot_passes ingot_engine)
endif()
