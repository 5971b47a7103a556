// How the members of a set over several nodes find and connect to each other.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "group/set/nodes_set.h"

namespace shima {

class MeshMeeting {
 public:
  // What each member tells the others.
  struct Facts {
    int cores = 1;
    bool can_pull = false;
    std::uint16_t port = 0;  // at which it listens; set here
  };

  // `call` must outlive it.
  MeshMeeting(const NodesCall& call, int own);

  [[nodiscard]] Status listen();
  // What all members tell, by member, or the worst error of them. The first one waits for all.
  [[nodiscard]] Result<std::vector<Facts>> exchange(Facts mine, const Status& ready);
  // A connection to each other member, by member.
  [[nodiscard]] Result<std::vector<UniqueFd>> connect_all_members(const std::vector<Facts>& all);

 private:
  struct Hello {
    std::uint64_t call = 0;  // a digest of the set and its number
    std::int32_t member = 0;
    std::uint32_t code = 0;
    std::int32_t cores = 0;
    std::uint16_t port = 0;
    std::uint16_t can_pull = 0;
  };

  [[nodiscard]] bool late() const { return until_ && Clock::now() >= *until_; }
  [[nodiscard]] std::unexpected<Error> failure(Code code, int member) const;
  // A connection of a member that has proved the key and said hello; nothing if none has come for a
  // while, or a stranger.
  [[nodiscard]] Result<std::optional<std::pair<UniqueFd, Hello>>> admit() const;
  [[nodiscard]] Result<UniqueFd> connect(const std::string& host, const std::string& port,
                                         const Hello& hello) const;
  [[nodiscard]] Result<std::vector<Facts>> collect(const Hello& mine);
  [[nodiscard]] Result<std::vector<Facts>> ask_first(const Hello& mine);

  const NodesCall& call_;
  int own_;
  std::uint64_t digest_;
  std::optional<Clock::time_point> until_;
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::vector<UniqueFd> sockets_;  // by member
};

}  // namespace shima
