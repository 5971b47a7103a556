// Buffers in the memory of GPUs: every data access call, random datatypes, three drivers.
//
// RANKS: 1 3
// CFLAGS: -rdynamic
// ENV: SHIMA_LOG=error
//
// The drivers are simulated, and a direct access to their device memory ends the process
// (simulated_gpu.h). Each rank draws a place for its buffer, sometimes host memory, and a datatype.
// After a write, the file is compared through POSIX calls; after a read, the whole memory around
// the buffer is compared, gaps included. Usage: device_memory [rounds [seed]]
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "simulated_gpu.h"
#include "stored.h"

#include "random_types.h"

namespace {

using random_types::pick;
using random_types::Type;

constexpr long room_bytes = SIM_DEVICE_BYTES;
constexpr long most_bytes = 60000;  // of one transfer of one rank
constexpr char untouched = '\xa5';
const char* const path = "device.bin";

int here, ranks;
std::mt19937_64 common;  // the same numbers on all ranks
std::string doing;

int pick_common(int lowest, int highest) {
  return std::uniform_int_distribution<int>(lowest, highest)(common);
}

void expect(bool holds, const std::string& what, int line) {
  if (holds) return;
  std::fprintf(stderr, "rank %d, line %d: %s; %s\n", here, line, what.c_str(), doing.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define EXPECT(condition, what) expect(condition, what, __LINE__)
#define CHECK(call)             expect((call) == MPI_SUCCESS, #call, __LINE__)

char value_at(long offset) {
  return static_cast<char>(static_cast<unsigned long>(offset) * 0x9e3779b97f4a7c15UL >> 56);
}

// Memory of some kind: its address for programs, and the address of its bytes.
struct Room {
  std::string name;
  char* address;
  char* bytes;
};

Room random_room() {
  static std::vector<char> host(room_bytes);
  const int kind = pick(0, 6);
  if (kind == 6) return {"host", host.data(), host.data()};
  static const char* const names[] = {"CUDA", "HIP", "Level Zero"};
  return {names[kind / 2] + std::string(" device ") + std::to_string(kind % 2),
          sim_address(kind / 2, kind % 2), sim_bytes(kind / 2, kind % 2)};
}

struct Buffer {
  Room room;
  Type type;
  int count = 0;
  long start = 0;               // of the buffer in the room
  std::vector<long> positions;  // of its data bytes in the room, in data order

  [[nodiscard]] long len() const { return static_cast<long>(positions.size()); }
  [[nodiscard]] char* address() const { return room.address + start; }
};

bool place(Buffer& buffer) {
  const long extent = random_types::extent_of(buffer.type);
  for (long item = 0; item < buffer.count; ++item)
    for (const long byte : buffer.type.bytes) buffer.positions.push_back(item * extent + byte);
  if (buffer.positions.empty()) return true;
  std::vector<long> sorted = buffer.positions;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) return false;
  if (sorted.back() - sorted.front() + 100 > room_bytes) return false;
  buffer.start = pick(0, 64) - sorted.front();
  for (long& position : buffer.positions) position += buffer.start;
  return true;
}

Buffer random_buffer(long most) {
  while (true) {
    Buffer buffer{.room = random_room(), .type = random_types::random_type(pick(0, 3), false)};
    const long size = static_cast<long>(buffer.type.bytes.size());
    if (size > 0 && size <= most) buffer.count = pick(0, 9) == 0 ? 0 : pick(1, most / size);
    if (size > 0 && place(buffer)) {
      MPI_Type_commit(&buffer.type.handle);
      std::memset(buffer.room.bytes, untouched, room_bytes);
      return buffer;
    }
    random_types::free_type(buffer.type);
  }
}

enum Call {
  at,
  at_all,
  individual,
  all,
  iat,
  iat_all,
  iindividual,
  iall,
  split_at,
  split,
  shared,
  ishared,
  ordered,
  split_ordered,
  call_count
};
bool is_shared(Call call) { return call >= shared; }

MPI_Status wait(MPI_Request& request) {
  MPI_Status status;
  CHECK(MPI_Wait(&request, &status));
  return status;
}

// Ranks make their calls in turn if the order of the calls decides which bytes each gets.
template <class Body>
MPI_Status in_turn(Body body) {
  MPI_Status status{};
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == here) status = body();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return status;
}

#define MOVE(verb, data)                                                               \
  MPI_Status verb##_with(Call call, MPI_File fh, data buf, int n, MPI_Datatype type) { \
    MPI_Status status{};                                                               \
    MPI_Request request;                                                               \
    switch (call) {                                                                    \
      case at:                                                                         \
        CHECK(MPI_File_##verb##_at(fh, 0, buf, n, type, &status));                     \
        break;                                                                         \
      case at_all:                                                                     \
        CHECK(MPI_File_##verb##_at_all(fh, 0, buf, n, type, &status));                 \
        break;                                                                         \
      case individual:                                                                 \
        CHECK(MPI_File_##verb(fh, buf, n, type, &status));                             \
        break;                                                                         \
      case all:                                                                        \
        CHECK(MPI_File_##verb##_all(fh, buf, n, type, &status));                       \
        break;                                                                         \
      case iat:                                                                        \
        CHECK(MPI_File_i##verb##_at(fh, 0, buf, n, type, &request));                   \
        return wait(request);                                                          \
      case iat_all:                                                                    \
        CHECK(MPI_File_i##verb##_at_all(fh, 0, buf, n, type, &request));               \
        return wait(request);                                                          \
      case iindividual:                                                                \
        CHECK(MPI_File_i##verb(fh, buf, n, type, &request));                           \
        return wait(request);                                                          \
      case iall:                                                                       \
        CHECK(MPI_File_i##verb##_all(fh, buf, n, type, &request));                     \
        return wait(request);                                                          \
      case split_at:                                                                   \
        CHECK(MPI_File_##verb##_at_all_begin(fh, 0, buf, n, type));                    \
        CHECK(MPI_File_##verb##_at_all_end(fh, buf, &status));                         \
        break;                                                                         \
      case split:                                                                      \
        CHECK(MPI_File_##verb##_all_begin(fh, buf, n, type));                          \
        CHECK(MPI_File_##verb##_all_end(fh, buf, &status));                            \
        break;                                                                         \
      case shared:                                                                     \
        return in_turn([&] {                                                           \
          CHECK(MPI_File_##verb##_shared(fh, buf, n, type, &status));                  \
          return status;                                                               \
        });                                                                            \
      case ishared:                                                                    \
        return in_turn([&] {                                                           \
          CHECK(MPI_File_i##verb##_shared(fh, buf, n, type, &request));                \
          return wait(request);                                                        \
        });                                                                            \
      case ordered:                                                                    \
        CHECK(MPI_File_##verb##_ordered(fh, buf, n, type, &status));                   \
        break;                                                                         \
      case split_ordered:                                                              \
        CHECK(MPI_File_##verb##_ordered_begin(fh, buf, n, type));                      \
        CHECK(MPI_File_##verb##_ordered_end(fh, buf, &status));                        \
        break;                                                                         \
      case call_count:                                                                 \
        break;                                                                         \
    }                                                                                  \
    return status;                                                                     \
  }

MOVE(write, const void*)
MOVE(read, void*)

void check_count(MPI_Status& status, long expected) {
  MPI_Count bytes = 0;
  MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
  EXPECT(bytes == expected, "the status counts " + std::to_string(bytes) + " bytes");
}

// A call restores the device that it selects, and the program does not see its errors.
void check_selection(int hip_device) {
  EXPECT(sim_cuda_depth == 1 && sim_cuda_current() == 77, "another CUDA context is current");
  EXPECT(sim_hip_device == hip_device, "another HIP device is current");
  EXPECT(sim_hip_error == 0, "the program sees an error of HIP that is not its own");
}

// The place of this rank's bytes in the file.
struct Places {
  bool shared;
  long tile;
  long first;  // with the shared pointer
  [[nodiscard]] long of(long byte) const {
    return shared ? first + byte : (byte / tile * ranks + here) * tile + byte % tile;
  }
};

Places places_of(Call call, long tile, long len) {
  Places places{is_shared(call), tile, 0};
  std::vector<long> lens(static_cast<std::size_t>(ranks));
  MPI_Allgather(&len, 1, MPI_LONG, lens.data(), 1, MPI_LONG, MPI_COMM_WORLD);
  places.first = std::accumulate(lens.begin(), lens.begin() + here, 0L);
  return places;
}

MPI_File open_file(const std::string& buffer_size) {
  MPI_File fh;
  MPI_Info info;
  MPI_Info_create(&info);
  if (!buffer_size.empty()) MPI_Info_set(info, "shima_device_buffer_size", buffer_size.c_str());
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &fh));
  MPI_Info_free(&info);
  return fh;
}

void set_view(MPI_File fh, Call call, long tile) {
  MPI_Datatype one, type;
  MPI_Type_contiguous(static_cast<int>(tile), MPI_BYTE, &one);
  MPI_Type_create_resized(one, 0, tile * ranks, &type);
  MPI_Type_commit(&type);
  CHECK(is_shared(call)
            ? MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL)
            : MPI_File_set_view(fh, here * tile, MPI_BYTE, type, "native", MPI_INFO_NULL));
  MPI_Type_free(&one);
  MPI_Type_free(&type);
}

std::vector<char> stored() {
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<char> bytes(static_cast<std::size_t>(stored_size(path)));
  stored_read(path, bytes.data(), static_cast<long long>(bytes.size()), 0);
  return bytes;
}

long write_and_check(MPI_File fh, Call call, long tile, int round) {
  Buffer buffer = random_buffer(most_bytes);
  doing = "round " + std::to_string(round) + ", write call " + std::to_string(call) + ", " +
          std::to_string(buffer.count) + " of " + buffer.type.text + " in " + buffer.room.name;
  const Places places = places_of(call, tile, buffer.len());
  const auto value = [&](long byte) { return value_at(places.of(byte) + 1000003L * round); };
  for (long i = 0; i < buffer.len(); ++i)
    buffer.room.bytes[buffer.positions[static_cast<std::size_t>(i)]] = value(i);
  MPI_Status status = write_with(call, fh, buffer.address(), buffer.count, buffer.type.handle);
  check_count(status, buffer.len());
  const std::vector<char> found = stored();
  for (long i = 0; i < buffer.len(); ++i) {
    const auto at = static_cast<std::size_t>(places.of(i));
    EXPECT(at < found.size() && found[at] == value(i), "wrong byte " + std::to_string(i));
  }
  random_types::free_type(buffer.type);
  return buffer.len();
}

void read_and_check(MPI_File fh, Call call, long tile, long len, int round) {
  Buffer buffer = random_buffer(std::max(len, 16L));
  if (buffer.len() > len) {
    buffer.count = 0;
    buffer.positions.clear();
  }
  doing = "round " + std::to_string(round) + ", read call " + std::to_string(call) + ", " +
          std::to_string(buffer.count) + " of " + buffer.type.text + " in " + buffer.room.name;
  const Places places = places_of(call, tile, buffer.len());
  const std::vector<char> found = stored();
  std::vector<char> expected(room_bytes, untouched);
  for (long i = 0; i < buffer.len(); ++i)
    expected[static_cast<std::size_t>(buffer.positions[static_cast<std::size_t>(i)])] =
        found[static_cast<std::size_t>(places.of(i))];
  MPI_Status status = read_with(call, fh, buffer.address(), buffer.count, buffer.type.handle);
  check_count(status, buffer.len());
  const char* const bytes = buffer.room.bytes;
  const auto differ = std::mismatch(bytes, bytes + room_bytes, expected.begin());
  EXPECT(differ.first == bytes + room_bytes,
         "wrong byte of memory " + std::to_string(differ.first - bytes - buffer.start));
  random_types::free_type(buffer.type);
}

void one_round(int round) {
  static const char* const sizes[] = {"8192", "24K", ""};
  static const long tiles[] = {37, 1000, 4096, 30000};
  const auto write_call = static_cast<Call>(pick_common(0, call_count - 1));
  const auto read_call = static_cast<Call>(
      is_shared(write_call) ? pick_common(shared, call_count - 1) : pick_common(0, shared - 1));
  const long tile = tiles[pick_common(0, 3)];
  MPI_File fh = open_file(sizes[pick_common(0, 2)]);
  CHECK(MPI_File_set_size(fh, 0));
  CHECK(MPI_File_set_atomicity(fh, pick_common(0, 4) == 0));
  const int hip_device = sim_hip_device = pick(0, 1);
  set_view(fh, write_call, tile);
  const long len = write_and_check(fh, write_call, tile, round);
  check_selection(hip_device);
  set_view(fh, read_call, tile);
  read_and_check(fh, read_call, tile, len, round);
  check_selection(hip_device);
  CHECK(MPI_File_close(&fh));
  EXPECT(sim_open_streams == 0 && sim_pinned_buffers == 0, "a closed file keeps buffers");
}

}  // namespace

int main(int argc, char** argv) {
  alarm(110);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &here);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 80;
  const unsigned seed = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1;
  sim_start();
  cuCtxPushCurrent_v2(reinterpret_cast<void*>(77));
  common.seed(seed);
  random_types::engine().seed(seed * 1000 + static_cast<unsigned>(here));
  for (int round = 0; round < rounds; ++round) one_round(round);
  MPI_Finalize();
  return 0;
}
