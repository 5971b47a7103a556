#include "dse/plan/placement.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <numeric>
#include <ranges>
#include <set>
#include <span>

namespace shima::dse {
namespace {

// How far apart two cores are, by the largest thing that separates them: another host, package,
// NUMA node, shared cache, core; or nothing. Between hosts a message costs far more.
constexpr int host_distance = 64;
constexpr int package_distance = 8;
constexpr std::array<int, 4> distances{package_distance, 4, 2, 1};

class Layout {
 public:
  Layout(const Topology& topology, const std::vector<HostRoom>& hosts)
      : hosts_(hosts), neighbors_(static_cast<std::size_t>(topology.tasks())) {
    for (int task = 0; task < topology.tasks(); ++task)
      for (const Neighbor& neighbor : topology.neighbors(task)) connect(task, neighbor.task);
    for (auto& list : neighbors_) {
      std::ranges::sort(list);
      list.erase(std::ranges::unique(list).begin(), list.end());
    }
    fill_seats(topology.tasks());
    seat_of_.resize(neighbors_.size());
    std::iota(seat_of_.begin(), seat_of_.end(), std::size_t{0});
  }

  void improve() {
    const auto in_order = seat_of_;
    const std::int64_t cost_in_order = cost();
    std::vector<int> tasks(neighbors_.size());
    std::iota(tasks.begin(), tasks.end(), 0);
    divide(tasks, 0);
    swap_seats();
    if (cost() >= cost_in_order) seat_of_ = in_order;
  }
  [[nodiscard]] std::vector<Seat> result() const {
    std::vector<Seat> seats;
    for (const std::size_t seat : seat_of_) seats.push_back(seats_[seat]);
    return seats;
  }

 private:
  void connect(int a, int b) {
    if (a == b) return;
    neighbors_[static_cast<std::size_t>(a)].push_back(b);
    neighbors_[static_cast<std::size_t>(b)].push_back(a);
  }
  void fill_seats(int tasks) {
    for (int host = 0; host < static_cast<int>(hosts_.size()) && tasks > 0; ++host) {
      const HostRoom& room = hosts_[static_cast<std::size_t>(host)];
      const int here = std::min(tasks, room.slots);
      const int cores = static_cast<int>(room.machine.size());
      for (int i = 0; i < here; ++i)
        seats_.push_back(
            {host, here <= cores ? i : static_cast<int>(std::int64_t{i} * cores / here)});
      tasks -= here;
    }
  }
  [[nodiscard]] int distance(std::size_t a, std::size_t b) const {
    if (seats_[a].host != seats_[b].host) return host_distance;
    const Machine& machine = hosts_[static_cast<std::size_t>(seats_[a].host)].machine;
    const Core& one = machine[static_cast<std::size_t>(seats_[a].core)];
    const Core& other = machine[static_cast<std::size_t>(seats_[b].core)];
    for (std::size_t i = 0; i < distances.size(); ++i)
      if (one.place[i] != other.place[i]) return distances[i];
    return 0;
  }
  [[nodiscard]] const std::vector<int>& neighbors(int task) const {
    return neighbors_[static_cast<std::size_t>(task)];
  }
  [[nodiscard]] std::int64_t cost_at(int task, std::size_t seat, int except) const {
    std::int64_t total = 0;
    for (const int other : neighbors(task))
      if (other != except) total += distance(seat, seat_of_[static_cast<std::size_t>(other)]);
    return total;
  }
  [[nodiscard]] std::int64_t cost() const {
    std::int64_t total = 0;
    for (int task = 0; task < static_cast<int>(neighbors_.size()); ++task)
      total += cost_at(task, seat_of_[static_cast<std::size_t>(task)], -1);
    return total;
  }

