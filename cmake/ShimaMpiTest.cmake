# Tests that run under an MPI: the product of runs, and the part of it that runs every day.
#
#   shima_mpi_test(name SOURCE file LABEL mpi RANKS 1 2 4 7 [VARIANTS striped] [FLAVOURS ...] [CFLAGS ...] [LIBS ...])
#     compiles the source with the stock mpicc of each flavour and runs it under `shima run`
#   shima_script_test(name SOURCE file LABEL fault [FLAVOURS ...] [PROGRAMS mpi/basic ...])
#     runs a script once per flavour, with SHIMA, MPICC, MPICXX, MPIEXEC, MPI_FLAVOUR, MPI_FAMILY and MPI_PREFIX in its
#     environment; PROGRAMS names compiled MPI tests that it runs
#
# Every run of the product is registered, and written to <build>/tests/product.txt. From that file
# test/everyday_set.py chooses the everyday set; every other run gets the label "full", and a program that only those
# runs need is not part of the default target.

# Other data paths for the same program, as options of `shima run`. A header line VARIANTS names its variants; every
# program of tests/mpi also runs with its ranks as tasks of one address space.
set(SHIMA_VARIANT_direct --hint direct_read=true --hint direct_write=true)
set(SHIMA_VARIANT_striped --hint shima_targets=beside --hint striping_factor=3 --hint striping_unit=5000)
set(SHIMA_VARIANT_regions --hint shima_targets=beside --hint shima_regions=0:700:1,9001:4K:4,100000:64K:2
                          --hint direct_read=true --hint direct_write=true)
set(SHIMA_VARIANT_onespace --one-space)
set(SHIMA_VARIANT_iod --hint shima_targets=a,b --hint striping_factor=2 --hint striping_unit=5000)
# What starts `shima run` in a variant. A program that has the variant striped, in the directories named, also has iod.
set(SHIMA_STARTER_iod python3 ${CMAKE_SOURCE_DIR}/tests/with_iod_lib.py)
set(SHIMA_IOD_DIRECTORIES mpi conformance)

# Every test program, and those of the everyday set.
add_custom_target(shima_test_programs)
add_custom_target(shima_everyday_programs ALL)

# The flavours that can run two ranks here (some distributions ship an MPI whose mpiexec cannot start its own
# library), tested once per build directory.
function(shima_working_flavours result)
  set(working "")
  foreach(flavour ${SHIMA_MPI_FLAVOURS})
    if(NOT DEFINED SHIMA_MPI_${flavour}_WORKS)
      execute_process(
        COMMAND ${CMAKE_SOURCE_DIR}/cmake/mpi/probe_mpi.sh ${CMAKE_BINARY_DIR}/probe/${flavour}
                ${SHIMA_MPI_${flavour}_CC} ${SHIMA_MPI_${flavour}_EXEC}
        RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
      set(works ON)
      if(failed)
        message(WARNING "shima: MPI ${flavour} cannot run two ranks here; its tests are left out:\n${output}")
        set(works OFF)
      endif()
      set(SHIMA_MPI_${flavour}_WORKS ${works} CACHE INTERNAL "")
    endif()
    if(SHIMA_MPI_${flavour}_WORKS)
      list(APPEND working ${flavour})
    endif()
  endforeach()
  set(${result} ${working} PARENT_SCOPE)
endfunction()

# The working flavours among those that a header names. If it names none: all that are not limited to certain tests.
function(shima_flavours_among result)
  shima_working_flavours(flavours)
  if(ARGN)
    list(JOIN ARGN "|" named)
    list(FILTER flavours INCLUDE REGEX "^(${named})$")
  else()
    foreach(flavour ${flavours})
      if(SHIMA_MPI_${flavour}_TESTS)
        list(REMOVE_ITEM flavours ${flavour})
      endif()
    endforeach()
  endif()
  set(${result} ${flavours} PARENT_SCOPE)
endfunction()

# shima_record_run(test flavour ranks variant LABEL l... [EVERYDAY all|none|<flavour>[.np<k>[.<variant>]]...])
# A line of the product for a registered test.
function(shima_record_run test flavour ranks variant)
  cmake_parse_arguments(ARG "" "SOURCE" "LABEL;EVERYDAY" ${ARGN})
  if("soak" IN_LIST ARG_LABEL)
    return()
  endif()
  list(GET ARG_LABEL 0 directory)
  set(pin -)
  set(run ${flavour}.np${ranks}.${variant}.)
  foreach(wanted ${ARG_EVERYDAY})
    string(FIND ${run} ${wanted}. at)
    if(at EQUAL 0 OR wanted STREQUAL "all")
      set(pin pinned)
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY SHIMA_PRODUCT
    "${test} ${directory} ${ARG_SOURCE} ${flavour} ${SHIMA_MPI_${flavour}_FAMILY} ${ranks} ${variant} ${pin}")
