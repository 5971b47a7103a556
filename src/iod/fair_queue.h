// Admits a bounded number of requests at once, and those that wait by turns: the users in turn, and
// of each user the processes in turn. A window of a collective call is a request here.
//
// A process holds at most a quarter of the places and a user at most three quarters, so that
// requests that wait for a disk do not keep others from what is in memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <string>

namespace shima::iod {

class FairQueue {
 public:
  struct Process {
    std::string user;
    std::string name;
  };
  // A place in use; given back by the destructor.
  class Place {
   public:
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() { queue_.leave(process_); }

   private:
    friend class FairQueue;
    Place(FairQueue& queue, const Process& process) : queue_(queue), process_(process) {}
    FairQueue& queue_;
    const Process& process_;
  };

  explicit FairQueue(std::size_t places) : places_(places), free_(places) {}

  // Waits for a place. `process` must live as long as the place.
  [[nodiscard]] Place enter(const Process& process);

  struct Load {
    std::size_t under_way = 0;
    std::size_t waiting = 0;
  };
  [[nodiscard]] Load load();

 private:
  struct Waiter {
    std::condition_variable admitted;
    bool is_admitted = false;
  };
  struct Line {
    std::size_t under_way = 0;
    std::deque<Waiter*> waiting;
  };
  struct User {
    std::size_t under_way = 0;
    std::size_t waiting = 0;
    std::map<std::string, Line> lines;
    std::string last;  // process that was admitted
  };

  void leave(const Process& process);
  void admit_waiting();
  [[nodiscard]] bool admit_next_user();
  [[nodiscard]] bool admit_next_process(User& user);
  [[nodiscard]] bool has_room(const User& user) const {
    return free_ > 0 && user.under_way < (places_ * 3 + 3) / 4;
  }
  [[nodiscard]] bool has_room(const Line& line) const { return line.under_way < (places_ + 3) / 4; }

  std::mutex mutex_;
  const std::size_t places_;
  std::size_t free_;
  std::size_t waiting_ = 0;
  std::map<std::string, User> users_;
  std::string last_;  // user who was admitted
};

}  // namespace shima::iod
