#include "mpiio/file/open_file.h"

#include <fmt/format.h>

#include <tuple>

namespace shima {
namespace {

std::shared_ptr<const View> byte_view() {
  // The initial view is plain bytes, which is always valid.
  return *View::make(View::Request{}, AccessMode{});
}

}  // namespace

OpenFile::OpenFile(const AccessMode& mode, MPI_Comm comm, int amode, ProgressHold& progress)
    : amode_(amode), mode_(mode), view_(byte_view()), error_handler_(default_error_handler()) {
  together_.make_reserve();
  PMPI_Comm_group(comm, &group_);
  progress_ = std::move(progress);
}

OpenFile::~OpenFile() {
  if (group_ != MPI_GROUP_NULL && group_ != MPI_GROUP_EMPTY) PMPI_Group_free(&group_);
}

ErrorHandler OpenFile::error_handler() const {
  const std::lock_guard hold(lock_);
  return error_handler_;
}

void OpenFile::set_error_handler(const ErrorHandler& handler) {
  ErrorHandler previous = handler;
  const std::lock_guard hold(lock_);
  std::swap(error_handler_, previous);
}

std::shared_ptr<const View> OpenFile::view() const {
  const std::lock_guard hold(view_lock_);
  return view_;
}

void OpenFile::set_view(std::shared_ptr<const View> view) {
  const std::lock_guard hold(view_lock_);
  std::swap(view_, view);
  position_ = 0;
  etype_bytes_ = view_->etype_size();
  converts_ = view_->representation() != nullptr;
  is_dense_ = view_->is_dense();
}

Result<Slice> OpenFile::take(std::uint64_t len) {
  const std::lock_guard hold(view_lock_);
  std::int64_t begin = position_.load();
  while (true) {  // a seek takes no lock
    Result<Slice> slice = view_->slice(ViewOffset{begin}, len);
    if (!slice || position_.compare_exchange_weak(begin, begin + as_signed(len))) return slice;
  }
}

Result<SharedPointer*> OpenFile::shared_pointer() const {
  if (SharedPointer* const pointer = file_->shared_pointer()) return pointer;
  return fail(Code::unsupported_operation,
              "the shared file pointer is not available: rank 0, which keeps it for files on "
              "several nodes, has no "
              "network address that the other nodes can reach");
}

Result<std::int64_t> OpenFile::shared_position() const {
  SHIMA_TRY_ASSIGN(SharedPointer* const pointer, shared_pointer());
  return pointer->advance(0);
}

Result<Slice> OpenFile::take_shared(std::uint64_t len) {
  SHIMA_TRY_ASSIGN(SharedPointer* const pointer, shared_pointer());
  const auto view = this->view();
  SHIMA_TRY(view->slice(ViewOffset{0}, len));  // an access too long must not move the pointer
  SHIMA_TRY_ASSIGN(const std::int64_t begin, pointer->advance(as_signed(len)));
  return view->slice(ViewOffset{begin}, len);
}

void OpenFile::take_part_with_error(Code code, bool ordered, bool in_background) noexcept {
  struct Part {
    File* file;
    Code code;
    bool ordered;
    Outcome64 operator()() const {
      // An ordered access first claims its place; with an error, the access ends there on all
      // ranks.
      if (ordered) {
        SHIMA_TRY_ASSIGN(const auto place, file->claim_in_order(fail(code, Words())));
        return as_unsigned(place);
      }
      return file->write_all(fail(code, Words()));
    }
  };
  const Part part{file_.get(), code, ordered};
  if (in_background) return together_.add_reserved(part, progress_mpi);
  together_.drain(progress_mpi);
  std::ignore = caught([&] { return part(); });
}

Status OpenFile::check_no_split() const {
  const std::lock_guard hold(lock_);
  if (!split_) return {};
  return fail(Code::bad_argument,
              fmt::format("a split collective call is under way: call MPI_File_{}_end first",
                          split_->kind));
}

Status OpenFile::settle() {
  SHIMA_TRY(check_no_split());
  together_.drain(progress_mpi);
  return {};
}

void OpenFile::finish_all() {
  for (Worker* worker : {&together_, &alone_}) worker->drain(progress_mpi);
}

void OpenFile::begin_split(Split split) {
  const std::lock_guard hold(lock_);
  split_ = std::move(split);
}

Result<Work> OpenFile::end_split(const std::string& kind) {
  const std::lock_guard hold(lock_);
  if (!split_)
    return fail(Code::bad_argument,
                fmt::format("MPI_File_{0}_end: no split call is under way; MPI_File_{0}_begin "
                            "starts one",
                            kind));
  if (split_->kind != kind)
    return fail(
        Code::bad_argument,
        fmt::format("MPI_File_{}_end: the split call under way was begun by MPI_File_{}_begin",
                    kind, split_->kind));
  Work finish = std::move(split_->finish);
  split_.reset();
  return finish;
}

Result<Slice> OpenFile::at(MPI_Offset offset, std::uint64_t len) const {
  const std::lock_guard hold(view_lock_);
  SHIMA_TRY_ASSIGN(const ViewOffset start, view_->etype_start(offset));
  return view_->slice(start, len);
}

std::optional<FileOffset> OpenFile::take_contiguous(std::uint64_t len) {
  const std::lock_guard hold(view_lock_);
  std::int64_t begin = position_.load();
  while (true) {  // a seek takes no lock
    const auto place = view_->contiguous(ViewOffset{begin}, len);
    if (!place || position_.compare_exchange_weak(begin, begin + as_signed(len))) return place;
  }
}

std::optional<FileOffset> OpenFile::contiguous_at(MPI_Offset offset, std::uint64_t len) const {
  const std::lock_guard hold(view_lock_);
  const auto start = view_->etype_start(offset);
  if (!start) return std::nullopt;
  return view_->contiguous(*start, len);
}

}  // namespace shima
