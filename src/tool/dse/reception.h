// Where daemons come in: listens, and hands over the connections that have proved the key.
//
// Each connection proves the key in a thread of its own, so that a stranger who says nothing delays
// nobody; strangers are few, and have little time.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/key_proof.h"
#include "net/wire.h"

namespace shima::tool {

class Reception {
 public:
  // Listens at a free port of each address. Processes may be created until open().
  [[nodiscard]] static Result<std::unique_ptr<Reception>> listen(
      const std::vector<SocketAddress>& addresses);
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;
  // No connection is accepted from here on.
  ~Reception();

  // The addresses, and a new key in place of the secrets.
  [[nodiscard]] const ServiceAddress& place() const { return place_; }
  [[nodiscard]] Status open();
  // Readable when take() has something.
  [[nodiscard]] int bell() const { return bell_.get(); }
  [[nodiscard]] std::vector<UniqueFd> take();

 private:
  struct Stranger {
    UniqueFd socket;  // until it has proved the key; under mutex_
    std::atomic<bool> has_ended{false};
    std::thread thread;
  };
  Reception() = default;
  void admit_all();
  void admit(int listener);
  void examine(Stranger& stranger);

  ServiceAddress place_;
  std::vector<UniqueFd> listeners_;
  UniqueFd bell_;
  UniqueFd stop_;
  std::thread thread_;
  std::list<Stranger> strangers_;  // of the thread
  std::mutex mutex_;
  std::vector<UniqueFd> proven_;
};

}  // namespace shima::tool
