// The meeting place of a job over several hosts: its address, and the messages between it and the
// tasks.
//
// `shima run --lapi` serves it (lapi/way/meeting_place.h). A task keeps one authenticated
// connection for each context. It joins with its number; the place tells it to create the memory of
// its host or to map it; then the task settles, and all tasks hear of it. The end of the connection
// without a goodbye is the loss of the task. Two tasks that want to talk connect to each other: the
// lower one connects, the higher one asks it to. A process may connect before it joins, so that its
// end is known (early_connection.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "ipc/shared_buffer.h"
#include "net/wire.h"

namespace shima::lapi {

// Tells hosts apart: processes of one host can map each other's memory.
using HostName = std::array<char, 96>;
[[nodiscard]] HostName own_host();

// A task's place in a job over hosts.
struct TaskNumber {
  int context = 0;
  int task = 0;
  int tasks = 1;
  HostName host = own_host();
};

// Changes with the notices, and with what the tasks send each other.
inline constexpr std::uint64_t meeting_format = 0x53484d45'45540002;

struct MeetingNotice {
  enum class Kind : std::uint32_t {
    none,
    join,         // from a task: host, tasks, address
    settled,      // from a task: it maps the memory of its host; `memory`, if it has made it
    ask,          // from a task: `task` shall connect to the sender
    goodbye,      // from a task: leaves after `meetings`
    unreachable,  // from a task: `task`
    make,         // to a task: create the memory of its host
    map,          // to a task: `memory` of its host
    joined,       // to a task: `task` has settled, and listens at `address`
    connect,      // to a task: `task` has asked for a connection
    left,         // to a task: `task` has left after `meetings`
    lost,         // to a task: `task`
    mismatch,     // to a task: the tasks do not form one job; `task` and `tasks` contradict others
    refused,      // to a task: it has another format
    started,      // from a process: it is `task`, and has not joined yet
  };

  std::uint64_t format = meeting_format;
  Kind kind = Kind::none;
  std::int32_t context = 0;
  std::int32_t task = 0;
  std::int32_t tasks = 0;
  std::uint64_t meetings = 0;
  HostName host{};
  SharedRef memory{};
  ServiceAddress address{};
  std::array<std::byte, 88> unused{};
};
// The same in every format, so that its number is read.
static_assert(sizeof(MeetingNotice) == 512 && offsetof(MeetingNotice, format) == 0);

// The first bytes on a connection from one task to another, after the secrets; and the answer.
struct TaskHello {
  std::int32_t task = 0;
  std::uint32_t has_fabric = 0;  // proposes that data does not go over the connection
};
inline constexpr std::byte task_accepted{0x5a};
inline constexpr std::byte task_accepted_by_fabric{0x5b};

// The address and the secrets of a meeting place, as the environment says them (SHIMA_LAPI).
[[nodiscard]] std::string describe(const ServiceAddress& place);
[[nodiscard]] std::optional<ServiceAddress> parse_meeting(const char* text);

[[nodiscard]] inline bool send_notice(int socket, const MeetingNotice& notice) {
  return send_all(socket, &notice, sizeof notice);
}

}  // namespace shima::lapi
