// warm_memory: provides physical memory that is cheap to allocate for a measured program.
//
// The host of a virtual machine may take back memory that has been free for about two seconds (free
// page reporting). The next user of such a page waits for the host: the first write of a file then
// has a tenth of the speed. This program uses SIZE_MIB of memory, waits until a file is created in
// DIRECTORY, and exits. The kernel allocates the huge pages freed last first, so the page cache of
// that file comes from them. It prints "ready" when all memory has been touched, and also exits at
// the end of its standard input.

#include <poll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr std::size_t huge_page_bytes = 2 << 20;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

void touch(std::size_t len_bytes) {
  void* memory =
      mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  madvise(memory, len_bytes, MADV_HUGEPAGE);
  auto* bytes = static_cast<volatile char*>(memory);
  for (std::size_t at = 0; at < len_bytes; at += 4096) bytes[at] = 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: warm_memory SIZE_MIB DIRECTORY\n", stderr);
    return 2;
  }
  const int events = inotify_init();
  if (events < 0 || inotify_add_watch(events, argv[2], IN_CREATE) < 0) fail(argv[2]);
  touch(std::strtoul(argv[1], nullptr, 10) * 1024 * 1024 / huge_page_bytes * huge_page_bytes);
  std::puts("ready");
  std::fflush(stdout);
  pollfd sources[] = {{events, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
  poll(sources, 2, -1);
}
