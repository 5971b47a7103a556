// The connections of a root: each belongs to a process that has started a task, or keeps the root.
//
// A root never blocks on a connection. Messages that a task was stopped or continued are dropped if
// the socket is full; the message that it has ended waits until there is room.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "pvas/root/loader/partition.h"
#include "pvas/shared/wire.h"

namespace shima::pvas {

class Connection {
 public:
  // `socket` is nonblocking.
  explicit Connection(UniqueFd socket) : socket_(std::move(socket)) {}

  [[nodiscard]] int fd() const { return socket_.get(); }

  // The next message; nothing if there is none.
  [[nodiscard]] Result<std::optional<Received>> hear() const;

  // Errors are ignored: a closed connection is found when it is read.
  void tell(Word word, int value, int other, const std::string& text);
  void refuse(const Error& error);
  [[nodiscard]] bool owes() const { return owed_.has_value(); }
  void pay();

  // An order arrives in parts: the start parameters, then the files.
  [[nodiscard]] Status begin_order(Received& received);
  [[nodiscard]] Status add_files(Received& received);
  [[nodiscard]] bool has_all() const { return files_.size() == files_expected_; }
  [[nodiscard]] Result<SpawnOrder> read_order() const;
  [[nodiscard]] const UniqueFd& directory() const { return directory_; }
  [[nodiscard]] const std::vector<TaskFile>& files() const { return files_; }
  void drop_order();

  pid_t process = 0;  // while it lives
  std::optional<int> task;

 private:
  UniqueFd socket_;
  UniqueFd order_;  // a memfd
  UniqueFd directory_;
  std::size_t files_expected_ = 0;
  std::vector<TaskFile> files_;
  std::optional<Message> owed_;
};

}  // namespace shima::pvas
