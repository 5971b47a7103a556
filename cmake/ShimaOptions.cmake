# Build type, language, warnings, sanitizers and the third-party libraries that all rooms share.
#
# The builds are loaded into arbitrary programs, so they must not need a shared library that such a program could also
# load: spdlog is used header-only, fmt is compiled in (fmt_once.cpp), liburing comes from its static
# archive.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()
# -g1: lines for backtraces and profiles, no variables (the preset debug has them); with -g sources compile 1.2 to 1.7 times
# as long.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g")  # the sanitizer presets; assertions stay on
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g")

option(SHIMA_TESTS "Build the tests" ON)
set(SHIMA_SANITIZE "" CACHE STRING "Sanitizers to build with: empty, address;undefined or thread")
set(SHIMA_DEPS_DIR ${CMAKE_SOURCE_DIR}/build/deps CACHE PATH "Where scripts/setup puts the MPI wheels")

# Many programs in one address space (src/pvas) supports one processor architecture.
set(SHIMA_SPACES OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(SHIMA_SPACES ON)
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_package(Threads REQUIRED)
find_path(SHIMA_FMT_INCLUDE fmt/format.h REQUIRED)
find_path(SHIMA_SPDLOG_INCLUDE spdlog/spdlog.h REQUIRED)
find_path(SHIMA_JSON_INCLUDE nlohmann/json.hpp REQUIRED)
find_path(SHIMA_CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
find_path(SHIMA_URING_INCLUDE liburing.h)
find_library(SHIMA_URING_ARCHIVE NAMES liburing.a)

# Compile options of every translation unit.
add_library(shima_common INTERFACE)
target_include_directories(shima_common INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_include_directories(shima_common SYSTEM INTERFACE ${SHIMA_FMT_INCLUDE} ${SHIMA_SPDLOG_INCLUDE}
                                                         ${SHIMA_JSON_INCLUDE})
target_compile_definitions(shima_common INTERFACE _GNU_SOURCE SPDLOG_FMT_EXTERNAL SHIMA_VERSION="${PROJECT_VERSION}")
target_compile_options(shima_common INTERFACE -Wall -Wextra -Wconversion -Wshadow)
target_link_libraries(shima_common INTERFACE Threads::Threads)

# fmt, compiled once instead of in every source (see fmt_once.cpp).
set(fmt_once_flags -g0 -fno-inline -fkeep-inline-functions -ffunction-sections -fdata-sections)
if(NOT DEFINED SHIMA_FMT_ONCE)
  try_compile(SHIMA_FMT_ONCE ${CMAKE_BINARY_DIR}/fmt_probe
              SOURCES ${CMAKE_SOURCE_DIR}/cmake/fmt/fmt_probe.cpp ${CMAKE_SOURCE_DIR}/cmake/fmt/fmt_once.cpp
              CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${SHIMA_FMT_INCLUDE} COMPILE_DEFINITIONS -O1 ${fmt_once_flags}
              CXX_STANDARD 23 OUTPUT_VARIABLE fmt_probe_output)
  message(VERBOSE "${fmt_probe_output}")
endif()
if(SHIMA_FMT_ONCE)
  add_library(shima_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt/fmt_once.cpp)
  target_include_directories(shima_fmt SYSTEM PRIVATE ${SHIMA_FMT_INCLUDE})
  target_compile_options(shima_fmt PRIVATE ${fmt_once_flags})
  target_link_libraries(shima_common INTERFACE shima_fmt)
else()
  message(STATUS "shima: this fmt has to be compiled in every source, which takes longer")
  target_compile_definitions(shima_common INTERFACE FMT_HEADER_ONLY)
endif()

# liburing is optional: without it the store uses preadv/pwritev only.
if(SHIMA_URING_INCLUDE AND SHIMA_URING_ARCHIVE)
  target_include_directories(shima_common SYSTEM INTERFACE ${SHIMA_URING_INCLUDE})
  target_compile_definitions(shima_common INTERFACE SHIMA_HAVE_URING=1)
  target_link_libraries(shima_common INTERFACE ${SHIMA_URING_ARCHIVE})
else()
  message(STATUS "shima: no static liburing: the io_uring store is left out")
endif()

# A sanitizer's runtime must be the first library of a process, so `shima exec` puts it into LD_PRELOAD:
# this defines the runtime's path for it.
set(SHIMA_SANITIZER_RUNTIME "")
if(SHIMA_SANITIZE)
  list(JOIN SHIMA_SANITIZE "," sanitizers)
  target_compile_options(shima_common INTERFACE -fsanitize=${sanitizers} -fno-omit-frame-pointer)
  target_link_options(shima_common INTERFACE -fsanitize=${sanitizers})
  set(runtime libasan.so)
  if("thread" IN_LIST SHIMA_SANITIZE)
    set(runtime libtsan.so)
    # GCC cannot instrument atomic_thread_fence for TSan, and warns about each.
    target_compile_options(shima_common INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
  endif()
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${runtime}
                  OUTPUT_VARIABLE SHIMA_SANITIZER_RUNTIME OUTPUT_STRIP_TRAILING_WHITESPACE)
  file(REAL_PATH ${SHIMA_SANITIZER_RUNTIME} SHIMA_SANITIZER_RUNTIME)
endif()
