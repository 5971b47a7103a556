// Meetings of a communicator's ranks before they have a channel.
//
// They follow the contract of channels (group/channel.h): all ranks have the memory of all
// meetings, a rank brings an error in place of a value, and an error of one rank becomes the result
// on all ranks. Few ranks have the memory in any case (mpiio/comm/answer_memory.h), more agree that
// they do.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "mpiio/comm/answer_memory.h"
#include "mpiio/mpi/await.h"

namespace shima {

// The values of all ranks; valid until the next meeting.
template <class T>
class Gathered {
 public:
  explicit Gathered(std::span<const std::byte> all) : all_(all) {}
  [[nodiscard]] std::size_t size() const { return all_.size() / entry_bytes; }
  [[nodiscard]] T operator[](std::size_t i) const {
    T value;
    std::memcpy(&value, all_.data() + i * entry_bytes + sizeof(std::uint64_t), sizeof(T));
    return value;
  }
  template <class Test>
  [[nodiscard]] bool all_of(Test test) const {
    for (std::size_t i = 0; i < size(); ++i)
      if (!test((*this)[i])) return false;
    return true;
  }

 private:
  static constexpr std::size_t entry_bytes = sizeof(std::uint64_t) + sizeof(T);
  std::span<const std::byte> all_;
};

class FirstMeetings {
 public:
  // The largest value of a meeting.
  static constexpr std::size_t most_bytes = 384;

  // So many ranks begin without a message.
  static constexpr std::size_t few_ranks = 64;

  // Collective over `comm`, as all calls below.
  [[nodiscard]] static Result<FirstMeetings> begin(MPI_Comm comm);
  [[nodiscard]] std::size_t size() const { return size_; }

  template <class T>
  [[nodiscard]] Result<Gathered<T>> gather(const Result<T>& mine, const Peers& peers) {
    static_assert(sizeof(T) <= most_bytes);
    if (mine) std::memcpy(own() + sizeof(std::uint64_t), &*mine, sizeof(T));
    constexpr std::size_t entry_bytes = sizeof(std::uint64_t) + sizeof(T);
    SHIMA_TRY(gather_entries(status_of(mine), entry_bytes, peers));
    return Gathered<T>(std::span(values(), size_ * entry_bytes));
  }
  // Copies rank 0's value to all ranks.
  template <class T>
  [[nodiscard]] Status broadcast(T& value, const Peers& peers) {
    static_assert(sizeof(T) <= most_broadcast_bytes);
    std::memcpy(told(), &value, sizeof(T));
    SHIMA_TRY(broadcast_bytes(sizeof(T), peers));
    std::memcpy(&value, told(), sizeof(T));
    return {};
  }

 private:
  static constexpr std::size_t most_broadcast_bytes = 576;
  // An entry is the code of a rank's error, or 0, and the rank's value. The memory has the own
  // entry, those of all ranks, and a value that is broadcast.
  static constexpr std::size_t most_entry_bytes = sizeof(std::uint64_t) + most_bytes;
  static constexpr std::size_t memory_bytes(std::size_t size) {
    return (size + 1) * most_entry_bytes + most_broadcast_bytes;
  }

  FirstMeetings(MPI_Comm comm, std::size_t size)
      : comm_(comm), size_(size), memory_(memory_bytes(size)) {}
  [[nodiscard]] std::byte* own() const { return memory_.data(); }
  [[nodiscard]] std::byte* values() const { return own() + most_entry_bytes; }
  [[nodiscard]] std::byte* told() const { return values() + size_ * most_entry_bytes; }
  [[nodiscard]] Status gather_entries(const Status& mine, std::size_t entry_bytes,
                                      const Peers& peers);
  [[nodiscard]] Status broadcast_bytes(std::size_t len_bytes, const Peers& peers);
  [[nodiscard]] Status finish(Status started, MPI_Request request, const Peers& peers);

  MPI_Comm comm_;
  std::size_t size_;
  AnswerMemory memory_;
};

}  // namespace shima
