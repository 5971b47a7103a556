#include "mpiio/datarep/registered_datarep.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "mpiio/datarep/representations.h"

namespace shima {
namespace {

Status called(int code, const char* which) {
  if (code == MPI_SUCCESS) return {};
  return fail(Code::conversion,
              fmt::format("a registered {} function returned error {}", which, code));
}

Status check_same_size(const Signature& signature) {
  if (signature.memory_bytes() == signature.file_bytes()) return {};
  return fail(Code::conversion,
              "a data representation without a conversion function must keep the sizes of memory");
}

class Registered final : public Representation {
 public:
  explicit Registered(DatarepFunctions functions) : functions_(std::move(functions)) {}

  Result<Signature> element(MPI_Datatype type) const override {
    MPI_Aint extent = 0;
    SHIMA_TRY(called(functions_.extent(type, &extent), "extent"));
    int size = 0;
    PMPI_Type_size(type, &size);
    if (extent <= 0 || extent > std::numeric_limits<int>::max())
      return fail(
          Code::conversion,
          fmt::format(
              "a registered extent function returned {} bytes; an extent is from 1 to 2^31 - 1",
              extent));
    return Signature(Element{.memory_bytes = static_cast<std::uint32_t>(size),
                             .file_bytes = static_cast<std::uint32_t>(extent)});
  }

  Status encode(const Buffer& buffer, const Signature& signature,
                std::span<std::byte> file) const override {
    if (functions_.write)
      return convert(functions_.write, buffer, signature.elements(), file.data(),
                     "write conversion");
    SHIMA_TRY(check_same_size(signature));
    return pack(buffer, file);
  }

  Status decode(std::span<std::byte> file, const Signature& signature, const Buffer& buffer,
                std::span<std::byte> scratch) const override {
    if (!functions_.read) {
      SHIMA_TRY(check_same_size(signature));
      SHIMA_TRY(pack(buffer, scratch));
      std::ranges::copy(file, scratch.begin());
      return unpack(scratch, buffer);
    }
    return convert(functions_.read, buffer, signature.part_in(file.size()).elements, file.data(),
                   "read conversion");
  }

 private:
  Status convert(const ConversionFunction& function, const Buffer& buffer, std::uint64_t elements,
                 std::byte* file, const char* which) const {
    if (elements > functions_.max_elements)
      return fail(Code::bad_count,
                  "more elements than a conversion function with int counts can take; register it "
                  "with MPI_Register_datarep_c");
    return called(function(const_cast<void*>(buffer.address), buffer.type,
                           static_cast<MPI_Count>(elements), file),
                  which);
  }

  DatarepFunctions functions_;
};

}  // namespace

Status register_datarep(std::string_view name, DatarepFunctions functions) {
  if (!functions.extent)
    return fail(Code::bad_argument,
                "registering a data representation: it needs an extent function");
  return add_representation(name, std::make_shared<Registered>(std::move(functions)));
}

}  // namespace shima
