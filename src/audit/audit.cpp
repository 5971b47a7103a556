// The audit library: puts a build of Shima in front of the MPI that a process loads.
//
// `shima exec` names it in LD_AUDIT. So the dynamic loader of every process of the job, also behind
// env, bash, numactl or a debugger, calls it for each library before the search (rtld-audit(7)). If
// a libmpi is requested, by the program, another library or dlopen, the answer is the build for
// that MPI. The build needs a library whose name no file has (a "slot", one for each family), and
// for that name the answer is the real libmpi, as the requester would have found it. So the build
// precedes the MPI in the symbol search order: after the program and after profilers, which call it
// as they would call the MPI. Fortran bindings come before the C library in that order, and some of
// their entry points are ours: an empty library that needs the build first takes their place.
//
// Why not LD_PRELOAD: it initialises the build in every shell and wrapper, or each exec must be
// intercepted, which static launchers, system() and debuggers that count execs do not allow; it
// precedes profilers; and the MPI must be known before the program starts.
//
// A process without MPI gets this library, without a libc, and nothing else. The loader ignores
// LD_AUDIT in set-user-ID programs, and static programs have no loader. The loader holds its lock
// during each call, so the static buffers have one user at a time.
#include <link.h>

#include "audit/library_loads.h"
#include "audit/names.h"
#include "audit/search.h"
#include "audit/soname.h"

