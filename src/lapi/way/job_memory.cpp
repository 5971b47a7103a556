#include "lapi/way/job_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string_view>

namespace shima::lapi {
namespace {

constexpr std::size_t head_bytes = std::size_t{64} << 10;  // a multiple of every page size
// Changes with the layout of the memory and of the messages in it.
constexpr std::uint64_t magic = 0x4c415049'53484d32;

// The first page of the file; each region begins with a page for `changes`.
struct Head {
  std::uint64_t magic = 0;
  std::uint64_t tasks = 0;
};

std::size_t file_bytes(int tasks) {
  return head_bytes + contexts_of_job * JobMemory::region_bytes(tasks);
}

std::size_t mailbox_bytes(int tasks) { return sizeof(Mailbox) * static_cast<std::size_t>(tasks); }

// Removes "NAME=number" from the front of a text.
bool take_number(std::string_view& text, std::string_view name, int& number) {
  if (!text.starts_with(name)) return false;
  text.remove_prefix(name.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

std::size_t JobMemory::region_bytes(int tasks) {
  const auto count = static_cast<std::size_t>(tasks);
  const std::size_t bytes = 64 + mailbox_bytes(tasks) + count * count * sizeof(ByteRing);
  return (bytes + head_bytes - 1) / head_bytes * head_bytes;
}

Mailbox& JobMemory::mailbox(int task) const {
  return reinterpret_cast<Mailbox*>(region_.data() + 64)[task];
}

ByteRing& JobMemory::ring(int from, int to) const {
  auto* rings = reinterpret_cast<ByteRing*>(region_.data() + 64 + mailbox_bytes(tasks_));
  return rings[static_cast<std::size_t>(from) * static_cast<std::size_t>(tasks_) +
               static_cast<std::size_t>(to)];
}

void JobMemory::change(int task, Standing standing) const {
  mailbox(task).standing.store(static_cast<std::uint32_t>(standing), std::memory_order_seq_cst);
  changes().fetch_add(1, std::memory_order_seq_cst);
  for (int other = 0; other < tasks_; ++other) mailbox(other).bell.ring_all();
}

void JobMemory::note_end(int task, bool by_signal) const {
  auto absent = static_cast<std::uint32_t>(Standing::absent);
  const Standing ended = by_signal ? Standing::lost : Standing::left;
  if (!mailbox(task).standing.compare_exchange_strong(absent, static_cast<std::uint32_t>(ended),
                                                      std::memory_order_seq_cst))
    return;
  const bool is_used = changes().fetch_add(1, std::memory_order_seq_cst) != 0;
  for (int other = 0; is_used && other < tasks_; ++other) mailbox(other).bell.ring_all();
}

std::string describe(const JobPlace& place) {
  return fmt::format("fd={} task={} tasks={}", place.descriptor, place.task, place.tasks);
}

std::optional<JobPlace> parse_job_place(const char* text) {
  JobPlace place;
  std::string_view rest = text != nullptr ? text : "";
  if (!take_number(rest, "fd=", place.descriptor) || !take_number(rest, " task=", place.task) ||
      !take_number(rest, " tasks=", place.tasks) || !rest.empty() || place.descriptor < 0 ||
      place.tasks < 1 || place.tasks > most_tasks || place.task < 0 || place.task >= place.tasks)
    return {};
  return place;
}

Result<UniqueFd> make_job_memory(int tasks) {
  UniqueFd fd(::memfd_create("shima-lapi", 0));  // inherited by the tasks
  if (!fd) return fail_errno(errno, "creating the memory of a LAPI job (memfd_create)");
  const Head head{magic, static_cast<std::uint64_t>(tasks)};
  if (::ftruncate(fd.get(), static_cast<off_t>(file_bytes(tasks))) != 0 ||
      ::pwrite(fd.get(), &head, sizeof head, 0) != sizeof head)
    return fail_errno(errno, fmt::format("sizing the memory of a LAPI job to {} bytes (a limit on "
                                         "file sizes, `ulimit -f`, applies to it)",
                                         file_bytes(tasks)));
  return fd;
}

// Programs that the task starts do not get the descriptor.
Result<Mapping> map_job_memory(const JobPlace& place, int context) {
  Head head;
  struct stat facts{};
  if (::pread(place.descriptor, &head, sizeof head, 0) != sizeof head || head.magic != magic ||
      head.tasks != static_cast<std::uint64_t>(place.tasks) ||
      ::fstat(place.descriptor, &facts) != 0 ||
      static_cast<std::size_t>(facts.st_size) != file_bytes(place.tasks))
    return fail(Code::bad_handle,
                fmt::format("descriptor {} is not the memory of this job: the program, or what "
                            "started it, has closed it",
                            place.descriptor));
  ::fcntl(place.descriptor, F_SETFD, FD_CLOEXEC);
  const std::size_t len_bytes = JobMemory::region_bytes(place.tasks);
  const std::size_t start = head_bytes + static_cast<std::size_t>(context) * len_bytes;
  void* data = ::mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                      place.descriptor, static_cast<off_t>(start));
  if (data == MAP_FAILED)
    return fail_errno(errno, fmt::format("mapping {} bytes of a LAPI job", len_bytes));
  return Mapping(static_cast<std::byte*>(data), len_bytes);
}

}  // namespace shima::lapi
