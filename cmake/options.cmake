# SPDX-License-Identifier: Apache-2.0
# Compiler options for every target, and the third parties that are linked statically.
option(INGOT_WERROR "warnings are errors" ON)
option(INGOT_FUZZ "build the fuzz targets (clang)" OFF)
set(INGOT_PCH OFF CACHE STRING "precompiled headers: OFF, TESTS or ALL (cmake/precompiled.cmake)")
set(INGOT_SANITIZE "" CACHE STRING "comma-separated sanitizers, such as address,undefined")

add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wno-sign-conversion
                    -fvisibility=hidden -march=x86-64-v2 -mtune=generic -ffp-contract=off
                    # With sanitizers, loops marked for vectorizing stay scalar: not a fault.
                    $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)
if(INGOT_WERROR)
  add_compile_options(-Werror)
endif()
if(INGOT_SANITIZE)
  add_compile_options(-fsanitize=${INGOT_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all -g1)
  add_link_options(-fsanitize=${INGOT_SANITIZE})
endif()
# Libraries bring the standard library along, of which the runtimes of sanitizers have to know all.
set(own_standard_library -static-libstdc++ -static-libgcc)
if(INGOT_SANITIZE)
  set(own_standard_library "")
endif()
find_program(INGOT_LLD ld.lld)
if(INGOT_LLD)
  add_link_options(-fuse-ld=lld)
endif()
find_program(INGOT_CCACHE ccache)
if(INGOT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # One checkout finds what another has compiled.
  set(settings CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1)
  if(INGOT_PCH)
    list(APPEND settings CCACHE_SLOPPINESS=pch_defines,time_macros)
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${settings} ${INGOT_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${INGOT_CCACHE})
endif()

find_package(Threads REQUIRED)
find_library(INGOT_XXHASH NAMES libxxhash.a REQUIRED)
find_library(INGOT_ZSTD NAMES libzstd.a REQUIRED)
find_library(INGOT_CRYPTO NAMES libcrypto.a REQUIRED)
