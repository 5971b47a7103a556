// RANKS: none
// The program of pointer_visitors.py: rank 0 keeps the shared pointer of a file that two hosts have
// open, and a stranger connects to it and sends nothing.
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "mpi_check.h"

enum {
  most_sockets = 64,
  services = 2,
  visitor_count = 300,
  spare_descriptors = 150,
  opens_of_program = 60
};

typedef struct {
  unsigned long inode;
  char address[40];  // in hexadecimal, as the kernel shows it
  unsigned port;
} Listener;

static int is_own(unsigned long inode) {
  char wanted[40], path[300], target[40];
  int found = 0;
  DIR* open_files = opendir("/proc/self/fd");
  snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
  for (struct dirent* entry; (entry = readdir(open_files)) != NULL;) {
    snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
    ssize_t len = readlink(path, target, sizeof target - 1);
    if (len < 0) continue;
    target[len] = 0;
    if (strcmp(target, wanted) == 0) found = 1;
  }
  closedir(open_files);
  return found;
}

// The listening sockets of this process.
static int own_listeners(Listener* listeners) {
  int count = 0;
  for (int v6 = 0; v6 < 2; ++v6) {
    FILE* table = fopen(v6 ? "/proc/self/net/tcp6" : "/proc/self/net/tcp", "r");
    char line[400];
    while (table != NULL && fgets(line, sizeof line, table) != NULL) {
      Listener l;
      unsigned state;
      if (sscanf(line, " %*d: %39[0-9A-F]:%x %*[^ ] %x %*s %*s %*s %*s %*s %lu", l.address, &l.port,
                 &state, &l.inode) == 4 &&
          state == 10 && is_own(l.inode) && count < most_sockets)
        listeners[count++] = l;
    }
    if (table != NULL) fclose(table);
  }
  return count;
}

static int count_descriptors(void) {
  int next = dup(0), count = 0;
  for (int i = 0; i <= next; ++i) count += fcntl(i, F_GETFD) != -1;
  close(next);
  return count;
}

// The sockets that were created with the file: of the shared pointers and of the liveness service.
static void find_new(const Listener* before, int before_count, Listener* found) {
  Listener now[most_sockets];
  int now_count = own_listeners(now), new_count = 0;
  for (int i = 0; i < now_count; ++i) {
    int known = 0;
    for (int k = 0; k < before_count; ++k) known |= before[k].inode == now[i].inode;
    if (known) continue;
    REQUIRE(new_count < services);
    found[new_count++] = now[i];
  }
  REQUIRE(new_count == services);
}

static int connect_to(const char* host, unsigned port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  int connection = socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(inet_pton(AF_INET, host, &address.sin_addr) == 1);
  if (connect(connection, (struct sockaddr*)&address, sizeof address) == 0) return connection;
  close(connection);
  return -1;
}

int main(int argc, char** argv) {
  Listener before[most_sockets], listeners[services] = {0};
  MPI_File file;
  int before_count, number = here;
  start_test(&argc, &argv, 60);
  before_count = own_listeners(before);
  CHECK(MPI_File_open(MPI_COMM_WORLD, "visitors.bin", MPI_MODE_RDWR | MPI_MODE_CREATE,
                      MPI_INFO_NULL, &file));
  if (here == 0) {
    const struct rlimit few = {(rlim_t)count_descriptors() + spare_descriptors, 4096};
    find_new(before, before_count, listeners);
    for (int i = 0; i < services; ++i) {
      fprintf(stderr, "listens at %s:%u\n", listeners[i].address, listeners[i].port);
      // 10.77.0.1, the cable between the hosts
      REQUIRE(strcmp(listeners[i].address, "01004D0A") == 0);
      REQUIRE(connect_to("127.0.0.1", listeners[i].port) < 0);
    }
    REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  MPI_Bcast(listeners, sizeof listeners, MPI_BYTE, 0, MPI_COMM_WORLD);
  for (int i = 0; here == 1 && i < visitor_count; ++i)
    REQUIRE(connect_to("10.77.0.1", listeners[i % services].port) >= 0);
  // Behind them in the queue of connections.
  if (here == 1) CHECK(MPI_File_write_shared(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
  if (here == 0)
    for (int i = 0; i < opens_of_program; ++i) REQUIRE(open("/dev/null", O_RDONLY) >= 0);
  CHECK(MPI_File_close(&file));
  return end_test();
}
