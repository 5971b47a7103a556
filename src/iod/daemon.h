// The I/O node: listens, admits clients that prove a key, and has their requests executed.
//
// Each connection has a thread, which sleeps while its client asks nothing, and which acts as the
// user of the key from the proof on. Requests are executed by turns (fair_queue.h), with bounded
// memory for each key (allowance.h). Strangers, that is connections that have not proved a key,
// are few: others wait until one has proved it, and those that keep others waiting are closed. A
// client that breaks off in the middle of a message, sends what no client sends, or takes no
// replies is dropped, with a line in the log.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "iod/client.h"
#include "iod/conversation.h"
#include "iod/fair_queue.h"
#include "iod/key_ring.h"
#include "store/remote/place.h"

namespace shima::iod {

struct DaemonOptions {
  remote::Node listen;  // port 0: any
  std::vector<TargetPlace> targets;
  std::vector<TargetPlace> directories;  // served by path; their names differ from the targets'
  std::string key_file;                  // the daemon's own key; or empty
  std::string keys_file;                 // the keys of users; or empty
  std::size_t most_clients = 4096;
  std::size_t most_clients_of_key = 2048;
  std::size_t most_strangers = 64;
  std::size_t memory_of_key_bytes = std::size_t{256} << 20;
  std::size_t most_at_once = 32;  // requests that are executed
  std::chrono::milliseconds handshake_timeout{5000};
  std::chrono::milliseconds crowded_timeout{500};     // the same, while others wait
  std::chrono::milliseconds message_timeout{60'000};  // for the rest of a message, and to send one
};

class Daemon {
 public:
  // Fails if a directory does not exist, or that of a target is another target.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> start(DaemonOptions options);
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  // Requests under way are finished and answered; then all connections end.
  ~Daemon();

  // Where it listens.
  [[nodiscard]] const remote::Node& address() const { return options_.listen; }
  // For people: one line for itself, and for each target, directory, key and client process. All of
  // them, or what concerns the user of a key.
  [[nodiscard]] std::string status(const KeyHolder* only = nullptr);
  // Reads the keys again. Connections whose key or user has gone are ended. After an error nothing
  // has changed.
  [[nodiscard]] Status read_keys();

 private:
  explicit Daemon(DaemonOptions options)
      : options_(std::move(options)), queue_(options_.most_at_once) {}
  [[nodiscard]] KeyRing::Source key_source() const;
  [[nodiscard]] Status check_targets() const;
  [[nodiscard]] Status listen();
  void accept_clients();
  void admit(int listener);
  [[nodiscard]] std::size_t count_strangers();
  void drop_strangers();
  void join_ended();
  void serve(Client& client);
  [[nodiscard]] Status welcome(Client& client);
  [[nodiscard]] Status converse(Client& client);

  DaemonOptions options_;
  FairQueue queue_;
  CallTable collective_{queue_, options_.message_timeout};
  RunMergers mergers_;
  LockHolders lock_holders_;
  DaemonCalls calls_;
  KeyRing keys_;  // guarded by the mutex
  Clock::time_point started_ = Clock::now();
  std::vector<UniqueFd> listeners_;
  UniqueFd bell_;
  std::atomic<bool> stopping_ = false;
  bool has_refused_ = false;  // for lack of room, and said so
  std::mutex mutex_;
  std::list<Client> clients_;
  std::thread acceptor_;
};

}  // namespace shima::iod
