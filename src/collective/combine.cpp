#include "collective/combine.h"

#include <algorithm>
#include <array>
#include <list>
#include <optional>

#include "base/aside.h"
#include "base/clock.h"
#include "base/fault_point.h"
#include "collective/reach_member.h"
#include "collective/walk.h"
#include "collective/window_io.h"
#include "reach/staging_pool.h"

namespace shima {
namespace {

constexpr std::uint64_t least_pieces = 16;
constexpr std::uint64_t largest_piece_bytes = 256 * 1024;

// Only files of one subfile are swept, where target offsets are file offsets.
TargetRange range_of(const Post& post) { return {{post.bounds.lowest}, {post.bounds.highest}}; }

// A member on board of the sweep.
struct Passenger {
  int member;
  Post post;
  TargetOffset joined;  // where the sweep was
  MemberWalk walk;    // from there to the end, then from the beginning to there
  bool second_round = false;
  std::uint64_t last_window = 0;  // number of the last window that took bytes of it

  [[nodiscard]] TargetRange range() const { return range_of(post); }
  [[nodiscard]] TargetOffset end() const { return second_round ? joined : range().end; }
  [[nodiscard]] bool has_bytes() const { return walk.next() < end(); }
};

// A window on its way from the members' memory to the file.
struct Flight {
  Staging staging;
  WindowIo io;
};

class Leader {
 public:
  Leader(const CombinedWrite& write, std::array<Staging, 2> staging, Plan plan)
      : write_(write),
        errands_(*write.channel.errands()),
        plan_(std::move(plan)),
        job_{Operation::write, plan_, {}, write.channel, write.file, write.counters},
        flights_{Flight{std::move(staging[0]), WindowIo(job_)},
                 Flight{std::move(staging[1]), WindowIo(job_)}} {}

  // Returns whether this member's own write was completed.
  bool lead() {
    bool own_done = false;
    Status status;
    while (status) {
      if (!own_done) admit();
      if (passengers_.empty()) break;
      status = caught([&] {
        const auto window = next_window();
        return window ? move_window(*window) : land();
      });
      own_done = let_off(own_done);
    }
    std::ignore = land();
    for (const Passenger& passenger : passengers_) errands_.finish(passenger.member, false);
    errands_.stop_leading();
    return own_done;
  }

 private:
  void admit() {
    for (int i = 0; i < errands_.size(); ++i) {
      const auto letter = errands_.take(i);
      if (!letter) continue;
      const Status admitted = caught([&] { return admit(i, *letter); });
      if (!admitted) errands_.finish(i, false);
    }
  }

  Status admit(int member, std::span<const std::byte> letter) {
    SHIMA_TRY_ASSIGN(Post post, decode_post(letter));
    const TargetRange range = range_of(post);
    const TargetOffset joined =
        position_ < range.end ? std::max(position_, range.begin) : range.begin;
    MemberWalk walk(member, post, write_.file.layout(), {0, {joined, range.end}});
    passengers_.push_back({member, std::move(post), joined, std::move(walk)});
    plan_.granule_bytes = common_granule({&passengers_.back().post, 1}, plan_.granule_bytes);
    return {};
  }

  // The next window ahead that somebody has bytes in; from the lowest one again when there is none.
  std::optional<TargetRange> next_window() {
    constexpr TargetRange whole{{0}, {no_end_of_file.value}};
    TargetOffset ahead = whole.end;
    TargetOffset lowest = whole.end;
    for (const Passenger& passenger : passengers_) {
      if (!passenger.has_bytes()) continue;
      const TargetOffset next = passenger.walk.next();
      lowest = std::min(lowest, next);
      if (next >= position_) ahead = std::min(ahead, next);
    }
    if (lowest == whole.end) return std::nullopt;
    const TargetOffset next = ahead == whole.end ? lowest : ahead;
    const TargetRange window = window_at(next, plan_.window_bytes, whole);
    position_ = window.end;
    return window;
  }