endfunction()

# Compiles one source with a flavour's own compiler, like a user.
function(shima_mpi_program program flavour)
  cmake_parse_arguments(ARG "" "SOURCE" "CFLAGS;LIBS" ${ARGN})
  cmake_path(GET ARG_SOURCE EXTENSION LAST_ONLY extension)
  set(compile ${SHIMA_MPI_${flavour}_CC} -std=gnu11)
  if(NOT extension STREQUAL ".c")
    set(compile ${SHIMA_MPI_${flavour}_CXX} -std=c++20)
  endif()
  # MPI_STATUSES_IGNORE is an address without memory, of which GCC warns.
  add_custom_command(
    OUTPUT ${program}
    COMMAND ${compile} -O1 -g -Wall -Wno-stringop-overflow -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX -I${CMAKE_SOURCE_DIR}/tests
            ${ARG_CFLAGS} -MMD -MF ${program}.d -MT ${program} -o ${program} ${ARG_SOURCE} ${ARG_LIBS}
    DEPENDS ${ARG_SOURCE} DEPFILE ${program}.d
    COMMENT "${flavour}: ${ARG_SOURCE}" VERBATIM)
endfunction()

function(shima_mpi_test name)
  cmake_parse_arguments(ARG "" "SOURCE;TIMEOUT;PROCESSORS"
                        "LABEL;RANKS;ARGS;ENV;FLAVOURS;CFLAGS;LIBS;VARIANTS;EVERYDAY" ${ARGN})
  if(NOT ARG_RANKS)
    set(ARG_RANKS 1 2 4 7)
  endif()
  list(GET ARG_LABEL 0 label)
  set(variants plain ${ARG_VARIANTS})
  if(label STREQUAL mpi)
    list(APPEND variants onespace)
  endif()
  if(label IN_LIST SHIMA_IOD_DIRECTORIES AND "striped" IN_LIST variants)
    list(APPEND variants iod)
  endif()
  if(NOT SHIMA_TEST_SPACES)
    list(REMOVE_ITEM variants onespace)
  endif()
  shima_flavours_among(flavours ${ARG_FLAVOURS})
  shima_working_flavours(working)
  foreach(flavour ${working})
    if(SHIMA_MPI_${flavour}_TESTS MATCHES "[(|]${name}[)|]")
      list(APPEND flavours ${flavour})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES flavours)
  foreach(flavour ${flavours})
    set(program ${CMAKE_BINARY_DIR}/tests/${label}/${flavour}/${name})
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/tests/${label}/${flavour})
    shima_mpi_program(${program} ${flavour} SOURCE ${ARG_SOURCE} CFLAGS ${ARG_CFLAGS} LIBS ${ARG_LIBS})
    add_custom_target(${label}.${name}.${flavour} DEPENDS ${program})
    add_dependencies(shima_test_programs ${label}.${name}.${flavour})
    foreach(ranks ${ARG_RANKS})
      # Launchers of few ranks sleep most of the time, and Open MPI's always: two such tests can run beside each other.
      set(processors 2)
      if(ranks LESS 3 OR SHIMA_MPI_${flavour}_FAMILY STREQUAL openmpi)
        set(processors 1)
      endif()
      if(ARG_PROCESSORS)
        set(processors ${ARG_PROCESSORS})
      endif()
      foreach(variant ${variants})
        set(test ${label}.${name}.${flavour}.np${ranks}.${variant})
        string(REGEX REPLACE "\\.plain$" "" test ${test})
        if(SHIMA_MPI_${flavour}_TESTS AND NOT test MATCHES "${SHIMA_MPI_${flavour}_TESTS}")
          continue()
        endif()
        shima_add_test(${test} LABEL ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} PROCESSORS ${processors} NEEDS ${program}
                       ENV ${ARG_ENV} SHIMA_ONE_SPACE=required
                       COMMAND ${SHIMA_STARTER_${variant}} $<TARGET_FILE:shima_tool> run -n ${ranks} ${SHIMA_VARIANT_${variant}}
                               --mpiexec ${SHIMA_MPI_${flavour}_EXEC} ${program} ${ARG_ARGS})
        shima_record_run(${test} ${flavour} ${ranks} ${variant} SOURCE ${name} LABEL ${ARG_LABEL}
                         EVERYDAY ${ARG_EVERYDAY})
      endforeach()
    endforeach()
  endforeach()
