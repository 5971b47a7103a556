// A buffer in the form of a file whose data representation is not the native one.
//
// Data moves through a copy of the whole buffer in file form. Converting may call the program's
// functions, so it runs in the program's own thread: before the move, or when the program learns
// that the move has ended. A buffer in device memory is converted in a copy in host memory.
#pragma once

#include <memory>
#include <vector>

#include "base/direction.h"
#include "device/host_image.h"
#include "file/background.h"
#include "mpiio/datarep/representations.h"
#include "pattern/pattern.h"

namespace shima {

class Conversion {
 public:
  // `buffer` remains the caller's; its datatype may be freed. Allocates all that the conversion in
  // this direction needs.
  [[nodiscard]] static Result<std::shared_ptr<Conversion>> make(
      std::shared_ptr<const Representation> representation, const Buffer& buffer,
      Direction direction);
  Conversion(const Conversion&) = delete;
  Conversion& operator=(const Conversion&) = delete;
  ~Conversion();

  // The file form as the memory side of a transfer.
  [[nodiscard]] Slice slice() const;
  // From the buffer to the file form.
  [[nodiscard]] Status encode();
  // From the first `len_bytes` of the file form to the buffer.
  [[nodiscard]] Status decode(std::uint64_t len_bytes);
  // How many bytes of the buffer the first `len_bytes` of the file form are.
  [[nodiscard]] std::uint64_t memory_bytes_in(std::uint64_t len_bytes) const;

 private:
  Conversion(std::shared_ptr<const Representation> representation, const Buffer& buffer,
             Signature item);
  // The first items of the buffer, in memory that functions of the program can access.
  [[nodiscard]] Buffer host_buffer(std::uint64_t items) const;

  std::shared_ptr<const Representation> representation_;
  Buffer buffer_;
  Signature item_;
  Signature whole_;                   // all items
  std::unique_ptr<HostImage> image_;  // null: the buffer is host memory
  std::vector<std::byte> file_form_;
  std::vector<std::byte> scratch_;  // reads only
};

}  // namespace shima
