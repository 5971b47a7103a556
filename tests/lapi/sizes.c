// RANKS: none
// Transfers of every size between two tasks (sizes.py): at addresses of every alignment, with each
// byte checked, and those before and behind. Arguments: MiB of memory, and MiB of the longest
// transfer; longer ones see the memory several times.
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { slack = 4096, guard = 0xcc };
static size_t memory, most;
static unsigned char *window, *origin, *far_window;
static lapi_cntr_t done;

// The same memory again and again.
static unsigned char* map_repeated(void) {
  const int file = memfd_create("sizes", MFD_CLOEXEC);
  CHECK(file >= 0 && ftruncate(file, (off_t)memory) == 0, "a file of %zu bytes", memory);
  const size_t all = (most + slack + memory - 1) / memory * memory;
  unsigned char* begin =
      mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(begin != MAP_FAILED, "%zu bytes of addresses", all);
  for (size_t at = 0; at < all; at += memory)
    CHECK(mmap(begin + at, memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) ==
              begin + at,
          "mapping at %zu", at);
  close(file);
  return begin;
}

static void* on_header(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                       compl_hndlr_t** completion, void** user_info) {
  (void)handle, (void)msg_len, (void)user_info;
  size_t at;
  CHECK(*uhdr_len == sizeof at, "a header of %u bytes", *uhdr_len);
  memcpy(&at, uhdr, sizeof at);
  *completion = NULL;
  return window + at;
}

// `to` has from `at` on what `from` has from `from_at` on; the last bytes count where the memory
// repeats.
static void check_same(const unsigned char* to, size_t at, const unsigned char* from,
                       size_t from_at, size_t len, const char* what) {
  const size_t checked = len < memory ? len : memory;
  if (memcmp(to + at + len - checked, from + from_at + len - checked, checked) == 0) return;
  for (size_t i = len - checked; i < len; ++i)
    CHECK(to[at + i] == from[from_at + i], "%s of %zu bytes to %zu from %zu: byte %zu differs",
          what, len, at, from_at, i);
}

static void set_guards(unsigned char* at, size_t len) {
  if (len + 2 <= memory) at[-1] = at[len] = guard;
}
static void check_guards(const unsigned char* at, size_t len, const char* what) {
  if (len + 2 > memory) return;
  CHECK(at[-1] == guard && at[len] == guard, "%s of %zu bytes changes others", what, len);
}

static void transfer(size_t len, size_t from, size_t to) {
  const unsigned other = 1U - (unsigned)task_id;
  void* info_here[3] = {origin + from, origin + from + len / 3, origin + from + len / 3 * 2};
  void* info_there[3] = {far_window + to, far_window + to + len / 3, far_window + to + len / 3 * 2};
  ulong lens[3] = {len / 3, len / 3, len - len / 3 * 2};
  lapi_vec_t here = {LAPI_GEN_IOVECTOR, 3, info_here, lens},
             there = {LAPI_GEN_IOVECTOR, 3, info_there, lens};
  const size_t used = len + 64 < memory ? len + 64 : memory;  // of the memory, with guards
  const char* const names[] = {"Put", "Putv", "Amsend", "Get", "Getv"};
  for (int way = 0; way < 5; ++way) {
    // Each task reads its own window after the fence.
    set_guards(window + to, len);
    if (way >= 3) memset(origin, 0, used), set_guards(origin + from, len);
    OK(LAPI_Gfence(hndl));
    if (way == 0) OK(LAPI_Put(hndl, other, len, far_window + to, origin + from, NULL, NULL, &done));
    if (way == 1) OK(LAPI_Putv(hndl, other, &there, &here, NULL, NULL, &done));
    if (way == 2)
      OK(LAPI_Amsend(hndl, other, (void*)1, &to, sizeof to, origin + from, len, NULL, NULL, &done));
    if (way == 3) OK(LAPI_Get(hndl, other, len, far_window + to, origin + from, NULL, &done));
    if (way == 4) OK(LAPI_Getv(hndl, other, &there, &here, NULL, &done));
    OK(LAPI_Waitcntr(hndl, &done, 1, NULL));
    OK(LAPI_Gfence(hndl));
    // Both tasks have the same bytes in their memory.
    check_same(window, to, origin, from, len, names[way]);
    if (way < 3) check_guards(window + to, len, names[way]);
    if (way >= 3) check_guards(origin + from, len, names[way]);
    if (way < 2) memset(window, 0, used);
    if (way >= 3) fill(origin, used, 7);
    OK(LAPI_Gfence(hndl));
  }
}

int main(int argc, char** argv) {
  memory = (size_t)atol(argc > 1 ? argv[1] : "4") << 20;
  most = (size_t)atol(argc > 2 ? argv[2] : "4") << 20;
  begin();
  CHECK(num_tasks == 2, "%d tasks", num_tasks);
  window = map_repeated();
  origin = map_repeated();
  fill(origin, memory, 7);
  void* windows[2];
  OK(LAPI_Addr_set(hndl, (void*)on_header, 1));
  OK(LAPI_Address_init(hndl, window, windows));
  far_window = windows[1 - task_id];
  OK(LAPI_Setcntr(hndl, &done, 0));
  const size_t edges[] = {1, 8, 64, 2048, 16384, 65536, 1 << 20};
  size_t count = 0;
  for (size_t i = 0; most <= memory && i < sizeof edges / sizeof *edges; ++i)
    for (int near = -1; near <= 1; ++near, ++count)
      transfer(edges[i] + (size_t)near, 1 + count % 9, 1 + count % 7);
  for (size_t len = most <= memory ? 4 << 20 : most; len <= most; len *= 4, ++count)
    transfer(len - count % 5, 1 + count % 9, 1 + count % 7);
  end();
  return 0;
}
