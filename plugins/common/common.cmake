# SPDX-License-Identifier: Apache-2.0
# What the plugins for other programs share: memory of a GPU, and a logger.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
add_library(ingot_plugin_common STATIC ${sources})
target_link_libraries(ingot_plugin_common PUBLIC ingot_shared ingot_base)
target_include_directories(ingot_plugin_common PUBLIC ${CMAKE_SOURCE_DIR})
