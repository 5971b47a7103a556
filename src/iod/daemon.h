// The I/O node: listens, admits clients that prove the key, and executes their requests.
//
// Each connection has a thread, which sleeps while its client asks nothing, and memory for one
// message. So no client waits for another one's, except for the disk. Strangers, that is
// connections that have not proved the key, are few and are closed after a time. A client that
// breaks off in the middle of a message, sends what no client sends, or takes no replies is
// dropped, with a line in the log.
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
#include "iod/session.h"
#include "net/key_proof.h"
#include "store/remote/place.h"

namespace shima::iod {

struct DaemonOptions {
  remote::Node listen;  // port 0: any
  std::vector<TargetPlace> targets;
  std::string key_file;
  std::size_t most_clients = 1024;
  std::size_t most_strangers = 64;
  std::chrono::milliseconds handshake_timeout{5000};
  std::chrono::milliseconds message_timeout{60'000};  // for the rest of a message, and to send one
};

class Daemon {
 public:
  // Fails if a target's directory does not exist or is another target.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> start(DaemonOptions options);
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  // Requests under way are finished and answered; then all connections end.
  ~Daemon();

  // Where it listens.
  [[nodiscard]] const remote::Node& address() const { return options_.listen; }
  // For people: one line for itself and for each target and client.
  [[nodiscard]] std::string status();

 private:
  struct Client {
    UniqueFd socket;
    std::string peer;
    std::string name;  // guarded by the daemon's mutex
    std::atomic<bool> is_trusted = false;
    std::atomic<bool> has_ended = false;
    Traffic traffic;
    std::thread thread;
  };

  Daemon(DaemonOptions options, Key key) : options_(std::move(options)), key_(std::move(key)) {}
  [[nodiscard]] Status prepare_targets();
  [[nodiscard]] Status listen();
  void accept_clients();
  void admit(int listener);
  [[nodiscard]] bool has_room();
  void join_ended();
  void serve(Client& client);
  [[nodiscard]] Status converse(Client& client);
  [[nodiscard]] Status answer(Client& client, Session& session, const remote::Request& request,
                              Buffer& data);
  void introduce(Client& client, const remote::Request& request);

  DaemonOptions options_;
  Key key_;
  ServedTargets targets_;
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
