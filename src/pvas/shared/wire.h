// Messages between a space's root and the processes that start tasks in it.
//
// One connection (SOCK_SEQPACKET) per task. To the root: `spawn`, with a memfd that holds the
// SpawnOrder, and the working directory; then as many `files` messages as the task's descriptors
// need; later `signal`s. From the root: `started` or `refused`; later `stopped`, `continued` and
// `ended`. Closing the connection kills its task. A connection that sends `keep` has no task and
// keeps the root running.
//
// Between the roots of a group, on a connection that stays open: `memory`, answered by `memory`
// with the memfd that they share, then `joined`.
#pragma once

#include <sys/resource.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace shima::pvas {

enum class Word : std::uint32_t {
  keep,     // answered by `kept` or `refused`
  spawn,    // value: the number of files that follow
  files,    // their descriptor numbers in the task
  signal,   // value: the signal
  started,  // value: the task; other: its process
  refused,  // value: a Code; other: errno; text
  ended,    // value: the status as of wait(2)
  stopped,
  continued,
  kept,
  memory,  // in the answer, value: the slice of the answering root; other: its incarnation
  joined,  // value: the slice of the sender; other: its incarnation
};

inline constexpr std::uint32_t wire_magic = 0x53500002;
inline constexpr std::size_t files_at_once = 200;  // the kernel's limit is 253

struct Message {
  std::uint32_t magic = wire_magic;
  Word word = Word::keep;
  std::int32_t value = 0;
  std::int32_t other = 0;
  std::int32_t launcher = 0;  // with keep and spawn: the process that starts all of them, and
  std::int32_t expected = 0;  // how many it starts here; 0: unknown
  union {
    std::array<std::int32_t, files_at_once> numbers;
    std::array<char, files_at_once * 4> text;
  };
  Message() : numbers{} {}
};

struct Received {
  Message message;
  std::vector<UniqueFd> files;
};

// At the end of the connection: peer_lost.
[[nodiscard]] Status send_message(int socket, const Message& message,
                                  std::span<const int> files = {});
[[nodiscard]] Result<Received> receive_message(int socket);

// Whether the peer is a process of this user.
[[nodiscard]] Status must_be_own_user(int socket);

// The start parameters of a task, without its files.
struct SpawnOrder {
  std::string file;
  std::string shown;
  std::string name;  // comm
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::uint32_t umask = 022;
  std::uint64_t blocked = 0;  // blocked signals: bit n - 1 for signal n
  std::uint64_t ignored = 0;
  std::int32_t niceness = 0;
  std::int32_t process_group = 0;  // 0: a new one
  std::vector<std::uint8_t> cpus;  // as in sched_setaffinity(2); empty: any
  std::array<rlimit, RLIM_NLIMITS> limits{};
};

[[nodiscard]] std::string encode(const SpawnOrder& order);
[[nodiscard]] Result<SpawnOrder> decode_order(std::string_view bytes);

}  // namespace shima::pvas
