// RANKS: none
// Several contexts in a process and several threads in a context, as the manual pages permit them:
// two handles at once, handlers of one index that differ, collective calls in both, LAPI_Term of
// one, LAPI_Init again; every documented query; values of LAPI_Address_init that are no addresses;
// atomic operations as a lock, a queue and a barrier.
#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

namespace {

lapi_handle_t second;

lapi_handle_t another() {
  lapi_info_t info;
  memset(&info, 0, sizeof info);
  lapi_handle_t made = 0;
  OK(LAPI_Init(&made, &info));
  return made;
}

// ---- Handlers of two contexts ----
std::atomic<int> calls[2];
template <int number>
void* on_header(lapi_handle_t* handle, void* uhdr, uint* len, ulong*, compl_hndlr_t** completion,
                void**) {
  CHECK(*handle == (number == 0 ? hndl : second), "the handler of context %d has handle %#x",
        number, *handle);
  CHECK(*len == sizeof(int) && *static_cast<int*>(uhdr) == number,
        "a message of the other context");
  *completion = nullptr;
  ++calls[number];
  return nullptr;
}

void talk(lapi_handle_t handle, int number) {
  constexpr int messages = 200;
  lapi_cntr_t done;
  OK(LAPI_Setcntr(handle, &done, 0));
  for (int i = 0; i < messages; ++i)
    OK(LAPI_Amsend(handle, static_cast<unsigned>((task_id + i) % num_tasks),
                   reinterpret_cast<void*>(9), &number, sizeof number, nullptr, 0, nullptr, nullptr,
                   &done));
  OK(LAPI_Waitcntr(handle, &done, messages, nullptr));
  OK(LAPI_Gfence(handle));
}

void two_contexts() {
  OK(LAPI_Addr_set(hndl, reinterpret_cast<void*>(&on_header<0>), 9));
  OK(LAPI_Addr_set(second, reinterpret_cast<void*>(&on_header<1>), 9));
  OK(LAPI_Gfence(second));
  OK(LAPI_Gfence(hndl));
  std::thread other([] { talk(second, 1); });
  talk(hndl, 0);
  other.join();
  CHECK(calls[0] == 200 && calls[1] == 200, "%d and %d messages", calls[0].load(), calls[1].load());
  void* handler = nullptr;
  OK(LAPI_Addr_get(hndl, &handler, 9));
  CHECK(handler == reinterpret_cast<void*>(&on_header<0>), "the handler of the first context");
}

// ---- Any 8 bytes ----
void any_values(lapi_handle_t handle) {
  std::vector<lapi_long_t> table(static_cast<std::size_t>(num_tasks));
  std::vector<void*> pointers(static_cast<std::size_t>(num_tasks));
  for (const lapi_long_t base :
       {lapi_long_t{0}, ~lapi_long_t{0}, lapi_long_t{0x0123456789abcdef}}) {
    OK(LAPI_Address_init64(handle, base ^ static_cast<lapi_long_t>(task_id) << 60, table.data()));
    for (int i = 0; i < num_tasks; ++i)
      CHECK(table[static_cast<std::size_t>(i)] == (base ^ static_cast<lapi_long_t>(i) << 60),
            "value of task %d", i);
    OK(LAPI_Address_init(handle, reinterpret_cast<void*>(base + static_cast<lapi_long_t>(task_id)),
                         pointers.data()));
    for (int i = 0; i < num_tasks; ++i)
      CHECK(pointers[static_cast<std::size_t>(i)] ==
                reinterpret_cast<void*>(base + static_cast<lapi_long_t>(i)),
            "pointer of task %d", i);
  }
}

// ---- Queries ----
void queries(lapi_handle_t handle) {
  const struct {
    lapi_query_t query;
    int least;
  } known[] = {
      {MAX_UHDR_SZ, 256}, {MAX_DATA_SZ, 1 << 30}, {ERROR_CHK, 0},         {TIMEOUT, 1},
      {MIN_TIMEOUT, 1},   {MAX_TIMEOUT, 10},      {MAX_PORTS, 1},         {MAX_PKT_SZ, 256},
      {NUM_REX_BUFS, 0},  {REX_BUF_SZ, 0},        {LOC_ADDRTBL_SZ, 16},   {EPOCH_NUM, 0},
      {USE_THRESH, 0},    {RCV_FIFO_SIZE, 1},     {MAX_ATOM_SIZE, 4},     {BUF_CP_SIZE, 0},
      {MAX_PKTS_OUT, 0},  {ACK_THRESHOLD, 0},     {QUERY_SHM_ENABLED, 0}, {QUERY_SHM_NUM_TASKS, 1},
      {BULK_XFER, 0},     {BULK_MIN_MSG_SIZE, 0}};
  for (const auto& each : known) {
    int value = -1;
    OK(LAPI_Qenv(handle, each.query, &value));
    CHECK(value >= each.least, "query %d: %d", static_cast<int>(each.query), value);
  }
  int value = -1;
  OK(LAPI_Qenv(handle, TASK_ID, &value));
  CHECK(value == task_id, "TASK_ID %d", value);
  OK(LAPI_Qenv(handle, NUM_TASKS, &value));
  CHECK(value == num_tasks, "NUM_TASKS %d", value);
  for (const int flag : {0, 1}) {
    OK(LAPI_Senv(handle, ERROR_CHK, flag));
    OK(LAPI_Qenv(handle, ERROR_CHK, &value));
    CHECK(value == flag, "ERROR_CHK %d", value);
  }
  OK(LAPI_Senv(handle, TIMEOUT, 100));
  OK(LAPI_Qenv(handle, TIMEOUT, &value));
  CHECK(value == 100, "TIMEOUT %d", value);
}

// ---- Atomic operations ----
long long queue_head, ticket_bits;
int lock_word, guarded;
std::vector<void*> heads(64), bits(64), locks(64), guardeds(64);

void atomics(lapi_handle_t handle) {
  constexpr int items = 400;
  OK(LAPI_Address_init(handle, &queue_head, heads.data()));
  OK(LAPI_Address_init(handle, &ticket_bits, bits.data()));
  OK(LAPI_Address_init(handle, &lock_word, locks.data()));
  OK(LAPI_Address_init(handle, &guarded, guardeds.data()));
  queue_head = ticket_bits = 0;
  lock_word = guarded = 0;
  OK(LAPI_Gfence(handle));
  lapi_cntr_t done;
  OK(LAPI_Setcntr(handle, &done, 0));
  // A queue: each item is taken once.
  std::set<long long> taken;
  for (long long one = 1, item = 0;;) {
    OK(LAPI_Rmw64(handle, FETCH_AND_ADD, 0, static_cast<long long*>(heads[0]), &one, &item, &done));
    OK(LAPI_Waitcntr(handle, &done, 1, nullptr));
    if (item >= items) break;
    CHECK(taken.insert(item).second, "item %lld is taken twice", item);
  }
  // No previous value and no counter: a fence waits.
  long long own = 1LL << (task_id + 40);
  for (int i = 0; i < 5; ++i)
    OK(LAPI_Rmw64(handle, FETCH_AND_OR, 0, static_cast<long long*>(bits[0]), &own, nullptr,
                  nullptr));
  OK(LAPI_Fence(handle));
  // A lock around a plain Get and Put.
  for (int i = 0; i < 20; ++i) {
    int swap[2] = {0, 1}, swapped = 0;
    while (swapped == 0) {
      OK(LAPI_Rmw(handle, COMPARE_AND_SWAP, 0, static_cast<int*>(locks[0]), swap, &swapped, &done));
      OK(LAPI_Waitcntr(handle, &done, 1, nullptr));
    }
    int value = -1;
    OK(LAPI_Get(handle, 0, sizeof value, guardeds[0], &value, nullptr, &done));
    OK(LAPI_Waitcntr(handle, &done, 1, nullptr));
    ++value;
    OK(LAPI_Put(handle, 0, sizeof value, guardeds[0], &value, nullptr, nullptr, &done));
    OK(LAPI_Waitcntr(handle, &done, 1, nullptr));
    int zero = 0, before = -1;
    OK(LAPI_Rmw(handle, SWAP, 0, static_cast<int*>(locks[0]), &zero, &before, &done));
    OK(LAPI_Waitcntr(handle, &done, 1, nullptr));
    CHECK(before == 1, "the lock was %d", before);
  }
  OK(LAPI_Gfence(handle));
  if (task_id == 0) {
    CHECK(queue_head == items + num_tasks, "the queue ends at %lld", queue_head);
    CHECK(ticket_bits == ((1LL << num_tasks) - 1) << 40, "the bits are %llx", ticket_bits);
    CHECK(guarded == 20 * num_tasks, "%d increments under the lock", guarded);
  }
  OK(LAPI_Gfence(handle));
}

// ---- Threads of one context ----
std::vector<unsigned char> window(8 * 70000);
std::vector<void*> windows(64);

void threads(lapi_handle_t handle) {
  const unsigned next = static_cast<unsigned>((task_id + 1) % num_tasks);
  OK(LAPI_Address_init(handle, window.data(), windows.data()));
  std::vector<std::thread> all;
  for (int number = 0; number < 4; ++number)
    all.emplace_back([=] {
      std::vector<unsigned char> data(70000), back(70000);
      unsigned char* const far = static_cast<unsigned char*>(windows[next]) + number * 70000;
      lapi_cntr_t done;
      OK(LAPI_Setcntr(handle, &done, 0));
      for (std::size_t len = 1; len <= data.size(); len = len * 3 + 1) {
        fill(data.data(), len, number + static_cast<int>(len));
        OK(LAPI_Put(handle, next, len, far, data.data(), nullptr, &done, &done));
        OK(LAPI_Waitcntr(handle, &done, 2, nullptr));
        OK(LAPI_Get(handle, next, len, far, back.data(), nullptr, &done));
        OK(LAPI_Waitcntr(handle, &done, 1, nullptr));
        check_filled(back.data(), len, number + static_cast<int>(len), "a thread");
        if (number % 2 == 0) OK(LAPI_Fence(handle));
      }
    });
  for (std::thread& thread : all) thread.join();
  OK(LAPI_Gfence(handle));
}

}  // namespace

int main() {
  begin();
  second = another();
  CHECK(second != hndl, "two contexts have one handle");
  two_contexts();
  any_values(second);
  any_values(hndl);
  queries(second);
  atomics(second);
  threads(hndl);
  OK(LAPI_Gfence(second));
  OK(LAPI_Term(second));
  FAILS(LAPI_ERR_HNDL_INVALID, "not the handle", LAPI_Gfence(second));
  atomics(hndl);
  second = another();
  threads(second);
  any_values(second);
  OK(LAPI_Gfence(hndl));
  OK(LAPI_Term(hndl));
  atomics(second);  // the first context has gone
  OK(LAPI_Gfence(second));
  OK(LAPI_Term(second));
  hndl = another();
  any_values(hndl);
  end();
  return 0;
}
