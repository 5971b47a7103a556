// A task's own space, seen from inside.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pvas/shared/board.h"

namespace shima::pvas {

struct Imported {
  MemoryRange memory;
  std::optional<int> owner;  // none where it is a task of another space
};

class Membership {
 public:
  // Of this process; none where it is no task, as the children of one are none.
  [[nodiscard]] static std::optional<Membership> own();

  [[nodiscard]] int task() const { return control_->task; }
  [[nodiscard]] const Board& board() const { return *control_->board; }

  // The tasks that are there now.
  [[nodiscard]] std::vector<int> tasks() const;
  [[nodiscard]] Result<MemoryRange> partition(int task) const;
  [[nodiscard]] Result<pid_t> process(int task) const;
  // The task in whose partition an address lies.
  [[nodiscard]] std::optional<int> owner(std::uint64_t address) const;

  // Gives memory a name, which is this task's while it lives (file_exists where it is taken). Of
  // memory that was allocated for it, the name is known in all spaces of the group.
  [[nodiscard]] Status show(const std::string& name, MemoryRange memory) const;
  [[nodiscard]] Status hide(const std::string& name) const;
  // Waits until there is such a name; no limit: for ever.
  [[nodiscard]] Result<Imported> find(const std::string& name,
                                      std::optional<std::chrono::milliseconds> limit) const;

  // While it is held, the memory of a task stays also after its end. Every hold wants its release.
  [[nodiscard]] Status hold(int task) const;
  [[nodiscard]] Status release(int task) const;

  // What the spaces of this group share (bad_handle where this one is in none).
  [[nodiscard]] Result<Commons*> commons() const;
  // The slices of the spaces that there are now in the group.
  [[nodiscard]] Result<std::vector<int>> spaces() const;

 private:
  explicit Membership(Control* control) : control_(control) {}
  [[nodiscard]] Status must_be_task(int task) const;
  [[nodiscard]] std::uint32_t number() const { return static_cast<std::uint32_t>(task()) + 1; }
  [[nodiscard]] std::uint32_t number_in_group() const;
  [[nodiscard]] Result<std::optional<Imported>> look_for(const std::string& name) const;

  Control* control_;
};

}  // namespace shima::pvas
