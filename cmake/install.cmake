# SPDX-License-Identifier: Apache-2.0
# bin/, lib/ and include/, with a CMake package: find_package(ingot), then link ingot::ingot (all of
# it), ingot::lean (runtime only) or ingot::dispatch (finds a lean runtime for each engine).
include(CMakePackageConfigHelpers)
install(TARGETS ingot RUNTIME DESTINATION bin)
install(TARGETS ingot_shared ingot_lean ingot_dispatch EXPORT ingot LIBRARY DESTINATION lib)
# Lean libraries of several releases lie beside each other under their major versions.
install(CODE "file(CREATE_LINK libingot_lean.so \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/libingot_lean.so.${PROJECT_VERSION_MAJOR}\" SYMBOLIC)")
install(DIRECTORY include/ DESTINATION include FILES_MATCHING PATTERN "*.h")
install(EXPORT ingot NAMESPACE ingot:: FILE ingot-config.cmake DESTINATION lib/cmake/ingot)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/ingot-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ingot-config-version.cmake DESTINATION lib/cmake/ingot)
# Each program looks for it in its own folder.
foreach(folder bin lib)
  install(FILES ${CMAKE_BINARY_DIR}/libingot_cpu.so DESTINATION ${folder} OPTIONAL)
endforeach()
foreach(name trtexec tensorrt_rtx)
  install(CODE "file(CREATE_LINK ingot \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin/${name}\" SYMBOLIC)")
endforeach()
