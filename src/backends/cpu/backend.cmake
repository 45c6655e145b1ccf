# SPDX-License-Identifier: Apache-2.0
# The CPU backend. Vector loops are compiled once per instruction set and chosen at run time.
ingot_registry(cpu_kernel_registry src/backends/cpu/kernels "kernels" "backends/cpu/kernel.h"
               ingot::cpu KernelTable all_cpu_kernels)
file(GLOB cpu_sources CONFIGURE_DEPENDS src/backends/cpu/*.cpp src/backends/cpu/kernels/*.cpp
     src/backends/cpu/simd/*.cpp)
add_library(ingot_cpu_backend STATIC ${cpu_sources} ${cpu_kernel_registry})
target_include_directories(ingot_cpu_backend PUBLIC src)
target_link_libraries(ingot_cpu_backend PUBLIC ingot_plan ingot_passes ingot_ops)

set(vector_options -O3 -fno-math-errno -fno-trapping-math -Wno-psabi)
set(cpu_simd src/backends/cpu/simd)
set_source_files_properties(${cpu_simd}/loops_baseline.cpp PROPERTIES COMPILE_OPTIONS "${vector_options}")
set_source_files_properties(${cpu_simd}/loops_avx2.cpp PROPERTIES COMPILE_OPTIONS
  "${vector_options};-mavx2;-mfma;-mf16c;-ffp-contract=fast")
set_source_files_properties(${cpu_simd}/loops_avx512.cpp PROPERTIES COMPILE_OPTIONS
  "${vector_options};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma;-mf16c;-mprefer-vector-width=512;-ffp-contract=fast")
