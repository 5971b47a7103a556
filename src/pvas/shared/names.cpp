#include "pvas/shared/names.h"

#include <algorithm>
#include <climits>
#include <utility>

namespace shima::pvas {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t slice_us = 2000;
// For a holder that is stopped; the root detects a holder that has died.
constexpr std::chrono::seconds longest_wait{30};

// Holds the table's lock for its lifetime.
class Locked {
 public:
  [[nodiscard]] static Result<Locked> take(NameTable& table, std::uint32_t own) {
    const auto deadline = Clock::now() + longest_wait;
    for (;;) {
      std::uint32_t holder = 0;
      if (table.lock.compare_exchange_strong(holder, own)) return Locked(table);
      if (Clock::now() > deadline)
        return fail(Code::timed_out, "task " + std::to_string(holder % incarnation_factor - 1) +
                                         " has held the lock of the names too long");
      futex_wait(table.lock, holder, slice_us);
    }
  }
  Locked(Locked&& other) noexcept : table_(std::exchange(other.table_, nullptr)) {}
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  Locked& operator=(Locked&&) = delete;
  ~Locked() {
    if (table_ == nullptr) return;
    table_->lock = 0;
    futex_wake(table_->lock, 1);
  }

 private:
  explicit Locked(NameTable& table) : table_(&table) {}
  NameTable* table_;
};

Export* find_name(NameTable& table, const std::string& name) {
  for (Export& shown : table.exports)
    if (shown.owner != 0 && name == shown.name.data()) return &shown;
  return nullptr;
}

}  // namespace

Status judge_name(const std::string& name) {
  if (!name.empty() && name.size() < max_name) return {};
  return fail(Code::bad_argument,
              "a name of memory has 1 to " + std::to_string(max_name - 1) + " bytes");
}

Status NameTable::show(std::uint32_t owner, const std::string& name, MemoryRange memory) {
  SHIMA_TRY(judge_name(name));
  SHIMA_TRY_ASSIGN(const Locked locked, Locked::take(*this, owner));
  if (find_name(*this, name) != nullptr)
    return fail(Code::file_exists, "the name " + name + " is taken");
  const auto free =
      std::ranges::find_if(exports, [](const Export& shown) { return shown.owner == 0; });
  if (free == exports.end())
    return fail(Code::no_memory, "all " + std::to_string(max_exports) + " names are taken");
  free->name = {};
  std::ranges::copy(name, free->name.begin());
  free->address = memory.begin;
  free->size = memory.size;
  free->owner = owner;  // last: a task that is killed before has published nothing
  announce();
  return {};
}

Status NameTable::hide(std::uint32_t owner, const std::string& name) {
  SHIMA_TRY_ASSIGN(const Locked locked, Locked::take(*this, owner));
  Export* const shown = find_name(*this, name);
  if (shown == nullptr || shown->owner != owner)
    return fail(Code::bad_argument, "the name " + name + " does not belong to this task");
  shown->owner = 0;
  return {};
}

Result<std::optional<Named>> NameTable::find(std::uint32_t asker, const std::string& name) {
  SHIMA_TRY_ASSIGN(const Locked locked, Locked::take(*this, asker));
  const Export* const shown = find_name(*this, name);
  if (shown == nullptr) return std::nullopt;
  return Named{{shown->address, shown->size}, shown->owner};
}

void NameTable::announce() {
  changed.fetch_add(1);
  futex_wake(changed, INT_MAX);
}

void NameTable::forget(std::uint32_t first, std::uint32_t last) {
  const auto is_gone = [&](std::uint32_t owner) { return owner >= first && owner <= last; };
  for (Export& shown : exports)
    if (std::uint32_t owner = shown.owner; is_gone(owner))
      shown.owner.compare_exchange_strong(owner, 0);
  // Last: the next holder of the lock finds the names removed.
  if (std::uint32_t holder = lock; is_gone(holder) && lock.compare_exchange_strong(holder, 0))
    futex_wake(lock, INT_MAX);
}

}  // namespace shima::pvas
