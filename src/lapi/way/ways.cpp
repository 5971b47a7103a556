#include "lapi/way/ways.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/fault_point.h"
#include "base/futex.h"
#include "base/process/launcher.h"

namespace shima::lapi {
namespace {

using Kind = MeetingNotice::Kind;

Result<std::unique_ptr<Ways>> in_started_job(const JobPlace& place, int context) {
  fault_point(FaultPhase::lapi_join);
  SHIMA_TRY_ASSIGN(Mapping mapping, map_job_memory(place, context));
  const JobMemory memory(mapping.bytes(), place.tasks);
  return Ways::on_node(memory, place.task, {}, std::move(mapping));
}

Result<TaskNumber> own_number(int context) {
  const LauncherNumber number = launcher_number();
  if (!number.is_known()) return TaskNumber{.context = context};
  if (number.size < 0)
    return fail(
        Code::bad_handle,
        fmt::format("the launcher says that this is task {}, and not of how many; start the "
                    "job with mpiexec or srun",
                    number.rank));
  if (number.size < 1 || number.size > most_tasks || number.rank < 0 || number.rank >= number.size)
    return fail(Code::bad_handle,
                fmt::format("the launcher says rank {} of {}; a LAPI job has at most {} tasks",
                            number.rank, number.size, most_tasks));
  return TaskNumber{.context = context, .task = number.rank, .tasks = number.size};
}

Result<Carrier> chosen_carrier() {
  const char* const text = std::getenv(carrier_variable);
  const auto chosen = parse_carrier(text != nullptr ? text : "auto");
  if (chosen) return *chosen;
  return fail(Code::bad_argument,
              fmt::format("{}={}: it is auto, tcp or ucx", carrier_variable, text));
}

}  // namespace

Result<std::unique_ptr<Ways>> Ways::on_node(const JobMemory& memory, int task,
                                            const NodeOptions& options, Mapping mapping) {
  SHIMA_TRY_ASSIGN(auto near, NodeTransport::join(memory, task, options));
  std::unique_ptr<Ways> ways(new Ways(std::move(near), task, memory.tasks()));
  ways->mapping_ = std::move(mapping);
  return ways;
}

// If the memory of the host cannot be mapped, the task has its own, and reaches all over TCP.
Result<std::unique_ptr<Ways>> Ways::over_hosts(const ServiceAddress& place,
                                               const TaskNumber& number, const NodeOptions& options,
                                               Carrier carrier) {
  fault_point(FaultPhase::lapi_join);
  SHIMA_TRY_ASSIGN(auto far, TcpTransport::join(place, number, carrier));
  fault_point(FaultPhase::lapi_meet);
  Mapping mapping;
  const std::size_t len_bytes = JobMemory::region_bytes(number.tasks);
  if (far->memory().kind == Kind::map && far->memory().memory.len_bytes == len_bytes)
    if (auto mapped = map_shared(far->memory().memory)) mapping = *std::move(mapped);
  SharedBuffer buffer;
  std::span<std::byte> region = mapping.bytes();
  if (region.empty()) {
    SHIMA_TRY_ASSIGN(buffer, SharedBuffer::make(len_bytes, "shima-lapi"));
    region = buffer.bytes();
  }
  SHIMA_TRY_ASSIGN(auto ways, on_node(JobMemory(region, number.tasks), number.task, options));
  const bool is_maker = far->memory().kind == Kind::make;
  ways->mapping_ = std::move(mapping);
  ways->buffer_ = std::move(buffer);
  ways->far_ = std::move(far);
  SHIMA_TRY(ways->far_->settle(is_maker ? ways->buffer_.ref() : SharedRef{}, ways->bell()));
  return ways;
}

Result<std::unique_ptr<Ways>> Ways::from_environment(int context) {
  const char* text = std::getenv(job_variable);
  if (text == nullptr)
    return fail(Code::bad_handle,
                "this process is not a task of a job; start the program with `shima run --lapi -n "
                "TASKS program`, or over hosts with `shima run --lapi mpiexec -n TASKS program`");
  if (const auto place = parse_job_place(text)) return in_started_job(*place, context);
  const auto meeting = parse_meeting(text);
  if (!meeting)
    return fail(Code::bad_handle, fmt::format("{} is not what `shima run --lapi` sets; do not "
                                              "change this variable",
                                              job_variable));
  SHIMA_TRY_ASSIGN(const TaskNumber number, own_number(context));
  SHIMA_TRY_ASSIGN(const Carrier carrier, chosen_carrier());
  return over_hosts(*meeting, number, {}, carrier);
}

Status Ways::watch(WayEvents events) {
  if (far_)
    SHIMA_TRY(far_->watch({.on_lost =
                               [this, tell = events.on_lost](int task) {
                                 if (!near_->is_shown(task)) tell(task);
                               },
                           .serve = std::move(events.serve)}));
  return near_->watch(std::move(events.on_lost));
}

void Ways::leave() {
  if (far_) far_->leave();
  near_->leave();
}

void Ways::show_left() {
  if (far_) far_->show_left();
  near_->show_left();
}

void Ways::show_meetings(std::uint64_t count) {
  if (far_) far_->show_meetings(count);
  near_->show_meetings(count);
}

void Ways::ring() {
  bell().ring();
  if (far_) far_->wake_sleeper();
}

void Ways::ring_all() {
  bell().ring_all();
  if (far_) far_->wake_sleeper();
}

void Ways::wake_attendants() {
  bell().attendants.wake();
  if (far_) far_->wake_sleeper();
}

void Ways::post_attendants() {
  bell().attendants.post();
  if (far_) far_->wake_sleeper();
}

void Ways::begin_attendance() {
  bell().attending.fetch_add(1, std::memory_order_seq_cst);
  if (far_) far_->note_attendance();
}

void Ways::end_attendance() {
  bell().attending.fetch_sub(1, std::memory_order_seq_cst);
  if (far_) far_->look_at_bell();
}

void Ways::bell_changed() {
  if (far_) far_->look_at_bell();
}

// Computed again when a task has appeared.
int Ways::tasks_here() {
  if (!far_) return tasks_;
  const std::uint64_t changes = near_->changes();
  const std::uint64_t known = known_here_.load();
  if (known >> 32 == changes) return static_cast<int>(known & 0xffffffff);
  int here = 0;
  for (int task = 0; task < tasks_; ++task) here += near_->is_shown(task) ? 1 : 0;
  known_here_ = changes << 32 | static_cast<std::uint64_t>(here);
  return here;
}

void Ways::sleep(std::uint32_t seen, std::uint32_t limit_us, FunctionRef<bool()> stays) {
  send_replies();
  Event& word = bell().attendants;
  if (far_ && tasks_here() <= 1 && far_->begin_sleep()) {
    if (word.word.load(std::memory_order_seq_cst) == seen && stays()) far_->sleep(limit_us);
    return far_->end_sleep();
  }
  word.sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (far_) far_->call_on_duty();
  if (stays()) futex_wait(word.word, seen, limit_us);
  word.sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace shima::lapi
