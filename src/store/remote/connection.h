// A connection of a client to an I/O node, and those of a process that are not in use.
//
// A connection serves one caller at a time, and has at most one open file at the node. So the end
// of a client, however it comes, closes its files and releases its locks there. After a failure of
// the connection itself (not of a request) it is broken for good: what was open over it must be
// opened again.
#pragma once

#include <sys/uio.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "store/remote/message.h"
#include "store/remote/place.h"

namespace shima::remote {

struct Reply {
  std::int64_t value = 0;
  std::uint64_t data_bytes = 0;
};

class Connection {
 public:
  // Connects, and proves the key. Waits at most SHIMA_NODE_TIMEOUT.
  [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const Node& node,
                                                                const std::string& key_file);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  // A request without data in either direction.
  [[nodiscard]] Result<Reply> call(const Request& request);
  // The same with data.
  [[nodiscard]] Result<Reply> call(const Request& request, std::span<const std::byte> data);
  [[nodiscard]] Result<Reply> call(const Request& request, std::vector<std::byte>& answer,
                                   std::size_t most_bytes);

  // Several requests may be under way; replies come in the order of the requests.
  [[nodiscard]] Status send(Request request, std::span<const iovec> data);
  // The same for several requests in one system call; `data` are those of each, or empty.
  [[nodiscard]] Status send_together(std::vector<Request> requests,
                                     std::span<const std::string_view> data);
  // A request whose reply does not matter; the client does not wait for it.
  [[nodiscard]] Status tell(const Request& request);
  // Fills the pieces from the beginning; more data than they take breaks the connection.
  [[nodiscard]] Result<Reply> receive(std::span<const iovec> pieces);

  [[nodiscard]] bool is_broken() const { return is_broken_; }
  // Whether the node answers at all. Waits for it.
  [[nodiscard]] bool is_node_alive() const;
  // Between a request without a reply (Op::join) and resume(), the connection carries other
  // messages.
  [[nodiscard]] int socket() const { return socket_.get(); }
  void resume() { ++answered_; }
  // Whether the other end is still there, as far as this machine knows. For an unused connection.
  [[nodiscard]] bool is_fresh() const;
  // Whether it has gone. Also between requests, when replies that do not matter may be on the way.
  [[nodiscard]] bool has_ended() const;
  [[nodiscard]] const Node& node() const { return node_; }
  // "... on I/O node HOST:PORT", with the code for failures of connections.
  [[nodiscard]] std::unexpected<Error> failure(std::string_view doing, int sys_errno) const;

 private:
  Connection(Node node, UniqueFd socket) : node_(std::move(node)), socket_(std::move(socket)) {}
  [[nodiscard]] std::unexpected<Error> break_off(int sys_errno);
  [[nodiscard]] Result<std::size_t> move_some(std::span<const iovec> pieces, bool sending);
  [[nodiscard]] Status move(std::span<const iovec> pieces, bool sending);
  [[nodiscard]] Status skip_replies();
  [[nodiscard]] Result<Reply> receive_next(std::span<const iovec> pieces);
  [[nodiscard]] Result<std::size_t> receive_head(ReplyHead& head, std::span<const iovec> pieces);
  [[nodiscard]] Status move(void* data, std::size_t len_bytes, bool sending);

  Node node_;
  UniqueFd socket_;
  bool is_broken_ = false;
  std::uint32_t sent_ = 0;
  std::uint32_t answered_ = 0;
  std::uint32_t told_ = 0;  // replies that come next, and do not matter
};

// How often this process has sent requests and then waited for a reply: round trips in turn, if one
// thread makes them. For tests.
[[nodiscard]] std::uint64_t round_trips();

// A connection that is not in use, or a new one.
[[nodiscard]] Result<std::unique_ptr<Connection>> take_connection(const Node& node,
                                                                  const std::string& key_file);
// For later use, if it is not broken.
void keep_connection(std::unique_ptr<Connection> connection);

}  // namespace shima::remote
