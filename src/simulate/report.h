// The results of a simulation: several numbers of ranks, and whether planning stays within its
// limits from the smallest to the largest.
#pragma once

#include <string>
#include <vector>

#include "simulate/scale.h"

namespace shima::simulate {

struct Request {
  std::vector<int> ranks;  // each is simulated
  Workload workload;       // its number of ranks is ignored
  Machine machine;
  Sampling sampling;
};

// The cost of one member with few and with many pieces.
struct PiecesProbe {
  std::uint64_t few = 0;
  std::uint64_t many = 0;
  Cost cost_few;
  Cost cost_many;
  std::uint64_t post_bytes_few = 0;
  std::uint64_t post_bytes_many = 0;
};

// A requirement; `value` must be at most `limit`.
struct Limit {
  std::string name;
  std::string rule;
  double value = 0;
  double limit = 0;

  [[nodiscard]] bool reached() const { return value <= limit; }
};

struct Report {
  Request request;
  std::vector<Scale> scales;
  PiecesProbe pieces;
  std::vector<Limit> limits;
};

[[nodiscard]] Result<Report> simulate(const Request& request, const Meter& meter,
                                      const ScaleNotice& notice = {});

[[nodiscard]] std::string as_json(const Report& report);
[[nodiscard]] std::string as_text(const Report& report);
// A page without references to other files.
[[nodiscard]] std::string as_html(const Report& report);

// What moves the bytes: a path, or each rank itself.
[[nodiscard]] std::string_view way_of(const Scale& scale);
[[nodiscard]] std::string_view name_of(Strategy strategy);

}  // namespace shima::simulate
