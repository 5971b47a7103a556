# A library with a C interface for programs that use nothing else of Shima.
#
#   shima_c_library(pff ROOM shima_capi EXPORTS exports.map)
#     -> lib/libshima-pff.so.0, shima-pff.pc, and in the CMake package the target shima::pff
include(GNUInstallDirs)

function(shima_c_library name)
  cmake_parse_arguments(ARG "" "ROOM;EXPORTS" "" ${ARGN})
  set(target shima_c_${name})
  add_library(${target} SHARED $<TARGET_OBJECTS:${ARG_ROOM}>)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME shima-${name} EXPORT_NAME ${name} LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib LINK_DEPENDS ${ARG_EXPORTS})
  target_link_libraries(${target} PRIVATE ${ARG_ROOM})
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                                                 $<INSTALL_INTERFACE:include>)
  target_link_options(${target} PRIVATE -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,--no-undefined
                                        -Wl,--version-script=${ARG_EXPORTS})
  if(NOT SHIMA_SANITIZE)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  install(TARGETS ${target} EXPORT shima_c_libraries LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set_property(GLOBAL APPEND PROPERTY SHIMA_PRODUCT_TARGETS ${target})
  set(library shima-${name})
  configure_file(${CMAKE_SOURCE_DIR}/cmake/package/shima-library.pc.in ${CMAKE_BINARY_DIR}/${library}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
