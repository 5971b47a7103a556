#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "iod/daemon.h"

namespace shima::iod {
namespace {

struct Sum {
  std::string peer;
  std::size_t connections = 0;
  std::size_t working = 0;
  std::size_t waiting = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t requests = 0;
  std::uint64_t directed_calls = 0;
};

// Of a Sum or a Traffic.
std::string traffic_text(const auto& of) {
  const auto number = [](std::uint64_t value) { return value; };
  return fmt::format("{} bytes read, {} bytes written, {} requests, {} collective calls",
                     number(of.read_bytes), number(of.written_bytes), number(of.requests),
                     number(of.directed_calls));
}

void add(Sum& sum, const Client& client) {
  if (sum.peer.empty()) sum.peer = client.peer;
  ++sum.connections;
  sum.working += client.activity == Activity::working ? 1 : 0;
  sum.waiting += client.activity == Activity::waiting ? 1 : 0;
  sum.read_bytes += client.traffic.read_bytes;
  sum.written_bytes += client.traffic.written_bytes;
  sum.requests += client.traffic.requests;
  sum.directed_calls += client.traffic.directed_calls;
}

}  // namespace

std::string Daemon::status(const KeyHolder* only) {
  const auto up = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - started_);
  const FairQueue::Load load = queue_.load();
  const std::lock_guard hold(mutex_);
  std::string text = fmt::format(
      "I/O node {}, process {}, up {} s, {} connections, {} requests under way, {} waiting\n",
      options_.listen.name(), ::getpid(), up.count(), clients_.size(), load.under_way,
      load.waiting);
  for (const auto& target : only != nullptr ? only->targets : keys_.targets())
    text += fmt::format("{} {} at {}: {}, {} open files\n",
                        target->is_directory ? "directory" : "target", target->place.name,
                        target->place.directory, traffic_text(target->traffic),
                        target->open_files.load());
  for (const auto& holder : keys_.holders())
    if (only == nullptr || holder.get() == only)
      text += fmt::format(
          "key of {}: {} connections, {} of {} bytes of memory, {} of {} for collective calls\n",
          holder->user.empty() ? "the daemon's user" : "user " + holder->user,
          holder->connections.load(), holder->memory.used_bytes(), holder->memory.most_bytes(),
          holder->call_memory->used_bytes(), holder->call_memory->most_bytes());
  std::map<std::pair<std::string, std::string>, Sum> processes;
  for (const Client& client : clients_)
    if (client.is_trusted && !client.has_ended && (only == nullptr || client.holder.get() == only))
      add(processes[{client.holder->user, client.process}], client);
  for (const auto& [who, sum] : processes)
    text +=
        fmt::format("client {}{} from {}: {} connections, {} requests under way, {} waiting; {}\n",
                    who.second, who.first.empty() ? std::string() : ", user " + who.first, sum.peer,
                    sum.connections, sum.working, sum.waiting, traffic_text(sum));
  return text;
}

}  // namespace shima::iod
