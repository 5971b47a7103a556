// Active messages between `shima dse run` and a daemon: one end of a connection.
//
// Both ends have proved the key of the job (net/key_proof.h) before the first message. A message
// has the form of LAPI's (lapi/way/message.h) and names its handler by an index; an end calls only
// handlers that it has registered. Everything happens in the thread that calls receive() and
// flush(): the owner polls the socket. What the socket does not take at once waits in memory, so
// owners limit how much is under way.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "dse/packed.h"
#include "net/key_proof.h"

namespace shima::dse {

inline constexpr Spoken spoken{.service = {'s', 'h', 'i', 'm', 'a', 'd', 's', 'e'}, .version = 1};

class Link {
 public:
  static constexpr int most_handlers = 16;
  static constexpr std::size_t most_data_bytes = std::size_t{16} << 20;
  // An error ends the link.
  using Handler = std::function<Status(Unpacked& header, std::string_view data)>;

  explicit Link(UniqueFd socket);

  void set(int index, Handler handler) {
    handlers_[static_cast<std::size_t>(index)] = std::move(handler);
  }
  void send(int index, const Packed& header, std::string_view data = {});
  // Sends what the socket takes. Errors show in receive().
  void flush();
  // Calls the handlers of all messages that have arrived. peer_lost: the other end has ended.
  [[nodiscard]] Status receive();

  // Ends sending, and waits for the end of the other direction: if the connection were closed with
  // something unread, the kernel would drop what has been sent last.
  void finish(std::chrono::milliseconds limit);

  [[nodiscard]] int socket() const { return socket_.get(); }
  [[nodiscard]] bool has_unsent() const { return sent_bytes_ < unsent_.size(); }

 private:
  [[nodiscard]] Result<bool> serve_one();

  UniqueFd socket_;
  std::array<Handler, most_handlers> handlers_;
  std::string unsent_;
  std::size_t sent_bytes_ = 0;
  std::vector<char> arrived_;  // from served_bytes_ on
  std::size_t served_bytes_ = 0;
};

}  // namespace shima::dse
