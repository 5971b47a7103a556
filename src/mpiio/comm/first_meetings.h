// Meetings of a communicator's ranks before they have a channel.
//
// They follow the contract of channels (group/channel.h): all ranks have agreed that the memory of
// all meetings exists, a rank brings an error in place of a value, and an error of one rank becomes
// the result on all ranks.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "mpiio/comm/agree_over.h"
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

  // Collective over `comm`, as all calls below. `ready`: the result of this rank's own preparation.
  [[nodiscard]] static Result<FirstMeetings> begin(MPI_Comm comm, const Status& ready);

  template <class T>
  [[nodiscard]] Result<Gathered<T>> gather(const Result<T>& mine, const Peers& peers) {
    static_assert(sizeof(T) <= most_bytes);
    if (mine) std::memcpy(memory_->mine.data() + sizeof(std::uint64_t), &*mine, sizeof(T));
    constexpr std::size_t entry_bytes = sizeof(std::uint64_t) + sizeof(T);
    SHIMA_TRY(gather_entries(status_of(mine), entry_bytes, peers));
    return Gathered<T>(std::span(memory_->values).first(size_ * entry_bytes));
  }
  // Copies rank 0's value to all ranks.
  template <class T>
  [[nodiscard]] Status broadcast(T& value, const Peers& peers) {
    static_assert(sizeof(T) <= most_broadcast_bytes);
    std::memcpy(memory_->broadcast.data(), &value, sizeof(T));
    SHIMA_TRY(broadcast_bytes(sizeof(T), peers));
    std::memcpy(&value, memory_->broadcast.data(), sizeof(T));
    return {};
  }

 private:
  static constexpr std::size_t most_broadcast_bytes = 576;
  // An entry is the code of a rank's error, or 0, and the rank's value.
  struct Memory {
    std::array<std::byte, sizeof(std::uint64_t) + most_bytes> mine{};
    std::vector<std::byte> values;  // of all ranks
    std::array<std::byte, most_broadcast_bytes> broadcast{};
  };

  FirstMeetings(MPI_Comm comm, std::size_t size) : comm_(comm), size_(size) {}
  [[nodiscard]] Status gather_entries(const Status& mine, std::size_t entry_bytes,
                                      const Peers& peers);
  [[nodiscard]] Status broadcast_bytes(std::size_t len_bytes, const Peers& peers);
  [[nodiscard]] Status finish(Status started, MPI_Request request, const Peers& peers);

  MPI_Comm comm_;
  std::size_t size_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace shima
