// A partition, from its beginning: the Control and what the task needs to begin; some random pages
// of nothing; the program; its loader; the stack; and from there on whatever the task maps.
#include "pvas/root/space.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>

#include "pvas/elf_image.h"
#include "pvas/root/first_stack.h"
#include "pvas/root/load.h"

namespace shima::pvas {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;
// Far below where kernels put programs (0x55...) and their mappings (0x7f...).
constexpr std::uint64_t region_begin = 16 * 1024 * gib;
constexpr std::uint64_t region_bytes = 64 * 1024 * gib;
constexpr std::uint64_t partition_bytes = 128 * gib;
static_assert(region_begin + region_bytes < 0x550000000000);

constexpr std::uint64_t guard_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t smallest_stack = std::uint64_t{1} << 20;
constexpr std::uint64_t largest_stack = gib;
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

// A number for the program's own file that is not one of the task's files, in the lower half of
// what the task may have, so that there is room above while files are moved.
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

// Before 5.16 the kernel killed all who share memory with a process that dumps core; a limit of one
// byte means no dump at all, even where a program would receive it.
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

const char* words_for(EntryStep step) {
  switch (step) {
    case EntryStep::parent:
      return "the space has ended";
    case EntryStep::folder:
      return "its working directory";
    case EntryStep::files:
      return "moving its files to their numbers";
    case EntryStep::origin:
      return "keeping its program open";
    case EntryStep::signals:
      return "setting its signals";
    case EntryStep::affinity:
      return "binding it to its cores";
    default:
      return "its beginning";
  }
}

// Whether a process has executed another program. Where its first thread has ended there is nothing
// to see, and it has not.
bool has_left(pid_t pid) {
  struct stat own{};
  struct stat other{};
  const std::string link = "/proc/" + std::to_string(pid) + "/exe";
  return ::stat("/proc/self/exe", &own) == 0 && ::stat(link.c_str(), &other) == 0 &&
         (own.st_dev != other.st_dev || own.st_ino != other.st_ino);
}

}  // namespace

// What is mapped for a task that is about to begin.
struct Space::Layout {
  Control* control = nullptr;
  EntryOrder* entry = nullptr;
  int origin_number = 0;
  UniqueFd program;
};

Result<Space> Space::make(Slice slice, const std::string& socket_name) {
  void* const memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return fail_errno(errno, "memory for a space");
  auto* const board = new (memory) Board;
  const std::uint64_t slice_bytes = region_bytes / static_cast<std::uint64_t>(slice.count);
  board->root_pid = ::getpid();
  board->slice = slice.index;
  std::strncpy(board->socket_name.data(), socket_name.c_str(), board->socket_name.size() - 1);
  board->first_partition = region_begin + static_cast<std::uint64_t>(slice.index) * slice_bytes;
  board->partition_size = partition_bytes;
  board->task_limit = std::min<std::uint64_t>(max_tasks, slice_bytes / partition_bytes);
  return Space(board);
}

std::uint64_t Space::partition(int place) const {
  return board_->first_partition + static_cast<std::uint64_t>(place) * board_->partition_size;
}

Result<int> Space::find_place() {
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (std::uint64_t place = 0; place < board_->task_limit; ++place)
      if (board_->places[place].state.load() == PlaceState::free) return static_cast<int>(place);
    sweep();
  }
  return fail(Code::no_memory,
              "the space is full: it has " + std::to_string(board_->task_limit) + " tasks", EAGAIN);
}

