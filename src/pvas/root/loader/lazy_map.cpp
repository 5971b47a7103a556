#include "pvas/root/loader/lazy_map.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "pvas/root/loader/load.h"

namespace shima::pvas {
namespace {

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

// Must include system calls: with UFFD_USER_MODE_ONLY, write(2) from such memory would fail. Access
// depends on privilege (CAP_SYS_PTRACE), on vm.unprivileged_userfaultfd, or on the mode of a
// device.
Result<UniqueFd> open_faults() {
  constexpr int flags = O_CLOEXEC | O_NONBLOCK;
  UniqueFd faults(static_cast<int>(::syscall(SYS_userfaultfd, flags)));
  const int why = errno;
#ifdef USERFAULTFD_IOC_NEW
  if (!faults) {
    const UniqueFd device(::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
    if (device) faults = UniqueFd(::ioctl(device.get(), USERFAULTFD_IOC_NEW, flags));
  }
#endif
  if (!faults) return fail_errno(why, "opening userfaultfd for lazy mapping");
  uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
  if (::ioctl(faults.get(), UFFDIO_API, &api) != 0)
    return fail_errno(errno, "enabling userfaultfd for lazy mapping");
  return faults;
}

// A child made by fork would see pages of zeros that nothing fills, so it does not get the range.
// Core dumps leave the range out because it may be large.
Status watch(int faults, MemoryRange where) {
  SHIMA_TRY(map_pages(where.begin, where.size, PROT_READ | PROT_WRITE));
  uffdio_register range{.range = {.start = where.begin, .len = where.size},
                        .mode = UFFDIO_REGISTER_MODE_MISSING,
                        .ioctls = 0};
  if (::madvise(pointer(where.begin), where.size, MADV_DONTFORK) == 0 &&
      ::madvise(pointer(where.begin), where.size, MADV_DONTDUMP) == 0 &&
      ::ioctl(faults, UFFDIO_REGISTER, &range) == 0)
    return {};
  const int why = errno;
  ::munmap(pointer(where.begin), where.size);
  return fail_errno(why, "registering memory with userfaultfd for lazy mapping");
}

}  // namespace

LazyMap::LazyMap(UniqueFd faults, int file, MemoryRange where, std::uint64_t offset)
    : faults_(std::move(faults)),
      file_(file),
      where_(where),
      offset_(offset),
      mapped_(where.size / lazy_block_bytes) {}

Result<LazyMap> LazyMap::make(int file, MemoryRange where, std::uint64_t offset) {
  SHIMA_TRY_ASSIGN(UniqueFd faults, open_faults());
  SHIMA_TRY(watch(faults.get(), where));
  return LazyMap(std::move(faults), file, where, offset);
}

bool LazyMap::map(std::uint64_t begin, std::uint64_t bytes) const {
  constexpr int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
  const auto at = static_cast<off_t>(offset_ + (begin - where_.begin));
  if (::mmap(pointer(begin), bytes, PROT_READ | PROT_WRITE, flags, file_, at) == MAP_FAILED)
    return false;
  ::madvise(pointer(begin), bytes, MADV_DONTDUMP);
  return true;
}

// Maps the rest at once: the number of mappings of a process is limited (vm.max_map_count).
void LazyMap::map_all() {
  if (map(where_.begin, where_.size)) mapped_.assign(mapped_.size(), true);
}

void LazyMap::map_block(std::uint64_t address) {
  const std::uint64_t block = (address - where_.begin) / lazy_block_bytes;
  if (mapped_[block]) return;  // touched by two tasks at the same time
  mapped_[block] = map(where_.begin + block * lazy_block_bytes, lazy_block_bytes);
  if (!mapped_[block]) map_all();
}

void LazyMap::serve() {
  uffd_msg message{};
  while (::read(faults_.get(), &message, sizeof message) == sizeof message) {
    if (message.event != UFFD_EVENT_PAGEFAULT) continue;
    const std::uint64_t address = message.arg.pagefault.address;
    map_block(address);
    uffdio_range woken{.start = address & ~(lazy_block_bytes - 1), .len = lazy_block_bytes};
    ::ioctl(faults_.get(), UFFDIO_WAKE, &woken);
  }
}

}  // namespace shima::pvas
