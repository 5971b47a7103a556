// A part of a file as it lies in the page cache, to be sent from there instead of from a copy.
//
// Only the kernel may read it: if the file is truncated or its disk fails, a system call that reads
// there fails with EFAULT, and the process itself would get a signal. What is written to the file
// meanwhile may be seen. A view is made of pages that are in memory; they may leave it later.
//
// Source: mmap(2), mincore(2), which tells only the file's owner, process_vm_readv(2).
#pragma once

#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/page_size.h"
#include "base/units.h"

namespace shima {

class FileView {
 public:
  // Null if the range ends beyond the file, or it is not known that all of it is in memory, or this
  // process could not copy from it.
  [[nodiscard]] static std::unique_ptr<FileView> of_cached(int fd, TargetRange range) {
    struct stat facts{};
    if (range.empty() || ::fstat(fd, &facts) != 0 || facts.st_size < range.end.value ||
        facts.st_uid != own_user() || !may_copy())
      return {};
    std::unique_ptr<FileView> view(new FileView(fd, range));
    return view->is_in_memory() ? std::move(view) : nullptr;
  }
  FileView(const FileView&) = delete;
  FileView& operator=(const FileView&) = delete;
  ~FileView() {
    if (memory_ != MAP_FAILED) ::munmap(memory_, len_bytes_);
  }
  // The first byte of the range.
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(memory_) + before_bytes_; }

 private:
  FileView(int fd, TargetRange range)
      : before_bytes_(static_cast<std::size_t>(range.begin.value) % page_size()),
        len_bytes_(before_bytes_ + range.len_bytes()),
        memory_(::mmap(nullptr, len_bytes_, PROT_READ, MAP_SHARED, fd,
                       range.begin.value - static_cast<off_t>(before_bytes_))) {}

  // As whom the thread accesses files.
  [[nodiscard]] static uid_t own_user() { return static_cast<uid_t>(::setfsuid(uid_t(-1))); }
  // Whether the kernel copies within this process, which some containers forbid.
  [[nodiscard]] static bool may_copy() {
    static const bool may = [] {
      char from = 0;
      char to = 0;
      const iovec there{&from, 1};
      const iovec here{&to, 1};
      return ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == 1;
    }();
    return may;
  }
  [[nodiscard]] bool is_in_memory() const {
    if (memory_ == MAP_FAILED) return false;
    std::vector<unsigned char> pages((len_bytes_ + page_size() - 1) / page_size());
    return ::mincore(memory_, len_bytes_, pages.data()) == 0 &&
           std::ranges::all_of(pages, [](unsigned char page) { return (page & 1U) != 0; });
  }

  std::size_t before_bytes_;
  std::size_t len_bytes_;
  void* memory_;
};

}  // namespace shima
