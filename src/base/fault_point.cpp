#include "base/fault_point.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <optional>

namespace shima {
namespace {

struct SignalFault {
  int signal = 0;
  std::size_t phase = 0;
  std::uint64_t rank = 0;
  std::uint64_t nth = 1;
};

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

int signal_of(std::string_view fault) {
  if (fault.starts_with("kill:")) return SIGKILL;
  return fault.starts_with("stop:") ? SIGSTOP : 0;
}

std::optional<SignalFault> parse(std::string_view fault) {
  const auto parts = split_fault(fault, ':');
  const int signal = signal_of(fault);
  if (signal == 0 || parts.size() < 3 || parts.size() > 4) return std::nullopt;
  const auto* const phase = std::ranges::find(fault_phase_names, parts[1]);
  const auto rank = number_of(parts[2]);
  const auto nth = parts.size() == 4 ? number_of(parts[3]) : std::optional<std::uint64_t>(1);
  if (phase == fault_phase_names.end() || !rank || !nth || *nth == 0) return std::nullopt;
  return SignalFault{signal, static_cast<std::size_t>(phase - fault_phase_names.begin()), *rank,
                     *nth};
}

// What `shima run --lapi -n` tells a task: "fd=3 task=1 tasks=4".
std::optional<std::uint64_t> task_of_lapi_job() {
  constexpr std::string_view word = " task=";
  const char* job = std::getenv("SHIMA_LAPI");
  const std::string_view text = job != nullptr ? job : "";
  const auto at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + word.size());
  return number_of(rest.substr(0, rest.find(' ')));
}

// This process's rank, from the launcher's environment: MPI may not be initialized.
std::optional<std::uint64_t> rank_in_job() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* rank = std::getenv(name); rank != nullptr) return number_of(rank);
  return task_of_lapi_job();
}

// Phases of I/O nodes, which have no rank.
bool is_of_node(std::size_t phase) { return fault_phase_names[phase].starts_with("iod."); }

struct Armed {
  int signal;
  std::size_t phase;
  std::uint64_t nth;
  std::atomic<std::uint64_t> came = 0;
};

// The faults for this process. An open reports malformed faults.
std::deque<Armed>& armed() {
  static auto* const all = [] {
    auto* found = new std::deque<Armed>;
    const char* faults = std::getenv("SHIMA_FAULT");
    if (faults == nullptr) return found;
    const auto rank = rank_in_job();
    for (const std::string_view fault : split_fault(faults, ','))
      if (const auto one = parse(fault); one && (rank == one->rank || is_of_node(one->phase)))
        found->emplace_back(one->signal, one->phase, one->nth);
    return found;
  }();
  return *all;
}

}  // namespace

const bool faults_wanted = std::getenv("SHIMA_FAULT") != nullptr;

void come_to(FaultPhase phase) {
  for (Armed& one : armed())
    if (one.phase == static_cast<std::size_t>(phase) && ++one.came == one.nth) ::raise(one.signal);
}

std::vector<std::string_view> split_fault(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool is_signal(std::string_view fault) { return signal_of(fault) != 0; }

bool is_well_formed_signal(std::string_view fault) { return parse(fault).has_value(); }

}  // namespace shima
