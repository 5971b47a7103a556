#include "ipc/shared_buffer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace shima {
namespace {

Result<Mapping> map_fd(int fd, std::size_t len_bytes) {
  void* data =
      ::mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (data == MAP_FAILED)
    return fail_errno(errno, fmt::format("mapping {} bytes of shared memory", len_bytes));
  return Mapping(static_cast<std::byte*>(data), len_bytes);
}

Result<std::uint64_t> inode_of(int fd) {
  struct stat facts{};
  if (::fstat(fd, &facts) != 0) return fail_errno(errno, "identifying shared memory");
  return static_cast<std::uint64_t>(facts.st_ino);
}

}  // namespace

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Result<SharedBuffer> SharedBuffer::make(std::size_t len_bytes, const char* name) {
  SharedBuffer made;
  made.ref_.fd = ::memfd_create(name, MFD_CLOEXEC);
  if (made.ref_.fd < 0) return fail_errno(errno, "making shared memory (memfd_create)");
  if (::ftruncate(made.ref_.fd, static_cast<off_t>(len_bytes)) != 0)
    return fail_errno(errno, fmt::format("sizing shared memory to {} bytes", len_bytes));
  SHIMA_TRY_ASSIGN(made.mapping_, map_fd(made.ref_.fd, len_bytes));
  SHIMA_TRY_ASSIGN(made.ref_.inode, inode_of(made.ref_.fd));
  made.ref_.pid = ::getpid();
  made.ref_.len_bytes = len_bytes;
  return made;
}

SharedBuffer::SharedBuffer(SharedBuffer&& other) noexcept
    : mapping_(std::move(other.mapping_)), ref_(std::exchange(other.ref_, SharedRef{})) {}

SharedBuffer& SharedBuffer::operator=(SharedBuffer&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(ref_, other.ref_);
  return *this;
}

SharedBuffer::~SharedBuffer() {
  if (ref_.fd >= 0) ::close(ref_.fd);
}

Result<Mapping> map_shared(const SharedRef& ref) {
  const std::string path = fmt::format("/proc/{}/fd/{}", ref.pid, ref.fd);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0)
    return fail_errno(errno, fmt::format("opening the shared memory of process {}", ref.pid));
  const auto inode = inode_of(fd);
  auto mapping = inode && *inode == ref.inode
                     ? map_fd(fd, ref.len_bytes)
                     : Result<Mapping>(fail(Code::peer_lost,
                                            fmt::format("process {} is not the one that made the "
                                                        "shared memory",
                                                        ref.pid)));
  ::close(fd);
  return mapping;
}

Result<std::span<std::byte>> PeerBuffers::get(const SharedRef& ref) {
  const std::lock_guard lock(mutex_);
  auto& [known, mapping] = mapped_[{ref.pid, ref.fd}];
  if (known.inode != ref.inode || known.len_bytes != ref.len_bytes || mapping.bytes().empty()) {
    SHIMA_TRY_ASSIGN(mapping, map_shared(ref));
    known = ref;
  }
  return mapping.bytes();
}

}  // namespace shima
