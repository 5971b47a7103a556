// RANKS: none
// Vectors in every way that the manual pages permit: blocks of one byte, ten thousand pieces, empty
// pieces, blocks without gaps, pieces that differ on both sides (LAPI_GEN_GENERIC), LAPI_Xfer, and
// vector messages of all types.
#include <functional>
#include <random>
#include <vector>

#include "check.h"

namespace {

constexpr std::size_t window_bytes = 400000;
std::vector<unsigned char> window(window_bytes);
std::vector<void*> windows;

unsigned next_task() { return static_cast<unsigned>((task_id + 1) % num_tasks); }
int previous_task() { return (task_id + num_tasks - 1) % num_tasks; }
unsigned char* there() { return static_cast<unsigned char*>(windows[next_task()]); }

void wait_for(lapi_cntr_t& counter) { OK(LAPI_Waitcntr(hndl, &counter, 1, nullptr)); }

// A vector whose pieces are owned here.
struct Vector {
  std::vector<void*> info;
  std::vector<ulong> len;
  lapi_vec_t vec{};

  lapi_vec_t* as(lapi_vectype_t type) {
    vec = {type, static_cast<uint>(info.size()), info.data(), len.data()};
    return &vec;
  }
  void add(void* at, ulong bytes) {
    info.push_back(at);
    len.push_back(bytes);
  }
};

struct Strided {
  void* info[3];
  lapi_vec_t vec;
  Strided(void* first, std::size_t block, std::size_t stride, uint count)
      : info{first, reinterpret_cast<void*>(block), reinterpret_cast<void*>(stride)},
        vec{LAPI_GEN_STRIDED_XFER, count, info, nullptr} {}
};

void expect_window(const std::function<int(std::size_t)>& expected, const char* what) {
  for (std::size_t i = 0; i < window.size(); ++i)
    CHECK(window[i] == static_cast<unsigned char>(expected(i)), "%s: byte %zu is %d instead of %d",
          what, i, window[i], expected(i));
}

// Blocks of `block` bytes at distances of `stride` there; the bytes between stay.
void strided(std::size_t block, std::size_t stride, uint count) {
  std::vector<unsigned char> from(block * count), back(block * count);
  fill(from.data(), from.size(), task_id);
  std::fill(window.begin(), window.end(), 0xaa);
  lapi_cntr_t done;
  OK(LAPI_Setcntr(hndl, &done, 0));
  OK(LAPI_Gfence(hndl));
  Strided here(from.data(), block, block, count), far(there() + 3, block, stride, count),
      into(back.data(), block, block, count);
  OK(LAPI_Putv(hndl, next_task(), &far.vec, &here.vec, nullptr, nullptr, &done));
  wait_for(done);
  OK(LAPI_Getv(hndl, next_task(), &far.vec, &into.vec, nullptr, &done));
  wait_for(done);
  CHECK(from == back, "a strided vector of %zu/%zu x %u comes back different", block, stride,
        count);
  OK(LAPI_Gfence(hndl));
  expect_window(
      [&](std::size_t i) {
        if (i < 3 || (i - 3) / stride >= count || (i - 3) % stride >= block) return 0xaa;
        return static_cast<int>(
            pattern((i - 3) / stride * block + (i - 3) % stride, previous_task()));
      },
      "strided");
  OK(LAPI_Gfence(hndl));
}

// Pieces in random order and of random lengths, also empty ones; GENERIC: others at the origin.
void pieces(lapi_vectype_t type, unsigned seed, bool by_xfer) {
  std::mt19937 dice(seed);
  std::vector<unsigned char> from(100000), back(100000, 0);
  fill(from.data(), from.size(), task_id);
  Vector far, here, into;
  std::size_t used = 0, at = 0;
  while (used < from.size()) {
    const std::size_t part = std::min<std::size_t>(from.size() - used, dice() % 40);
    far.add(part == 0 && dice() % 2 == 0 ? nullptr : there() + at, part);
    if (type != LAPI_GEN_GENERIC) here.add(from.data() + used, part);
    if (type != LAPI_GEN_GENERIC) into.add(back.data() + used, part);
    used += part;
    at += part + dice() % 60;
  }
  for (used = 0; type == LAPI_GEN_GENERIC && used < from.size();) {
    const std::size_t part = std::min<std::size_t>(from.size() - used, dice() % 7000);
    here.add(from.data() + used, part);
    into.add(back.data() + used, part);
    used += part;
  }
  lapi_cntr_t done;
  OK(LAPI_Setcntr(hndl, &done, 0));
  if (by_xfer) {
    lapi_xfer_t x;
    memset(&x, 0, sizeof x);
    x.Putv.Xfer_type = LAPI_PUTV_XFER;
    x.Putv.tgt = next_task();
    x.Putv.tgt_vec = reinterpret_cast<lapi_lvec_t*>(far.as(type));
    x.Putv.org_vec = here.as(type);
    x.Putv.cmpl_cntr = &done;
    OK(LAPI_Xfer(hndl, &x));
  } else {
    OK(LAPI_Putv(hndl, next_task(), far.as(type), here.as(type), nullptr, nullptr, &done));
  }
  wait_for(done);
  OK(LAPI_Getv(hndl, next_task(), far.as(type), into.as(type), nullptr, &done));
  wait_for(done);
  CHECK(from == back, "pieces of type %d come back different", static_cast<int>(type));
  OK(LAPI_Gfence(hndl));
}

// ---- Vector messages ----
std::vector<unsigned char> landing(1 << 20);
Vector landing_pieces;
Strided* landing_strided;
std::size_t expected_lens[3];
int calls, completions;
lapi_vectype_t landing_type;
bool drops;

void on_complete(lapi_handle_t*, void* info) {
  CHECK(info == &completions, "the information of a completion handler");
  __atomic_add_fetch(&completions, 1, __ATOMIC_SEQ_CST);
}

lapi_vec_t* on_vector(lapi_handle_t*, void* uhdr, uint* uhdr_len, ulong* lens,
                      compl_hndlr_t** completion, void** info) {
  CHECK(*uhdr_len == 3 && memcmp(uhdr, "vec", 3) == 0, "a header of %u bytes", *uhdr_len);
  const int count = landing_type == LAPI_GEN_GENERIC ? 1 : 3;
  for (int i = 0; i < count; ++i)
    CHECK(lens[i] == expected_lens[i], "length %d is %lu instead of %zu", i, lens[i],
          expected_lens[i]);
  *completion = on_complete;
  *info = &completions;
  __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  if (drops) return nullptr;
  return landing_type == LAPI_GEN_STRIDED_XFER ? &landing_strided->vec
                                               : landing_pieces.as(landing_type);
}

void message(lapi_vectype_t type, std::size_t bytes, bool dropped) {
  std::vector<unsigned char> from(3 * bytes);
  fill(from.data(), from.size(), task_id);
  std::fill(landing.begin(), landing.end(), 0);
  Vector here;
  for (int i = 0; i < 3; ++i) here.add(from.data() + static_cast<std::size_t>(i) * bytes, bytes);
  Strided here_strided(from.data(), bytes, bytes, 3),
      far_strided(landing.data(), bytes, 2 * bytes, 3);
  landing_strided = &far_strided;
  landing_pieces = Vector();
  for (std::size_t i = 0; i < 3; ++i) landing_pieces.add(landing.data() + 2 * i * bytes, bytes);
  landing_type = type;
  drops = dropped;
  expected_lens[0] = type == LAPI_GEN_GENERIC ? 3 * bytes : type == LAPI_GEN_IOVECTOR ? bytes : 3;
  expected_lens[1] = bytes;
  expected_lens[2] = bytes;
  calls = completions = 0;
  lapi_cntr_t org, done;
  OK(LAPI_Setcntr(hndl, &org, 0));
  OK(LAPI_Setcntr(hndl, &done, 0));
  OK(LAPI_Gfence(hndl));
  char header[] = {'v', 'e', 'c'};
  lapi_vec_t* const vector = type == LAPI_GEN_STRIDED_XFER ? &here_strided.vec : here.as(type);
  OK(LAPI_Amsendv(hndl, next_task(), reinterpret_cast<void*>(7), header, sizeof header, vector,
                  nullptr, &org, &done));
  wait_for(org);
  wait_for(done);
  OK(LAPI_Gfence(hndl));
  while (__atomic_load_n(&completions, __ATOMIC_SEQ_CST) == 0) OK(LAPI_Probe(hndl));
  CHECK(calls == 1 && completions == 1, "%d header handlers, %d completion handlers", calls,
        completions);
  for (std::size_t i = 0; i < 3 * bytes && !dropped; ++i)
    CHECK(landing[i / bytes * 2 * bytes + i % bytes] == pattern(i, previous_task()),
          "byte %zu of a vector message of type %d", i, static_cast<int>(type));
  OK(LAPI_Gfence(hndl));
}

}  // namespace

int main() {
  begin();
  windows.resize(static_cast<std::size_t>(num_tasks));
  OK(LAPI_Addr_set(hndl, reinterpret_cast<void*>(on_vector), 7));
  OK(LAPI_Address_init(hndl, window.data(), windows.data()));
  strided(1, 7, 10000);
  strided(1, 1, 10000);
  strided(1, 2, 1);
  strided(16, 16, 2000);
  strided(5000, 9000, 40);
  strided(0, 8, 5);
  for (unsigned seed = 1; seed <= 3; ++seed) {
    pieces(LAPI_GEN_IOVECTOR, seed, seed == 2);
    pieces(LAPI_GEN_GENERIC, seed + 100, seed == 3);
  }
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{100}, std::size_t{683}, std::size_t{30000}})
    for (const lapi_vectype_t type : {LAPI_GEN_IOVECTOR, LAPI_GEN_STRIDED_XFER, LAPI_GEN_GENERIC})
      for (const bool dropped : {false, true}) message(type, bytes, dropped);
  end();
  return 0;
}
