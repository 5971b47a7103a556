#include "independent/combine.h"

#include <algorithm>
#include <array>
#include <limits>
#include <list>
#include <numeric>
#include <optional>

#include "base/clock.h"
#include "base/fault_point.h"
#include "base/process/aside.h"
#include "collective/window/reach_member.h"
#include "collective/window/walk.h"
#include "collective/window/window_io.h"
#include "ipc/staging_pool.h"

namespace shima {
namespace {

constexpr std::uint64_t least_pieces = 16;
constexpr std::uint64_t largest_piece_bytes = 256 * 1024;
constexpr std::uint64_t largest_far_piece_bytes = 4096;
// A longer window merges more requests, which outweighs that it leaves the processor's cache.
constexpr std::uint64_t usual_bytes = std::uint64_t{2} << 20;

// The windows of all subfiles, numbered in the order of a sweep: the first of each subfile, the
// second of each, and so on.
class Grid {
 public:
  Grid(const Layout& layout, std::uint64_t window_bytes)
      : window_bytes_(as_signed(window_bytes)), subfiles_(layout.subfile_count()) {}

  [[nodiscard]] std::int64_t number_of(int subfile, TargetOffset offset) const {
    return offset.value / window_bytes_ * subfiles_ + subfile;
  }
  [[nodiscard]] Window window(std::int64_t number) const {
    const TargetOffset begin{number / subfiles_ * window_bytes_};
    return {0, static_cast<int>(number % subfiles_), {begin, begin + window_bytes_}};
  }
  // The parts within windows from number `first` on and before number `last`.
  [[nodiscard]] std::vector<Domain> cut(const std::vector<Domain>& parts, std::int64_t first,
                                        std::int64_t last) const {
    std::vector<Domain> left;
    for (Domain part : parts) {
      part.range.begin = std::max(part.range.begin, start_of(part.subfile, first));
      part.range.end = std::min(part.range.end, start_of(part.subfile, last));
      if (!part.range.empty()) left.push_back(part);
    }
    return left;
  }

 private:
  // The begin of a subfile's first window with this number or a higher one.
  [[nodiscard]] TargetOffset start_of(int subfile, std::int64_t number) const {
    if (number > number_of(subfile, {no_end_of_file.value})) return {no_end_of_file.value};
    return {std::max<std::int64_t>(number - subfile + subfiles_ - 1, 0) / subfiles_ *
            window_bytes_};
  }

  std::int64_t window_bytes_;
  std::int64_t subfiles_;
};

constexpr std::int64_t no_window = std::numeric_limits<std::int64_t>::max();

// A member whose write takes part in the sweep.
struct Participant {
  int member;
  Post post;
  std::int64_t first;   // number of its first window
  std::int64_t joined;  // number of the sweep's window at that time
  AgentWalk walk;       // from there to the end, then from the beginning to there
  bool second_round = false;
  std::uint64_t last_window = 0;  // value of windows_ when a window last took bytes of it
};

// A window buffer, gathered from the members' memory and written to the file.
struct Flight {
  Staging staging;
  WindowIo io;
};

class Leader {
 public:
  Leader(const CombinedWrite& write, const Post& mine, std::array<Staging, 2> staging, Plan plan)
      : write_(write),
        requests_(*write.channel.write_requests()),
        plan_(std::move(plan)),
        grid_(write.file.layout(), plan_.window_bytes),
        context_{Direction::write, plan_,          mine,        {},      write.channel,
                 write.file,       write.counters, no_staging_, writer_, nullptr},
        flights_{Flight{std::move(staging[0]), WindowIo(context_)},
                 Flight{std::move(staging[1]), WindowIo(context_)}} {}

  // Returns whether this member's own write was completed.
  bool lead() {
    bool own_done = false;
    Status status;
    while (status) {
      if (!own_done) admit();
      if (participants_.empty()) break;
      status = caught([&]() -> Status {
        const auto window = next_window();
        SHIMA_TRY(window ? move_window(*window) : land());
        own_done = let_off(own_done);
        return {};
      });
    }
    std::ignore = caught([&] { return land(); });
    for (const Participant& participant : participants_)
      requests_.finish(participant.member, false);
    requests_.stop_leading();
    return own_done;
  }

