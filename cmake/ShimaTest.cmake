# Tests: how a source file becomes ctest tests.
#
#   shima_unit_test(region.pattern SOURCES a.cpp [DEPENDS shima_region...] [LABEL unit])
#     a GoogleTest program, test unit.region.pattern
#   shima_mpi_test(columns SOURCE columns.c RANKS 1 2 4 7 [ARGS ...] [ENV A=b ...] [LABEL mpi])
#     the program compiled by the stock mpicc of every MPI found, and run under `shima run`:
#     tests mpi.columns.<flavour>.np<k>; with VARIANTS direct ... once more with the most ranks, started as
#     SHIMA_VARIANT_direct says: tests mpi.columns.<flavour>.np<k>.direct
#   shima_script_test(fault.full_disk SOURCE full_disk.sh LABEL fault [FLAVOURS ...])
#     a script, once a flavour, told by SHIMA, MPICC, MPICXX, MPIEXEC, MPI_FLAVOUR, MPI_PREFIX where things are
#
# Each test runs in a fresh folder below <build>/scratch, in a process group that is ended when its time is up; exit
# code 77 means skipped, and scripts/ci-test fails on skips that tests/known-skips.txt does not name.
# A source says in comments at its top how it wants to be run ("RANKS: 2 4", ...): see shima_test_header.

set(SHIMA_IN_SCRATCH ${CMAKE_SOURCE_DIR}/tests/in_scratch.sh)
set(SHIMA_TEST_KEYS RANKS ARGS ENV TIMEOUT FLAVOURS LIBS CFLAGS VARIANTS PROCESSORS)
# Other ways for the bytes of the same program, as options of `shima run`.
set(SHIMA_VARIANT_direct --hint direct_read=true --hint direct_write=true)
set(SHIMA_VARIANT_striped --hint shima_targets=beside --hint striping_factor=3 --hint striping_unit=5000)
set(SHIMA_VARIANT_regions --hint shima_targets=beside --hint shima_regions=0:700:1,9001:4K:4,100000:64K:2
                          --hint direct_read=true --hint direct_write=true)
# Every program of tests/mpi runs once more with its ranks as tasks of one address space.
set(SHIMA_VARIANT_onespace --one-space)
find_package(GTest)

# shima_test_header(file): sets HEADER_<KEY> for each "KEY: words" found in the first 40 lines, empty where there is none.
function(shima_test_header file)
  file(STRINGS ${file} lines LIMIT_COUNT 40)
  foreach(key ${SHIMA_TEST_KEYS})
    set(value "")
    foreach(line IN LISTS lines)
      if(line MATCHES "^[ \t]*(//|#|/?\\*)[ \t]*${key}:[ \t]*([^*]*)")
        string(STRIP "${CMAKE_MATCH_2}" value)
        break()
      endif()
    endforeach()
    separate_arguments(value UNIX_COMMAND "${value}")
    set(HEADER_${key} ${value} PARENT_SCOPE)
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endfunction()

# shima_add_test(name LABEL l TIMEOUT seconds COMMAND ... ENV ... PROCESSORS n)
function(shima_add_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT;PROCESSORS" "COMMAND;ENV" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  if(SHIMA_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 3")
    list(APPEND ARG_ENV ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:verify_asan_link_order=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
                        "TSAN_OPTIONS=halt_on_error=1:suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp"
                        # UCX's memory hooks run in threads that TSan has already left; PMIx wants addresses TSan owns.
                        UCX_MEM_EVENTS=no UCX_MEM_MMAP_HOOK_MODE=none PMIX_MCA_gds=hash)
  endif()
  math(EXPR kill_after "${ARG_TIMEOUT} + 15")
  add_test(NAME ${name}
           COMMAND ${SHIMA_IN_SCRATCH} ${CMAKE_BINARY_DIR}/scratch/${name} ${ARG_TIMEOUT} ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${kill_after} SKIP_RETURN_CODE 77
                       PROCESSORS ${ARG_PROCESSORS} ENVIRONMENT "${ARG_ENV}")
endfunction()

function(shima_unit_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPENDS;ARGS;ENV" ${ARGN})
  if(NOT GTest_FOUND)
    return()
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_DEPENDS)
    get_property(ARG_DEPENDS GLOBAL PROPERTY SHIMA_ROOMS)
  endif()
  set(target ${ARG_LABEL}.${name})
  add_executable(${target} ${ARG_SOURCES})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${target} PRIVATE ${ARG_DEPENDS} GTest::gtest_main)
  if(TARGET GTest::gmock)
    target_link_libraries(${target} PRIVATE GTest::gmock)
  endif()
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/${ARG_LABEL})
  shima_add_test(${target} LABEL ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} ENV ${ARG_ENV}
                 COMMAND $<TARGET_FILE:${target}> ${ARG_ARGS})
