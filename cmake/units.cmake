# SPDX-License-Identifier: Apache-2.0
# INGOT_UNITS: a build from nothing takes a fraction of the time when sources of a target are compiled
# together (tools/compile_unit.py), for headers are parsed once for all of them. The default build
# compiles each source alone: there a forgotten include shows, and ccache helps most.
option(INGOT_UNITS "compile several sources at once" OFF)

# Libraries of few functions take what they need out of a target: units of it hold one folder each.
function(ingot_units_by_folder target)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_filename_component(folder ${source} DIRECTORY)
    get_filename_component(folder ${folder} NAME)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${folder}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

if(NOT INGOT_UNITS)
  return()
endif()
find_package(Python3 COMPONENTS Interpreter REQUIRED)
set(CMAKE_UNITY_BUILD ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)
set(CMAKE_CXX_COMPILER_LAUNCHER ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/compile_unit.py ${CMAKE_CXX_COMPILER_LAUNCHER})
# In a unit names of one source shadow those of another, and no source counts as the main file, whose
# local types members may have.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-shadow>
                    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>)
