// Process sets: processes that were started one by one meet by their IDs and move random patterns
// together; wrong, dead, foreign and missing ones; one that is killed in the middle.
//
// The program starts itself again as each of the members: "member PATH SEED ROUNDS", with the set's
// IDs on standard input. All members draw from the same seed, so that each knows what all others
// do.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "capi/requests.h"

namespace shima::test {
namespace {

using Clock = std::chrono::steady_clock;

// --- a member -------------------------------------------------------------------------------

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "member %d: %s: %s\n", ::getpid(), what, pff_error_message());
  std::exit(1);
}

struct Part {
  Request file;
  Request memory;
};

std::vector<Part> draw_parts(Dice& dice, int members) {
  const auto kind = dice.upto(5);  // all alike, or each as it comes
  std::vector<Part> parts;
  for (int i = 0; i < members; ++i) {
    Part part;
    if (kind == 0) {  // an array by columns
      const std::uint64_t piece = 64;
      part.file.where = pff_stride(static_cast<std::int64_t>(piece) * i, piece,
                                   static_cast<std::int64_t>(piece) * members, piece * 300);
      for (int row = 0; row < 300; ++row)
        append_run(part.file.bytes, static_cast<std::int64_t>(piece) * (row * members + i), piece);
    } else if (!dice.one_in(6)) {
      part.file = kind < 4 ? a_stride(dice) : a_request(dice);
    }
    part.memory = some_memory(dice, part.file.bytes.size());
    parts.push_back(std::move(part));
  }
  return parts;
}

void start_or_do(bool later, std::int64_t wanted, std::int64_t done, int started,
                 pff_request* request, const char* what) {
  if (!later) return expect(done == wanted, what);
  expect(started == 0, what);
  expect(pff_wait(request) == wanted, what);
}

void one_round(Dice& dice, pff_set* set, pff_file* file, std::vector<unsigned char>& model) {
  const auto me = static_cast<std::size_t>(pff_set_member(set));
  const auto parts = draw_parts(dice, pff_set_count(set));
  const auto& [mine, memory] = parts[me];
  const bool later = dice.one_in(3);
  const auto out = filled(mine, memory);
  const auto wanted = static_cast<std::int64_t>(mine.bytes.size());
  pff_request* request = nullptr;
  if (later) {
    start_or_do(true, wanted, 0,
                pff_start_write_all_from(file, mine.where, out.data(), memory.where, &request),
                nullptr, "");
  }
  (void)request;
  expect(later || pff_write_all_from(file, mine.where, out.data(), memory.where) == wanted,
         "writing together");
  for (const Part& part : parts) {
    model.resize(std::max(model.size(), reach_of(part.file)));
    for (const std::int64_t at : part.file.bytes)
      model[static_cast<std::size_t>(at)] = value_at(at);
  }
}

}  // namespace
}  // namespace shima::test
