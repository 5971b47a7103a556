// Random nested datatypes, as file types and as memory types, against the definition of their
// constructors (random_types.h).
//
// RANKS: 1 3
// VARIANTS: striped
// TIMEOUT: 300
// ENV: SHIMA_LOG=error
//
// Data written by Shima is read with POSIX calls and compared byte by byte, gaps included, with the
// types' lists of addresses; then it is read back through MPI into memory that is checked in the
// same way. Usage: datatypes [seed [batches]]
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "stored.h"

#include "random_types.h"

namespace {

using random_types::chance;
using random_types::pick;
using random_types::Type;

constexpr int region_bytes = 1 << 18;  // of the file, per transfer and rank
constexpr int batch_transfers = 48;
constexpr unsigned char untouched = 0xA5;

std::string place;  // the current case, for failure messages

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "FAILED: %s\n  %s\n", why.c_str(), place.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

Type committed_random_type(int depth, bool ascending) {
  Type type = random_types::random_type(depth, ascending);
  MPI_Type_commit(&type.handle);
  return type;
}

bool strictly_increasing(const std::vector<long>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end();
}

bool is_legal_for_writing(const Type& type) {
  return strictly_increasing(type.bytes) && (type.bytes.empty() || type.bytes[0] >= 0);
}

// A legal file type; every illegal one drawn before it must be refused. `probe` is a file of this
// rank alone, because ranks draw different numbers of illegal types and set_view is collective.
Type random_file_type(MPI_File probe) {
  for (;;) {
    Type type = committed_random_type(pick(1, 4), chance(85));
    place = "file type " + type.text;
    if (!random_types::confirm_by_packing(type)) die("MPI_Pack knows another type");
    const int expected = is_legal_for_writing(type) ? MPI_SUCCESS : MPI_ERR_TYPE;
    const int error = MPI_File_set_view(probe, 0, MPI_BYTE, type.handle, "native", MPI_INFO_NULL);
    int error_class = MPI_SUCCESS;
    if (error != MPI_SUCCESS) MPI_Error_class(error, &error_class);
    if (error_class != expected) {
      die("set_view returned class " + std::to_string(error_class) + ", not " +
          std::to_string(expected));
    }
    if (expected == MPI_SUCCESS && !type.bytes.empty()) return type;
    random_types::free_type(type);
  }
}

// The offsets of view bytes first, first + 1, ..., relative to the displacement; empty if they
// leave the region or overlap.
std::vector<long> file_bytes(const Type& type, long first, std::size_t len) {
  std::vector<long> bytes(len);
  const long size = static_cast<long>(type.bytes.size());
  const long extent = random_types::extent_of(type);
  for (std::size_t i = 0; i < len; ++i) {
    const long at = first + static_cast<long>(i);
    bytes[i] = at / size * extent + type.bytes[static_cast<std::size_t>(at % size)];
    if (bytes[i] < 0 || bytes[i] >= region_bytes) return {};
  }
  std::vector<long> sorted = bytes;
  std::ranges::sort(sorted);
  if (!strictly_increasing(sorted)) return {};
  return bytes;
}

// The addresses of `count` elements; empty if they overlap, because such bytes are undefined after
// a read.
std::vector<long> memory_bytes(const Type& type, int count) {
  Type all;
  append(all, type, 0, count);
  std::vector<long> sorted = all.bytes;
  std::ranges::sort(sorted);
  if (!strictly_increasing(sorted)) return {};
  return all.bytes;
}

constexpr int memory_origin = 1 << 17;

int write_somehow(MPI_File fh, int how, long first, const void* buffer, int count,
                  MPI_Datatype type, MPI_Status* status) {
  if (how == 0) return MPI_File_write_at(fh, first, buffer, count, type, status);
  if (how == 1) return MPI_File_write_at_all(fh, first, buffer, count, type, status);
  MPI_File_seek(fh, first, MPI_SEEK_SET);
  return how == 2 ? MPI_File_write(fh, buffer, count, type, status)
                  : MPI_File_write_all(fh, buffer, count, type, status);
}

int read_somehow(MPI_File fh, int how, long first, void* buffer, int count, MPI_Datatype type,
                 MPI_Status* status) {
  if (how == 0) return MPI_File_read_at(fh, first, buffer, count, type, status);
  if (how == 1) return MPI_File_read_at_all(fh, first, buffer, count, type, status);
  MPI_File_seek(fh, first, MPI_SEEK_SET);
  return how == 2 ? MPI_File_read(fh, buffer, count, type, status)
                  : MPI_File_read_all(fh, buffer, count, type, status);
}

void check_count(MPI_Status* status, std::size_t expected) {
  MPI_Count bytes = 0;
  MPI_Get_elements_x(status, MPI_BYTE, &bytes);
  if (static_cast<std::size_t>(bytes) != expected)
    die("the status counts " + std::to_string(bytes) + " bytes, not " + std::to_string(expected));
}

// Reads into fresh memory; only the bytes of the memory type may change.
void check_read_back(MPI_File fh, int how, long first, const std::vector<long>& memory, int count,
                     const Type& type, const std::vector<unsigned char>& written) {
  std::vector<unsigned char> buffer(2 * memory_origin, untouched);
  MPI_Status status;
  if (read_somehow(fh, how, first, buffer.data() + memory_origin, count, type.handle, &status) !=
      MPI_SUCCESS)
    die("reading failed");
  check_count(&status, memory.size());
  std::vector<unsigned char> expected(2 * memory_origin, untouched);
  for (const long address : memory)
    expected[memory_origin + address] = written[memory_origin + address];
  if (buffer != expected) die("memory differs after reading");
}

// `how` is the same on all ranks; only a `busy` rank moves bytes.
void one_transfer(MPI_File fh, MPI_File probe, int how, bool busy, long displacement,
                  std::vector<unsigned char>& expected) {
  Type file_type = random_file_type(probe);
  if (MPI_File_set_view(fh, displacement, MPI_BYTE, file_type.handle, "native", MPI_INFO_NULL) !=
      MPI_SUCCESS)
    die("set_view failed");
  Type type = committed_random_type(pick(0, 4), chance(50));
  int count = busy ? pick(0, 5) : 0;
  const long first = pick(0, 40);
  std::vector<long> memory = memory_bytes(type, count);
  std::vector<long> file = file_bytes(file_type, first, memory.size());
  if (memory.empty() || file.empty()) {
    count = 0;
    memory.clear();
    file.clear();
  }
  place += "\n  memory type " + type.text + " x " + std::to_string(count) + " at view byte " +
           std::to_string(first) + ", way " + std::to_string(how);
  std::vector<unsigned char> buffer(2 * memory_origin);
  for (const long address : memory)
    buffer[memory_origin + address] = static_cast<unsigned char>(pick(1, 255));
  MPI_Status status;
  if (write_somehow(fh, how, first, buffer.data() + memory_origin, count, type.handle, &status) !=
      MPI_SUCCESS)
    die("writing failed");
  check_count(&status, memory.size());
  for (std::size_t i = 0; i < file.size(); ++i)
    expected[file[i]] = buffer[memory_origin + memory[i]];
  check_read_back(fh, how, first, memory, count, type, buffer);
  random_types::free_type(type);
  random_types::free_type(file_type);
}

// --- batches ----------------------------------------------------------------------------------

void compare_with_file(const char* path, const std::vector<std::vector<unsigned char>>& expected,
                       int rank, int ranks) {
  std::vector<unsigned char> bytes(region_bytes);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    std::fill(bytes.begin(), bytes.end(), 0);
    const auto start = (static_cast<long long>(i) * ranks + rank) * region_bytes;
    stored_read(path, bytes.data(), region_bytes, start);
    const auto differ = std::mismatch(bytes.begin(), bytes.end(), expected[i].begin());
    if (differ.first == bytes.end()) continue;
    place = "transfer " + std::to_string(i) + " of the batch, byte " +
            std::to_string(differ.first - bytes.begin());
    die("the file differs");
  }
}