endfunction()

# The flavours that can run two ranks here at all (some distributions ship an MPI whose mpiexec cannot start its
# own library), tried once per build folder.
function(shima_working_flavours result)
  set(working "")
  foreach(flavour ${SHIMA_MPI_FLAVOURS})
    if(NOT DEFINED SHIMA_MPI_${flavour}_WORKS)
      execute_process(
        COMMAND ${CMAKE_SOURCE_DIR}/cmake/probe_mpi.sh ${CMAKE_BINARY_DIR}/probe/${flavour}
                ${SHIMA_MPI_${flavour}_CC} ${SHIMA_MPI_${flavour}_EXEC}
        RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
      if(failed)
        message(WARNING "shima: MPI ${flavour} cannot run two ranks here; its tests are left out:\n${output}")
        set(SHIMA_MPI_${flavour}_WORKS OFF CACHE INTERNAL "")
      else()
        set(SHIMA_MPI_${flavour}_WORKS ON CACHE INTERNAL "")
      endif()
    endif()
    if(SHIMA_MPI_${flavour}_WORKS)
      list(APPEND working ${flavour})
    endif()
  endforeach()
  set(${result} ${working} PARENT_SCOPE)
endfunction()

# Compiles one source with a flavour's own compiler, as a user would.
function(shima_mpi_program program flavour)
  cmake_parse_arguments(ARG "" "SOURCE" "CFLAGS;LIBS" ${ARGN})
  cmake_path(GET ARG_SOURCE EXTENSION LAST_ONLY extension)
  set(compile ${SHIMA_MPI_${flavour}_CC} -std=gnu11)
  if(NOT extension STREQUAL ".c")
    set(compile ${SHIMA_MPI_${flavour}_CXX} -std=c++20)
  endif()
  add_custom_command(
    OUTPUT ${program}
    COMMAND ${compile} -O1 -g -Wall -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX -I${CMAKE_SOURCE_DIR}/tests
            ${ARG_CFLAGS} -MMD -MF ${program}.d -MT ${program} -o ${program} ${ARG_SOURCE} ${ARG_LIBS}
    DEPENDS ${ARG_SOURCE} DEPFILE ${program}.d
    COMMENT "${flavour}: ${ARG_SOURCE}" VERBATIM)
endfunction()

function(shima_mpi_test name)
  cmake_parse_arguments(ARG "" "SOURCE;LABEL;TIMEOUT" "RANKS;ARGS;ENV;FLAVOURS;CFLAGS;LIBS;VARIANTS" ${ARGN})
  if(NOT TARGET shima_tool)
    return()
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL mpi)
  endif()
  set(runs ${ARG_RANKS})
  list(GET ARG_RANKS -1 most)
  foreach(variant ${ARG_VARIANTS})
    list(APPEND runs ${most}.${variant})
  endforeach()
  if(ARG_LABEL STREQUAL mpi AND TARGET shima_pvas_root AND NOT SHIMA_SANITIZE)
    list(APPEND runs ${most}.onespace)
  endif()
  shima_working_flavours(flavours)
  foreach(flavour ${flavours})
    if(ARG_FLAVOURS AND NOT flavour IN_LIST ARG_FLAVOURS)
      continue()
    endif()
    set(folder ${CMAKE_BINARY_DIR}/tests/${ARG_LABEL}/${flavour})
    file(MAKE_DIRECTORY ${folder})
    shima_mpi_program(${folder}/${name} ${flavour} SOURCE ${ARG_SOURCE} CFLAGS ${ARG_CFLAGS} LIBS ${ARG_LIBS})
    add_custom_target(${ARG_LABEL}.${name}.${flavour} ALL DEPENDS ${folder}/${name})
    foreach(run ${runs})
      string(REGEX MATCH "^[0-9]+" ranks ${run})
      string(REGEX MATCH "[a-z]+$" variant ${run})
      # Launchers of few ranks sleep most of the time, and Open MPI's always: two such tests fit beside each other.
      set(processors 2)
      if(ranks LESS 3 OR SHIMA_MPI_${flavour}_FAMILY STREQUAL openmpi)
        set(processors 1)
      endif()
      shima_add_test(${ARG_LABEL}.${name}.${flavour}.np${run} LABEL "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT}
                     PROCESSORS ${processors} ENV ${ARG_ENV} SHIMA_ONE_SPACE=required
                     COMMAND $<TARGET_FILE:shima_tool> run -n ${ranks} ${SHIMA_VARIANT_${variant}} --mpiexec ${SHIMA_MPI_${flavour}_EXEC}
                             ${folder}/${name} ${ARG_ARGS})
    endforeach()
  endforeach()
