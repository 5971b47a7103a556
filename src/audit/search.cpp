// DT_RPATH counts only if the requester has no DT_RUNPATH; the program's DT_RPATH counts as well.
// Directories with tokens other than $ORIGIN are skipped.
#include "audit/search.h"

#include <elf.h>

extern "C" void* __libc_stack_end;  // of the loader: where the kernel put argc

namespace shima::audit {
namespace {

struct RunPaths {
  std::string_view rpath;
  std::string_view runpath;
};

RunPaths run_paths(const link_map* map) {
  std::uint64_t strings = 0;
  const ElfW(Dyn)* rpath = nullptr;
  const ElfW(Dyn)* runpath = nullptr;
  for (const ElfW(Dyn)* entry = map->l_ld; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
    if (entry->d_tag == DT_RPATH) rpath = entry;
    if (entry->d_tag == DT_RUNPATH) runpath = entry;
  }
  if (strings == 0) return {};
  if (strings < map->l_addr) strings += map->l_addr;  // the loader has not relocated it
  const auto text = [&](const ElfW(Dyn) * entry) {
    if (entry == nullptr) return std::string_view{};
    return std::string_view(reinterpret_cast<const char*>(strings + entry->d_un.d_val));
  };
  return {text(rpath), text(runpath)};
}

const link_map* main_program(const link_map* map) {
  while (map->l_prev != nullptr) map = map->l_prev;
  return map;
}

std::string_view cut_token(std::string_view& directory) {
  for (const std::string_view token : {std::string_view("$ORIGIN"), std::string_view("${ORIGIN}")})
    if (directory.starts_with(token)) {
      directory.remove_prefix(token.size());
      return token;
    }
  return {};
}

void add_origin(const link_map* map, Path& path) {
  const std::string_view name = map->l_name;
  if (!name.empty()) return path.add(directory_of(name));
  static Path program;
  read_own_program(program);
  path.add(directory_of(program.view()));
}

bool is_in(std::string_view directory, const link_map* origin, std::string_view name, Path& found) {
  found.clear();
  if (!cut_token(directory).empty()) add_origin(origin, found);
  if (directory.find('$') != std::string_view::npos) return false;
  found.add(directory);
  if (found.size == 0) found.add(".");
  found.add("/");
  found.add(name);
  return found.ok && is_readable(found.text);
}

bool is_in_list(std::string_view list, const link_map* origin, std::string_view name, Path& found) {
  while (!list.empty()) {
    std::size_t end = 0;
    while (end < list.size() && list[end] != ':' && list[end] != ';') ++end;
    std::string_view directory = list;
    directory.remove_suffix(list.size() - end);
    if (is_in(directory, origin, name, found)) return true;
    list.remove_prefix(end < list.size() ? end + 1 : end);
  }
  return false;
}

}  // namespace

bool find_as_loader(std::string_view name, const link_map* requester, Path& found) {
  if (name.find('/') != std::string_view::npos) {
    found.set(name);
    return found.ok && is_readable(found.text);
  }
  const link_map* program = main_program(requester);
  const RunPaths own = run_paths(requester);
  if (own.runpath.empty()) {
    if (is_in_list(own.rpath, requester, name, found)) return true;
    const RunPaths of_program = run_paths(program);
    if (of_program.runpath.empty() && is_in_list(of_program.rpath, program, name, found))
      return true;
  }
  return is_in_list(initial_environment("LD_LIBRARY_PATH"), program, name, found) ||
         is_in_list(own.runpath, requester, name, found);
}

bool find_in_system(std::string_view name, Path& found) {
#if defined(__aarch64__)
  constexpr std::string_view directories =
      "/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu:/lib64:/usr/lib64:/usr/local/lib:/lib:/"
      "usr/lib";
#else
  constexpr std::string_view directories =
      "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib64:/usr/lib64:/usr/local/lib:/lib:/usr/"
      "lib";
#endif
  return is_in_list(directories, nullptr, name, found);
}

std::string_view initial_environment(std::string_view variable) {
  const long argc = *static_cast<const long*>(__libc_stack_end);
  const char* const* entry = static_cast<const char* const*>(__libc_stack_end) + argc + 2;
  for (; *entry != nullptr; ++entry) {
    std::string_view text(*entry);
    if (!text.starts_with(variable)) continue;
    text.remove_prefix(variable.size());
    if (!text.starts_with('=')) continue;
    text.remove_prefix(1);
    return text;
  }
  return {};
}

}  // namespace shima::audit
