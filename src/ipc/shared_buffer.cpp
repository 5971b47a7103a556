#include "ipc/shared_buffer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

template <class Visit>
void BlockSet::put(std::span<std::byte> mapping, BufferPart part, Visit visit) {
  if (part.len_bytes == 0) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(mapping.data());
  const std::uintptr_t first = begin / block_bytes;
  blocks_.resize(mapping.size() / block_bytes + 2, false);
  const std::uintptr_t end = begin + std::min(part.offset + part.len_bytes, mapping.size());
  for (std::uintptr_t block = (begin + part.offset) / block_bytes; block * block_bytes < end;
       ++block) {
    if (blocks_[block - first]) continue;
    blocks_[block - first] = true;
    const std::size_t from = std::max(block * block_bytes, begin) - begin;
    const std::size_t to = std::min((block + 1) * block_bytes - begin, mapping.size());
    visit(mapping.subspan(from, to - from));
  }
}

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

Status SharedBuffer::touch(BufferPart part) {
  int failed = 0;
  touched_.put(mapping_.bytes(), part, [&](std::span<std::byte> block) {
    if (failed == 0 && ::madvise(block.data(), block.size(), MADV_POPULATE_WRITE) != 0)
      failed = errno;
  });
  // Without memory its first use would be a signal that kills.
  if (failed != ENOMEM && failed != EFAULT) return {};
  touched_ = {};
  return fail_errno(failed, fmt::format("creating {} bytes of shared memory", part.len_bytes));
}

void SharedBuffer::close_descriptor() {
  if (ref_.kind == SharedRef::Kind::memfd) ::close(ref_.number);
  ref_ = {};
}

SharedBuffer::SharedBuffer(SharedBuffer&& other) noexcept
    : mapping_(std::move(other.mapping_)),
      ref_(std::exchange(other.ref_, SharedRef{})),
      touched_(std::move(other.touched_)) {}

SharedBuffer& SharedBuffer::operator=(SharedBuffer&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(ref_, other.ref_);
  std::swap(touched_, other.touched_);
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

Result<std::span<std::byte>> PeerBuffers::get(const SharedRef& ref, BufferPart part) {
  const std::lock_guard lock(mutex_);
  auto& [known, mapping, read] = mapped_[{ref.pid, ref.kind, ref.number}];
  if (known.inode != ref.inode || known.len_bytes != ref.len_bytes || mapping.bytes().empty()) {
    SHIMA_TRY_ASSIGN(mapping, map_shared(ref));
    known = ref;
    read = {};
  }
  read.put(mapping.bytes(), part, [](std::span<const std::byte> bytes) {
    [[maybe_unused]] const std::byte seen = *static_cast<const volatile std::byte*>(bytes.data());
  });
  return mapping.bytes();
}

}  // namespace shima
