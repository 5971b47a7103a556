// The connections of a root: each is of somebody who has started a task, or keeps the root.
//
// A root waits for nobody. Who does not listen is not told that a task has stopped or goes on; that
// it has ended waits until there is room.
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
  // `socket` does not block.
  explicit Connection(UniqueFd socket) : socket_(std::move(socket)) {}

  [[nodiscard]] int fd() const { return socket_.get(); }

  // What has been said; nothing where nothing has.
  [[nodiscard]] Result<std::optional<Received>> hear() const;

  // That the other end has gone is seen when it is heard.
  void tell(Word word, int value, int other, const std::string& text);
  void refuse(const Error& error);
  [[nodiscard]] bool owes() const { return owed_.has_value(); }
  void pay();

  // An order comes in parts: what a task begins with, and then its files.
  [[nodiscard]] Status begin_order(Received& received);
  [[nodiscard]] Status add_files(Received& received);
  [[nodiscard]] bool has_all() const { return files_.size() == files_expected_; }
  [[nodiscard]] Result<SpawnOrder> read_order() const;
  [[nodiscard]] const UniqueFd& folder() const { return folder_; }
  [[nodiscard]] const std::vector<TaskFile>& files() const { return files_; }
  void drop_order();

  pid_t process = 0;  // while it lives
  std::optional<int> task;

 private:
  UniqueFd socket_;
  UniqueFd order_;  // a memfd
  UniqueFd folder_;
  std::size_t files_expected_ = 0;
  std::vector<TaskFile> files_;
  std::optional<Message> owed_;
};

}  // namespace shima::pvas