namespace {

struct Images {
  Loaded program;
  Loaded loader;  // the program's, where it has none
  std::uint64_t entry = 0;
  std::vector<AuxEntry> aux;
  bool executable_stack = false;
  std::uint64_t end = 0;
};

Status must_be_placed(const Loaded& loaded, const std::string& name) {
  if (loaded.placed_calls > 0) return {};
  return fail(Code::unsupported_operation,
              name + ": its way of mapping memory is not known, so it cannot be a task");
}

Result<Images> load_program(const SpawnOrder& order, int fd, std::uint64_t where,
                            const PrivateCopy& copy) {
  SHIMA_TRY_ASSIGN(const ElfImage program, read_elf_image(fd, order.file));
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
    return fail_errno(errno, "random bytes for a task");
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

// The files a task begins with lie behind its order; their numbers here are known already.
void list_files(EntryOrder& entry, FileMove* list, const std::vector<TaskFile>& files) {
  entry.files = list;
  entry.file_count = static_cast<int>(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) list[i] = {files[i].fd.get(), files[i].number};
}

}  // namespace

Result<Space::Layout> Space::lay_out(int place, const SpawnOrder& order,
                                     const std::vector<TaskFile>& files) {
  const std::uint64_t base = partition(place);
  const std::uint64_t head = page_up(sizeof(Control) + sizeof(EntryOrder) +
                                     files.size() * sizeof(FileMove) + alignof(EntryOrder));
  SHIMA_TRY(map_pages(base, head, PROT_READ | PROT_WRITE));
  Layout layout;
  layout.control = new (reinterpret_cast<void*>(base)) Control;
  layout.entry = new (layout.control + 1) EntryOrder{};
  layout.origin_number = origin_number(order, files);
  SHIMA_TRY_ASSIGN(layout.program, open_image(order.file));
  fill_entry(*layout.entry, order);
  list_files(*layout.entry, reinterpret_cast<FileMove*>(layout.entry + 1), files);

  const std::uint64_t begin = base + head + page_bytes * (1 + random_below(gib / page_bytes));
  SHIMA_TRY_ASSIGN(const Images images,
                   load_program(order, layout.program.get(), begin,
                                {&layout.control->window, layout.origin_number}));
  const std::uint64_t stack = page_up(images.end) + guard_bytes;
  const std::uint64_t bytes = stack_bytes(order.limits[RLIMIT_STACK]);
  Control& control = *layout.control;
  control.magic = control_magic;
  control.board = board_;
  control.task = place;
  control.window.begin = stack + bytes + guard_bytes;
  control.window.end = base + board_->partition_size;
  control.window.next = control.window.begin;
  std::snprintf(control.window.own_program, sizeof control.window.own_program, "/dev/fd/%d",
                layout.origin_number);
  SHIMA_TRY_ASSIGN(layout.entry->stack, make_stack(order, images, stack, bytes, &control));
  layout.entry->entry = images.entry;
  return layout;
}

Result<Started> Space::start(const SpawnOrder& order, const UniqueFd& folder,
                             const std::vector<TaskFile>& files) {
  SHIMA_TRY_ASSIGN(const int place, find_place());
  const auto at = static_cast<std::size_t>(place);
  keeping_[at] = {.mapped = true, .named = false};
  board_->places[at].state = PlaceState::ended;  // until there is a process
  auto layout = lay_out(place, order, files);
  if (!layout) {
    settle(place);
    return std::unexpected(layout.error());
  }
  layout->entry->folder_fd = folder.get();
  layout->entry->place = &board_->places[at];
  layout->entry->origin_fd = layout->program.get();
  layout->entry->origin_at = layout->origin_number;
  const long pid = start_task(layout->entry);
  if (pid < 0) {
    settle(place);
    return fail_errno(static_cast<int>(-pid), "making a process");
  }
  keeping_[at].named = true;
  // The process says so itself, but perhaps later than it is asked for.
  Place& seen = board_->places[at];
  seen.pid = static_cast<std::int32_t>(pid);
  seen.state = PlaceState::running;
  tasks_.emplace(static_cast<pid_t>(pid), Task{place, layout->entry});
  return Started{place, static_cast<pid_t>(pid)};
}

bool Space::is_held(int place) const {
  const auto& holders = board_->holds[static_cast<std::size_t>(place)];
  return std::ranges::any_of(holders, [](const auto& count) { return count.load() != 0; });
}

// Does what can be done for a place whose task is gone: its memory goes when nobody holds it, all
// of it by one call, and then, when nobody calls it by its number, the place is free.
void Space::settle(int place) {
  const auto at = static_cast<std::size_t>(place);
  if (board_->places[at].state != PlaceState::ended) return;
  if (keeping_[at].mapped && !is_held(place)) {
    ::munmap(reinterpret_cast<void*>(partition(place)), board_->partition_size);
    keeping_[at].mapped = false;
  }
  if (!keeping_[at].mapped && !keeping_[at].named) board_->places[at].state = PlaceState::free;
}

void Space::let_go(int place) {
  keeping_[static_cast<std::size_t>(place)].named = false;
  settle(place);
}

// What a task that is no more had said and asked for.
void Space::forget(int place) {
  std::uint32_t holder = static_cast<std::uint32_t>(place) + 1;
  if (board_->lock.compare_exchange_strong(holder, 0)) futex_wake(board_->lock, INT_MAX);
  for (Export& shown : board_->exports)
    if (shown.owner == place + 1) shown.owner = 0;
  for (auto& holders : board_->holds) holders[static_cast<std::size_t>(place)] = 0;
}

void Space::leave_place(Task& task) {
  if (!task.place) return;
  const int place = *task.place;
  task.place.reset();
  forget(place);
  // First the state and then the look at who holds it: who holds does it the other way round.
  board_->places[static_cast<std::size_t>(place)].state = PlaceState::ended;
  settle(place);
}

std::vector<Change> Space::take_changes() {
  std::vector<Change> changes;
  int status = 0;
  for (;;) {
    const pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
    if (pid <= 0) return changes;
    const auto found = tasks_.find(pid);
    if (found == tasks_.end()) continue;
    Change change{pid, status, {}};
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      Task& task = found->second;
      if (task.place && task.order->failed != EntryStep::none &&
          task.order->failed != EntryStep::done)
        change.failure = std::string(words_for(task.order->failed)) + ": " +
                         std::strerror(task.order->failed_errno);
      leave_place(task);
      tasks_.erase(found);
    }
    changes.push_back(std::move(change));
  }
}

void Space::sweep() {
  for (auto& [pid, task] : tasks_)
    if (task.place && has_left(pid)) leave_place(task);
  for (std::uint64_t place = 0; place < board_->task_limit; ++place)
    settle(static_cast<int>(place));
}

void Space::signal(pid_t pid, int number) const {
  if (tasks_.contains(pid)) ::kill(pid, number);
}

}  // namespace shima::pvas
