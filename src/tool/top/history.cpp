#include "tool/top/history.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shima::tool {
namespace {

constexpr std::array<const char*, 9> unicode_bars{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<const char*, 9> ascii_bars{" ", ".", ":", "-", "=", "+", "*", "#", "@"};

double grown(std::uint64_t before, std::uint64_t after) {
  return after > before ? static_cast<double>(after - before) : 0;
}

}  // namespace

Rates rates_between(const TaskSample& before, const TaskSample& after, double seconds) {
  if (seconds <= 0) return {};
  constexpr double ns = 1e9;
  const double waited = grown(before.wait_ns(), after.wait_ns()) / ns / seconds;
  return {.written = grown(before.bytes_written(), after.bytes_written()) / seconds,
          .read = grown(before.bytes_read(), after.bytes_read()) / seconds,
          .calls = grown(before.calls(), after.calls()) / seconds,
          .waiting = std::min(waited, 1.0)};
}

void History::add(Sample sample) {
  if (sample.time_ms < last_.time_ms) *this = {};
  const double seconds = static_cast<double>(sample.time_ms - last_.time_ms) / 1000;
  std::map<Key, const TaskSample*> before;
  for (const TaskSample& task : last_.tasks) before[{task.host, task.pid}] = &task;
  for (const TaskSample& task : sample.tasks) {
    const auto known = before.find({task.host, task.pid});
    if (known == before.end()) continue;
    auto& rates = rates_[{task.host, task.pid}];
    rates.push_back(rates_between(*known->second, task, seconds));
    if (rates.size() > length) rates.pop_front();
  }
  last_ = std::move(sample);
  ++count_;
}

const std::deque<Rates>& History::of(const TaskSample& task) const {
  static const std::deque<Rates> none;
  const auto found = rates_.find({task.host, task.pid});
  return found == rates_.end() ? none : found->second;
}

Rates History::now(const TaskSample& task) const {
  const auto& rates = of(task);
  return rates.empty() ? Rates{} : rates.back();
}

Rates History::sum() const {
  Rates sum;
  for (const TaskSample& task : last_.tasks) {
    if (task.is_node()) continue;
    const Rates one = now(task);
    sum.written += one.written;
    sum.read += one.read;
    sum.calls += one.calls;
  }
  return sum;
}

std::string spark_line(const std::vector<double>& values, double most, std::size_t width,
                       Charset charset) {
  const auto& bars = charset == Charset::unicode ? unicode_bars : ascii_bars;
  const std::size_t shown = std::min(values.size(), width);
  std::string line(width - shown, ' ');
  for (std::size_t i = values.size() - shown; i < values.size(); ++i) {
    const double part = most > 0 ? std::clamp(values[i] / most, 0.0, 1.0) : 0;
    // What is not nothing is seen.
    const auto bar =
        static_cast<std::size_t>(std::ceil(part * static_cast<double>(bars.size() - 1)));
    line += bars[bar];
  }
  return line;
}

}  // namespace shima::tool