endfunction()

# A script starts one job after the other and waits for launchers, so that it leaves room for another test; one that does
# not says "PROCESSORS: 2".
function(shima_script_test name)
  cmake_parse_arguments(ARG "" "SOURCE;LABEL;TIMEOUT;PROCESSORS" "ARGS;ENV;FLAVOURS" ${ARGN})
  if(NOT TARGET shima_tool)
    return()
  endif()
  set(common SHIMA=$<TARGET_FILE:shima_tool> SHIMA_SOURCE_DIR=${CMAKE_SOURCE_DIR} SHIMA_BUILD_DIR=${CMAKE_BINARY_DIR}
             "SHIMA_SANITIZE=$<JOIN:${SHIMA_SANITIZE},+>" ${ARG_ENV})
  set(interpreter "")
  if(ARG_SOURCE MATCHES "\\.py$")
    set(interpreter python3)
  endif()
  if(ARG_FLAVOURS STREQUAL "none")
    shima_add_test(${name} LABEL ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} PROCESSORS ${ARG_PROCESSORS} ENV ${common}
                   COMMAND ${interpreter} ${ARG_SOURCE} ${ARG_ARGS})
    return()
  endif()
  shima_working_flavours(flavours)
  foreach(flavour ${flavours})
    if(ARG_FLAVOURS AND NOT flavour IN_LIST ARG_FLAVOURS)
      continue()
    endif()
    cmake_path(GET SHIMA_MPI_${flavour}_EXEC PARENT_PATH bin)
    shima_add_test(${name}.${flavour} LABEL ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} PROCESSORS ${ARG_PROCESSORS}
      COMMAND ${interpreter} ${ARG_SOURCE} ${ARG_ARGS}
      ENV ${common} MPI_FLAVOUR=${flavour} MPI_FAMILY=${SHIMA_MPI_${flavour}_FAMILY} MPI_PREFIX=${bin}/..
          MPICC=${SHIMA_MPI_${flavour}_CC} MPICXX=${SHIMA_MPI_${flavour}_CXX} MPIEXEC=${SHIMA_MPI_${flavour}_EXEC})
  endforeach()
endfunction()

# Registers every test source of a folder under a label, by what it is: a script, an MPI program, a unit test.
function(shima_test_folder folder label)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*.c ${folder}/*.cpp ${folder}/*.sh ${folder}/*.py)
  foreach(source ${sources})
    if(source MATCHES "(^|/|_)(lib|common|util)\\.[a-z]+$")
      continue()  # shared by tests, none itself
    endif()
    shima_test_header(${folder}/${source})
    string(REGEX REPLACE "(_test)?\\.[a-z]+$" "" name ${source})
    string(REPLACE "/" "." name ${name})
    set(common LABEL ${label} TIMEOUT ${HEADER_TIMEOUT} ARGS ${HEADER_ARGS} ENV ${HEADER_ENV})
    if(source MATCHES "\\.(sh|py)$")
      shima_script_test(${label}.${name} SOURCE ${folder}/${source} FLAVOURS ${HEADER_FLAVOURS}
                        PROCESSORS ${HEADER_PROCESSORS} ${common})
      continue()
    endif()
    if(HEADER_RANKS STREQUAL "none")
      continue()  # compiled by a script
    endif()
    file(STRINGS ${folder}/${source} gtest REGEX "#include *<g(test|mock)/")
    if(gtest)
      shima_unit_test(${name} SOURCES ${folder}/${source} ${common})
    else()
      if(NOT HEADER_RANKS)
        set(HEADER_RANKS 1 2 4 7)
      endif()
      shima_mpi_test(${name} SOURCE ${folder}/${source} RANKS ${HEADER_RANKS} FLAVOURS ${HEADER_FLAVOURS}
                     CFLAGS ${HEADER_CFLAGS} LIBS ${HEADER_LIBS} VARIANTS ${HEADER_VARIANTS} ${common})
    endif()
  endforeach()
endfunction()
