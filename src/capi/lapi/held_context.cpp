#include "capi/lapi/held_context.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/process/quiet_thread.h"
#include "base/process/thread_order.h"
#include "lapi/own_thread.h"

namespace shima::capi {
namespace {

struct Slot {
  std::atomic<LapiContext*> context{nullptr};
  std::atomic<const void*> engine{nullptr};  // stays
};
constinit std::array<Slot, lapi::contexts_of_job> slots{};

// How many calls a thread makes at present, by context. Only the thread itself changes them.
using Uses = std::array<std::atomic<std::uint32_t>, lapi::contexts_of_job>;
constinit thread_local Uses* uses_of_thread = nullptr;

// Contexts that are hidden, and perhaps in use.
struct Retired {
  std::size_t number;
  std::unique_ptr<LapiContext> context;
};

struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<Uses>> all;
  std::vector<Uses*> free;  // of threads that have ended
  std::vector<Retired> retired;
  int deleting = 0;  // threads that delete
  std::condition_variable deleted;
};

// Never destroyed: threads of the program may call in until the process ends.
Registry& registry() {
  static auto* const made = new Registry;
  return *made;
}
constinit std::atomic<int> retired_contexts{0};

// Whether calls order their own accesses. They do until it is known that LAPI_Term can.
constinit std::atomic<bool> calls_order{true};

void order() {
  if (calls_order.load(std::memory_order_relaxed))
    std::atomic_thread_fence(std::memory_order_seq_cst);
  else
    order_for_others();
}

// Gives the thread's counts to another thread when it ends.
struct AtThreadEnd {
  ~AtThreadEnd() {
    Registry& known = registry();
    const std::lock_guard hold(known.mutex);
    known.free.push_back(std::exchange(uses_of_thread, nullptr));
  }
};

Uses& make_uses() {
  Registry& known = registry();
  const std::lock_guard hold(known.mutex);
  known.free.reserve(known.all.size() + 1);
  if (known.free.empty()) {
    uses_of_thread = known.all.emplace_back(std::make_unique<Uses>()).get();
  } else {
    uses_of_thread = known.free.back();
    known.free.pop_back();
  }
  thread_local AtThreadEnd at_end;
  std::ignore = &at_end;
  return *uses_of_thread;
}

// The contexts that no call uses any more.
std::vector<Retired> take_unused() {
  std::vector<Retired> unused;
  Registry& known = registry();
  const std::lock_guard hold(known.mutex);
  const auto is_used = [&](const Retired& retired) {
    return std::ranges::any_of(
        known.all, [&](const auto& uses) { return (*uses)[retired.number].load() != 0; });
  };
  const auto rest = std::ranges::partition(known.retired, is_used);
  std::ranges::move(rest, std::back_inserter(unused));
  known.retired.erase(rest.begin(), rest.end());
  retired_contexts = static_cast<int>(known.retired.size());
  return unused;
}

// Deletes on a thread of its own: deleting waits for threads of the context, which may wait for the
// calling thread. If there is no thread, the next call of the program deletes.
void delete_aside(std::vector<Retired> unused) {
  Registry& known = registry();
  const auto shared = std::make_shared<std::vector<Retired>>(std::move(unused));
  const std::lock_guard hold(known.mutex);
  auto started = start_quiet_thread([shared, &known] {
    shared->clear();
    const std::lock_guard end(known.mutex);
    --known.deleting;
    known.deleted.notify_all();
  });
  if (started) {
    ++known.deleting;
    return started->detach();
  }
  std::ranges::move(*shared, std::back_inserter(known.retired));
  retired_contexts = static_cast<int>(known.retired.size());
}

}  // namespace

// A thread of the context's engine ends before it is deleted, and need not be counted.
HeldContext::HeldContext(lapi_handle_t handle) {
  const std::size_t number = handle - handle_mark;
  if (number >= slots.size()) return;
  Slot& slot = slots[number];
  if (lapi::engine_of_thread == nullptr || lapi::engine_of_thread != slot.engine) {
    uses_ = &(uses_of_thread != nullptr ? *uses_of_thread : make_uses())[number];
    uses_->store(uses_->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    order();
  }
  context_ = slot.context.load(std::memory_order_acquire);
}

HeldContext::~HeldContext() {
  if (uses_ == nullptr) return;
  uses_->store(uses_->load(std::memory_order_relaxed) - 1, std::memory_order_release);
  order();
  if (retired_contexts.load(std::memory_order_relaxed) == 0) return;
  std::vector<Retired> unused = take_unused();
  if (!unused.empty() && lapi::engine_of_thread != nullptr) delete_aside(std::move(unused));
}

void wait_until_deleted() {
  constexpr auto limit = std::chrono::seconds(1);
  Registry& known = registry();
  std::unique_lock lock(known.mutex);
  known.deleted.wait_for(lock, limit, [&] { return known.deleting == 0; });
}

void show_context(std::size_t number, std::unique_ptr<LapiContext> context) {
  if (can_order_threads()) calls_order.store(false, std::memory_order_relaxed);
  slots[number].engine = context->engine.get();
  slots[number].context = context.release();
}

bool hide_context(std::size_t number) {
  Registry& known = registry();
  const std::lock_guard hold(known.mutex);
  known.retired.reserve(known.retired.size() + 1);
  std::unique_ptr<LapiContext> hidden(slots[number].context.exchange(nullptr));
  if (!hidden) return false;
  known.retired.push_back({number, std::move(hidden)});
  retired_contexts = static_cast<int>(known.retired.size());
  order_threads();
  return true;
}

}  // namespace shima::capi