endfunction()

# A script starts one job after another and waits for launchers, so that another test can run beside it; a script
# that needs all processors says "PROCESSORS: 2".
function(shima_script_test name)
  cmake_parse_arguments(ARG "" "SOURCE;TIMEOUT;PROCESSORS" "LABEL;ARGS;ENV;FLAVOURS;PROGRAMS;EVERYDAY" ${ARGN})
  list(GET ARG_LABEL 0 label)
  set(interpreter "")
  if(ARG_SOURCE MATCHES "\\.py$")
    set(interpreter python3)
  endif()
  set(common LABEL ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} PROCESSORS ${ARG_PROCESSORS}
             COMMAND ${interpreter} ${ARG_SOURCE} ${ARG_ARGS}
             ENV SHIMA=$<TARGET_FILE:shima_tool> SHIMA_SOURCE_DIR=${CMAKE_SOURCE_DIR} SHIMA_BUILD_DIR=${CMAKE_BINARY_DIR}
                 "SHIMA_SANITIZE=$<JOIN:${SHIMA_SANITIZE},+>" ${ARG_ENV})
  if(ARG_FLAVOURS STREQUAL "none")
    shima_add_test(${label}.${name} ${common})
    return()
  endif()
  shima_flavours_among(flavours ${ARG_FLAVOURS})
  foreach(flavour ${flavours})
    set(test ${label}.${name}.${flavour})
    set(programs "")
    foreach(program ${ARG_PROGRAMS})
      string(REPLACE / /${flavour}/ program ${program})
      list(APPEND programs ${CMAKE_BINARY_DIR}/tests/${program})
    endforeach()
    cmake_path(GET SHIMA_MPI_${flavour}_EXEC PARENT_PATH bin)
    shima_add_test(${test} ${common} MPI_FLAVOUR=${flavour} MPI_FAMILY=${SHIMA_MPI_${flavour}_FAMILY}
                   MPI_PREFIX=${bin}/.. MPICC=${SHIMA_MPI_${flavour}_CC} MPICXX=${SHIMA_MPI_${flavour}_CXX}
                   MPIEXEC=${SHIMA_MPI_${flavour}_EXEC} "SHIMA_TEST_PROGRAMS=$<JOIN:${programs}, >" NEEDS ${programs})
    shima_record_run(${test} ${flavour} - - SOURCE ${name} LABEL ${ARG_LABEL} EVERYDAY ${ARG_EVERYDAY})
  endforeach()
endfunction()

# Labels the runs outside the everyday set "full", and makes the default target build what the others need.
function(shima_choose_everyday_set)
  get_property(product GLOBAL PROPERTY SHIMA_PRODUCT)
  list(JOIN product "\n" lines)
  set(file ${CMAKE_BINARY_DIR}/tests/product.txt)
  file(WRITE ${file} "${lines}\n")
  set(chooser ${CMAKE_SOURCE_DIR}/cmake/test/everyday_set.py)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${chooser})
  execute_process(COMMAND python3 ${chooser} ${file} OUTPUT_VARIABLE everyday COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" everyday "${everyday}")
  set(needed "")
  foreach(run ${product})
    string(REGEX REPLACE " .*" "" test ${run})
    if(test IN_LIST everyday)
      get_test_property(${test} REQUIRED_FILES programs)
      list(APPEND needed ${programs})
    else()
      set_property(TEST ${test} APPEND PROPERTY LABELS full)
    endif()
  endforeach()
  list(FILTER needed INCLUDE REGEX "^${CMAKE_BINARY_DIR}/tests/[a-z]+/[^/]+/[^/]+$")
  list(REMOVE_DUPLICATES needed)
  foreach(program ${needed})
    string(REGEX REPLACE "^${CMAKE_BINARY_DIR}/tests/([a-z]+)/([^/]+)/([^/]+)$" "\\1.\\3.\\2" target ${program})
    add_dependencies(shima_everyday_programs ${target})
  endforeach()
endfunction()
