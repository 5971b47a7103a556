// Messages between two ranks of a communicator that has no channel yet.
//
// They go over a duplicate of the communicator, because the program may receive from any rank with
// any tag, and through memory that is kept if the MPI may still use it. A long message goes in
// parts. Both sides know how long a message is.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>

#include "mpiio/comm/introduction/answer_memory.h"
#include "mpiio/mpi/await.h"

namespace shima {

class FirstMessages {
 public:
  // Collective over `comm`. A rank that could not prepare itself brings its error in `ready`, and
  // an error of one rank is the result on all.
  [[nodiscard]] static Result<FirstMessages> begin(MPI_Comm comm, const Status& ready,
                                                   const Peers& peers);
  FirstMessages(FirstMessages&& other) noexcept;
  FirstMessages& operator=(FirstMessages&&) = delete;
  // Frees the duplicate, if no message has failed. Collective.
  ~FirstMessages();

  // After the loss of a rank: the duplicate is not freed.
  void give_up() { is_broken_ = true; }

  // Messages between two ranks keep their order. Both calls block. Others are possible after one
  // has failed.
  [[nodiscard]] Status send(int to, std::span<const std::byte> message, const Peers& peers);
  [[nodiscard]] Status receive(int from, std::span<std::byte> message, const Peers& peers);
  template <class T>
  [[nodiscard]] Status send_value(int to, const T& value, const Peers& peers) {
    return send(to, std::as_bytes(std::span(&value, 1)), peers);
  }
  template <class T>
  [[nodiscard]] Status receive_value(int from, T& value, const Peers& peers) {
    return receive(from, std::as_writable_bytes(std::span(&value, 1)), peers);
  }

  // The duplicate, which now belongs to the caller; null if a message has failed.
  [[nodiscard]] MPI_Comm take_comm();

 private:
  static constexpr std::size_t part_bytes = 2048;

  explicit FirstMessages(MPI_Comm own) : comm_(own), memory_(part_bytes) {}
  [[nodiscard]] Status finish(int started, MPI_Request request, const Peers& peers);

  MPI_Comm comm_;
  bool is_broken_ = false;
  AnswerMemory memory_;
};

}  // namespace shima
