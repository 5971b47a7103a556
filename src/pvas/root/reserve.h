// Memory that the root still has when there is none.
//
// Where the address space has a limit, tasks can take all of it. The root must not end then, which
// would end all of them: what it needs to tell who has ended, and to refuse what is new, is kept
// aside. What `new` cannot get elsewhere it gets from there.
#pragma once

namespace shima::pvas {

// From now on; once a process.
void keep_reserve();

// False: it was needed, and cannot be filled again, so that nothing new should be begun.
[[nodiscard]] bool reserve_is_whole();

}  // namespace shima::pvas
