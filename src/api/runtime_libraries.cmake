# SPDX-License-Identifier: Apache-2.0
# libingot_lean.so, which loads and runs engines and has nothing else; libingot_dispatch.so, which has
# no engine code and finds a lean library for each engine.
set(runtime_exports createInferRuntime_INTERNAL createInferRefitter_INTERNAL getInferLibVersion getInferLibMajorVersion
    getInferLibMinorVersion getInferLibPatchVersion getInferLibBuildVersion getLogger getPluginRegistry
    ingotVersion ingotSetRuntimeDevice ingotSetVerifyWeights ingotSetTrustedKeys ingotSetTrustedOnly
    ingotGetDevice ingotGetDeviceError ingotSetPriority
    ingotGetPriority ingotSetCacheFolder ingotGetCacheFolder
    ingotRuntimeInterface setInternalLibraryPath)

# A library of what is reached from the functions it shows, which are found in static libraries too.
function(ingot_runtime_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;EXPORTS" ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/${name}.cpp CONTENT "")
  add_library(ingot_${name} SHARED ${CMAKE_BINARY_DIR}/generated/${name}.cpp ${ARG_SOURCES})
  set(roots ${ARG_EXPORTS})
  list(TRANSFORM roots PREPEND "-Wl,-u,")
  set(exports ${CMAKE_SOURCE_DIR}/src/api/tensorrt/exports.map)
  # The standard library stands first: what it has is not taken from a file of ours that happens to
  # hold the same instance of a template, with everything behind it.
  set(standard_library ${own_standard_library})
  if(standard_library)
    list(APPEND standard_library -l:libstdc++.a)
  endif()
  target_link_options(ingot_${name} PRIVATE ${standard_library}
                      -Wl,-Bsymbolic -Wl,--gc-sections -Wl,--version-script=${exports} ${roots})
  target_link_libraries(ingot_${name} PRIVATE ${ARG_LINK})
  target_include_directories(ingot_${name} INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:include>)
  set_target_properties(ingot_${name} PROPERTIES EXPORT_NAME ${name} LINK_DEPENDS ${exports}
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()

ingot_runtime_library(lean LINK ingot_tensorrt
                      EXPORTS ${runtime_exports} initLibNvInferPlugins ingotRegisterHostKernel
                              ingotDeregisterHostKernel ingotSetGraphLimit ingotCountGraphs
                              ingotSetRecordFirstRun ingotGetCompilerProblem)
file(GLOB dispatch_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/api/dispatch/*.cpp)
list(APPEND dispatch_sources src/api/tensorrt/library.cpp src/api/tensorrt/report.cpp
     src/api/tensorrt/runtime/lean_library.cpp
     src/engine/header.cpp)
ingot_runtime_library(dispatch SOURCES ${dispatch_sources} LINK ingot_base EXPORTS ${runtime_exports})
target_include_directories(ingot_dispatch PRIVATE src include)
target_compile_definitions(ingot_dispatch PRIVATE TENSORRT_BUILD_LIB)
