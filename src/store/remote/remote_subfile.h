// A subfile on an I/O node.
//
// Each has a connection of its own. Transfers are cut into parts, several of which are under way;
// the runs of move_apart() travel in few messages. When the connection breaks, all calls fail until
// the file is opened again.
#pragma once

#include <memory>
#include <string>

#include "store/remote/directed_calls.h"
#include "store/subfile/subfile.h"

namespace shima::remote {

// `path`: for messages. `open_again` opens the file over a further connection.
[[nodiscard]] std::unique_ptr<Subfile> make_remote_subfile(
    Opened opened, std::string path, std::function<Result<Opened>()> open_again);

}  // namespace shima::remote
