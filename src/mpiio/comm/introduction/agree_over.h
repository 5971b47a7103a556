// An agreement on errors over a communicator that has no channel yet.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "base/result.h"
#include "mpiio/mpi/await.h"

namespace shima {

// Whether a rank was lost: then nothing more is asked of the MPI, which may crash when it sends to
// that rank.
[[nodiscard]] inline bool is_loss(const Status& status) {
  return !status && status.error().code == Code::peer_lost;
}

// A rank's status as a word: the largest word of all ranks is the worst status. 0: no error.
[[nodiscard]] std::uint64_t verdict_word(const Status& mine, int rank);
// The status of all ranks, `all` being the largest word; with this rank's own text if its error is
// the worst.
[[nodiscard]] Status verdict_of(std::uint64_t all, const Status& mine, const char* doing);

// The largest of all ranks' words. Allocates nothing. Collective over `comm`.
[[nodiscard]] Result<std::uint64_t> largest_over(MPI_Comm comm, std::uint64_t mine,
                                                 const char* doing,
                                                 const Peers& peers = {}) noexcept;

// The worst status of all ranks, with this rank's own text if its error is the worst. Allocates
// nothing. Collective over `comm`.
[[nodiscard]] Status agree_over(MPI_Comm comm, const Status& mine, const char* doing,
                                const Peers& peers = {}) noexcept;

}  // namespace shima