 private:
  void admit() {
    for (int i = 0; i < requests_.size(); ++i) {
      const auto message = requests_.take(i);
      if (!message) continue;
      const Status admitted = caught([&] { return admit(i, *message); });
      if (!admitted) requests_.finish(i, false);
    }
  }

  Status admit(int member, std::span<const std::byte> message) {
    SHIMA_TRY_ASSIGN(Post post, decode_post(message));
    const std::vector<Domain> parts = parts_of(post);
    std::int64_t first = no_window;
    std::int64_t last = 0;
    for (const Domain& part : parts) {
      first = std::min(first, grid_.number_of(part.subfile, part.range.begin));
      last = std::max(last, grid_.number_of(part.subfile, part.range.end - 1));
    }
    const std::int64_t joined = position_ <= last ? std::max(position_, first) : first;
    AgentWalk walk(member, post, write_.file.layout(), grid_.cut(parts, joined, no_window));
    participants_.push_back({member, std::move(post), first, joined, std::move(walk)});
    plan_.granule_bytes = std::gcd(plan_.granule_bytes, granule_of(participants_.back().post));
    return {};
  }

  [[nodiscard]] std::vector<Domain> parts_of(const Post& post) const {
    return shima::parts_of(write_.file.layout(), {{post.bounds.lowest}, {post.bounds.highest}});
  }

  // The number of the next window with bytes of a participant.
  [[nodiscard]] std::int64_t next_of(const Participant& participant) const {
    const auto window = participant.walk.next_window(plan_.window_bytes);
    return window ? grid_.number_of(window->subfile, window->range.begin) : no_window;
  }
  [[nodiscard]] bool has_bytes(const Participant& participant) const {
    return next_of(participant) != no_window;
  }

  // The next window ahead with bytes of any participant; starts again at the lowest one at the end.
  std::optional<Window> next_window() {
    std::int64_t ahead = no_window;
    std::int64_t lowest = no_window;
    for (const Participant& participant : participants_) {
      const std::int64_t next = next_of(participant);
      lowest = std::min(lowest, next);
      if (next >= position_) ahead = std::min(ahead, next);
    }
    if (lowest == no_window) return std::nullopt;
    const std::int64_t next = ahead == no_window ? lowest : ahead;
    position_ = next + 1;
    return grid_.window(next);
  }

  // The walks of the participants with bytes in a window.
  std::vector<MemberWalk*> members_in(const Window& window) {
    std::vector<MemberWalk*> members;
    for (Participant& participant : participants_) {
      MemberWalk* const walk = participant.walk.of_subfile(window.subfile);
      if (walk == nullptr || walk->next() < window.range.begin ||
          walk->bytes_below(window.range.end) == 0)
        continue;
      members.push_back(walk);
      participant.last_window = windows_ + 1;
    }
    return members;
  }

  // Gathers a window while the previous one is being written.
  Status move_window(const Window& window) {
    const std::vector<MemberWalk*> members = members_in(window);
    if (members.size() == 1 && members.front()->index() == requests_.index() &&
        write_.file.layout().subfile_count() == 1) {
      SHIMA_TRY(land());
      SHIMA_TRY(write_alone(*members.front(), window.range.end));
      written_ = ++windows_;
      return {};
    }
    Flight& flight = flights_[windows_ % flights_.size()];
    flight.io.begin(window);
    flight.io.mark(members);
    for (MemberWalk* member : members) {
      const ScopedTimer timer(write_.counters.gather_ns);
      fault_point(FaultPhase::gather);
      SHIMA_TRY(reach_member(context_, *member, window.range.end, Direction::read,
                             {flight.staging.data(), window.range.begin}));
    }
    SHIMA_TRY(land());
    ++windows_;
    writer_.start(
        [&flight] { return flight.io.write_marked(flight.staging.data()); },
        std::ranges::any_of(participants_, [this](const auto& p) { return has_bytes(p); }));
    return {};
  }

