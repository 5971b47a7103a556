// How the daemons of a job start and come in.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "base/log.h"
#include "base/process/host_list.h"
#include "base/process/launcher.h"
#include "dse/orders.h"
#include "tool/common/print_failure.h"
#include "tool/dse/dse_job.h"

namespace shima::tool {
namespace {

constexpr auto usual_start_limit = std::chrono::seconds(60);

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

// Only those of this host, if all daemons are here.
Outcome<void> DseJob::gather_hosts() {
  std::vector<SocketAddress> addresses;
  const bool are_all_here =
      std::ranges::all_of(hosts_, [](const HostState& one) { return is_this_host(one.host.name); });
  if (!are_all_here)
    for (const OwnAddress& own : own_addresses()) addresses.push_back(own.address);
  if (addresses.empty()) addresses = shared_with({}, {});
  auto reception = Reception::listen(addresses);
  if (!reception) return std::unexpected(failure_of("shima dse run", reception.error()));
  reception_ = *std::move(reception);
  std::vector<dse::Host> hosts;
  for (const HostState& one : hosts_) hosts.push_back(one.host);
  auto starters = start_daemons(hosts, options_, reception_->place());
  if (!starters) return std::unexpected(starters.error());
  starters_ = *std::move(starters);
  if (const Status opened = reception_->open(); !opened)
    return std::unexpected(failure_of("shima dse run", opened.error()));
  const auto limit = seconds_setting("SHIMA_DSE_TIMEOUT", usual_start_limit);
  const auto until = Clock::now() + limit;
  while (!failure_ && !missing_hosts().empty()) {
    if (Clock::now() >= until)
      failure_ = {missing_hosts(), fmt::format("no daemon has answered within {} s", limit.count()),
                  "see whether the host can be reached, and reaches this one; SHIMA_DSE_TIMEOUT "
                  "is the limit"};
    pump(100);
  }
  reception_.reset();
  if (failure_) return std::unexpected(*failure_);
  return {};
}

std::string DseJob::missing_hosts() const {
  std::vector<std::string> missing;
  for (const HostState& one : hosts_)
    if (!one.has_come) missing.push_back(one.host.name);
  return missing.empty() ? "" : fmt::format("host {}", fmt::join(missing, ", "));
}

void DseJob::welcome(UniqueFd socket) {
  auto& link = newcomers_.emplace_back(std::make_unique<dse::Link>(std::move(socket)));
  link->set(dse::to_run::machine,
            [this, own = link.get()](dse::Unpacked& header, std::string_view data) -> Status {
              const auto number = static_cast<int>(header.number());
              const auto rank = static_cast<int>(header.number());
              note_machine(own, number, rank, header.text(), data);
              return {};
            });
}

// A launcher of all daemons says which one this is by its host's name, or by its rank.
void DseJob::note_machine(dse::Link* link, int number, int rank, const std::string& name,
                          std::string_view cores) {
  if (number < 0)
    for (int host = 0; host < static_cast<int>(hosts_.size()); ++host)
      if (are_same_host(hosts_[static_cast<std::size_t>(host)].host.name, name)) number = host;
  if (number < 0) number = rank;
  const auto own = std::ranges::find(newcomers_, link, &std::unique_ptr<dse::Link>::get);
  auto machine = dse::parse_machine(cores);
  if (own == newcomers_.end() || !machine || number < 0 ||
      number >= static_cast<int>(hosts_.size()) ||
      hosts_[static_cast<std::size_t>(number)].has_come) {
    log(LogLevel::warn, "dse: a daemon on host {} is not one of this job's", name);
    return;
  }
  HostState& host = hosts_[static_cast<std::size_t>(number)];
  host.machine = *std::move(machine);
  host.has_come = true;
  host.link = std::move(*own);
  register_handlers(number);
}

// A daemon that has come in is not here any more, but in its host.
void DseJob::serve_newcomers() {
  if (reception_)
    for (UniqueFd& socket : reception_->take()) welcome(std::move(socket));
  for (std::size_t i = 0; i < newcomers_.size(); ++i)
    if (!newcomers_[i]->receive() && newcomers_[i]) newcomers_[i].reset();
  std::erase(newcomers_, nullptr);
}

// A launcher that ends before its daemons have come in has failed to start them.
void DseJob::reap_starters() {
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto starter = std::ranges::find(starters_, ended, &Starter::process);
    if (starter == starters_.end()) continue;
    for (const int host : starter->hosts) {
      const HostState& one = hosts_[static_cast<std::size_t>(host)];
      if (one.has_come || stage_ != Stage::starting || failure_) continue;
      failure_ = {
          "host " + one.host.name,
          fmt::format("its daemon has not started: {} {}", starter->name, how_it_ended(status)),
          "see what it has written above; try it by hand"};
    }
    starters_.erase(starter);
  }
}

// The daemons have ended, so their launchers end too, except those of daemons that have not come
// in.
void DseJob::end_starters() {
  constexpr auto limit = std::chrono::seconds(5);
  for (const Starter& one : starters_)
    if (failure_) kill(one.process, SIGTERM);
  const auto until = Clock::now() + limit;
  for (bool is_told = false; !starters_.empty();) {
    pump(50);
    reap_starters();
    if (Clock::now() < until) continue;
    for (const Starter& one : starters_) kill(one.process, is_told ? SIGKILL : SIGTERM);
    is_told = true;
  }
}

}  // namespace shima::tool
