# SPDX-License-Identifier: Apache-2.0
# The CPU backend. Vector loops are compiled once per instruction set and chosen at run time.
ingot_registry(cpu_kernel_registry src/backends/cpu/kernels "kernels" "backends/cpu/kernel.h"
               ingot::cpu KernelTable all_cpu_kernels)
file(GLOB cpu_sources CONFIGURE_DEPENDS src/backends/cpu/*.cpp src/backends/cpu/kernels/*.cpp
     src/backends/cpu/simd/*.cpp)
add_library(ingot_cpu_backend STATIC ${cpu_sources} ${cpu_kernel_registry})
target_include_directories(ingot_cpu_backend PUBLIC src)
target_link_libraries(ingot_cpu_backend PUBLIC ingot_lower ingot_run ingot_passes)

set(vector_options -O3 -fno-math-errno -fno-trapping-math -Wno-psabi)
set(cpu_simd src/backends/cpu/simd)
set_source_files_properties(${cpu_simd}/loops_baseline.cpp PROPERTIES COMPILE_OPTIONS "${vector_options}")
set_source_files_properties(${cpu_simd}/loops_avx2.cpp PROPERTIES COMPILE_OPTIONS
  "${vector_options};-mavx2;-mfma;-mf16c;-ffp-contract=fast")
set_source_files_properties(${cpu_simd}/loops_avx512.cpp PROPERTIES COMPILE_OPTIONS
  "${vector_options};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma;-mf16c;-mprefer-vector-width=512;-ffp-contract=fast")
set_source_files_properties(${cpu_simd}/loops_avx512_vnni.cpp PROPERTIES COMPILE_OPTIONS
  "${vector_options};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mprefer-vector-width=512")
# Without contraction, so that results are the same on every processor.
set(exact_options ${vector_options} -ffp-contract=off)
set_source_files_properties(${cpu_simd}/trigonometry_baseline.cpp PROPERTIES COMPILE_OPTIONS "${exact_options}")
set_source_files_properties(${cpu_simd}/trigonometry_avx2.cpp PROPERTIES COMPILE_OPTIONS "${exact_options};-mavx2")
set_source_files_properties(${cpu_simd}/trigonometry_avx512.cpp PROPERTIES COMPILE_OPTIONS
  "${exact_options};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512")

# oneDNN in a library of its own beside the program, which runs without it too.
set(onednn ${CMAKE_SOURCE_DIR}/.deps/onednn)
find_program(INGOT_ZSTD_PROGRAM zstd)
find_package(Python3 COMPONENTS Interpreter)
if(EXISTS ${onednn}/lib/libdnnl.so.3.2 AND INGOT_ZSTD_PROGRAM AND Python3_FOUND AND
   NOT INGOT_SANITIZE AND CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/generated/onednn)
  file(MAKE_DIRECTORY ${made})
  add_custom_command(OUTPUT ${made}/libdnnl.so.zst ${made}/symbols.rsp ${made}/exports.map
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/patch_onednn.py
            ${onednn}/lib/libdnnl.so.3.2 ${made}/libdnnl.so ${made}/symbols.rsp ${made}/exports.map
    COMMAND ${INGOT_ZSTD_PROGRAM} -q -f --check -12 ${made}/libdnnl.so -o ${made}/libdnnl.so.zst
    COMMAND ${CMAKE_COMMAND} -E rm ${made}/libdnnl.so
    DEPENDS ${CMAKE_SOURCE_DIR}/tools/patch_onednn.py ${onednn}/lib/libdnnl.so.3.2)
  file(GLOB onednn_sources CONFIGURE_DEPENDS src/backends/cpu/onednn/*.cpp)
  add_library(ingot_cpu_onednn MODULE ${onednn_sources})
  set_target_properties(ingot_cpu_onednn PROPERTIES UNITY_BUILD OFF) # its symbols are chosen by file
  target_include_directories(ingot_cpu_onednn PRIVATE src)
  target_include_directories(ingot_cpu_onednn SYSTEM PRIVATE ${onednn}/include)
  target_compile_definitions(ingot_cpu_onednn PRIVATE
    INGOT_ONEDNN_BLOB="${made}/libdnnl.so.zst")
  set_source_files_properties(src/backends/cpu/onednn/calls.cpp PROPERTIES
    OBJECT_DEPENDS ${made}/libdnnl.so.zst)
  target_link_options(ingot_cpu_onednn PRIVATE -static-libstdc++ -static-libgcc -Wl,--no-undefined
    -Wl,-soname,ingot_cpu.so @${made}/symbols.rsp -Wl,--version-script=${made}/exports.map)
  target_link_libraries(ingot_cpu_onednn PRIVATE ${INGOT_ZSTD} Threads::Threads ${CMAKE_DL_LIBS})
  add_dependencies(ingot_cpu_backend ingot_cpu_onednn)
  # Test programs look for the library beside themselves.
  add_custom_command(TARGET ingot_cpu_onednn POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/tests
    COMMAND ${CMAKE_COMMAND} -E create_symlink ../libingot_cpu.so
            ${CMAKE_BINARY_DIR}/tests/libingot_cpu.so
    COMMAND ${CMAKE_COMMAND} -E cat ${onednn}/licenses/onednn_cpu_gomp-LICENSE
            ${onednn}/licenses/onednn_cpu_gomp-THIRD-PARTY-PROGRAMS
            > ${CMAKE_BINARY_DIR}/libingot_cpu.licenses.txt)
  set_target_properties(ingot_cpu_onednn PROPERTIES OUTPUT_NAME ingot_cpu LINK_DEPENDS
    "${made}/symbols.rsp;${made}/exports.map" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} NO_SONAME ON)
else()
  message(STATUS "libingot_cpu.so is left out (it needs .deps from ./dev setup, zstd, python3, no "
                 "sanitizer): the CPU backend runs on its own loops")
endif()