namespace {

using namespace shima::audit;

Path own_directory;
// The files for the slots of a family.
struct Placed {
  Path build;
  Path real_mpi;
  Path real_fortran;
};

std::array<Placed, family_count> placed;
Path answer;
Path scratch;

Placed& placed_for(Family family) { return placed[static_cast<std::size_t>(family)]; }

// LD_AUDIT is a list of paths; ours is the one with our name.
void find_own_directory() {
  std::string_view list = initial_environment("LD_AUDIT");
  own_directory.clear();
  while (!list.empty()) {
    const auto colon = list.find(':');
    std::string_view entry = list;
    if (colon != std::string_view::npos) entry.remove_suffix(list.size() - colon);
    if (entry.ends_with(audit_file)) own_directory.set(directory_of(entry));
    list.remove_prefix(colon == std::string_view::npos ? list.size() : colon + 1);
  }
}

// The path of a library of ours; false if it is not installed.
bool own_library(std::string_view file, Path& path) {
  path.set(own_directory.view());
  path.add("/");
  path.add(file);
  return own_directory.size > 0 && path.ok && is_readable(path.text);
}

void warn_unknown(std::string_view library, std::string_view soname) {
  scratch.set("shima: ");
  scratch.add(library);
  if (!soname.empty() && soname != library) {
    scratch.add(" (");
    scratch.add(soname);
    scratch.add(")");
  }
  scratch.add(
      ": Shima has no build for this MPI, so MPI-IO runs without Shima; `shima info` "
      "lists the builds\n");
  write_error(scratch.view());
}

// The family of the MPI behind a name; if the name does not tell, its file is read. Afterwards
// `mpi` is the file, or the name if the loader is to search for it.
std::optional<Family> find_mpi(std::string_view name, const link_map* requester, Path& mpi) {
  const bool found = find_as_loader(name, requester, mpi);
  const bool is_path = name.find('/') != std::string_view::npos;
  if (const auto family = family_of(name)) {
    if (is_path && !found) return std::nullopt;  // the loader reports the error
    if (!found) mpi.set(name);
    return family;
  }
  if (!found && (is_path || !find_in_system(name, mpi))) return std::nullopt;
  static Path soname;
  if (!read_soname(mpi.text, soname)) return std::nullopt;
  const auto family = family_of(soname.view());
  if (!family) warn_unknown(name, soname.view());
  return family;
}

const char* in_front_of_mpi(const char* name, const link_map* requester) {
  static Path mpi;
  const auto family = find_mpi(name, requester, mpi);
  if (!family) return name;
  Placed& place = placed_for(*family);
  if (!own_library(libraries_of(*family).build, place.build)) return name;
  place.real_mpi.set(mpi.view());
  return place.build.text;
}

// The C library that belongs to Fortran bindings: libmpi_cray.so.12 for libmpifort_cray.so.12.
void name_mpi_of_fortran(std::string_view fortran, Family family, Path& name) {
  const LibraryName cut = cut_name(fortran);
  std::string_view vendor = cut.stem;
  name.clear();
  if (family == Family::openmpi) {
    vendor = {};
    name.add("libmpi");
  } else if (vendor.starts_with("libmpichfort")) {
    vendor.remove_prefix(std::string_view("libmpichfort").size());
    name.add("libmpich");
  } else {
    vendor.remove_prefix(std::string_view("libmpifort").size());
    name.add("libmpi");
  }
  name.add(vendor);
  name.add(".so.");
  name.add(cut.version);
}

const char* in_front_of_fortran(const char* name, Family family, const link_map* requester) {
  static Path mpi;
  auto& [build, real_mpi, real_fortran] = placed_for(family);
  if (!own_library(libraries_of(family).build, build) ||
      !own_library(libraries_of(family).fortran, answer))
    return name;
  const bool found = find_as_loader(name, requester, real_fortran);
  if (!found) real_fortran.set(name);
  name_mpi_of_fortran(name, family, mpi);
  if (!find_as_loader(mpi.view(), requester, real_mpi)) {
    real_mpi.set(directory_of(real_fortran.view()));
    real_mpi.add("/");
    real_mpi.add(mpi.view());
    if (!found || !is_readable(real_mpi.text)) real_mpi.set(mpi.view());
  }
  return answer.text;
}

// The loader does not ask for a library that it has already loaded from the same path. With a
// second '/' in the path of the MPI, a dlopen of the plain path does ask, and gets the build.
const char* unlike_its_path(const Path& real_mpi) {
  if (real_mpi.text[0] != '/') return real_mpi.text;
  answer.set("/");
  answer.add(real_mpi.view());
  return answer.ok ? answer.text : real_mpi.text;
}

// The file for a slot; nullptr: no slot has this name.
const char* behind_slot(std::string_view name) {
  for (std::size_t i = 0; i < family_count; ++i) {
    if (name == libraries[i].real_mpi_slot) return unlike_its_path(placed[i].real_mpi);
    if (name == libraries[i].real_fortran_slot) return placed[i].real_fortran.text;
    if (name == libraries[i].build_slot) return placed[i].build.text;
  }
  return nullptr;
}

const char* put_in(const char* name, const link_map* requester) {
  const std::string_view text = name;
  if (text.empty()) return name;
  if (const char* const library = behind_slot(text)) return library;
  if (looks_like_mpi(text)) return in_front_of_mpi(name, requester);
  if (const auto family = fortran_family_of(text))
    return in_front_of_fortran(name, *family, requester);
  return name;
}

// The words that count loaded libraries. They are never unmapped.
struct LoadCounts {
  std::array<std::uint64_t*, 8> words;
  std::size_t used;
};

LoadCounts load_counts;

void add_load(std::uint64_t* word) { __atomic_fetch_add(word, 1, __ATOMIC_RELEASE); }

// Starts to count in the word that the name of a library requests; false: it is another name.
bool start_counting(std::string_view name) {
  if (!name.starts_with(library_loads_prefix)) return false;
  name.remove_prefix(library_loads_prefix.size());
  std::uintptr_t address = 0;
  for (const char digit : name)
    address =
        address * 16 + static_cast<std::uintptr_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
  if (load_counts.used == load_counts.words.size()) return true;
  auto* const word = reinterpret_cast<std::uint64_t*>(address);
  load_counts.words[load_counts.used++] = word;
  add_load(word);
  return true;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) unsigned la_version(unsigned loaders) {
  find_own_directory();
  return loaders < LAV_CURRENT ? loaders : LAV_CURRENT;
}

// A cookie is the address of the requester's link map, because we set no other.
extern "C" __attribute__((visibility("default"))) char* la_objsearch(const char* name,
                                                                     std::uintptr_t* cookie,
                                                                     unsigned flag) {
  if (flag != LA_SER_ORIG || own_directory.size == 0) return const_cast<char*>(name);
  if (start_counting(name)) return nullptr;
  return const_cast<char*>(put_in(name, reinterpret_cast<const link_map*>(*cookie)));
}

extern "C" __attribute__((visibility("default"))) unsigned la_objopen(link_map*, Lmid_t,
                                                                      std::uintptr_t*) {
  for (std::size_t i = 0; i < load_counts.used; ++i) add_load(load_counts.words[i]);
  return 0;
}
