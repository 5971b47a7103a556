// Requests to other machines, of which several may be under way at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"

namespace shima {

// What another machine has been asked for.
template <class T>
class FarAnswer {
 public:
  virtual ~FarAnswer() = default;
  // Does the next step, and may wait for the other machine; false once nothing is left to do.
  [[nodiscard]] virtual bool advance() = 0;
  // After that: what the operation returns. Call once.
  [[nodiscard]] virtual Result<T> result() = 0;
};

// A transfer, or another request to a subfile. Transfers: the result is how many bytes have been
// moved up to the first that could not be.
using FarRequest = FarAnswer<std::uint64_t>;

// Begins a request for each index that is to take part, which begin(i) returns or is null, and lets
// all proceed. Those that take no part are null.
template <class Begin>
auto ask_together(std::size_t count, Begin begin) {
  std::vector<decltype(begin(std::size_t{}))> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = begin(i);
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (const auto& one : all)
      if (one && one->advance()) goes_on = true;
  }
  return all;
}

}  // namespace shima