  // Gathers a window, while the one before is being written.
  Status move_window(TargetRange window) {
    std::vector<MemberWalk*> members;
    for (Passenger& passenger : passengers_) {
      const bool inside = passenger.has_bytes() && passenger.walk.has_below(window.end) &&
                          passenger.walk.next() >= window.begin;
      if (!inside || passenger.walk.bytes_below(window.end) == 0) continue;
      members.push_back(&passenger.walk);
      passenger.last_window = windows_ + 1;
    }
    if (members.size() == 1 && members.front()->rank() == errands_.index()) {
      SHIMA_TRY(land());
      SHIMA_TRY(write_alone(*members.front(), window.end));
      written_ = ++windows_;
      return {};
    }
    Flight& flight = flights_[windows_ % flights_.size()];
    flight.io.begin({0, 0, window});
    for (MemberWalk* member : members) {
      member->look_below(window.end, [&](const Strip& strip) { flight.io.mark(strip); });
      const Span span(write_.counters.gather_ns);
      fault_point(FaultPhase::gather);
      SHIMA_TRY(reach_member(job_, *member, window.end, Direction::read,
                             {flight.staging.data(), window.begin}));
    }
    SHIMA_TRY(land());
    ++windows_;
    writer_.start([&flight] { return flight.io.write_marked(flight.staging.data()); },
                  std::ranges::any_of(passengers_, &Passenger::has_bytes));
    return {};
  }

  // Waits for the window that is being written.
  Status land() {
    SHIMA_TRY(writer_.wait());
    written_ = windows_;
    return {};
  }

  Status write_alone(MemberWalk& member, TargetOffset end) {
    const Post& post = passenger_of(member).post;
    Slice file = post.file;
    Slice memory = post.memory;
    file.len_bytes = memory.len_bytes = member.bytes_below(end);
    file.first_byte += member.byte();
    memory.first_byte += member.byte();
    member.skip_below(end);
    const auto written = write_.write_own(file, memory);
    return written ? Status{} : std::unexpected(written.error());
  }

  Passenger& passenger_of(const MemberWalk& walk) {
    for (Passenger& passenger : passengers_)
      if (&passenger.walk == &walk) return passenger;
    std::unreachable();
  }

  // Lets those off whose bytes are all written; returns whether this member's own ones are.
  bool let_off(bool own_done) {
    for (auto passenger = passengers_.begin(); passenger != passengers_.end();) {
      const TargetRange range = passenger->range();
      if (passenger->has_bytes()) {
        ++passenger;
      } else if (!passenger->second_round && passenger->joined > range.begin) {
        passenger->second_round = true;
        passenger->walk =
            MemberWalk(passenger->member, passenger->post, write_.file.layout(),
                       {0, {range.begin, passenger->joined}});
      } else if (passenger->last_window > written_) {
        ++passenger;
      } else {
        own_done = own_done || passenger->member == errands_.index();
        errands_.finish(passenger->member, true);
        passenger = passengers_.erase(passenger);
      }
    }
    return own_done;
  }

  const CombinedWrite& write_;
  Errands& errands_;
  Plan plan_;
  Job job_;
  std::array<Flight, 2> flights_;
  std::uint64_t windows_ = 0;  // gathered so far
  std::uint64_t written_ = 0;  // how many of them
  std::list<Passenger> passengers_;
  TargetOffset position_{0};
  // Last, to end before what it works on.
  Aside writer_{[this] { errands_.segment().use_all_cores(); }};
};

}  // namespace

bool worth_combining(const Post& post) {
  return post.ordered && post.file_pieces >= least_pieces &&
         post.len_bytes / post.file_pieces <= largest_piece_bytes;
}

Result<bool> write_combined(const CombinedWrite& write, const Post& mine) {
  Errands& errands = *write.channel.errands();
  Plan plan;
  plan.window_bytes = window_size(write.window_bytes);
  auto one = Staging::borrow(write.channel.staging(), plan.window_bytes);
  auto other = Staging::borrow(write.channel.staging(), plan.window_bytes);
  if (!one || !other) return false;
  if (!errands.post(encode_post(mine))) return false;
  const Errand::State state = errands.wait();
  if (state != Errand::posted) return state == Errand::done;
  plan.granule_bytes = common_granule({&mine, 1}, plan.window_bytes);
  fault_point(FaultPhase::lead);
  Leader leader(write, {*std::move(one), *std::move(other)}, std::move(plan));
  const bool well = leader.lead();
  std::ignore = errands.wait();
  return well;
}

}  // namespace shima
