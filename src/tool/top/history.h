// The last samples of a job, and what follows from two of them: rates.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tool/top/sample.h"

namespace shima::tool {

// Between two samples.
struct Rates {
  double written = 0;  // bytes a second
  double read = 0;
  double calls = 0;    // a second
  double waiting = 0;  // part of the time, 0 to 1
  [[nodiscard]] double moved() const { return written + read; }
};

class History {
 public:
  static constexpr std::size_t length = 120;

  // Samples come in the order of their time; an older one begins anew.
  void add(Sample sample);
  [[nodiscard]] const Sample& last() const { return last_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // The newest last; as many as there are, at most `length`.
  [[nodiscard]] const std::deque<Rates>& of(const TaskSample& task) const;
  // The newest one.
  [[nodiscard]] Rates now(const TaskSample& task) const;
  [[nodiscard]] Rates sum() const;

 private:
  using Key = std::pair<std::string, int>;
  std::map<Key, std::deque<Rates>> rates_;
  Sample last_;
  std::size_t count_ = 0;
};

[[nodiscard]] Rates rates_between(const TaskSample& before, const TaskSample& after,
                                  double seconds);

// A graph of one line: a character for each value, the last ones if there are more than `width`.
// `most`: the value of a full one.
enum class Charset { unicode, ascii };
[[nodiscard]] std::string spark_line(const std::vector<double>& values, double most,
                                     std::size_t width, Charset charset);

}  // namespace shima::tool
