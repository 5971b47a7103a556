// The construction of one datatype: MPI_Type_get_envelope and get_contents behind one interface.
//
// MPI returns a constructor's arguments in up to three arrays: integers, addresses, and (types made
// by a _c call) large counts. Which array holds an argument depends on the call and its version,
// but their order does not, so they are read in sequence: next_int(), next_count(),
// next_displacement().
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace shima {

// Constructors that MPI-3 removed and old Fortran programs still use; both families number them one
// below their successors.
#if defined(SHIMA_MPI_MPICH) || defined(SHIMA_MPI_OPENMPI)
inline constexpr int hvector_integer = MPI_COMBINER_HVECTOR - 1;
inline constexpr int hindexed_integer = MPI_COMBINER_HINDEXED - 1;
inline constexpr int struct_integer = MPI_COMBINER_STRUCT - 1;
#else
inline constexpr int hvector_integer = -1;
inline constexpr int hindexed_integer = -2;
inline constexpr int struct_integer = -3;
#endif

class TypeContents {
 public:
  [[nodiscard]] static Result<TypeContents> of(MPI_Datatype type);
  TypeContents(TypeContents&& other) noexcept = default;
  TypeContents& operator=(TypeContents&&) = delete;
  // Frees the handles that get_contents returned.
  ~TypeContents();

  [[nodiscard]] int combiner() const { return combiner_; }
  // Whether the type is made of several types; every other derived type is made of one.
  [[nodiscard]] bool is_struct() const;
  [[nodiscard]] const std::vector<MPI_Datatype>& types() const { return types_; }

  [[nodiscard]] std::int64_t next_int() { return ints_[next_int_++]; }
  [[nodiscard]] std::int64_t next_count() {
    return counts_.empty() ? next_int() : counts_[next_count_++];
  }
  [[nodiscard]] std::int64_t next_displacement() {
    return addresses_.empty() ? next_count() : addresses_[next_address_++];
  }
  [[nodiscard]] std::vector<std::int64_t> next_ints(std::int64_t number);
  [[nodiscard]] std::vector<std::int64_t> next_counts(std::int64_t number);

 private:
  TypeContents() = default;

  int combiner_ = MPI_COMBINER_NAMED;
  std::vector<int> ints_;
  std::vector<MPI_Aint> addresses_;
  std::vector<MPI_Count> counts_;
  std::vector<MPI_Datatype> types_;
  std::size_t next_int_ = 0;
  std::size_t next_address_ = 0;
  std::size_t next_count_ = 0;
};

// Whether the type is predefined: its handle must not be freed, and it has no contents.
[[nodiscard]] bool is_predefined(MPI_Datatype type);

}  // namespace shima
