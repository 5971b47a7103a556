// A file view: the bytes of the file that a member sees, and their numbering.
//
// The bytes are the filetype's, repeated every extent from the displacement on. The user counts
// positions in etypes, this class in data bytes ("view bytes"). A View is immutable:
// MPI_File_set_view replaces the one of an open file, and pending transfers keep theirs.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "file/file.h"
#include "mpiio/datarep/representations.h"
#include "pattern/type_map.h"

namespace shima {

[[nodiscard]] std::unexpected<Error> no_offset_of_a_view(MPI_Offset etypes);
// The byte at which an etype starts in a view with etypes of that size.
[[nodiscard]] inline Result<ViewOffset> etype_start_of(MPI_Offset etypes,
                                                       std::int64_t etype_bytes) {
  std::int64_t byte = 0;
  if (etypes < 0 || __builtin_mul_overflow(etypes, etype_bytes, &byte))
    return no_offset_of_a_view(etypes);
  return ViewOffset{byte};
}

class View {
 public:
  struct Request {
    MPI_Offset displacement = 0;
    MPI_Datatype etype = MPI_BYTE;
    MPI_Datatype filetype = MPI_BYTE;
    std::string_view datarep = "native";
  };

  // Checks a view by the rules of MPI-4.1, section 14.3, for a file opened in `mode`.
  [[nodiscard]] static Result<std::shared_ptr<const View>> make(const Request& request,
                                                                const AccessMode& mode);
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  ~View();

  [[nodiscard]] MPI_Offset displacement() const { return displacement_; }
  [[nodiscard]] MPI_Datatype etype() const { return etype_; }
  [[nodiscard]] MPI_Datatype filetype() const { return filetype_; }
  [[nodiscard]] const std::string& datarep() const { return datarep_; }
  // Null: bytes as in memory.
  [[nodiscard]] const std::shared_ptr<const Representation>& representation() const {
    return representation_;
  }
  // The etype's size in the file.
  [[nodiscard]] std::int64_t etype_size() const { return etype_size_; }
  [[nodiscard]] std::int64_t etype_extent() const { return etype_extent_; }

  // The place of `len` view bytes in the file, from view byte `first` on.
  [[nodiscard]] Result<Slice> slice(ViewOffset first, std::uint64_t len) const;
  // Whether it has no gaps; then the first of `len` view bytes in the file, if the view has them.
  [[nodiscard]] bool is_dense() const { return map_->is_dense(); }
  [[nodiscard]] std::optional<FileOffset> contiguous(ViewOffset first, std::uint64_t len) const;
  // The view byte at which an etype starts.
  [[nodiscard]] Result<ViewOffset> etype_start(MPI_Offset etypes) const;
  // The file offset of a view byte.
  [[nodiscard]] Result<FileOffset> place_of(ViewOffset byte) const;
  // The first etype without a byte before `end`.
  [[nodiscard]] MPI_Offset etypes_before(FileOffset end) const;

 private:
  View(const Request& request, std::shared_ptr<const Representation> representation,
       const TypeMap& etype, std::shared_ptr<const TypeMap> map);
  [[nodiscard]] Slice exact_slice(std::uint64_t first, std::uint64_t len) const;

  MPI_Offset displacement_;
  MPI_Datatype etype_;
  MPI_Datatype filetype_;
  std::string datarep_;
  std::shared_ptr<const Representation> representation_;
  std::int64_t etype_size_;
  std::int64_t etype_extent_;
  std::shared_ptr<const TypeMap> map_;
};

}  // namespace shima
