#include "pvas/root/loader/partition.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>

#include "pvas/root/loader/first_stack.h"
#include "pvas/root/loader/load.h"
#include "pvas/shared/elf_image.h"

namespace shima::pvas {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;
constexpr std::uint64_t guard_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t smallest_stack = std::uint64_t{1} << 20;
constexpr std::uint64_t largest_stack = gib;
constexpr std::uint64_t heap_bytes = 32 * gib;
constexpr std::uint64_t least_window_bytes = 8 * gib;
constexpr std::uint64_t largest_image = 64 * gib;
constexpr std::uint64_t boundless_stack = 64 * (std::uint64_t{1} << 20);

std::uint64_t random_below(std::uint64_t limit) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) return 0;
  return number % limit;
}

std::uint64_t stack_bytes(const rlimit& limit) {
  if (limit.rlim_cur == RLIM_INFINITY) return boundless_stack;
  return page_up(std::clamp<std::uint64_t>(limit.rlim_cur, smallest_stack, largest_stack));
}

// A descriptor number for the program's own file that no file of the task uses, in the lower half
// of the task's limit, so that there is room above while files are moved.
int origin_number(const SpawnOrder& order, const std::vector<TaskFile>& files) {
  std::set<int> taken;
  for (const TaskFile& file : files) taken.insert(file.number);
  const auto most = std::min<rlim_t>(order.limits[RLIMIT_NOFILE].rlim_cur, 1024);
  int number = static_cast<int>(most / 2) - 1;
  while (number > 3 && taken.contains(number)) --number;
  return number;
}

Result<UniqueFd> open_image(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening " + path);
  return fd;
}

// Before Linux 5.16 a core dump killed all processes that share memory with the dumping one. A
// limit of one byte disables dumps, even if a program would receive them.
void limit_cores(EntryOrder& order) {
  static const bool kills_all = [] {
    utsname name{};
    if (::uname(&name) != 0) return true;
    char* rest = nullptr;
    const long major = std::strtol(name.release, &rest, 10);
    const long minor = *rest == '.' ? std::strtol(rest + 1, nullptr, 10) : 0;
    return major < 5 || (major == 5 && minor < 16);
  }();
  if (kills_all) order.limits[RLIMIT_CORE].rlim_cur = 1;
}

struct Images {
  Loaded program;
  Loaded loader;  // the program's own, if it has none
  std::uint64_t entry = 0;
  std::vector<AuxEntry> aux;
  bool executable_stack = false;
  std::uint64_t end = 0;
};

std::unexpected<Error> too_large(const std::string& name) {
  return fail(Code::no_memory, name + ": with its static data it is larger than a partition");
}

Status must_be_placed(const Loaded& loaded, const std::string& name) {
  if (loaded.placed_calls > 0) return {};
  return fail(Code::unsupported_operation,
              name + ": its libc maps memory in an unknown way, so it cannot be a task");
}

Result<Images> load_program(const SpawnOrder& order, int fd, std::uint64_t where,
                            const PrivateCopy& copy) {
  SHIMA_TRY_ASSIGN(const ElfImage program, read_elf_image(fd, order.file));
  if (program.span > largest_image) return too_large(order.file);
  Images images;
  const bool alone = !program.interpreter;
  SHIMA_TRY_ASSIGN(images.program,
                   load_image(fd, program, where, alone ? &copy : nullptr, order.file));
  images.loader = images.program;
  images.executable_stack = program.executable_stack;
  images.entry = images.program.base + program.entry;
  const std::uint64_t program_entry = images.entry;
  std::uint64_t loader_base = 0;
  if (!alone) {
    const std::string& name = *program.interpreter;
    SHIMA_TRY_ASSIGN(const UniqueFd loader_fd, open_image(name));
    SHIMA_TRY_ASSIGN(const ElfImage loader, read_elf_image(loader_fd.get(), name));
    SHIMA_TRY_ASSIGN(
        images.loader,
        load_image(loader_fd.get(), loader, page_up(images.program.end) + page_bytes, &copy, name));
    loader_base = images.loader.base;
    images.entry = loader_base + loader.entry;
  }
  SHIMA_TRY(must_be_placed(images.loader, alone ? order.file : *program.interpreter));
  SHIMA_TRY_ASSIGN(images.aux, inherited_aux());
  images.aux.insert(images.aux.end(), {{AT_PHDR, images.program.base + program.headers},
                                       {AT_PHENT, program.header_bytes},
                                       {AT_PHNUM, program.header_count},
                                       {AT_BASE, loader_base},
                                       {AT_ENTRY, program_entry},
                                       {AT_SECURE, 0}});
  images.end = images.loader.end;
  return images;
}

