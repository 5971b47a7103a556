// Which library names belong to an MPI, and which build of Shima serves it.
//
// The name decides. Everything with MPICH's ABI has version 12, whatever its vendor adds to the
// name (libmpi.so.12, libmpich.so.12, libmpi_cray.so.12); Open MPI 4 and 5 have version 40; the
// standard ABI of MPI-5 is called libmpi_abi. Fortran bindings are separate libraries.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace shima::audit {

enum class Family { mpich, openmpi, standard };
inline constexpr std::size_t family_count = 3;

// The file name of a shared library in parts: "libmpi.so.40.30.4" is stem "libmpi", version "40".
struct LibraryName {
  std::string_view stem;
  std::string_view version;  // the first number after ".so.", or empty
};

[[nodiscard]] constexpr LibraryName cut_name(std::string_view name) {
  constexpr std::string_view infix = ".so";
  const auto slash = name.rfind('/');
  if (slash != std::string_view::npos) name.remove_prefix(slash + 1);
  const auto dot = name.find(infix);
  if (dot == std::string_view::npos) return {};
  LibraryName cut{name, name};
  cut.stem.remove_suffix(name.size() - dot);
  cut.version.remove_prefix(dot + infix.size());
  if (!cut.version.starts_with('.')) return {cut.version.empty() ? cut.stem : "", {}};
  cut.version.remove_prefix(1);
  const auto next = cut.version.find('.');
  if (next != std::string_view::npos) cut.version.remove_suffix(cut.version.size() - next);
  return cut;
}

// The MPI whose C library has this name; none for its Fortran and C++ bindings.
[[nodiscard]] constexpr std::optional<Family> family_of(std::string_view library) {
  const LibraryName name = cut_name(library);
  const bool plain = name.stem == "libmpi" || name.stem == "libmpich";
  if (name.stem == "libmpi_abi" && (name.version == "0" || name.version == "1"))
    return Family::standard;
  if (name.version == "12" && (plain || name.stem.starts_with("libmpi_"))) return Family::mpich;
  if (name.version == "40" && name.stem == "libmpi") return Family::openmpi;
  return std::nullopt;
}

// The MPI whose Fortran bindings for mpif.h have this name.
[[nodiscard]] constexpr std::optional<Family> fortran_family_of(std::string_view library) {
  const LibraryName name = cut_name(library);
  if (name.version == "12" &&
      (name.stem.starts_with("libmpifort") || name.stem.starts_with("libmpichfort")))
    return Family::mpich;
  if (name.version == "40" && name.stem == "libmpi_mpifh") return Family::openmpi;
  return std::nullopt;
}

// Whether this is the name of an MPI's C library, known or not ("libmpi.so", "libmpi.so.20").
[[nodiscard]] constexpr bool looks_like_mpi(std::string_view library) {
  const LibraryName name = cut_name(library);
  return name.stem == "libmpi" || name.stem == "libmpich" || name.stem == "libmpi_abi" ||
         family_of(library).has_value();
}

// Our libraries for one family. No file has a slot's name: our libraries need it, and the audit
// library answers with the real one. Each family has separate slots, because the loader binds the
// name to the first library that it finds and does not ask again.
struct Libraries {
  std::string_view build;  // its file
  std::string_view real_mpi_slot;
  // Precedes the MPI's Fortran bindings; has no code, needs the build, then the bindings.
  std::string_view fortran;
  std::string_view build_slot;
  std::string_view real_fortran_slot;
};

inline constexpr std::array<Libraries, family_count> libraries{{
    {"libshima-mpich.so", "libshima-real-mpich.so", "libshima-fortran-mpich.so",
     "libshima-build-mpich.so", "libshima-real-fortran-mpich.so"},
    {"libshima-openmpi.so", "libshima-real-openmpi.so", "libshima-fortran-openmpi.so",
     "libshima-build-openmpi.so", "libshima-real-fortran-openmpi.so"},
    {"libshima-abi.so", "libshima-real-abi.so", {}, {}, {}},  // has no Fortran bindings
}};

[[nodiscard]] constexpr const Libraries& libraries_of(Family family) {
  return libraries[static_cast<std::size_t>(family)];
}

inline constexpr std::string_view audit_file = "libshima-audit.so";

}  // namespace shima::audit
