// What the root still has when there is none: memory, and a file number.
//
// Where the address space has a limit, tasks can take all of it. The root must not end then, which
// would end all of them: what it needs to tell who has ended, and to refuse what is new, is kept
// aside. What `new` cannot get elsewhere it gets from there.
#pragma once

#include "base/unique_fd.h"

namespace shima::pvas {

// From now on; once a process.
void keep_reserve();

// False: it was needed, and cannot be filled again, so that nothing new should be begun.
[[nodiscard]] bool reserve_is_whole();

// A file number kept aside, for telling who comes that there is none left.
class SpareNumber {
 public:
  SpareNumber() { take(); }
  // Where there was none to keep, there may be one now.
  void take();
  // Lets `use` have the number. Rests a little where that was in vain: who is not answered makes
  // the caller come again at once.
  template <class Use>
  void lend(Use use) {
    const bool whole = static_cast<bool>(file_);
    file_ = UniqueFd();
    use();
    take();
    if (!whole) rest();
  }

 private:
  static void rest();

  UniqueFd file_;
};

}  // namespace shima::pvas
