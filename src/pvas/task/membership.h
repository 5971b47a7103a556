// A task's view of its own space.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pvas/shared/space_state.h"

namespace shima::pvas {

struct Imported {
  MemoryRange memory;
  std::optional<int> owner;  // nothing: a task of another space
};

class Membership {
 public:
  // The membership of this process; nothing if it is no task. Children of a task are no tasks.
  [[nodiscard]] static std::optional<Membership> own();

  [[nodiscard]] int task() const { return control_->task; }
  [[nodiscard]] const SpaceState& space_state() const { return *control_->space_state; }

  // The tasks that exist.
  [[nodiscard]] std::vector<int> tasks() const;
  [[nodiscard]] Result<MemoryRange> partition(int task) const;
  [[nodiscard]] Result<pid_t> process(int task) const;
  // The task whose partition contains an address.
  [[nodiscard]] std::optional<int> owner(std::uint64_t address) const;

  // Names memory; the name lasts as long as this task (file_exists if it is taken). The name of
  // memory that was allocated for the group is known in all its spaces.
  [[nodiscard]] Status show(const std::string& name, MemoryRange memory) const;
  [[nodiscard]] Status hide(const std::string& name) const;
  // Waits until the name exists; no limit: forever.
  [[nodiscard]] Result<Imported> find(const std::string& name,
                                      std::optional<std::chrono::milliseconds> limit) const;

  // A hold keeps the memory of a task after the task has ended. Every hold needs one release.
  [[nodiscard]] Status hold(int task) const;
  [[nodiscard]] Status release(int task) const;

  // Shared memory of the group (bad_handle if this space belongs to none).
  [[nodiscard]] Result<Commons*> commons() const;
  // The slices of the group's existing spaces.
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