  // Waits until the window in progress is written.
  Status land() {
    SHIMA_TRY(writer_.wait());
    written_ = windows_;
    return {};
  }

  // For a file of one subfile, where the bytes of a window are consecutive in the member's data.
  Status write_alone(MemberWalk& member, TargetOffset end) {
    const Post& post = participant_of(member).post;
    Slice file = post.file;
    Slice memory = post.memory;
    file.len_bytes = memory.len_bytes = member.bytes_below(end);
    file.first_byte += member.byte();
    memory.first_byte += member.byte();
    member.skip_below(end);
    const auto written = move_independently({Direction::write, file, memory, write_.own},
                                            write_.file, write_.counters);
    return written ? Status{} : std::unexpected(written.error());
  }

  Participant& participant_of(const MemberWalk& walk) {
    for (Participant& participant : participants_)
      if (participant.walk.of_subfile(0) == &walk) return participant;
    std::unreachable();
  }

  // Completes the participants whose bytes are all written; returns whether this member's own are.
  bool let_off(bool own_done) {
    for (auto participant = participants_.begin(); participant != participants_.end();) {
      if (has_bytes(*participant)) {
        ++participant;
      } else if (!participant->second_round && participant->joined > participant->first) {
        participant->second_round = true;
        participant->walk =
            AgentWalk(participant->member, participant->post, write_.file.layout(),
                      grid_.cut(parts_of(participant->post), 0, participant->joined));
      } else if (participant->last_window > written_) {
        ++participant;
      } else {
        own_done = own_done || participant->member == requests_.index();
        requests_.finish(participant->member, true);
        participant = participants_.erase(participant);
      }
    }
    return own_done;
  }

  const CombinedWrite& write_;
  WriteRequests& requests_;
  Plan plan_;
  Grid grid_;
  WindowStaging no_staging_;  // unused: each flight has its own
  PathContext context_;
  std::array<Flight, 2> flights_;
  std::uint64_t windows_ = 0;  // gathered so far
  std::uint64_t written_ = 0;  // how many of them are written
  std::list<Participant> participants_;
  std::int64_t position_ = 0;  // the number of the next window
  // Declared last: destroyed before the members that it uses.
  Aside writer_{[this] { requests_.segment().use_all_cores(); }};
};

}  // namespace

bool worth_combining(const Post& post, bool is_far) {
  const std::uint64_t largest = is_far ? largest_far_piece_bytes : largest_piece_bytes;
  return post.ordered && post.file_pieces >= least_pieces &&
         post.len_bytes / post.file_pieces <= largest;
}

Result<bool> write_combined(const CombinedWrite& write, const Post& mine) {
  WriteRequests& requests = *write.channel.write_requests();
  Plan plan;
  plan.window_bytes = window_size(write.window_bytes, usual_bytes);
  auto one = Staging::borrow(write.channel.staging(), plan.window_bytes);
  auto other = Staging::borrow(write.channel.staging(), plan.window_bytes);
  if (!one || !other) return false;
  if (!requests.post(encode_post(mine))) return false;
  const WriteRequest::State state = requests.wait();
  if (state != WriteRequest::posted) return state == WriteRequest::done;
  plan.granule_bytes =
      std::gcd(granule_of(mine), std::gcd(plan.window_bytes, write.file.layout().granule_bytes()));
  fault_point(FaultPhase::lead);
  const auto well = caught([&]() -> Result<bool> {
    Leader leader(write, mine, {*std::move(one), *std::move(other)}, std::move(plan));
    return leader.lead();
  });
  if (!well) {  // no other member's write was accepted yet
    requests.take_back();
    return false;
  }
  std::ignore = requests.wait();
  return well;
}

}  // namespace shima
