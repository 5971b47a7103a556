// RANKS: none
// (started by soak/iod_load.py) Clients of I/O nodes that make small requests at a constant rate:
// iod_load DIRECTORY CLIENTS REQUESTS-A-SECOND SECONDS.
//
// Each client is a process with a file of its own, of which it writes and reads 512 bytes at random
// offsets and checks what it reads. Prints how many requests the slowest and the fastest client
// made in each tenth of the time; fails if the slowest made less than half of its share in all.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shima/pff.h"

enum { piece = 512, places = 2048, tenths = 10 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void die(const char* what) {
  fprintf(stderr, "iod_load: %s: %s\n", what, pff_error_message());
  _exit(1);
}

static void work(const char* directory, int client, double rate, double seconds, uint64_t* counts) {
  static unsigned char written[places], data[piece];
  char path[4096];
  unsigned seed = (unsigned)client;
  pff_file* file;
  snprintf(path, sizeof path, "%s/load-%d", directory, client);
  if (pff_open(path, PFF_READ | PFF_WRITE | PFF_CREATE, NULL,
               "striping_factor=2;striping_unit=4096", &file))
    die("open");
  const double started = now();
  for (uint64_t done = 0;; ++done) {
    const double due = (double)done / rate, at = now() - started;
    if (at > seconds) break;
    if (at < due) usleep((useconds_t)((due - at) * 1e6));
    const int place = rand_r(&seed) % places;
    const pff_where where = pff_span((int64_t)place * piece, piece);
    if (done % 2 == 0 || !written[place]) {
      written[place] = (unsigned char)(1 + done % 255);
      memset(data, written[place], piece);
      if (pff_write(file, where, data) != piece) die("write");
    } else {
      if (pff_read(file, where, data) != piece) die("read");
      for (int i = 0; i < piece; ++i)
        if (data[i] != written[place]) die("WRONG DATA");
    }
    ++counts[(int)(at / seconds * tenths)];
  }
  if (pff_close(file) || pff_remove(path)) die("close");
  _exit(0);
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int clients = atoi(argv[2]);
  const double rate = atof(argv[3]) / clients, seconds = atof(argv[4]);
  const size_t size = sizeof(uint64_t) * (tenths + 1) * (size_t)clients;
  uint64_t* counts = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < clients; ++i)
    if (fork() == 0) work(argv[1], i, rate, seconds, counts + (tenths + 1) * i);
  int failed = 0, status;
  while (wait(&status) > 0) failed += status != 0;
  double least_share = 1;
  for (int tenth = 0; tenth < tenths; ++tenth) {
    uint64_t least = UINT64_MAX, most = 0, sum = 0;
    for (int i = 0; i < clients; ++i) {
      const uint64_t count = counts[(tenths + 1) * i + tenth];
      least = count < least ? count : least;
      most = count > most ? count : most;
      sum += count;
    }
    const double share = (double)least * clients / (double)(sum ? sum : 1);
    least_share = share < least_share ? share : least_share;
    printf("tenth %d: %.0f requests a second; clients %llu to %llu\n", tenth,
           (double)sum / seconds * tenths, (unsigned long long)least, (unsigned long long)most);
  }
  printf("failed %d, least share %.2f\n", failed, least_share);
  return failed == 0 && least_share > 0.5 ? 0 : 1;
}
