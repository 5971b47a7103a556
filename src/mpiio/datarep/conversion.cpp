#include "mpiio/datarep/conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/units.h"
#include "device/memory.h"
#include "mpiio/datatype/datatypes.h"

namespace shima {

Result<std::shared_ptr<Conversion>> Conversion::make(
    std::shared_ptr<const Representation> representation, const Buffer& buffer,
    Direction direction) {
  SHIMA_TRY_ASSIGN(Signature item, signature_of(buffer.type, *representation));
  std::uint64_t len = 0;
  if (__builtin_mul_overflow(item.file_bytes(), as_unsigned(buffer.count), &len) ||
      len > std::vector<std::byte>{}.max_size())
    return fail(Code::bad_count, fmt::format("count {} is more than memory holds", buffer.count));
  std::shared_ptr<Conversion> made(
      new Conversion(std::move(representation), buffer, std::move(item)));
  made->file_form_.resize(len);
  made->whole_ = Signature::repeat(made->item_, as_unsigned(buffer.count));
  if (direction == Direction::read) made->scratch_.resize(made->whole_.memory_bytes());
  SHIMA_TRY_ASSIGN(const auto map, type_map_of(buffer.type));
  SHIMA_TRY_ASSIGN(const Slice memory, memory_slice(*map, buffer.address, buffer.count));
  if (const auto place = device_place_of(memory)) {
    SHIMA_TRY_ASSIGN(made->image_, HostImage::make({memory, *place}));
  }
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

Buffer Conversion::host_buffer(std::uint64_t items) const {
  const void* const address =
      image_ != nullptr ? image_->address_of(buffer_.address) : buffer_.address;
  return {address, as_signed(items), buffer_.type};
}

Status Conversion::encode() {
  if (image_ != nullptr) SHIMA_TRY(image_->copy_from_device());
  return representation_->encode(host_buffer(as_unsigned(buffer_.count)), whole_, file_form_);
}

Status Conversion::decode(std::uint64_t len_bytes) {
  if (len_bytes == 0) return {};
  // At most the items that have bytes.
  const std::uint64_t items = (len_bytes + item_.file_bytes() - 1) / item_.file_bytes();
  const Signature signature =
      items == as_unsigned(buffer_.count) ? whole_ : Signature::repeat(item_, items);
  if (image_ != nullptr) SHIMA_TRY(image_->copy_from_device());
  SHIMA_TRY(representation_->decode(std::span(file_form_).first(len_bytes), signature,
                                    host_buffer(items),
                                    std::span(scratch_).first(signature.memory_bytes())));
  return image_ != nullptr ? image_->copy_to_device(signature.memory_bytes()) : Status{};
}

std::uint64_t Conversion::memory_bytes_in(std::uint64_t len_bytes) const {
  return whole_.part_in(len_bytes).memory_bytes;
}

}  // namespace shima
