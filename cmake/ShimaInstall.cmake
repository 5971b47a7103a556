# Further files of `make install`, besides the command and the builds: public headers, man
# pages, a pkg-config file, a CMake package and units for systemd.  All paths are relative to the file
# itself, so the tree may be moved; only the units, which systemd requires to have absolute ones, would
# have to be adapted.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/shima DESTINATION include)
install(FILES ${CMAKE_SOURCE_DIR}/include/lapi.h DESTINATION include)
foreach(section 1 3 7)
  file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.${section})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

configure_file(${CMAKE_SOURCE_DIR}/cmake/package/shima.pc.in ${CMAKE_BINARY_DIR}/shima.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/shima.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shima)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/package/shimaConfig.cmake.in ${CMAKE_BINARY_DIR}/shimaConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/shimaConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(EXPORT shima_c_libraries NAMESPACE shima:: FILE shimaLibraries.cmake DESTINATION ${package_dir})
install(FILES ${CMAKE_BINARY_DIR}/shimaConfig.cmake ${CMAKE_BINARY_DIR}/shimaConfigVersion.cmake
        DESTINATION ${package_dir})

# The unit files name the command by its prefix, which is known at `make install` only. They are written where they are
# installed: by way of the build directory, two installations at once would get each other's.
foreach(unit shima-iod.service shima-iod@.service)
  install(CODE "set(bindir \"\${CMAKE_INSTALL_PREFIX}/bin\")
    set(unit \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/system/${unit}\")
    message(STATUS \"Installing: \$ENV{DESTDIR}\${unit}\")
    configure_file(\"${CMAKE_SOURCE_DIR}/cmake/package/${unit}.in\" \"\$ENV{DESTDIR}\${unit}\" @ONLY
                   NO_SOURCE_PERMISSIONS)
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${unit}\")")
endforeach()

# The Python package, where the system's python3 looks for it if the prefix is its own or /usr/local.
find_program(SHIMA_PYTHON python3)
if(SHIMA_PYTHON AND NOT DEFINED SHIMA_PYTHON_DIR)
  execute_process(COMMAND ${SHIMA_PYTHON} -c "import os, sys, sysconfig; p = sysconfig.get_path('purelib'); \
print(os.path.relpath(p, '/usr/local' if p.startswith('/usr/local/') else sys.prefix))"
                  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(SHIMA_PYTHON_DIR ${found} CACHE STRING "where the Python package is installed, below the prefix")
endif()
if(SHIMA_PYTHON_DIR)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/shima DESTINATION ${SHIMA_PYTHON_DIR} PATTERN __pycache__ EXCLUDE)
  # Where the package finds the library: it looks nowhere else.
  file(RELATIVE_PATH to_library /prefix/${SHIMA_PYTHON_DIR}/shima /prefix/${CMAKE_INSTALL_LIBDIR}/libshima-dsm.so.0)
  file(WRITE ${CMAKE_BINARY_DIR}/_library.py "PATH = \"${to_library}\"  # from this directory\n")
  install(FILES ${CMAKE_BINARY_DIR}/_library.py DESTINATION ${SHIMA_PYTHON_DIR}/shima)
endif()

# `shima bench`: the experiments, with the sources of their programs, which it compiles for the user's MPI. They lie in
# share/shima as in the repository. In a build directory that is a link.
set(bench_dir share/shima/bench)
install(PROGRAMS ${CMAKE_SOURCE_DIR}/bench/shima_bench.py DESTINATION ${bench_dir})
install(FILES ${CMAKE_SOURCE_DIR}/bench/two_hosts.py DESTINATION ${bench_dir})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/bench/lib ${CMAKE_SOURCE_DIR}/bench/experiments ${CMAKE_SOURCE_DIR}/bench/documents
        DESTINATION ${bench_dir} FILES_MATCHING PATTERN *.py PATTERN __pycache__ EXCLUDE)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/bench/machine ${CMAKE_SOURCE_DIR}/bench/tasks ${CMAKE_SOURCE_DIR}/bench/dsm
        DESTINATION ${bench_dir} FILES_MATCHING PATTERN *.c PATTERN *.cpp PATTERN *.h)
install(FILES ${CMAKE_SOURCE_DIR}/bench/mpi/irregular.c ${CMAKE_SOURCE_DIR}/bench/mpi/irregular.h
              ${CMAKE_SOURCE_DIR}/bench/mpi/irregular_by_hand.c ${CMAKE_SOURCE_DIR}/bench/mpi/measure.h DESTINATION ${bench_dir}/mpi)
install(FILES ${CMAKE_SOURCE_DIR}/examples/columns.c ${CMAKE_SOURCE_DIR}/examples/steps.cpp ${CMAKE_SOURCE_DIR}/examples/subgroup.c
        DESTINATION share/shima/examples)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/shima)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/bench ${CMAKE_BINARY_DIR}/share/shima/bench SYMBOLIC)