Result<std::uint64_t> make_stack(const SpawnOrder& order, const Images& images, std::uint64_t begin,
                                 std::uint64_t bytes, const Control* control) {
  const int executable = images.executable_stack ? PROT_EXEC : 0;
  SHIMA_TRY(map_pages(begin, bytes, PROT_READ | PROT_WRITE | executable));
  FirstStack content{.arguments = order.arguments,
                     .environment = order.environment,
                     .shown_name = order.shown,
                     .platform = {},
                     .aux = images.aux};
  const auto* const platform = reinterpret_cast<const char*>(::getauxval(AT_PLATFORM));
  if (platform != nullptr) content.platform = platform;
  content.aux.push_back({aux_control, reinterpret_cast<std::uint64_t>(control)});
  if (::getrandom(content.random.data(), content.random.size(), 0) < 0)
    return fail_errno(errno, "getting random bytes for a task");
  return write_first_stack(content, {reinterpret_cast<std::byte*>(begin), bytes}, begin);
}

void fill_entry(EntryOrder& entry, const SpawnOrder& order) {
  entry.root_pid = ::getpid();
  entry.process_group = order.process_group;
  entry.umask = order.umask;
  entry.blocked = order.blocked;
  entry.ignored = order.ignored;
  entry.niceness = order.niceness;
  std::strncpy(entry.name.data(), order.name.c_str(), entry.name.size() - 1);
  std::ranges::copy(order.limits, entry.limits.begin());
  entry.cpu_bytes = std::min(order.cpus.size(), entry.cpus.size());
  std::copy_n(order.cpus.begin(), entry.cpu_bytes, entry.cpus.begin());
  limit_cores(entry);
}

// The task's files follow its order in memory; their numbers in the root are known already.
void list_files(EntryOrder& entry, FileMove* list, const std::vector<TaskFile>& files) {
  entry.files = list;
  entry.file_count = static_cast<int>(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) list[i] = {files[i].fd.get(), files[i].number};
}

}  // namespace

Result<Partition> fill_partition(SpaceState& space_state, int task, const SpawnOrder& order,
                                 const std::vector<TaskFile>& files) {
  const std::uint64_t base = partition_address(space_state, task);
  const std::uint64_t head = page_up(sizeof(Control) + sizeof(EntryOrder) +
                                     files.size() * sizeof(FileMove) + alignof(EntryOrder));
  SHIMA_TRY(map_pages(base, head, PROT_READ | PROT_WRITE));
  Partition partition;
  partition.control = new (reinterpret_cast<void*>(base)) Control;
  partition.entry = new (partition.control + 1) EntryOrder{};
  partition.origin_number = origin_number(order, files);
  SHIMA_TRY_ASSIGN(partition.program, open_image(order.file));
  fill_entry(*partition.entry, order);
  list_files(*partition.entry, reinterpret_cast<FileMove*>(partition.entry + 1), files);

  const std::uint64_t begin = base + head + page_bytes * (1 + random_below(gib / page_bytes));
  SHIMA_TRY_ASSIGN(const Images images,
                   load_program(order, partition.program.get(), begin,
                                {&partition.control->area, partition.origin_number}));
  const std::uint64_t stack = page_up(images.end) + guard_bytes;
  const std::uint64_t bytes = stack_bytes(order.limits[RLIMIT_STACK]);
  Control& control = *partition.control;
  control.magic = control_magic;
  control.space_state = &space_state;
  control.task = task;
  const std::uint64_t heap = stack + bytes + guard_bytes;
  const std::uint64_t end = base + space_state.partition_size;
  if (heap + heap_bytes + least_window_bytes > end) return too_large(order.file);
  control.area.heap = {.begin = heap, .end = heap + heap_bytes, .now = heap};
  control.area.begin = heap + heap_bytes;
  control.area.end = end;
  control.area.next = control.area.begin;
  std::snprintf(control.area.own_program, sizeof control.area.own_program, "/dev/fd/%d",
                partition.origin_number);
  SHIMA_TRY_ASSIGN(partition.entry->stack, make_stack(order, images, stack, bytes, &control));
  partition.entry->entry = images.entry;
  return partition;
}

}  // namespace shima::pvas
