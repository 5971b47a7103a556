#include "mpiio/open_file.h"

namespace shima {
namespace {

std::shared_ptr<const View> byte_view() {
  // Files start with the view of plain bytes, which breaks no rule.
  return *View::make(View::Request{}, AccessMode{});
}

}  // namespace

OpenFile::OpenFile(std::unique_ptr<File> file, MPI_Comm comm, int amode)
    : file_(std::move(file)),
      amode_(amode),
      view_(byte_view()),
      error_handler_(default_error_handler()) {
  PMPI_Comm_group(comm, &group_);
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
  const std::lock_guard hold(lock_);
  return view_;
}

void OpenFile::set_view(std::shared_ptr<const View> view) {
  const std::lock_guard hold(lock_);
  std::swap(view_, view);
  position_ = {};
}

ViewOffset OpenFile::position() const {
  const std::lock_guard hold(lock_);
  return position_;
}

void OpenFile::set_position(ViewOffset position) {
  const std::lock_guard hold(lock_);
  position_ = position;
}

Result<Slice> OpenFile::take(std::uint64_t len) {
  const std::lock_guard hold(lock_);
  Result<Slice> slice = view_->slice(position_, len);
  if (slice) position_ = position_ + as_signed(len);
  return slice;
}

Result<Slice> OpenFile::at(MPI_Offset offset, std::uint64_t len) const {
  const std::lock_guard hold(lock_);
  SHIMA_TRY_ASSIGN(const ViewOffset start, view_->etype_start(offset));
  return view_->slice(start, len);
}

}  // namespace shima
