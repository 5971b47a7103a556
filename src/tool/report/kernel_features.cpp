// Tests features by using them: containers forbid system calls (seccomp), Yama forbids
// reading other processes, and a version number shows neither. Each test is small, and runs in a
// child process if it could do harm.
#include "tool/report/kernel_features.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#ifdef SHIMA_HAVE_URING
#include <liburing.h>
#endif

#include "base/copy/distance.h"

namespace shima::tool {
namespace {

std::string error_text(int error) { return std::strerror(error); }

#ifdef SHIMA_HAVE_URING
KernelFeature try_io_uring() {
  KernelFeature feature{"io_uring", false, "a no-op was executed through a ring",
                        "independent access may use it"};
  io_uring ring;
  int status = io_uring_queue_init(4, &ring, 0);
  if (status == 0) {
    io_uring_prep_nop(io_uring_get_sqe(&ring));
    status = io_uring_submit_and_wait(&ring, 1) == 1 ? 0 : -EIO;
    io_uring_queue_exit(&ring);
  }
  feature.usable = status == 0;
  if (!feature.usable) feature.detail = error_text(-status);
  if (!feature.usable) feature.consequence = "files are accessed with preadv and pwritev";
  return feature;
}
#else
KernelFeature try_io_uring() {
  return {"io_uring", false, "this build has no liburing",
          "files are accessed with preadv and pwritev"};
}
#endif

// A child that holds a nonce for its sibling to read.
pid_t start_nonce_holder(const long* nonce, int ready_fd) {
  const pid_t holder = fork();
  if (holder != 0) return holder;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  const long changed = *nonce + 1;  // the sibling's own copy holds another value
  std::memcpy(const_cast<long*>(nonce), &changed, sizeof changed);
  if (write(ready_fd, "r", 1) != 1) _exit(1);
  for (;;) pause();
}

// Reads the nonce from a sibling of the holder; returns the errno, 0 if it is right.
int read_from_sibling(pid_t holder, const long* nonce) {
  const pid_t reader = fork();
  if (reader == 0) {
    long seen = 0;
    const iovec local{&seen, sizeof seen};
    const iovec remote{const_cast<long*>(nonce), sizeof seen};
    const ssize_t n = process_vm_readv(holder, &local, 1, &remote, 1, 0);
    _exit(n < 0 ? errno : (seen == *nonce + 1 ? 0 : EFAULT));
  }
  int status = 0;
  waitpid(reader, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

KernelFeature try_process_vm() {
  KernelFeature feature{"process_vm", false, "a process read its sibling's memory",
                        "collectives read and write the ranks' own buffers"};
  static long nonce = 0x5317a;
  int ready[2];
  int error = EAGAIN;
  if (pipe2(ready, O_CLOEXEC) == 0) {
    const pid_t holder = start_nonce_holder(&nonce, ready[1]);
    close(ready[1]);
    char byte = 0;
    if (holder > 0 && read(ready[0], &byte, 1) == 1) error = read_from_sibling(holder, &nonce);
    close(ready[0]);
    if (holder > 0) kill(holder, SIGKILL);
    if (holder > 0) waitpid(holder, nullptr, 0);
  }
  feature.usable = error == 0;
  if (!feature.usable) feature.detail = error_text(error);
  if (!feature.usable) feature.consequence = "collectives use a shared staging segment";
  return feature;
}

int open_userfaultfd(std::string& how) {
  how = "for system calls too";
  long fd = syscall(SYS_userfaultfd, O_CLOEXEC);
  if (fd >= 0) return static_cast<int>(fd);
  const int error = errno;
  how = "for user mode only";
#ifdef UFFD_USER_MODE_ONLY
  fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
#endif
  if (fd < 0) how = error_text(error);
  return static_cast<int>(fd);
}

KernelFeature try_userfaultfd() {
  KernelFeature feature{"userfaultfd", false, "", "shared memory can be mapped when it is touched"};
  const int fd = open_userfaultfd(feature.detail);
  uffdio_api api{UFFD_API, 0, 0};
  feature.usable = fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0;
  if (fd >= 0) close(fd);
  if (!feature.usable) feature.consequence = "shared memory is mapped at once";
  return feature;
}

KernelFeature try_fuse() {
  KernelFeature feature{"FUSE", false, "/dev/fuse can be opened",
                        "striped files can be mounted as ordinary ones"};
  const int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  feature.usable = fd >= 0;
  if (fd >= 0) close(fd);
  if (!feature.usable) feature.detail = "/dev/fuse: " + error_text(errno);
  if (!feature.usable) feature.consequence = "striped files cannot be mounted";
  return feature;
}

KernelFeature try_memfd() {
  KernelFeature feature{"memfd", false, "a shared mapping was written",
                        "ranks of a node share a segment without a name"};
  const int fd = memfd_create("shima-info", MFD_CLOEXEC);
  void* mapped = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, 4096) == 0)
    mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  feature.usable = mapped != MAP_FAILED;
  if (!feature.usable) feature.detail = error_text(errno);
  if (!feature.usable) feature.consequence = "Shima's collectives cannot work here";
  if (feature.usable) std::memset(mapped, 1, 4096);
  if (feature.usable) munmap(mapped, 4096);
  if (fd >= 0) close(fd);
  return feature;
}

long huge_kib_in_use() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;) {
    long kib = 0;
    if (word == "AnonHugePages:" && file >> kib) return kib;
  }
  return 0;
}

KernelFeature try_huge_pages() {
  constexpr std::size_t size = 8 << 20;
  KernelFeature feature{"huge pages", false, "transparent, on request",
                        "staging buffers use few TLB entries"};
  const long before = huge_kib_in_use();
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return feature;
  madvise(memory, size, MADV_HUGEPAGE);
  std::memset(memory, 1, size);
  feature.usable = huge_kib_in_use() > before;
  munmap(memory, size);
  if (!feature.usable) feature.detail = "the kernel provided small pages";
  if (!feature.usable) feature.consequence = "staging buffers use small pages, a little slower";
  return feature;
}

KernelFeature try_copies() {
  if (has_slow_distances())
    return {"fast copies", false,
            "this processor's `rep movsb` is slow at distances of 1 to 31 bytes, as from files to "
            "memory of malloc",
            "such reads go through a buffer"};
  return {"fast copies", true, "`rep movsb` is fast at all distances",
          "files are read into any memory directly"};
}

}  // namespace

std::vector<KernelFeature> try_kernel_features() {
  return {try_io_uring(), try_process_vm(), try_userfaultfd(), try_fuse(),
          try_memfd(),    try_huge_pages(), try_copies()};
}

}  // namespace shima::tool
