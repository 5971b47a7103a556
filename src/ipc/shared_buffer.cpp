#include "ipc/shared_buffer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/unique_fd.h"

namespace shima {
namespace {

Result<Mapping> map_fd(int fd, std::size_t len_bytes) {
  void* data =
      ::mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (data == MAP_FAILED)
    return fail_errno(errno, fmt::format("mapping {} bytes of shared memory", len_bytes));
  return Mapping(static_cast<std::byte*>(data), len_bytes);
}

Result<struct stat> facts_of(int fd) {
  struct stat facts{};
  if (::fstat(fd, &facts) != 0) return fail_errno(errno, "identifying shared memory");
  return facts;
}

Result<Mapping> attach(int id, std::size_t len_bytes) {
  void* data = ::shmat(id, nullptr, 0);
  if (reinterpret_cast<std::intptr_t>(data) == -1)
    return fail_errno(errno, fmt::format("mapping {} bytes of shared memory (shmat)", len_bytes));
  Mapping mapping(static_cast<std::byte*>(data), len_bytes);
  // Another segment may have the number by now.
  shmid_ds facts{};
  if (::shmctl(id, IPC_STAT, &facts) == 0 && facts.shm_segsz >= len_bytes) return mapping;
  return fail(Code::peer_lost, "mapping shared memory: the segment is another one by now");
}

bool exceeds_file_limit(std::size_t len_bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
         len_bytes > limit.rlim_cur;
}

}  // namespace

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Result<SharedBuffer> SharedBuffer::make(std::size_t len_bytes, const char* name) {
  return exceeds_file_limit(len_bytes) ? make_system_v(len_bytes) : make_memfd(len_bytes, name);
}

Result<SharedBuffer> SharedBuffer::make_memfd(std::size_t len_bytes, const char* name) {
  SharedBuffer made;
  const int fd = ::memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) return fail_errno(errno, "creating shared memory (memfd_create)");
  made.ref_ = {::getpid(), SharedRef::Kind::memfd, fd, len_bytes, 0};
  if (::ftruncate(fd, static_cast<off_t>(len_bytes)) != 0)
    return fail_errno(errno, fmt::format("sizing shared memory to {} bytes", len_bytes));
  SHIMA_TRY_ASSIGN(made.mapping_, map_fd(fd, len_bytes));
  SHIMA_TRY_ASSIGN(const auto facts, facts_of(fd));
  made.ref_.inode = facts.st_ino;
  return made;
}

// Linux lets others attach a segment that is marked for removal, as long as a process has it
// mapped.
Result<SharedBuffer> SharedBuffer::make_system_v(std::size_t len_bytes) {
  SharedBuffer made;
  const int id = ::shmget(IPC_PRIVATE, len_bytes, IPC_CREAT | SHM_NORESERVE | S_IRUSR | S_IWUSR);
  auto mapping = id < 0 ? Result<Mapping>(fail_errno(errno, "shmget")) : attach(id, len_bytes);
  if (id >= 0) ::shmctl(id, IPC_RMID, nullptr);
  if (!mapping)
    return fail(
        mapping.error().code,
        fmt::format("creating {} bytes of shared memory: the limit on file sizes (ulimit -f) "
                    "is lower, and the kernel gives no System V segment instead; raise the "
                    "limit",
                    len_bytes),
        mapping.error().sys_errno);
  made.mapping_ = *std::move(mapping);
  made.ref_ = {::getpid(), SharedRef::Kind::system_v, id, len_bytes, 0};
  return made;
}

void SharedBuffer::close_descriptor() {
  if (ref_.kind == SharedRef::Kind::memfd) ::close(ref_.number);
  ref_ = {};
}

SharedBuffer::SharedBuffer(SharedBuffer&& other) noexcept
    : mapping_(std::move(other.mapping_)), ref_(std::exchange(other.ref_, SharedRef{})) {}

SharedBuffer& SharedBuffer::operator=(SharedBuffer&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(ref_, other.ref_);
  return *this;
}

SharedBuffer::~SharedBuffer() { close_descriptor(); }

Result<Mapping> map_shared(const SharedRef& ref) {
  if (ref.kind == SharedRef::Kind::none)
    return fail(Code::no_memory, "mapping shared memory that its process could not create");
  if (ref.kind == SharedRef::Kind::system_v) return attach(ref.number, ref.len_bytes);
  const std::string path = fmt::format("/proc/{}/fd/{}", ref.pid, ref.number);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0)
    return fail_errno(errno, fmt::format("opening the shared memory of process {}", ref.pid));
  const UniqueFd close_at_return(fd);
  SHIMA_TRY_ASSIGN(const auto facts, facts_of(fd));
  if (facts.st_ino != ref.inode || static_cast<std::uint64_t>(facts.st_size) < ref.len_bytes)
    return fail(Code::peer_lost, fmt::format("process {} did not create the shared memory: its "
                                             "process ID or descriptor was reused",
                                             ref.pid));
  return map_fd(fd, ref.len_bytes);
}

Result<std::span<std::byte>> PeerBuffers::get(const SharedRef& ref) {
  const std::lock_guard lock(mutex_);
  auto& [known, mapping] = mapped_[{ref.pid, ref.kind, ref.number}];
  if (known.inode != ref.inode || known.len_bytes != ref.len_bytes || mapping.bytes().empty()) {
    SHIMA_TRY_ASSIGN(mapping, map_shared(ref));
    known = ref;
  }
  return mapping.bytes();
}

}  // namespace shima
