# SPDX-License-Identifier: Apache-2.0
# The Python extension, in build/python/ingot beside its stubs and links to the package's sources: put
# build/python into PYTHONPATH. Built when .venv (or INGOT_PYTHON) has nanobind and Python's headers
# are there; for wheels, scikit-build-core says which Python. Wheels may take what was built before:
# INGOT_LIBRARIES is a folder with libingot.so, INGOT_EXTENSION a finished extension for this Python.
if(NOT SKBUILD)
  set(INGOT_PYTHON ${CMAKE_SOURCE_DIR}/.venv/bin/python CACHE FILEPATH "Python that the extension is for")
  execute_process(COMMAND ${INGOT_PYTHON} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    message(STATUS "Python extension left out: ${INGOT_PYTHON} has no nanobind")
    return()
  endif()
  set(Python_EXECUTABLE ${INGOT_PYTHON})
endif()
if(INGOT_LIBRARIES)
  set(libraries ${INGOT_LIBRARIES})
  add_library(ingot_shared SHARED IMPORTED)
  set_target_properties(ingot_shared PROPERTIES IMPORTED_LOCATION ${libraries}/libingot.so
                        INTERFACE_INCLUDE_DIRECTORIES ${CMAKE_SOURCE_DIR}/include)
else()
  set(libraries ${CMAKE_BINARY_DIR})
endif()

if(INGOT_EXTENSION)
  add_custom_target(ingot_python)
else()
  find_package(Python 3.10 COMPONENTS Interpreter Development.Module
               OPTIONAL_COMPONENTS Development.SABIModule)
  if(NOT Python_Development.Module_FOUND)
    if(SKBUILD)
      message(FATAL_ERROR "Python's headers are missing: install python3-dev")
    endif()
    message(STATUS "Python extension left out: Python's headers are missing (python3-dev)")
    return()
  endif()
  find_package(nanobind CONFIG REQUIRED)
  file(GLOB python_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/src/*.cpp)
  nanobind_add_module(ingot_python STABLE_ABI NB_STATIC NB_SUPPRESS_WARNINGS ${python_sources})
  # Warnings of nanobind's own sources do not matter here; only sources of this tree fit into units.
  foreach(library nanobind-static nanobind-static-abi3)
    if(TARGET ${library})
      target_compile_options(${library} PRIVATE -w)
      set_target_properties(${library} PROPERTIES UNITY_BUILD OFF)
    endif()
  endforeach()
  target_link_libraries(ingot_python PRIVATE ingot_shared)
  target_compile_definitions(ingot_python PRIVATE INGOT_NO_DEPRECATION_WARNINGS)
  target_link_options(ingot_python PRIVATE -static-libstdc++ -static-libgcc)
  # libingot.so is beside it in a wheel, two folders up in a build.
  set(python_package ${CMAKE_BINARY_DIR}/python/ingot)
  set_target_properties(ingot_python PROPERTIES OUTPUT_NAME _ingot LIBRARY_OUTPUT_DIRECTORY ${python_package}
                        BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN;$ORIGIN/../..")
endif()

if(SKBUILD)
  if(TARGET ingot_onnxruntime) # in the wheel too
    add_dependencies(ingot_python ingot_onnxruntime)
  endif()
  install(FILES ${libraries}/libingot.so DESTINATION ingot COMPONENT python)
  if(INGOT_EXTENSION)
    cmake_path(GET INGOT_EXTENSION PARENT_PATH python_package)
    install(FILES ${INGOT_EXTENSION} ${python_package}/_ingot.pyi DESTINATION ingot COMPONENT python)
  else()
    install(TARGETS ingot_python LIBRARY DESTINATION ingot COMPONENT python)
  endif()
  foreach(name libingot_onnxruntime.so libingot_cpu.so libingot_cpu.licenses.txt)
    install(FILES ${libraries}/${name} DESTINATION ingot COMPONENT python OPTIONAL)
  endforeach()
  install(CODE "file(GLOB stripped \${CMAKE_INSTALL_PREFIX}/ingot/*.so)
    execute_process(COMMAND ${CMAKE_STRIP} \${stripped} COMMAND_ERROR_IS_FATAL ANY)" COMPONENT python)
  if(NOT INGOT_EXTENSION)
    nanobind_add_stub(ingot_stub INSTALL_TIME MODULE _ingot OUTPUT ingot/_ingot.pyi
                      PYTHON_PATH ingot COMPONENT python
                      PATTERN_FILE ${CMAKE_SOURCE_DIR}/python/stubs.txt)
  endif()
else()
  nanobind_add_stub(ingot_stub MODULE _ingot OUTPUT ${python_package}/_ingot.pyi
                    PYTHON_PATH ${python_package} DEPENDS ingot_python
                    PATTERN_FILE ${CMAKE_SOURCE_DIR}/python/stubs.txt)
  file(MAKE_DIRECTORY ${python_package})
  file(GLOB python_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/ingot/*.py
       ${CMAKE_SOURCE_DIR}/python/ingot/*.pyi ${CMAKE_SOURCE_DIR}/python/ingot/py.typed)
  foreach(file ${python_files})
    get_filename_component(name ${file} NAME)
    file(CREATE_LINK ${file} ${python_package}/${name} SYMBOLIC)
  endforeach()
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/python/ingot/ray ${python_package}/ray SYMBOLIC)
  foreach(name tensorrt tensorrt_rtx tensorrt_lean tensorrt_dispatch)
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/python/aliases/${name} ${CMAKE_BINARY_DIR}/python/${name} SYMBOLIC)
  endforeach()
endif()
