// Exchanges between pairs of members before there is a duplicate of the communicator.
//
// A message of the program's own communicator could be taken by a receive of the program. So each
// exchange is a collective call of all members, in which a member moves bytes to or from one other,
// or none at all: then it neither sends nor awaits anything, but the calls of all members keep
// their order.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>

#include "group/member_tree.h"

namespace shima {

class PairExchange {
 public:
  // The lengths in its memory; so many are needed.
  static constexpr std::size_t int_count(std::size_t size) { return 3 * size - 1; }
  static constexpr std::size_t memory_bytes(std::size_t size) {
    return int_count(size) * sizeof(int);
  }
  // To the partner, and from the partner: never the same (Open MPI takes that for MPI_IN_PLACE).
  struct Bytes {
    const void* sent;
    void* received;
    std::size_t len_bytes;
  };

  // `memory` is zeroed, and stays as long as a request is under way.
  PairExchange(MPI_Comm comm, std::size_t size, std::span<int> memory)
      : comm_(comm), size_(size), lens_(memory) {}

  // Collective. Exchanges that are under way at the same time must have one length. Returns the
  // MPI's code.
  [[nodiscard]] int start(const Partners& partners, const Bytes& bytes, MPI_Request* request) {
    lens_[size_ - 1] = static_cast<int>(bytes.len_bytes);
    return PMPI_Ialltoallv(bytes.sent, lens_with(partners.to), none(), MPI_BYTE, bytes.received,
                           lens_with(partners.from), none(), MPI_BYTE, comm_, request);
  }

 private:
  // The only length that is not 0 is at the place of the one member.
  [[nodiscard]] const int* lens_with(int member) const {
    return member == Partners::none ? none()
                                    : lens_.data() + (size_ - 1 - static_cast<std::size_t>(member));
  }
  [[nodiscard]] const int* none() const { return lens_.data() + (2 * size_ - 1); }

  MPI_Comm comm_;
  std::size_t size_;
  std::span<int> lens_;
};

}  // namespace shima
