#include "observe/counters.h"

namespace shima {

const std::array<CounterField, 32> counter_fields{{
    {"writes", &Counters::writes},
    {"reads", &Counters::reads},
    {"collective_writes", &Counters::collective_writes},
    {"collective_reads", &Counters::collective_reads},
    {"views_set", &Counters::views_set},
    {"bytes_written", &Counters::bytes_written},
    {"bytes_read", &Counters::bytes_read},
    {"file_pieces", &Counters::file_pieces},
    {"memory_pieces", &Counters::memory_pieces},
    {"windows", &Counters::windows},
    {"runs", &Counters::runs},
    {"disk_bytes_written", &Counters::disk_bytes_written},
    {"disk_bytes_read", &Counters::disk_bytes_read},
    {"wire_messages", &Counters::wire_messages},
    {"wire_bytes", &Counters::wire_bytes},
    {"strategy_disk_directed", &Counters::strategy_disk_directed},
    {"strategy_two_phase", &Counters::strategy_two_phase},
    {"strategy_subgroup", &Counters::strategy_subgroup},
    {"strategy_independent", &Counters::strategy_independent},
    {"strategy_io_node", &Counters::strategy_io_node},
    {"agents", &Counters::agents},
    {"path_single_copy", &Counters::path_single_copy},
    {"path_pull", &Counters::path_pull},
    {"path_pack", &Counters::path_pack},
    {"path_message", &Counters::path_message},
    {"combined_writes", &Counters::combined_writes},
    {"small_writes", &Counters::small_writes},
    {"plan_ns", &Counters::plan_ns},
    {"exchange_ns", &Counters::exchange_ns},
    {"gather_ns", &Counters::gather_ns},
    {"disk_ns", &Counters::disk_ns},
    {"wait_ns", &Counters::wait_ns},
}};

void Counters::add(const Counters& other) {
  for (const CounterField& field : counter_fields) this->*field.value += other.*field.value;
  for (std::size_t i = 0; i < decided.size(); ++i) decided[i] += other.decided[i];
}

}  // namespace shima
