// Sockets that a child of fork() does not keep open.
//
// The others of a job know by the end of a connection that a process has ended, so a child that
// outlives it may not hold its sockets. In a child they become /dev/null: its copies of the objects
// that own the descriptors do no harm.
#pragma once

namespace shima {

// Until keep_no_longer(), which comes before the socket is closed.
void keep_from_children(int socket);
void keep_no_longer(int socket);

}  // namespace shima
