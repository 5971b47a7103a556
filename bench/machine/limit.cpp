// limit: the machine's file bandwidth, without MPI and without a pattern.
//
// Threads write (then read) --size-mib in blocks of 4 MiB, each thread its own contiguous part,
// over --files files. With two threads and one file this is the limit for collective calls in the
// benchmarks: one inode has one write lock, so more cores hardly help. With as many files as
// threads every thread has its own inode.
//
// --memory cold (the default) moves the data from and to one buffer as big as the file, as a
// program with real data must; --memory malloc has that buffer from malloc, which puts a big block
// 16 bytes after the start of a page (the kernel's copy to such an address takes twice the time on
// some processors); --memory hot uses the same 4 MiB again and again, so that the processor's
// caches improve the figure.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace {

constexpr std::size_t block_bytes = 4 << 20;
constexpr std::size_t page_bytes = 4096;

enum class Memory { cold, from_malloc, hot };

struct Options {
  std::size_t threads = 2;
  std::size_t files = 1;
  std::size_t size_mib = 1024;
  std::string op = "both";
  std::string path = "limit.dat";
  Memory memory = Memory::cold;
  bool sync_first = false;
  bool json = false;
};

constexpr std::array<const char*, 3> memory_names = {"cold", "malloc", "hot"};

const char* const usage =
    "usage: limit [--threads T] [--files K] [--size-mib N] [--op write|read|both]\n"
    "             [--file PATH] [--memory cold|malloc|hot] [--sync-first] [--json]\n";

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string file_path(const Options& o, std::size_t file) {
  return o.files == 1 ? o.path : o.path + "." + std::to_string(file);
}

void move_block(bool write, int fd, char* memory, std::size_t offset) {
  for (std::size_t done = 0; done < block_bytes;) {
    auto at = static_cast<off_t>(offset + done);
    ssize_t n = write ? pwrite(fd, memory + done, block_bytes - done, at)
                      : pread(fd, memory + done, block_bytes - done, at);
    if (n <= 0) fail(write ? "pwrite" : "pread");
    done += static_cast<std::size_t>(n);
  }
}

// The blocks of all files form one sequence, and every thread takes an equal part of it.
void move_part(const Options& o, bool write, const std::vector<int>& fds, char* memory,
               std::size_t thread) {
  std::size_t blocks = o.size_mib * (1 << 20) / block_bytes;
  std::size_t blocks_per_file = blocks / o.files;
  std::size_t begin = blocks * thread / o.threads, end = blocks * (thread + 1) / o.threads;
  for (std::size_t block = begin; block < end; block++) {
    std::size_t place = o.memory == Memory::hot ? thread : block;
    std::size_t file = std::min(block / blocks_per_file, o.files - 1);
    std::size_t offset = (block - file * blocks_per_file) * block_bytes;
    move_block(write, fds[file], memory + place * block_bytes, offset);
  }
}

double move_all(const Options& o, bool write, const std::vector<int>& fds, char* memory) {
  double started = now_seconds();
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < o.threads; t++)
    threads.emplace_back([&, t] { move_part(o, write, fds, memory, t); });
  for (std::thread& thread : threads) thread.join();
  return now_seconds() - started;
}

void report(const Options& o, bool write, double open_to_close, double io) {
  auto mib = static_cast<double>(o.size_mib);
  const char* op = write ? "write" : "read";
  if (o.json)
    std::printf(
        "{\"program\":\"limit\",\"op\":\"%s\",\"threads\":%zu,\"files\":%zu,"
        "\"memory\":\"%s\",\"mib\":%.0f,\"open_close_s\":%.6f,\"io_s\":%.6f,"
        "\"open_close_mib_s\":%.1f,\"io_mib_s\":%.1f}\n",
        op, o.threads, o.files, memory_names[static_cast<std::size_t>(o.memory)], mib,
        open_to_close, io, mib / open_to_close, mib / io);
  else
    std::printf("limit %-5s %zu threads, %zu files: %8.1f MiB/s from open to close\n", op,
                o.threads, o.files, mib / open_to_close);
}

void run(const Options& o, bool write, char* memory) {
  for (std::size_t f = 0; write && f < o.files; f++) unlink(file_path(o, f).c_str());
  if (o.sync_first) sync();
  double opened = now_seconds();
  std::vector<int> fds;
  for (std::size_t f = 0; f < o.files; f++) {
    fds.push_back(open(file_path(o, f).c_str(), write ? O_WRONLY | O_CREAT : O_RDONLY, 0644));
    if (fds.back() < 0) fail("open");
  }
  double io = move_all(o, write, fds, memory);
  for (int fd : fds)
    if (close(fd) != 0) fail("close");
  report(o, write, now_seconds() - opened, io);
}

bool set_memory(Options& o, const std::string& name) {
  auto found = std::find(memory_names.begin(), memory_names.end(), name);
  if (found == memory_names.end()) return false;
  o.memory = static_cast<Memory>(found - memory_names.begin());
  return true;
}

bool set_option(Options& o, const std::string& name, const char* value) {
  if (name == "--op")
    o.op = value;
  else if (name == "--file")
    o.path = value;
  else if (name == "--memory")
    return set_memory(o, value);
  else if (name == "--threads")
    o.threads = std::strtoul(value, nullptr, 10);
  else if (name == "--files")
    o.files = std::strtoul(value, nullptr, 10);
  else if (name == "--size-mib")
    o.size_mib = std::strtoul(value, nullptr, 10);
  else
    return false;
  return true;
}

Options parse(int argc, char** argv) {
  Options o;
  bool good = true;
  for (int i = 1; i < argc && good; i++) {
    std::string name = argv[i];
    if (name == "--json" || name == "--sync-first")
      (name == "--json" ? o.json : o.sync_first) = true;
    else if (i + 1 < argc)
      good = set_option(o, name, argv[++i]);
    else
      good = false;
  }
  if (!good || !o.threads || !o.files || o.size_mib * (1 << 20) / block_bytes < o.files) {
    std::fputs(usage, stderr);
    std::exit(2);
  }
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  Options o = parse(argc, argv);
  std::size_t bytes = o.memory == Memory::hot ? o.threads * block_bytes : o.size_mib << 20;
  void* memory =
      o.memory == Memory::from_malloc ? std::malloc(bytes) : std::aligned_alloc(page_bytes, bytes);
  if (memory == nullptr) fail("malloc");
  std::memset(memory, 0x5A, bytes);  // pages must exist before the clock runs
  if (o.op == "write" || o.op == "both") run(o, true, static_cast<char*>(memory));
  if (o.op == "read" || o.op == "both") run(o, false, static_cast<char*>(memory));
}
