// Which library names belong to an MPI (audit/names.h).
#include <gtest/gtest.h>

#include "audit/names.h"

namespace shima::audit {
namespace {

TEST(LibraryNames, TheVersionTellsTheAbi) {
  for (const char* name : {"libmpi.so.12", "libmpich.so.12", "libmpi.so.12.5.0",
                           "/opt/x/libmpi.so.12", "libmpi_cray.so.12", "libmpi_gnu_91.so.12"})
    EXPECT_EQ(family_of(name), Family::mpich) << name;
  for (const char* name : {"libmpi.so.40", "libmpi.so.40.30.4", "../lib/libmpi.so.40"})
    EXPECT_EQ(family_of(name), Family::openmpi) << name;
  for (const char* name : {"libmpi_abi.so.0", "libmpi_abi.so.1", "libmpi_abi.so.1.0"})
    EXPECT_EQ(family_of(name), Family::standard) << name;
}

TEST(LibraryNames, OtherLibrariesAreLeftAlone) {
  for (const char* name :
       {"libmpi.so", "libmpi.so.20", "libmpi_abi.so.12x", "libmpicxx.so.12", "libmpi_cxx.so.40",
        "libmpi_mpifh.so.40", "libmpi_usempif08.so.40", "libmpifort.so.12", "libhdf5.so.12",
        "libmpi.source", "libc.so.6", "", "/"})
    EXPECT_FALSE(family_of(name).has_value()) << name;
}

TEST(LibraryNames, FortranBindingsHaveNamesOfTheirOwn) {
  for (const char* name : {"libmpifort.so.12", "libmpichfort.so.12.1", "libmpifort_cray.so.12"})
    EXPECT_EQ(fortran_family_of(name), Family::mpich) << name;
  EXPECT_EQ(fortran_family_of("libmpi_mpifh.so.40"), Family::openmpi);
  for (const char* name :
       {"libmpi.so.12", "libmpi.so.40", "libmpi_usempif08.so.40", "libgfortran.so.5"})
    EXPECT_FALSE(fortran_family_of(name).has_value()) << name;
}

TEST(LibraryNames, AnMpiWithoutBuildIsRecognised) {
  for (const char* name :
       {"libmpi.so", "libmpi.so.20", "libmpich.so", "libmpi_abi.so.9", "libmpi.so.12"})
    EXPECT_TRUE(looks_like_mpi(name)) << name;
  for (const char* name : {"libmpi_cxx.so.40", "libmpifort.so.12", "libmpi", "libmpi.a"})
    EXPECT_FALSE(looks_like_mpi(name)) << name;
}

}  // namespace
}  // namespace shima::audit
