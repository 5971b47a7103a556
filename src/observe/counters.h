// What one member did with one open file: counts, bytes, and the time of each phase.
//
// The counters are plain numbers, summed over the members when the file is closed. A table has a
// row per field, so that summing, printing and JSON are one loop.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shima {

struct Counters {
  // calls
  std::uint64_t writes = 0;
  std::uint64_t reads = 0;
  std::uint64_t collective_writes = 0;
  std::uint64_t collective_reads = 0;
  std::uint64_t views_set = 0;
  // bytes that callers requested, and the pieces of the requests
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t file_pieces = 0;
  std::uint64_t memory_pieces = 0;
  // what reached the file
  std::uint64_t windows = 0;
  std::uint64_t runs = 0;
  std::uint64_t disk_bytes_written = 0;
  std::uint64_t disk_bytes_read = 0;
  std::uint64_t wire_messages = 0;
  std::uint64_t wire_bytes = 0;
  // collective calls by their strategy
  std::uint64_t strategy_disk_directed = 0;
  std::uint64_t strategy_two_phase = 0;
  std::uint64_t strategy_subgroup = 0;
  std::uint64_t strategy_independent = 0;
  std::uint64_t strategy_io_node = 0;
  // collective calls in which this member was an agent
  std::uint64_t agents = 0;
  // collective calls by the path on which members moved bytes for each other
  std::uint64_t path_single_copy = 0;
  std::uint64_t path_pull = 0;
  std::uint64_t path_pack = 0;
  std::uint64_t path_message = 0;
  // independent writes executed by combined sweeps
  std::uint64_t combined_writes = 0;
  // collective writes of few bytes, left for the last member to make
  std::uint64_t small_writes = 0;
  // nanoseconds
  std::uint64_t plan_ns = 0;
  std::uint64_t exchange_ns = 0;
  std::uint64_t gather_ns = 0;
  std::uint64_t disk_ns = 0;
  std::uint64_t wait_ns = 0;
  // collective calls by the row of the chooser's table that decided; its names are elsewhere
  std::array<std::uint64_t, 17> decided{};

  void add(const Counters& other);
};

struct CounterField {
  std::string_view name;
  std::uint64_t Counters::* value;
};

// Every field but `decided`, in the order of the struct.
extern const std::array<CounterField, 32> counter_fields;

}  // namespace shima