  // Gives the tasks the seats from `first` on.
  void divide(std::span<int> tasks, std::size_t first) {
    if (tasks.size() == 1) seat_of_[static_cast<std::size_t>(tasks.front())] = first;
    if (tasks.size() <= 1) return;
    const std::size_t left = place_to_cut(first, tasks.size());
    separate(tasks, left);
    divide(tasks.first(left), first);
    divide(tasks.subspan(left), first + left);
  }
  // The widest gap, and of equal ones that nearest to the middle.
  [[nodiscard]] std::size_t place_to_cut(std::size_t first, std::size_t count) const {
    std::size_t best = 1;
    const auto off_middle = [&](std::size_t at) {
      return 2 * at > count ? 2 * at - count : count - 2 * at;
    };
    for (std::size_t at = 2; at < count; ++at) {
      const int here = distance(first + at - 1, first + at);
      const int there = distance(first + best - 1, first + best);
      if (here > there || (here == there && off_middle(at) < off_middle(best))) best = at;
    }
    return best;
  }
  // Reorders tasks so that few neighbors are on both sides of `left`.
  void separate(std::span<int> tasks, std::size_t left) {
    std::vector<int> numbered(tasks.begin(), tasks.end());
    std::ranges::sort(numbered);
    std::vector<int> spread = spread_order(numbered);
    const int cut_numbered = exchange(numbered, left);
    const int cut_spread = exchange(spread, left);
    std::ranges::copy(cut_spread < cut_numbered ? spread : numbered, tasks.begin());
  }
  // Breadth first, from a task that is far from the first one.
  [[nodiscard]] std::vector<int> spread_order(const std::vector<int>& tasks) const {
    const std::set<int> members(tasks.begin(), tasks.end());
    std::vector<int> order = breadth_first(tasks, members);
    std::vector<int> again = tasks;
    std::ranges::rotate(again, std::ranges::find(again, order.back()));
    return breadth_first(again, members);
  }
  [[nodiscard]] std::vector<int> breadth_first(const std::vector<int>& starts,
                                               const std::set<int>& members) const {
    std::vector<int> order;
    std::set<int> seen;
    for (const int start : starts) {
      std::deque<int> waiting;
      if (seen.insert(start).second) waiting.push_back(start);
      for (; !waiting.empty(); waiting.pop_front()) {
        order.push_back(waiting.front());
        for (const int other : neighbors(waiting.front()))
          if (members.contains(other) && seen.insert(other).second) waiting.push_back(other);
      }
    }
    return order;
  }
  // Exchanges tasks of the two sides while that separates fewer neighbors; returns how many are.
  [[nodiscard]] int exchange(std::vector<int>& tasks, std::size_t left) const {
    std::vector<int> side(neighbors_.size(), -1);
    for (std::size_t i = 0; i < tasks.size(); ++i)
      side[static_cast<std::size_t>(tasks[i])] = i < left ? 0 : 1;
    const auto side_of = [&](int task) { return side[static_cast<std::size_t>(task)]; };
    const auto gain_of = [&](int task) {
      int gain = 0;
      for (const int other : neighbors(task))
        if (side_of(other) >= 0) gain += side_of(other) != side_of(task) ? 1 : -1;
      return gain;
    };
    for (std::size_t round = 0; round < tasks.size(); ++round) {
      const auto best = [&](std::size_t begin, std::size_t end) {
        std::vector<std::size_t> places(end - begin);
        std::iota(places.begin(), places.end(), begin);
        const std::size_t most = std::min<std::size_t>(places.size(), 16);
        std::ranges::partial_sort(
            places, places.begin() + static_cast<std::ptrdiff_t>(most), {},
            [&](std::size_t at) { return std::pair(-gain_of(tasks[at]), at); });
        places.resize(most);
        return places;
      };
      int most_gain = 0;
      std::pair<std::size_t, std::size_t> chosen;
      const auto rights = best(left, tasks.size());
      for (const std::size_t a : best(0, left)) {
        for (const std::size_t b : rights) {
          const int joined = std::ranges::binary_search(neighbors(tasks[a]), tasks[b]) ? 2 : 0;
          const int gain = gain_of(tasks[a]) + gain_of(tasks[b]) - joined;
          if (gain <= most_gain) continue;
          most_gain = gain;
          chosen = {a, b};
        }
      }
      if (most_gain == 0) break;
      std::swap(side[static_cast<std::size_t>(tasks[chosen.first])],
                side[static_cast<std::size_t>(tasks[chosen.second])]);
      std::swap(tasks[chosen.first], tasks[chosen.second]);
    }
    int cut = 0;
    for (std::size_t i = 0; i < left; ++i)
      for (const int other : neighbors(tasks[i])) cut += side_of(other) == 1 ? 1 : 0;
    return cut;
  }
  // Exchanges the seats of two tasks while that lowers the cost.
  void swap_seats() {
    constexpr int most_passes = 4;
    const int count = static_cast<int>(neighbors_.size());
    bool has_changed = true;
    for (int pass = 0; pass < most_passes && has_changed; ++pass) {
      has_changed = false;
      for (int a = 0; a < count; ++a)
        for (int b = a + 1; b < count; ++b) has_changed |= swap_if_better(a, b);
    }
  }
  [[nodiscard]] bool swap_if_better(int a, int b) {
    std::size_t& seat_a = seat_of_[static_cast<std::size_t>(a)];
    std::size_t& seat_b = seat_of_[static_cast<std::size_t>(b)];
    const std::int64_t now = cost_at(a, seat_a, b) + cost_at(b, seat_b, a);
    if (cost_at(a, seat_b, b) + cost_at(b, seat_a, a) >= now) return false;
    std::swap(seat_a, seat_b);
    return true;
  }

  const std::vector<HostRoom>& hosts_;
  std::vector<std::vector<int>> neighbors_;
  std::vector<Seat> seats_;
  std::vector<std::size_t> seat_of_;
};

}  // namespace

// The cost of exchanging seats grows with the square of the number of tasks.
std::vector<Seat> place_tasks(const Topology& topology, const std::vector<HostRoom>& hosts) {
  constexpr int most_improved = 2048;
  Layout layout(topology, hosts);
  if (topology.tasks() <= most_improved) layout.improve();
  return layout.result();
}

Separation separation_of(const Topology& topology, const std::vector<HostRoom>& hosts,
                         const std::vector<Seat>& seats) {
  Separation found;
  std::set<std::pair<int, int>> pairs;
  for (int task = 0; task < topology.tasks(); ++task)
    for (const Neighbor& neighbor : topology.neighbors(task))
      if (neighbor.task != task) pairs.insert(std::minmax(task, neighbor.task));
  for (const auto& [one, other] : pairs) {
    const Seat& a = seats[static_cast<std::size_t>(one)];
    const Seat& b = seats[static_cast<std::size_t>(other)];
    const Machine& machine = hosts[static_cast<std::size_t>(a.host)].machine;
    ++found.pairs;
    if (a.host != b.host)
      ++found.on_other_hosts;
    else if (machine[static_cast<std::size_t>(a.core)].place[0] !=
             machine[static_cast<std::size_t>(b.core)].place[0])
      ++found.in_other_packages;
  }
  return found;
}

}  // namespace shima::dse
