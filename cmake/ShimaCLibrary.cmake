# A library with a C interface for programs that use nothing else of Shima.
#
#   shima_c_library(pff ROOM shima_capi EXPORTS exports.map)
#     -> lib/libshima-pff.so.0, shima-pff.pc, and in the CMake package the target shima::pff
#   With FILE_NAME lapi: lib/liblapi.so.0. ALIASES lapi_r: liblapi_r.so is a link to it. USES lapi: it needs that
#   library, beside it.
include(GNUInstallDirs)

function(shima_c_library name)
  cmake_parse_arguments(ARG "" "ROOM;EXPORTS;FILE_NAME;USES" "ALIASES" ${ARGN})
  if(NOT ARG_FILE_NAME)
    set(ARG_FILE_NAME shima-${name})
  endif()
  set(target shima_c_${name})
  add_library(${target} SHARED $<TARGET_OBJECTS:${ARG_ROOM}>)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${ARG_FILE_NAME} EXPORT_NAME ${name} LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib LINK_DEPENDS ${ARG_EXPORTS})
  target_link_libraries(${target} PRIVATE ${ARG_ROOM})
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                                                 $<INSTALL_INTERFACE:include>)
  target_link_options(${target} PRIVATE -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,--no-undefined
                                        -Wl,--version-script=${ARG_EXPORTS})
  if(NOT SHIMA_SANITIZE)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  set(requires "")
  if(ARG_USES)
    target_link_libraries(${target} PRIVATE shima_c_${ARG_USES})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH $ORIGIN)
    set(requires "shima-${ARG_USES}")
  endif()
  install(TARGETS ${target} EXPORT shima_c_libraries LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  foreach(alias ${ARG_ALIASES})
    add_custom_command(TARGET ${target} POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink
                       lib${ARG_FILE_NAME}.so ${CMAKE_BINARY_DIR}/lib/lib${alias}.so)
    install(FILES ${CMAKE_BINARY_DIR}/lib/lib${alias}.so DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY SHIMA_PRODUCT_TARGETS ${target})
  set(library shima-${name})
  set(library_file ${ARG_FILE_NAME})
  configure_file(${CMAKE_SOURCE_DIR}/cmake/package/shima-library.pc.in ${CMAKE_BINARY_DIR}/${library}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
