#include "mpiio/datarep/external32.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cwchar>
#include <vector>

#include "mpiio/datarep/representations.h"

namespace shima {
namespace {

struct Row {
  MPI_Datatype type;
  Element element;
};

constexpr Element plain{Coding::verbatim, 1, 1, 1};

constexpr Element number(std::uint32_t bytes, std::uint32_t components = 1) noexcept {
  return bytes == 1 ? Element{Coding::verbatim, 1, 1, components}
                    : Element{Coding::swapped, bytes, bytes, components};
}

constexpr Element signed_number(std::uint32_t memory_bytes, std::uint32_t file_bytes) noexcept {
  return memory_bytes == file_bytes ? number(file_bytes)
                                    : Element{Coding::signed_integer, memory_bytes, file_bytes, 1};
}

constexpr Element unsigned_number(std::uint32_t memory_bytes, std::uint32_t file_bytes) noexcept {
  return memory_bytes == file_bytes
             ? number(file_bytes)
             : Element{Coding::unsigned_integer, memory_bytes, file_bytes, 1};
}

constexpr Element long_double(std::uint32_t components = 1) noexcept {
  return {Coding::long_double, sizeof(long double), 16, components};
}

const std::array rows = {
    Row{MPI_BYTE, plain},
    Row{MPI_PACKED, plain},
    Row{MPI_CHAR, plain},
    Row{MPI_SIGNED_CHAR, plain},
    Row{MPI_UNSIGNED_CHAR, plain},
    Row{MPI_INT8_T, plain},
    Row{MPI_UINT8_T, plain},
    Row{MPI_C_BOOL, plain},
    Row{MPI_CXX_BOOL, plain},
    Row{MPI_CHARACTER, plain},
    Row{MPI_SHORT, number(2)},
    Row{MPI_UNSIGNED_SHORT, number(2)},
    Row{MPI_INT16_T, number(2)},
    Row{MPI_UINT16_T, number(2)},
    Row{MPI_INT, number(4)},
    Row{MPI_UNSIGNED, number(4)},
    Row{MPI_INT32_T, number(4)},
    Row{MPI_UINT32_T, number(4)},
    Row{MPI_FLOAT, number(4)},
    Row{MPI_LONG, signed_number(sizeof(long), 4)},
    Row{MPI_UNSIGNED_LONG, unsigned_number(sizeof(long), 4)},
    Row{MPI_WCHAR, unsigned_number(sizeof(wchar_t), 2)},
    Row{MPI_LONG_LONG, number(8)},
    Row{MPI_UNSIGNED_LONG_LONG, number(8)},
    Row{MPI_INT64_T, number(8)},
    Row{MPI_UINT64_T, number(8)},
    Row{MPI_DOUBLE, number(8)},
    Row{MPI_AINT, signed_number(sizeof(MPI_Aint), 8)},
    Row{MPI_OFFSET, signed_number(sizeof(MPI_Offset), 8)},
    Row{MPI_COUNT, signed_number(sizeof(MPI_Count), 8)},
    Row{MPI_C_FLOAT_COMPLEX, number(4, 2)},
    Row{MPI_CXX_FLOAT_COMPLEX, number(4, 2)},
    Row{MPI_C_DOUBLE_COMPLEX, number(8, 2)},
    Row{MPI_CXX_DOUBLE_COMPLEX, number(8, 2)},
    Row{MPI_LONG_DOUBLE, long_double()},
    Row{MPI_C_LONG_DOUBLE_COMPLEX, long_double(2)},
    Row{MPI_CXX_LONG_DOUBLE_COMPLEX, long_double(2)},
    Row{MPI_LOGICAL, number(4)},
    Row{MPI_INTEGER, number(4)},
    Row{MPI_REAL, number(4)},
    Row{MPI_DOUBLE_PRECISION, number(8)},
    Row{MPI_COMPLEX, number(4, 2)},
    Row{MPI_DOUBLE_COMPLEX, number(8, 2)},
#ifdef MPI_INTEGER1
    Row{MPI_INTEGER1, plain},
    Row{MPI_INTEGER2, number(2)},
    Row{MPI_INTEGER4, number(4)},
#endif
#ifdef MPI_INTEGER8
    Row{MPI_INTEGER8, number(8)},
#endif
#ifdef MPI_INTEGER16
    Row{MPI_INTEGER16, number(16)},
#endif
#ifdef MPI_LOGICAL1
    Row{MPI_LOGICAL1, plain},
    Row{MPI_LOGICAL2, number(2)},
    Row{MPI_LOGICAL4, number(4)},
    Row{MPI_LOGICAL8, number(8)},
#endif
#ifdef MPI_LOGICAL16
    Row{MPI_LOGICAL16, number(16)},
#endif
#ifdef MPI_REAL2
    Row{MPI_REAL2, number(2)},
#endif
#ifdef MPI_REAL4
    Row{MPI_REAL4, number(4)},
    Row{MPI_REAL8, number(8)},
    Row{MPI_COMPLEX8, number(4, 2)},
    Row{MPI_COMPLEX16, number(8, 2)},
#endif
#ifdef MPI_REAL16
    Row{MPI_REAL16, number(16)},
    Row{MPI_COMPLEX32, number(16, 2)},
#endif
    Row{MPI_2INT, number(4, 2)},
    Row{MPI_2INTEGER, number(4, 2)},
    Row{MPI_2REAL, number(4, 2)},
    Row{MPI_2DOUBLE_PRECISION, number(8, 2)},
};

// A value and an index.
const std::array pairs = {
    Row{MPI_FLOAT_INT, number(4)},
    Row{MPI_DOUBLE_INT, number(8)},
    Row{MPI_LONG_INT, signed_number(sizeof(long), 4)},
    Row{MPI_SHORT_INT, number(2)},
    Row{MPI_LONG_DOUBLE_INT, long_double()},
};

// Types requested by a number of digits: their size defines their form.
Result<Signature> by_size(MPI_Datatype type, int combiner) {
  int size = 0;
  PMPI_Type_size(type, &size);
  const auto bytes = static_cast<std::uint32_t>(size);
  const std::uint32_t components = combiner == MPI_COMBINER_F90_COMPLEX ? 2 : 1;
  // 16 bytes are C's long double; both MPIs offer no wider type.
  if (combiner != MPI_COMBINER_F90_INTEGER && bytes / components == sizeof(long double))
    return Signature(long_double(components));
  return Signature(number(bytes / components, components));
}

// Fortran's default types have other sizes if the MPI was built with -i8 or -r8.
Result<Signature> checked_size(MPI_Datatype type, const Element& element) {
  int size = 0;
  PMPI_Type_size(type, &size);
  if (static_cast<std::uint32_t>(size) == element.memory_bytes * element.components)
    return Signature(element);
  return fail(
      Code::unsupported_datarep,
      fmt::format(
          "external32: a datatype has {} bytes in memory, but external32 defines it with {}", size,
          element.memory_bytes * element.components));
}

class External32 final : public Representation {
 public:
  Result<Signature> element(MPI_Datatype type) const override {
    const auto* const row = std::ranges::find(rows, type, &Row::type);
    if (row != rows.end()) return checked_size(type, row->element);
    const auto* const pair = std::ranges::find(pairs, type, &Row::type);
    if (pair != pairs.end())
      return Signature::sequence({Signature(pair->element), Signature(number(4))});
    int ints = 0;
    int addresses = 0;
    int types = 0;
    int combiner = MPI_COMBINER_NAMED;
    PMPI_Type_get_envelope(type, &ints, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
        combiner == MPI_COMBINER_F90_INTEGER)
      return by_size(type, combiner);
    char name[MPI_MAX_OBJECT_NAME] = "";
    int len = 0;
    PMPI_Type_get_name(type, name, &len);
    return fail(Code::unsupported_datarep,
                fmt::format("external32 does not define a form for {}", name));
  }

  Status encode(const Buffer& buffer, const Signature& signature,
                std::span<std::byte> file) const override {
    std::vector<std::byte> memory(signature.memory_bytes());
    SHIMA_TRY(pack(buffer, memory));
    return signature.encode(memory, file);
  }

  Status decode(std::span<std::byte> file, const Signature& signature, const Buffer& buffer,
                std::span<std::byte> scratch) const override {
    // Elements beyond the data keep their values.
    if (file.size() < signature.file_bytes()) SHIMA_TRY(pack(buffer, scratch));
    signature.decode(file, scratch);
    return unpack(scratch, buffer);
  }
};

}  // namespace

std::shared_ptr<const Representation> external32() { return std::make_shared<External32>(); }

}  // namespace shima
