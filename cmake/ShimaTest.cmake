# Tests: how a source file becomes ctest tests. tests/README.md describes it for users.
#
#   shima_test_directory(DIRECTORY LABEL)   registers every source of a directory, by its kind:
#     a script, run once per MPI flavour            LABEL.<name>.<flavour>   (ShimaMpiTest.cmake)
#     a GoogleTest program                          LABEL.<name>
#     an MPI program, run as product of flavours, rank counts and variants
#                                                   LABEL.<name>.<flavour>.np<k>[.<variant>]   (ShimaMpiTest.cmake)
#   shima_add_test(NAME LABEL l COMMAND ...)   registers one test by hand
#   shima_choose_everyday_set()   after all directories: labels the runs that `make test` leaves out (ShimaMpiTest.cmake)
#
# Two labels keep a test out of `make test`: "soak" for tests that take minutes, "full" for the runs of the product
# outside the everyday set. Each test runs in an empty directory below <build>/scratch, in a process group that
# is killed at its timeout. Exit code 77 means skipped; scripts/ci-test fails on skips that tests/known-skips.txt
# does not name. REQUIRED_FILES of a test names the programs it runs, for `make test T=...`.

include(ShimaMpiTest)
set(SHIMA_IN_SCRATCH ${CMAKE_SOURCE_DIR}/tests/in_scratch.sh)
set(SHIMA_TEST_KEYS RANKS ARGS ENV TIMEOUT FLAVOURS LIBS CFLAGS VARIANTS PROCESSORS PROGRAMS EVERYDAY)

# shima_test_header(file): sets HEADER_<KEY> from the lines "KEY: words" in the first 40 lines, empty if there is none.
# Several lines of one key add up.
function(shima_test_header file)
  file(STRINGS ${file} lines LIMIT_COUNT 40)
  foreach(key ${SHIMA_TEST_KEYS})
    set(words "")
    foreach(line IN LISTS lines)
      if(line MATCHES "^[ \t]*(//|#|/?\\*)[ \t]*${key}:[ \t]*([^*]*)")
        string(STRIP "${CMAKE_MATCH_2}" value)
        separate_arguments(value UNIX_COMMAND "${value}")
        list(APPEND words ${value})
      endif()
    endforeach()
    set(HEADER_${key} ${words} PARENT_SCOPE)
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endfunction()

# Sanitized programs cannot be tasks: their shadow memory has a fixed place in an address space.
set(SHIMA_TEST_SPACES ${SHIMA_SPACES})
if(SHIMA_SANITIZE)
  set(SHIMA_TEST_SPACES OFF)
endif()

# Settings for tests under sanitizers.
set(SHIMA_SANITIZER_ENV
  ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:verify_asan_link_order=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
  "TSAN_OPTIONS=halt_on_error=1:suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp"
  # UCX's memory hooks run in threads that TSan has already left; PMIx uses addresses that TSan owns.
  UCX_MEM_EVENTS=no UCX_MEM_MMAP_HOOK_MODE=none PMIX_MCA_gds=hash)

# shima_add_test(name LABEL l... COMMAND ... [ENV A=b ...] [TIMEOUT seconds] [PROCESSORS n] [NEEDS program...])
# What may take longest begins first, so that no long test is left alone at the end.
function(shima_add_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;PROCESSORS" "LABEL;COMMAND;ENV;NEEDS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  if(SHIMA_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 3")
    list(APPEND ARG_ENV ${SHIMA_SANITIZER_ENV})
  endif()
  math(EXPR kill_after "${ARG_TIMEOUT} + 15")
  add_test(NAME ${name}
           COMMAND ${SHIMA_IN_SCRATCH} ${CMAKE_BINARY_DIR}/scratch/${name} ${ARG_TIMEOUT} ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${kill_after} SKIP_RETURN_CODE 77
                       COST ${ARG_TIMEOUT} PROCESSORS ${ARG_PROCESSORS} ENVIRONMENT "${ARG_ENV}" REQUIRED_FILES "${ARG_NEEDS}")
endfunction()

# What all GoogleTest programs are compiled and linked with.
function(shima_unit_test_options target)
  get_property(rooms GLOBAL PROPERTY SHIMA_ROOMS)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)  # compiling them takes longer than running them
  target_link_libraries(${target} PRIVATE ${rooms} GTest::gtest_main GTest::gmock)
endfunction()

# shima_unit_test(name SOURCE file LABEL l...): a GoogleTest program that may use every room.
function(shima_unit_test name)
  cmake_parse_arguments(ARG "" "SOURCE;TIMEOUT" "LABEL;ARGS;ENV" ${ARGN})
  list(GET ARG_LABEL 0 directory)
  set(target ${directory}.${name})
  add_executable(${target} ${ARG_SOURCE})
  shima_unit_test_options(${target})
  shima_precompile_unit_test(${target})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/${directory})
  shima_add_test(${target} LABEL ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} ENV ${ARG_ENV} NEEDS $<TARGET_FILE:${target}>
                 COMMAND $<TARGET_FILE:${target}> ${ARG_ARGS})
endfunction()

# Registers one source of a directory.
function(shima_test_source directory source label)
  shima_test_header(${directory}/${source})
  string(REGEX REPLACE "(_test)?\\.[a-z]+$" "" name ${source})
  string(REPLACE "/" "." name ${name})
  set(labels ${label})
  if(HEADER_EVERYDAY STREQUAL "none")
    set(labels ${label} soak)
  endif()
  set(common LABEL ${labels} TIMEOUT ${HEADER_TIMEOUT} ARGS ${HEADER_ARGS} ENV ${HEADER_ENV})
  set(product FLAVOURS ${HEADER_FLAVOURS} EVERYDAY ${HEADER_EVERYDAY})
  if(source MATCHES "\\.(sh|py)$")
    shima_script_test(${name} SOURCE ${directory}/${source} PROCESSORS ${HEADER_PROCESSORS}
                      PROGRAMS ${HEADER_PROGRAMS} ${product} ${common})
    return()
  endif()
  file(STRINGS ${directory}/${source} gtest REGEX "#include *<g(test|mock)/")
  if(gtest)
    shima_unit_test(${name} SOURCE ${directory}/${source} ${common})
  elseif(NOT HEADER_RANKS STREQUAL "none")  # "none": compiled by a script
    shima_mpi_test(${name} SOURCE ${directory}/${source} RANKS ${HEADER_RANKS} VARIANTS ${HEADER_VARIANTS}
                   PROCESSORS ${HEADER_PROCESSORS} CFLAGS ${HEADER_CFLAGS} LIBS ${HEADER_LIBS} ${product} ${common})
  endif()
endfunction()

function(shima_test_directory directory label)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${directory} ${directory}/*.c ${directory}/*.cpp ${directory}/*.sh ${directory}/*.py)
  # Shared code of tests is no test itself.
  list(FILTER sources EXCLUDE REGEX "(^|/|_)(lib|common|util)\\.[a-z]+$")
  foreach(source ${sources})
    shima_test_source(${directory} ${source} ${label})
  endforeach()
endfunction()
