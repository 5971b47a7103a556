// Meetings of a communicator's ranks before they have a channel.
//
// They follow the contract of channels (group/channel.h): all ranks have the memory of all
// meetings, a rank brings an error in place of a value, and a rank that fails after a meeting
// brings that error to the next one. Few ranks gather what they bring in all of them, in memory
// that they have in any case (introduction/answer_memory.h). Where there are more, rank 0 gathers,
// and tells the others what it has made of it: no other rank gathers something of every rank.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "mpiio/comm/introduction/answer_memory.h"
#include "mpiio/comm/introduction/pair_exchange.h"
#include "mpiio/mpi/await.h"

namespace shima {

// The values of all ranks; valid until the next gathering.
template <class T>
class Gathered {
 public:
  Gathered() = default;
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
  // The largest value of a meeting, and of one in rank 0.
  static constexpr std::size_t most_bytes = 96;
  static constexpr std::size_t most_bytes_first = 40;

  // So many ranks begin without a message, and gather in all of them.
  static constexpr std::size_t few_ranks = 64;

  // Collective over `comm`, as all calls below.
  [[nodiscard]] static Result<FirstMeetings> begin(MPI_Comm comm);
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] bool are_few() const { return size_ <= few_ranks; }

  // All values, in every rank of few. An error of one rank is the result on all.
  template <class T>
  [[nodiscard]] Result<Gathered<T>> gather(const Result<T>& mine, const Peers& peers) {
    if (!are_few()) return fail(Code::internal, "too many ranks gather in all of them");
    SHIMA_TRY(gather_entries(put(mine), entry_bytes<T>, Where::everywhere, peers));
    return Gathered<T>(std::span(values(), size_ * entry_bytes<T>));
  }
  // All values, in rank 0; none elsewhere. Rank 0 gets the error of any rank, the others only their
  // own.
  template <class T>
  [[nodiscard]] Result<Gathered<T>> gather_first(const Result<T>& mine, const Peers& peers) {
    static_assert(sizeof(T) <= most_bytes_first);
    SHIMA_TRY(gather_entries(put(mine), entry_bytes<T>, Where::first, peers));
    if (rank_ != 0) return Gathered<T>();
    return Gathered<T>(std::span(values(), size_ * entry_bytes<T>));
  }
  // The rank whose error was the result of the last gathering in this rank.
  [[nodiscard]] int failed_rank() const { return failed_rank_; }
  // Rank 0's bytes, on all ranks; or its error, with the rank that has caused it. A rank that has
  // no memory for them has an error alone.
  [[nodiscard]] Result<std::vector<std::byte>> broadcast(
      const Result<std::span<const std::byte>>& mine, int failed_rank, const Peers& peers);

 private:
  enum class Where : std::uint8_t { everywhere, first };

  // An entry is the code of a rank's error, or 0, and the rank's value. The memory has the own
  // entry, the part of a broadcast that is under way, the entries that are gathered, and the
  // lengths for exchanges between pairs of few ranks.
  static constexpr std::size_t most_entry_bytes = sizeof(std::uint64_t) + most_bytes;
  static constexpr std::size_t part_bytes = 16 << 10;
  template <class T>
  static constexpr std::size_t entry_bytes = sizeof(std::uint64_t) + sizeof(T);
  static constexpr std::size_t memory_bytes(std::size_t size, int rank) {
    const std::size_t gathered = size <= few_ranks ? most_entry_bytes
                                 : rank == 0       ? sizeof(std::uint64_t) + most_bytes_first
                                                   : 0;
    const std::size_t lens = size <= few_ranks ? PairExchange::memory_bytes(size) : 0;
    return most_entry_bytes + part_bytes + size * gathered + lens;
  }

  FirstMeetings(MPI_Comm comm, int rank, std::size_t size);
  [[nodiscard]] std::byte* own() const { return memory_.data(); }
  [[nodiscard]] std::byte* part() const { return own() + most_entry_bytes; }
  [[nodiscard]] std::byte* values() const { return part() + part_bytes; }
  [[nodiscard]] int* lens() const {  // of few ranks
    return reinterpret_cast<int*>(values() + size_ * most_entry_bytes);
  }
  template <class T>
  [[nodiscard]] Status put(const Result<T>& mine) {
    static_assert(sizeof(T) <= most_bytes);
    if (mine) std::memcpy(own() + sizeof(std::uint64_t), &*mine, sizeof(T));
    return status_of(mine);
  }
  [[nodiscard]] Status gather_entries(const Status& mine, std::size_t len_bytes, Where where,
                                      const Peers& peers);
  // The own entry and those of all others, in each of few ranks.
  [[nodiscard]] Status exchange_entries(std::size_t len_bytes, const Peers& peers);
  // The worst of the entries that are here.
  [[nodiscard]] Status worst_of(const Status& mine, std::size_t len_bytes);
  [[nodiscard]] Status broadcast_part(std::size_t len_bytes, const Peers& peers);
  void clear();
  [[nodiscard]] Status finish(Status started, MPI_Request request, const Peers& peers);

  MPI_Comm comm_;
  int rank_;
  std::size_t size_;
  int failed_rank_ = 0;
  AnswerMemory memory_;
};

}  // namespace shima