void run_batch(unsigned seed, int batch, int rank, int ranks) {
  const std::string path = "datatypes.out";
  MPI_File fh;
  if (MPI_File_open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                    &fh) != MPI_SUCCESS)
    die("opening failed");
  MPI_File_set_size(fh, 0);
  std::mt19937 common(seed + batch);
  random_types::engine().seed(seed * 1000003ULL + batch * 131ULL + rank);
  const std::string probe_path = path + ".probe" + std::to_string(rank);
  MPI_File probe;
  if (MPI_File_open(MPI_COMM_SELF, probe_path.c_str(),
                    MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                    &probe) != MPI_SUCCESS)
    die("opening the probe failed");
  std::vector<std::vector<unsigned char>> expected(batch_transfers);
  for (int i = 0; i < batch_transfers; ++i) {
    expected[i].assign(region_bytes, 0);
    const long displacement = (static_cast<long>(i) * ranks + rank) * region_bytes;
    const int how = static_cast<int>(common() % 4);
    one_transfer(fh, probe, how, common() % 16 != static_cast<unsigned>(rank), displacement,
                 expected[i]);
  }
  MPI_File_sync(fh);
  compare_with_file(path.c_str(), expected, rank, ranks);
  MPI_File_close(&probe);
  MPI_File_close(&fh);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  unsigned seed =
      argc > 1 ? static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)) : std::random_device{}();
  const int batches = argc > 2 ? std::atoi(argv[2]) : 40;
  MPI_Bcast(&seed, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf("seed %u, %d batches of %d transfers\n", seed, batches, batch_transfers);
  for (int batch = 0; batch < batches; ++batch) run_batch(seed, batch, rank, ranks);
  if (rank == 0) unlink("datatypes.out");
  MPI_Finalize();
  return 0;
}
