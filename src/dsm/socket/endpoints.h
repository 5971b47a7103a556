// Sockets that a task serves, and waits on them.
#pragma once

#include <sys/uio.h>

#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "net/wire.h"

namespace shima::dsm {

// Opens a UDP socket at a free port of each address, and completes `address` with the
// ports and new secrets. At least one, or an error.
[[nodiscard]] Result<std::vector<UniqueFd>> open_endpoints(std::span<const SocketAddress> addresses,
                                                           ServiceAddress& address);

// Waits until a socket is readable. A spinning wait polls for up to a millisecond first. False
// after `timeout_ms` (negative: no limit).
[[nodiscard]] bool wait_readable(int socket, bool spins, int timeout_ms);

// Receives exactly so many bytes from a connection, after an optional spin.
[[nodiscard]] bool receive_exactly(int socket, void* data, std::size_t len_bytes, bool spins);
// Sends two pieces with one call if the socket takes them.
[[nodiscard]] bool send_both(int socket, iovec head, iovec data);

}  // namespace shima::dsm
