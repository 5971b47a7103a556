#include "tool/dse/dse_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "dse/daemon.h"
#include "dse/job_variables.h"
#include "dse/orders.h"
#include "dse/plan/words.h"
#include "lapi/way/job_memory.h"
#include "tool/common/print_failure.h"

namespace shima::tool {
namespace {

constexpr int exit_not_found = 127;
constexpr int exit_not_started = 126;

}  // namespace

DseJob::DseJob(const DseOptions& options, JobHosts hosts, dse::Topology topology, int signals)
    : options_(options),
      is_alone_(hosts.is_alone),
      topology_(std::move(topology)),
      signals_(signals),
      tasks_(static_cast<std::size_t>(topology_.tasks())),
      console_(options.tag) {
  for (dse::Host& host : hosts.hosts) hosts_.emplace_back().host = std::move(host);
  const auto number = dse::parse_number(options.input);
  for (int task = 0; task < topology_.tasks(); ++task)
    if (options.input == "all" || number == task) readers_.push_back(task);
}

DseJob::~DseJob() {
  for (const Starter& one : starters_) kill(one.process, SIGKILL);
}

Outcome<int> DseJob::run() {
  Outcome<void> done = gather_hosts();
  if (done) done = place();
  if (done && options_.show) {
    fmt::print("{}", plan_text());
    std::fflush(stdout);
  } else if (done) {
    done = start_tasks();
  }
  while (done && !options_.show && stage_ == Stage::running) {
    pump(-1);
    if (have_all_ended()) break;
  }
  await_end();
  if (!done) return std::unexpected(done.error());
  return code_.value_or(0);
}

// --- the start ----------------------------------------------------------------------------------

Outcome<void> DseJob::place() {
  const int tasks = topology_.tasks();
  std::vector<dse::HostRoom> rooms;
  int slots = 0;
  for (const HostState& one : hosts_) {
    const int cores = static_cast<int>(one.machine.size());
    const int own = is_alone_ ? tasks : one.host.slots != 0 ? one.host.slots : cores;
    rooms.push_back({own, one.machine});
    slots += own;
  }
  if (slots < tasks)
    return refuse(fmt::format("{} tasks", tasks),
                  fmt::format("the hosts have {} slots for tasks", slots),
                  "start fewer, name more hosts, or write slots=N in the hosts file");
  seats_ = dse::place_tasks(topology_, rooms);
  for (std::size_t task = 0; task < tasks_.size(); ++task) tasks_[task].host = seats_[task].host;
  return {};
}

Outcome<void> DseJob::start_tasks() {
  const bool is_on_one_host = std::ranges::all_of(
      tasks_, [&](const TaskState& task) { return task.host == tasks_.front().host; });
  dse::StartOrder order{.job_tasks = topology_.tasks(),
                        .meeting = {},
                        .directory = std::filesystem::current_path().string(),
                        .program = options_.program,
                        .environment = dse::environment_for_tasks(),
                        .tasks = {}};
  if (!is_on_one_host) {
    std::vector<SocketAddress> addresses;
    for (const OwnAddress& own : own_addresses()) addresses.push_back(own.address);
    if (addresses.empty()) addresses = shared_with({}, {});
    auto place = lapi::MeetingPlace::start(addresses);
    if (!place) return std::unexpected(failure_of("shima dse run", place.error()));
    meeting_ = *std::move(place);
    order.meeting = lapi::describe(meeting_->address());
  }
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  order.environment.push_back(fmt::format("{}={}.{}", dse::job_variable, name.data(), getpid()));
  order.environment.push_back(fmt::format("{}={}", dse::topology_variable, topology_.text()));
  order.environment.push_back(fmt::format("{}={}", dse::hosts_variable, hosts_with_tasks()));
  if (options_.verbose) fmt::print(stderr, "{}", plan_text());
  stage_ = Stage::running;
  for (int host = 0; host < static_cast<int>(hosts_.size()); ++host) {
    HostState& state = hosts_[static_cast<std::size_t>(host)];
    dse::StartOrder own = order;
    own.environment.push_back(fmt::format("{}={}", dse::host_variable, state.host.name));
    for (int task = 0; task < topology_.tasks(); ++task) {
      const dse::Seat& seat = seats_[static_cast<std::size_t>(task)];
      if (seat.host != host) continue;
      const auto& core = state.machine[static_cast<std::size_t>(seat.core)];
      own.tasks.push_back({task, std::ranges::count(readers_, task) > 0,
                           options_.bind == "core" ? core.cpus : std::vector<int>()});
    }
    if (own.tasks.empty() || !state.link) continue;
    const std::string data = pack(own);
    if (data.size() > dse::Link::most_data_bytes)
      return refuse("the environment and the arguments",
                    fmt::format("they have {} bytes; at most {} can be sent to a host", data.size(),
                                dse::Link::most_data_bytes),
                    "unset large variables");
    state.link->send(dse::to_daemon::start, {}, data);
  }
  return {};
}

void DseJob::register_handlers(int host) {
  dse::Link& link = *hosts_[static_cast<std::size_t>(host)].link;
  const int last = topology_.tasks() - 1;
  link.set(dse::to_run::started,
           [this, host, last](dse::Unpacked& header, std::string_view) -> Status {
             const int task = header.count(last);
             const auto process = header.number();
             if (options_.verbose)
               fmt::print(stderr, "task {}: process {} on host {}\n", task, process,
                          hosts_[static_cast<std::size_t>(host)].host.name);
             return {};
           });
  link.set(dse::to_run::failed,
           [this, last](dse::Unpacked& header, std::string_view data) -> Status {
             const int task = header.count(last);
             note_failed(task, header.count(), data);
             return {};
           });
  link.set(dse::to_run::output,
           [this, host, last](dse::Unpacked& header, std::string_view data) -> Status {
             const int task = header.count(last);
             console_.add(task, std::max(header.count(2), 1), data);
             hosts_[static_cast<std::size_t>(host)].owed_bytes += data.size();
             return {};
           });
  link.set(dse::to_run::exited, [this, last](dse::Unpacked& header, std::string_view) -> Status {
    const int task = header.count(last);
    const auto code = static_cast<int>(header.number());
    note_exit(task, code, header.count(NSIG - 1));
    return {};
  });
  link.set(dse::to_run::taken, [this, last](dse::Unpacked& header, std::string_view) -> Status {
    TaskState& task = tasks_[static_cast<std::size_t>(header.count(last))];
    task.input_bytes -= std::min(task.input_bytes, static_cast<std::size_t>(header.count()));
    return {};
  });
}

// --- the end ------------------------------------------------------------------------------------

void DseJob::note_code(int code) {
  if (!code_ && code != 0) code_ = code;
}

// A signal that this process has passed on needs no explanation.
void DseJob::note_exit(int task, int code, int signal) {
  TaskState& state = tasks_[static_cast<std::size_t>(task)];
  state.has_ended = true;
  note_code(signal != 0 ? exit_signalled_base + signal : code);
  if (signal == 0 || stage_ == Stage::ending || sent_signals_.contains(signal)) return;
  const std::string& host = hosts_[static_cast<std::size_t>(state.host)].host.name;
  complain({fmt::format("task {} on host {}", task, host),
            fmt::format("it was killed by signal {} ({})", signal, strsignal(signal)),
            options_.survive ? "the others go on (--survive)"
                             : "the job ends; --survive lets the others go on"});
  if (!options_.survive) begin_end();
}

// The others fail for the same reason.
void DseJob::note_failed(int task, int sys_errno, std::string_view what) {
  TaskState& state = tasks_[static_cast<std::size_t>(task)];
  state.has_ended = true;
  note_code(sys_errno == ENOENT ? exit_not_found : exit_not_started);
  if (!std::exchange(has_told_failure_, true))
    complain({fmt::format("task {} on host {}", task,
                          hosts_[static_cast<std::size_t>(state.host)].host.name),
              std::string(what), "the program and the working directory must be there"});
  begin_end();
}

void DseJob::lose_host(int host, const Error& error) {
  HostState& state = hosts_[static_cast<std::size_t>(host)];
  state.link.reset();
  if (stage_ == Stage::ending) return;
  std::vector<int> lost;
  for (std::size_t task = 0; task < tasks_.size(); ++task)
    if (tasks_[task].host == host && !tasks_[task].has_ended)
      lost.push_back(static_cast<int>(task));
  if (stage_ == Stage::starting) {
    failure_ = {"host " + state.host.name, "its daemon has ended (" + describe(error) + ")",
                "see what it has written above"};
    return;
  }
  for (const int task : lost) tasks_[static_cast<std::size_t>(task)].has_ended = true;
  if (lost.empty()) return;
  note_code(exit_signalled_base + SIGKILL);
  complain({"host " + state.host.name,
            fmt::format("its daemon is lost ({}), and with it task{} {}", error.what,
                        lost.size() == 1 ? "" : "s", fmt::join(lost, ", ")),
            options_.survive ? "the others go on (--survive)"
                             : "the job ends; --survive lets the others go on"});
  if (!options_.survive) begin_end();
}

void DseJob::begin_end() {
  if (stage_ == Stage::ending) return;
  stage_ = Stage::ending;
  for (HostState& one : hosts_)
    if (one.link) one.link->send(dse::to_daemon::end, {});
}

bool DseJob::have_all_ended() const { return std::ranges::all_of(tasks_, &TaskState::has_ended); }

bool DseJob::have_all_left() const {
  return std::ranges::all_of(hosts_, [](const HostState& one) { return one.link == nullptr; });
}

// Until the daemons have ended what is left, and all output is written.
void DseJob::await_end() {
  constexpr auto limit = dse::Daemon::grace + std::chrono::seconds(10);
  begin_end();
  auto until = Clock::now() + limit;
  while (!have_all_left()) {
    pump(100);
    if (console_.backlog_bytes() > 0) until = Clock::now() + limit;  // it waits for a reader
    if (Clock::now() < until) continue;
    for (HostState& one : hosts_)
      if (std::exchange(one.link, nullptr))
        complain({"host " + one.host.name, "its daemon does not answer",
                  "its processes may still run: look at it"});
  }
  console_.finish();
  end_starters();
}

}  // namespace shima::tool
