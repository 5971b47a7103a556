// Many small runs that lie close together, written through a mapping of the file.
//
// A pwrite of a few bytes takes 0.3 us, and several times that if other processes write to the file
// as well: all wait for its lock. Through a mapping such a run takes 20 ns, and each page of the
// file a page fault when it is first written. Unlike a read-modify-write of whole ranges this
// changes no byte between the runs, which other processes may be writing.
//
// The part of the file that was written last stays mapped. The last run is written by pwrite, after
// the others: that gives the file its time of modification and tells those who watch it, which a
// mapping does only when a page is first written. The bytes are copied to it by the kernel
// (process_vm_readv(2) on this process itself), never by this process: if a page cannot be had,
// because the disk is full or broken or the file was truncated, the call fails, and no signal is
// raised.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "store/subfile/subfile.h"

namespace shima {

// Part of a file, mapped for writing.
class MappedWindow;

// For one open file. Thread-safe.
class MappedWriter {
 public:
  // `flags`: those with which `fd` is open.
  MappedWriter(int flags, std::string path);
  MappedWriter(const MappedWriter&) = delete;
  MappedWriter& operator=(const MappedWriter&) = delete;
  ~MappedWriter();

  // Whether write() is expected to succeed.
  [[nodiscard]] bool is_able(int fd) { return mappable(fd) >= 0; }
  // Writes runs that are in the order of the file and do not overlap. False if the file cannot be
  // mapped (it is on no file system of this machine, or may not be read), or if any run was not
  // written; then some may have been written, and the caller must write each again. Blocks.
  [[nodiscard]] bool write(int fd, std::span<const ApartRun> runs);
  // To be called before `fd` is closed.
  void close();

 private:
  // A descriptor for reading and writing; -1 if there is none.
  [[nodiscard]] int mappable(int fd);
  [[nodiscard]] bool copy_all(int fd, std::span<const ApartRun> runs);
  [[nodiscard]] bool show(int fd, const ApartRun& run);

  int flags_;
  std::string path_;
  std::once_flag looked_;
  UniqueFd own_;  // if `fd` is not open for reading
  std::atomic<bool> impossible_{false};
  std::mutex writing_;
  std::unique_ptr<MappedWindow> window_;  // null: none yet
};

}  // namespace shima
