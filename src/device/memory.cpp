#include "device/memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "device/symbols.h"
#include "pattern/cursor.h"

namespace shima {
namespace {

constexpr std::size_t most_asked_entries = 64;

struct Kind {
  Driver* (*find)();
  std::atomic<Driver*> driver{nullptr};
};

struct Drivers {
  std::mutex lock;
  std::atomic<std::uint64_t> loads{0};  // loads_so_far() at the last search for drivers
  std::atomic<bool> any{false};
  std::array<Kind, 3> kinds{{{find_cuda}, {find_hip}, {find_level_zero}}};
};

Drivers& drivers() {
  static auto* instance = new Drivers;
  return *instance;
}

// A program may load its driver at any time, also while files are open.
bool any_driver() {
  Drivers& all = drivers();
  const std::uint64_t loads = loads_so_far();
  if (all.loads.load(std::memory_order_acquire) == loads) return all.any.load();
  const std::lock_guard hold(all.lock);
  for (Kind& kind : all.kinds) {
    if (kind.driver.load() == nullptr) kind.driver = kind.find();
    if (kind.driver.load() != nullptr) all.any = true;
  }
  all.loads.store(loads, std::memory_order_release);
  return all.any.load();
}

std::optional<DevicePlace> place_of(std::int64_t address) {
  for (const Kind& kind : drivers().kinds) {
    Driver* const driver = kind.driver.load();
    if (driver == nullptr) continue;
    if (auto place = driver->find(static_cast<std::uintptr_t>(address))) return place;
  }
  return {};
}

// The node that lists pieces at unrelated addresses.
const PatternNode* list_in(const Pattern& pattern) {
  const PatternNode* node = pattern.node();
  while (node != nullptr && node->kind == PatternNode::Kind::strided) node = node->child.node();
  return node;
}

// The data bytes of a node before its entry `i`; nothing if there is none.
std::optional<std::uint64_t> first_byte_of(const PatternNode& node, std::size_t i) {
  if (node.kind == PatternNode::Kind::list && i < node.pieces.count())
    return node.pieces.first_byte(i);
  if (i < node.first_bytes.size()) return node.first_bytes[i];
  return {};
}

}  // namespace

bool may_be_device_memory() { return any_driver(); }

std::optional<DevicePlace> device_place_of(const Slice& memory) {
  if (!any_driver() || memory.len_bytes == 0) return {};
  Cursor cursor(memory);
  if (auto place = place_of(cursor.strip().offset)) return place;
  if (memory.pattern.is_contiguous()) return {};
  if (const PatternNode* const list = list_in(memory.pattern)) {
    for (std::size_t i = 1; i < most_asked_entries; ++i) {
      const auto byte = first_byte_of(*list, i);
      if (!byte || *byte >= memory.len_bytes) break;
      cursor.seek_byte(*byte);
      if (auto place = place_of(cursor.strip().offset)) return place;
    }
  }
  cursor.seek_byte(memory.len_bytes - 1);
  return place_of(cursor.strip().offset);
}

}  // namespace shima
