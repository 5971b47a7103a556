// What the library does before main() in a job over hosts. It connects to the meeting place, and
// gives a program that a launcher has started on another host the same address layout as the tasks
// on the first: programs of LAPI send addresses of functions and static variables to other tasks.
//
// `shima run --lapi` turns address randomization off for itself, which processes inherit, but not
// over ssh. So before main() a program that is linked with this library, and has randomized
// addresses, turns it off and executes itself again. Nothing of the program has run until then. A
// program that loads this library later keeps its addresses.
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "lapi/way/early_connection.h"
#include "lapi/way/job_memory.h"

namespace {

constexpr std::string_view library_name = "liblapi";

// Visits the program itself, which comes first.
int find_library(dl_phdr_info* program, std::size_t, void* found) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < program->dlpi_phnum; ++i)
    if (program->dlpi_phdr[i].p_type == PT_DYNAMIC)
      dynamic =
          reinterpret_cast<const ElfW(Dyn)*>(program->dlpi_addr + program->dlpi_phdr[i].p_vaddr);
  if (dynamic == nullptr) return 1;
  const char* names = nullptr;
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
  for (const ElfW(Dyn)* entry = dynamic; names != nullptr && entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_NEEDED &&
        std::string_view(names + entry->d_un.d_val).starts_with(library_name))
      *static_cast<bool*>(found) = true;
  return 1;
}

bool is_linked_with_program() {
  bool found = false;
  dl_iterate_phdr(find_library, &found);
  return found;
}

void keep_addresses(char** argv, char** environment) {
  const int now = ::personality(0xffffffff);
  if (now < 0 || (now & ADDR_NO_RANDOMIZE) != 0 || !is_linked_with_program()) return;
  std::array<char, 4096> path{};
  if (::readlink("/proc/self/exe", path.data(), path.size() - 1) <= 0) return;
  if (::personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) < 0) return;
  ::execve(path.data(), argv, environment);
}

__attribute__((constructor)) void start(int, char** argv, char** environment) {
  const char* job = std::getenv(shima::lapi::job_variable);
  if (job == nullptr || !std::string_view(job).starts_with("meet=")) return;
  keep_addresses(argv, environment);
  shima::lapi::connect_early();
}

__attribute__((destructor)) void end() { shima::lapi::leave_early(); }

}  // namespace
