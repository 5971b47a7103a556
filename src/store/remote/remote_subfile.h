// A subfile on an I/O node.
//
// Each has a connection of its own. Transfers are cut into parts, several of which are under way;
// the runs of move_apart() travel in few messages. When the connection breaks, all calls fail until
// the file is opened again.
#pragma once

#include <memory>
#include <string>

#include "store/remote/connection.h"
#include "store/subfile/subfile.h"

namespace shima::remote {

// `connection`: over which the file has been opened. `path`: for messages.
[[nodiscard]] std::unique_ptr<Subfile> make_remote_subfile(std::unique_ptr<Connection> connection,
                                                           const Facts& facts, std::string path);

}  // namespace shima::remote
