#include "mpiio/datarep/conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/units.h"
#include "mpiio/datatype/datatypes.h"

namespace shima {

Result<std::shared_ptr<Conversion>> Conversion::make(
    std::shared_ptr<const Representation> representation, const Buffer& buffer) {
  SHIMA_TRY_ASSIGN(Signature item, signature_of(buffer.type, *representation));
  std::uint64_t len = 0;
  if (__builtin_mul_overflow(item.file_bytes(), as_unsigned(buffer.count), &len) ||
      len > std::vector<std::byte>{}.max_size())
    return fail(Code::bad_count, fmt::format("count {} is more than memory holds", buffer.count));
  std::shared_ptr<Conversion> made(
      new Conversion(std::move(representation), buffer, std::move(item)));
  made->file_form_.resize(len);
  return made;
}

Conversion::Conversion(std::shared_ptr<const Representation> representation, const Buffer& buffer,
                       Signature item)
    : representation_(std::move(representation)), buffer_(buffer), item_(std::move(item)) {
  buffer_.type = keep_type(buffer.type);
}

Conversion::~Conversion() { release_type(buffer_.type); }

Slice Conversion::slice() const {
  const std::uint64_t len = file_form_.size();
  return {.pattern = Pattern::contiguous(len),
          .base = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(file_form_.data())),
          .first_byte = 0,
          .len_bytes = len};
}

Status Conversion::encode() {
  return representation_->encode(buffer_, Signature::repeat(item_, as_unsigned(buffer_.count)),
                                 file_form_);
}

Status Conversion::decode(std::uint64_t len_bytes) {
  if (len_bytes == 0) return {};
  // No more items than have bytes.
  const std::uint64_t items = (len_bytes + item_.file_bytes() - 1) / item_.file_bytes();
  return representation_->decode(std::span<const std::byte>(file_form_).first(len_bytes),
                                 Signature::repeat(item_, items),
                                 {buffer_.address, as_signed(items), buffer_.type});
}

std::uint64_t Conversion::memory_bytes_in(std::uint64_t len_bytes) const {
  return Signature::repeat(item_, as_unsigned(buffer_.count)).part_in(len_bytes).memory_bytes;
}

}  // namespace shima
