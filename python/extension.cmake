# SPDX-License-Identifier: Apache-2.0
# The Python extension, in build/python/ingot beside links to the package's sources: put build/python
# into PYTHONPATH. Built when .venv (or INGOT_PYTHON) has nanobind and Python's headers are there; for
# wheels, scikit-build-core says which Python.
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
# Of nanobind's own sources warnings do not matter here.
foreach(library nanobind-static nanobind-static-abi3)
  if(TARGET ${library})
    target_compile_options(${library} PRIVATE -w)
  endif()
endforeach()
target_link_libraries(ingot_python PRIVATE ingot_shared)
target_compile_definitions(ingot_python PRIVATE INGOT_NO_DEPRECATION_WARNINGS)
target_link_options(ingot_python PRIVATE -static-libstdc++ -static-libgcc)
set(python_package ${CMAKE_BINARY_DIR}/python/ingot)
set_target_properties(ingot_python PROPERTIES OUTPUT_NAME _ingot LIBRARY_OUTPUT_DIRECTORY ${python_package}
                      INSTALL_RPATH "$ORIGIN")

if(SKBUILD)
  install(TARGETS ingot_python LIBRARY DESTINATION ingot COMPONENT python)
  install(TARGETS ingot_shared LIBRARY DESTINATION ingot COMPONENT python)
  foreach(name libingot_cpu.so libingot_cpu.licenses.txt)
    install(FILES ${CMAKE_BINARY_DIR}/${name} DESTINATION ingot COMPONENT python OPTIONAL)
  endforeach()
  nanobind_add_stub(ingot_stub INSTALL_TIME MODULE _ingot OUTPUT ingot/_ingot.pyi
                    PYTHON_PATH ingot COMPONENT python)
else()
  file(MAKE_DIRECTORY ${python_package})
  file(GLOB python_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/ingot/*.py
       ${CMAKE_SOURCE_DIR}/python/ingot/*.pyi ${CMAKE_SOURCE_DIR}/python/ingot/py.typed)
  foreach(file ${python_files})
    get_filename_component(name ${file} NAME)
    file(CREATE_LINK ${file} ${python_package}/${name} SYMBOLIC)
  endforeach()
  foreach(name tensorrt tensorrt_rtx)
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/python/aliases/${name} ${CMAKE_BINARY_DIR}/python/${name} SYMBOLIC)
  endforeach()
endif()
