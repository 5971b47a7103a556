# A room is one directory of src/ and one static library.
#
#   shima_room(pattern DEPENDS base)           sources: every *.cpp below the directory
#   shima_room(store SOURCES a.cpp b.cpp DEPENDS base pattern layout)
#
# creates the target shima_<name>. A room depends only on rooms above it in the list of CMakeLists.txt.

function(shima_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  if(NOT ARG_SOURCES)
    file(GLOB_RECURSE ARG_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  add_library(shima_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(shima_${name} PUBLIC shima_common)
  shima_precompile(shima_${name})
  foreach(dependency ${ARG_DEPENDS})
    if(TARGET shima_${dependency})
      target_link_libraries(shima_${name} PUBLIC shima_${dependency})
    else()
      message(FATAL_ERROR "room ${name} depends on ${dependency}, which is not below it in CMakeLists.txt")
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY SHIMA_ROOMS shima_${name})
endfunction()
