# The headers of other projects that most sources include, read once for all rooms and once for all unit tests: reading
# them was more than a quarter of a compilation.
#
#   shima_precompile(target)             a room or another library: all its C++ sources
#   shima_precompile_unit_test(target)   a GoogleTest program
#
# A source of src/ still includes all that it uses: clang-tidy, and a build with CMAKE_DISABLE_PRECOMPILE_HEADERS, read it
# without these. Headers of Shima are not among them: a change to one would rebuild everything.
set(SHIMA_PRECOMPILED <algorithm> <array> <atomic> <chrono> <cstdint> <cstring> <expected> <fmt/format.h> <functional> <map>
                      <memory> <mutex> <optional> <span> <string> <string_view> <tuple> <utility> <vector>)

add_library(shima_precompiled OBJECT ${CMAKE_SOURCE_DIR}/cmake/precompiled/nothing.cpp)
target_link_libraries(shima_precompiled PRIVATE shima_common)
target_precompile_headers(shima_precompiled PRIVATE ${SHIMA_PRECOMPILED})

function(shima_precompile target)
  get_target_property(c_sources ${target} SOURCES)
  list(FILTER c_sources INCLUDE REGEX "\\.c$")
  if(c_sources)
    set_source_files_properties(${c_sources} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
  target_precompile_headers(${target} REUSE_FROM shima_precompiled)
endfunction()

# GCC takes a precompiled header only for sources with the same options, and those of programs are other than those of
# libraries.
function(shima_precompile_unit_test target)
  set(owner shima_precompiled_unit_test)
  if(NOT TARGET ${owner})
    add_library(${owner} OBJECT ${CMAKE_SOURCE_DIR}/cmake/precompiled/nothing.cpp)
    set_target_properties(${owner} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${owner} PRIVATE -fPIE)
    shima_unit_test_options(${owner})
    target_precompile_headers(${owner} PRIVATE ${SHIMA_PRECOMPILED} <gtest/gtest.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()
