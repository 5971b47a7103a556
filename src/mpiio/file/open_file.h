// The object behind an MPI_File handle.
//
// A handle is the address of an OpenFile, kept in one registry, so that any other address is
// recognized without being read. An OpenFile adds to the engine's File what only MPI knows: the
// view, the individual file pointer, the group, the error handler.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "file/background.h"
#include "file/file.h"
#include "group/pointer/shared_pointer.h"
#include "mpiio/comm/progress.h"
#include "mpiio/file/brief_lock.h"
#include "mpiio/file/errors.h"
#include "mpiio/file/view.h"

namespace shima {

class OpenFile {
 public:
  // Without a file yet. Takes ownership of `progress`, unless it throws.
  OpenFile(const AccessMode& mode, MPI_Comm comm, int amode, ProgressHold& progress);
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();

  void own(std::unique_ptr<File> file) noexcept { file_ = std::move(file); }
  [[nodiscard]] File& file() { return *file_; }
  [[nodiscard]] int amode() const { return amode_; }
  [[nodiscard]] const AccessMode& mode() const { return mode_; }
  [[nodiscard]] MPI_Group group() const { return group_; }

  [[nodiscard]] ErrorHandler error_handler() const;
  void set_error_handler(const ErrorHandler& handler);

  [[nodiscard]] std::shared_ptr<const View> view() const;
  // Replaces the view and puts the pointer at its start.
  void set_view(std::shared_ptr<const View> view);
  // Whether the view's data representation is not the native one; cheaper than asking the view.
  [[nodiscard]] bool converts() const { return converts_.load(std::memory_order_relaxed); }

  // Whether the view has no gaps.
  [[nodiscard]] bool is_dense() const { return is_dense_.load(std::memory_order_relaxed); }

  // The individual file pointer; etype_position() counts in etypes.
  [[nodiscard]] ViewOffset position() const { return {position_.load(std::memory_order_relaxed)}; }
  [[nodiscard]] MPI_Offset etype_position() const {
    return position().value / etype_bytes_.load(std::memory_order_relaxed);
  }
  void set_position(ViewOffset position) {
    position_.store(position.value, std::memory_order_relaxed);
  }
  // Moves it to an etype.
  [[nodiscard]] Status seek_to(MPI_Offset etype) {
    const auto start = etype_start_of(etype, etype_bytes_.load(std::memory_order_relaxed));
    if (start) set_position(*start);
    return status_of(start);
  }

  // The shared file pointer; an error where this file has none.
  [[nodiscard]] Result<SharedPointer*> shared_pointer() const;
  [[nodiscard]] Result<std::int64_t> shared_position() const;
  // The same as take(), at the shared pointer.
  [[nodiscard]] Result<Slice> take_shared(std::uint64_t len);

  // The threads that work for this file; started at first use.
  [[nodiscard]] Worker& together() { return together_; }
  [[nodiscard]] Worker& alone() { return alone_; }
  // Takes part, with an error, in a collective call that could not be started here, in the order of
  // the calls: in the file's thread, or at once. Never throws.
  void take_part_with_error(Code code, bool ordered, bool in_background) noexcept;
  // To be called before any collective call that is not queued: an error while a split call is
  // under way; waits for nonblocking collective ones.
  [[nodiscard]] Status settle();
  [[nodiscard]] Status check_no_split() const;
  // Waits for all work under way.
  void finish_all();

  struct Split {
    std::string kind;  // of the call: "write_all"
    Work finish;       // waits for it
  };
  void begin_split(Split split);
  // Ends the split call under way, if it is of this kind.
  [[nodiscard]] Result<Work> end_split(const std::string& kind);

  // The place of the next `len` view bytes at the individual pointer, which moves beyond them.
  [[nodiscard]] Result<Slice> take(std::uint64_t len);
  // The place of `len` view bytes at an offset in etypes.
  [[nodiscard]] Result<Slice> at(MPI_Offset offset, std::uint64_t len) const;
  // The same two, the first of these bytes in the file, if the view has no gaps; else, or on an
  // error, nothing, and the pointer stays.
  [[nodiscard]] std::optional<FileOffset> take_contiguous(std::uint64_t len);
  [[nodiscard]] std::optional<FileOffset> contiguous_at(MPI_Offset offset, std::uint64_t len) const;

 private:
  ProgressHold progress_;
  std::unique_ptr<File> file_;
  int amode_;
  AccessMode mode_;
  MPI_Group group_ = MPI_GROUP_NULL;
  std::atomic<bool> converts_{false};
  std::atomic<bool> is_dense_{true};       // as the initial view
  std::atomic<std::int64_t> position_{0};  // in view bytes
  std::atomic<std::int64_t> etype_bytes_{1};

  mutable BriefLock view_lock_;
  std::shared_ptr<const View> view_;
  mutable std::mutex lock_;  // for the next two
  ErrorHandler error_handler_;
  std::optional<Split> split_;
  // Last, so that they are destroyed before the objects that they work on.
  Worker together_;
  Worker alone_;
};

// The registry. Handles also have small numbers, for Fortran; 0 is MPI_FILE_NULL. Takes ownership
// of `file`, unless it throws.
[[nodiscard]] MPI_File register_open_file(std::unique_ptr<OpenFile>& file);
[[nodiscard]] std::unique_ptr<OpenFile> unregister_open_file(MPI_File handle);
[[nodiscard]] OpenFile* find_open_file(MPI_File handle);
[[nodiscard]] int number_of(MPI_File handle);
[[nodiscard]] MPI_File handle_of(int number);

// The error of a call on a handle that is not known.
[[nodiscard]] std::unexpected<Error> not_open(MPI_File handle);
[[nodiscard]] inline Result<OpenFile*> open_file_of(MPI_File handle) {
  if (OpenFile* const file = find_open_file(handle)) return file;
  return not_open(handle);
}

}  // namespace shima
