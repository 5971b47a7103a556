// RANKS: 1 2 3 5 8
// VARIANTS: direct striped regions
// Random views, memory types, counts and calls against a byte-array model.
//
// Each type is generated twice: as an MPI datatype and as the plain list of its byte offsets, by
// arithmetic that shares no code with Shima. Written values are a function of the file offset, over
// a background, so that a changed byte outside all requests is detected. Every rank computes the
// accesses of all ranks; after each write, rank 0 compares the whole file through POSIX calls, and
// every read compares the whole buffer, gaps included.
#include <fcntl.h>
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "stored.h"

namespace {

using Random = std::mt19937_64;
using Byte = unsigned char;

std::int64_t pick(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

Byte value_at(std::int64_t offset) {
  return static_cast<Byte>((static_cast<std::uint64_t>(offset) * 0x9e3779b97f4a7c15U) >> 56 | 1);
}

// A datatype, its byte offsets in data order, and its extent.
struct Type {
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  std::vector<std::int64_t> bytes;
  std::int64_t extent = 0;
};

Type named(Random& random) {
  const MPI_Datatype handles[] = {MPI_BYTE, MPI_SHORT, MPI_INT, MPI_DOUBLE};
  const std::int64_t sizes[] = {1, 2, 4, 8};
  const auto i = static_cast<std::size_t>(pick(random, 0, 3));
  Type type;
  MPI_Type_dup(handles[i], &type.handle);
  for (std::int64_t b = 0; b < sizes[i]; ++b) type.bytes.push_back(b);
  type.extent = sizes[i];
  return type;
}

// `child` at each displacement in bytes; the caller creates the MPI handle from the same numbers.
Type placed(const Type& child, const std::vector<std::int64_t>& displacements) {
  Type type;
  for (const std::int64_t at : displacements)
    for (const std::int64_t byte : child.bytes) type.bytes.push_back(at + byte);
  return type;
}

void finish(Type& type) {
  MPI_Aint lb = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(type.handle, &lb, &extent);
  type.extent = extent;
}

Type make_vector(Random& random, Type child) {
  const int count = static_cast<int>(pick(random, 1, 5));
  const int block = static_cast<int>(pick(random, 1, 4));
  const int stride = block + static_cast<int>(pick(random, 0, 4));
  std::vector<std::int64_t> at;
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < block; ++j) at.push_back((i * stride + j) * child.extent);
  Type type = placed(child, at);
  MPI_Type_vector(count, block, stride, child.handle, &type.handle);
  return type;
}

Type make_indexed(Random& random, Type child) {
  const int count = static_cast<int>(pick(random, 1, 5));
  std::vector<int> blocks;
  std::vector<int> starts;
  std::vector<std::int64_t> at;
  int next = static_cast<int>(pick(random, 0, 3));
  for (int i = 0; i < count; ++i) {
    blocks.push_back(static_cast<int>(pick(random, 0, 3)));
    starts.push_back(next);
    for (int j = 0; j < blocks.back(); ++j) at.push_back((next + j) * child.extent);
    next += blocks.back() + static_cast<int>(pick(random, 0, 4));
  }
  Type type = placed(child, at);
  MPI_Type_indexed(count, blocks.data(), starts.data(), child.handle, &type.handle);
  return type;
}

Type make_subarray(Random& random, Type child) {
  int sizes[2], parts[2], starts[2];
  for (int d = 0; d < 2; ++d) {
    parts[d] = static_cast<int>(pick(random, 1, 4));
    starts[d] = static_cast<int>(pick(random, 0, 3));
    sizes[d] = parts[d] + starts[d] + static_cast<int>(pick(random, 0, 3));
  }
  const bool c_order = pick(random, 0, 1) == 0;
  const int outer = c_order ? 0 : 1;
  const int inner = 1 - outer;
  std::vector<std::int64_t> at;
  for (int i = 0; i < parts[outer]; ++i)
    for (int j = 0; j < parts[inner]; ++j)
      at.push_back(
          ((starts[outer] + i) * static_cast<std::int64_t>(sizes[inner]) + starts[inner] + j) *
          child.extent);
  Type type = placed(child, at);
  MPI_Type_create_subarray(2, sizes, parts, starts, c_order ? MPI_ORDER_C : MPI_ORDER_FORTRAN,
                           child.handle, &type.handle);
  return type;
}

Type make_struct(Random& random, Type child) {
  const int count = static_cast<int>(pick(random, 1, 3));
  std::vector<int> blocks;
  std::vector<MPI_Aint> starts;
  std::vector<MPI_Datatype> types;
  std::vector<std::int64_t> at;
  std::int64_t next = pick(random, 0, 10);
  for (int i = 0; i < count; ++i) {
    blocks.push_back(static_cast<int>(pick(random, 1, 2)));
    starts.push_back(next);
    types.push_back(child.handle);
    for (int j = 0; j < blocks.back(); ++j) at.push_back(next + j * child.extent);
    next += blocks.back() * child.extent + pick(random, 0, 20);
  }
  Type type = placed(child, at);
  MPI_Type_create_struct(count, blocks.data(), starts.data(), types.data(), &type.handle);
  return type;
}

Type make_resized(Random& random, Type child) {
  Type type;
  type.bytes = child.bytes;
  MPI_Type_create_resized(child.handle, 0, child.extent + pick(random, 0, 40), &type.handle);
  return type;
}

Type random_type(Random& random, int depth) {
  if (depth == 0) return named(random);
  Type child = random_type(random, depth - 1);
  Type type;
  switch (pick(random, 0, 4)) {
    case 0:
      type = make_vector(random, child);
      break;
    case 1:
      type = make_indexed(random, child);
      break;
    case 2:
      type = make_subarray(random, child);
      break;
    case 3:
      type = make_struct(random, child);
      break;
    default:
      type = make_resized(random, child);
      break;
  }
  finish(type);
  MPI_Type_free(&child.handle);
  return type;
}

// A type that contains data and does not overlap itself when repeated.
Type usable_type(Random& random) {
  while (true) {
    Type type = random_type(random, static_cast<int>(pick(random, 0, 3)));
    const bool fits = !type.bytes.empty() && *std::ranges::max_element(type.bytes) < type.extent &&
                      type.extent < 4000;
    if (fits) {
      MPI_Type_commit(&type.handle);
      return type;
    }
    MPI_Type_free(&type.handle);
  }
}

struct Access {
  std::int64_t displacement = 0;
  std::int64_t offset = 0;  // in etypes, which are bytes
  Type file;
  Type memory;
  int count = 0;

  [[nodiscard]] std::int64_t len() const {
    return static_cast<std::int64_t>(memory.bytes.size()) * count;
  }
  [[nodiscard]] std::int64_t file_byte(std::int64_t i) const {
    const auto per_tile = static_cast<std::int64_t>(file.bytes.size());
    const std::int64_t at = offset + i;
    return displacement + at / per_tile * file.extent +
           file.bytes[static_cast<std::size_t>(at % per_tile)];
  }
  [[nodiscard]] std::int64_t memory_byte(std::int64_t i) const {
    const auto per_item = static_cast<std::int64_t>(memory.bytes.size());
    return i / per_item * memory.extent + memory.bytes[static_cast<std::size_t>(i % per_item)];
  }
  [[nodiscard]] std::size_t buffer_bytes() const {
    return static_cast<std::size_t>(memory.extent * count + 16);
  }
};

Access random_access(Random& random) {
  Access access;
  access.displacement = pick(random, 0, 3000);
  access.file = usable_type(random);
  access.memory = usable_type(random);
  access.offset = pick(random, 0, 200);
  const auto most =
      std::max<std::int64_t>(1, 20000 / static_cast<std::int64_t>(access.memory.bytes.size()));
  access.count = pick(random, 0, 7) == 0 ? 0 : static_cast<int>(pick(random, 1, most));
  return access;
}

void release(Access& access) {
  MPI_Type_free(&access.file.handle);
  MPI_Type_free(&access.memory.handle);
}

int rank_here, rank_count;
std::uint64_t seed_here;

[[noreturn]] void give_up(const char* what, std::int64_t at) {
  std::fprintf(stderr, "rank %d: seed %llu: %s at %lld\n", rank_here,
               static_cast<unsigned long long>(seed_here), what, static_cast<long long>(at));
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int len = 0;
  MPI_Error_string(code, text, &len);
  std::fprintf(stderr, "%s: %s\n", what, text);
  give_up(what, code);
}

void check_count(MPI_Status& status, const Access& access, std::int64_t expected) {
  MPI_Count bytes = 0;
  MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
  if (bytes != expected) give_up("status count", bytes);
  int count = 0;
  MPI_Get_count(&status, access.memory.handle, &count);
  if (expected == access.len() && access.len() > 0 && count != access.count)
    give_up("status items", count);
}

enum class Call { at_all, all, at, pointer };

void write_with(Call call, MPI_File file, const Access& mine, const Byte* buffer,
                MPI_Status& status) {
  const auto& type = mine.memory.handle;
  if (call == Call::all || call == Call::pointer)
    check(MPI_File_seek(file, mine.offset, MPI_SEEK_SET), "seek");
  switch (call) {
    case Call::at_all:
      check(MPI_File_write_at_all(file, mine.offset, buffer, mine.count, type, &status),
            "write_at_all");
      break;
    case Call::all:
      check(MPI_File_write_all(file, buffer, mine.count, type, &status), "write_all");
      break;
    case Call::at:
      check(MPI_File_write_at(file, mine.offset, buffer, mine.count, type, &status), "write_at");
      break;
    case Call::pointer:
      check(MPI_File_write(file, buffer, mine.count, type, &status), "write");
      break;
  }
}

void read_with(Call call, MPI_File file, const Access& mine, Byte* buffer, MPI_Status& status) {
  const auto& type = mine.memory.handle;
  if (call == Call::all || call == Call::pointer)
    check(MPI_File_seek(file, mine.offset, MPI_SEEK_SET), "seek");
  switch (call) {
    case Call::at_all:
      check(MPI_File_read_at_all(file, mine.offset, buffer, mine.count, type, &status),
            "read_at_all");
      break;
    case Call::all:
      check(MPI_File_read_all(file, buffer, mine.count, type, &status), "read_all");
      break;
    case Call::at:
      check(MPI_File_read_at(file, mine.offset, buffer, mine.count, type, &status), "read_at");
      break;
    case Call::pointer:
      check(MPI_File_read(file, buffer, mine.count, type, &status), "read");
      break;
  }
}

void check_pointer(Call call, MPI_File file, const Access& mine, std::int64_t asked) {
  if (call != Call::all && call != Call::pointer) return;
  MPI_Offset position = 0;
  check(MPI_File_get_position(file, &position), "get_position");
  if (position != mine.offset + asked) give_up("file pointer", position);
}

std::vector<Byte> contents_of(const std::string& path) {
  std::vector<Byte> bytes(static_cast<std::size_t>(stored_size(path.c_str())));
  if (stored_read(path.c_str(), bytes.data(), std::ssize(bytes), 0) != std::ssize(bytes))
    give_up("cannot read the file", 0);
  return bytes;
}

// Applies the writes of all ranks to the model.
void apply_to_model(std::vector<Byte>& model, const std::vector<Access>& all) {
  for (const Access& access : all) {
    for (std::int64_t i = 0; i < access.len(); ++i) {
      const auto at = static_cast<std::size_t>(access.file_byte(i));
      if (at >= model.size()) model.resize(at + 1, 0);
      model[at] = value_at(static_cast<std::int64_t>(at));
    }
  }
}

MPI_File open_with_view(const std::string& path, const Access& mine) {
  MPI_File file;
  check(MPI_File_open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL,
                      &file),
        "open");
  check(MPI_File_set_view(file, mine.displacement, MPI_BYTE, mine.file.handle, "native",
                          MPI_INFO_NULL),
        "set_view");
  return file;
}

void write_and_compare(Random& random, const std::string& path, std::vector<Byte>& model) {
  std::vector<Access> all;
  for (int r = 0; r < rank_count; ++r) all.push_back(random_access(random));
  const auto call = static_cast<Call>(pick(random, 0, 3));
  const Access& mine = all[static_cast<std::size_t>(rank_here)];
  std::vector<Byte> buffer(mine.buffer_bytes(), 0xAA);
  for (std::int64_t i = 0; i < mine.len(); ++i)
    buffer[static_cast<std::size_t>(mine.memory_byte(i))] = value_at(mine.file_byte(i));
  apply_to_model(model, all);

  MPI_File file = open_with_view(path, mine);
  MPI_Status status;
  write_with(call, file, mine, buffer.data(), status);
  check_count(status, mine, mine.len());
  check_pointer(call, file, mine, mine.len());
  check(MPI_File_close(&file), "close");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank_here == 0) {
    const std::vector<Byte> found = contents_of(path);
    if (found.size() != model.size()) give_up("file size", static_cast<std::int64_t>(found.size()));
    const auto differ = std::mismatch(found.begin(), found.end(), model.begin());
    if (differ.first != found.end()) give_up("wrong byte", differ.first - found.begin());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (Access& access : all) release(access);
}

void read_and_compare(Random& random, const std::string& path, const std::vector<Byte>& model) {
  Access mine;
  for (int r = 0; r < rank_count; ++r) {
    Access access = random_access(random);
    if (r == rank_here) {
      mine = access;
    } else {
      release(access);
    }
  }
  const auto call = static_cast<Call>(pick(random, 0, 3));
  std::vector<Byte> buffer(mine.buffer_bytes(), 0xAA);
  std::vector<Byte> expected = buffer;
  std::int64_t present = 0;
  for (; present < mine.len() && mine.file_byte(present) < static_cast<std::int64_t>(model.size());
       ++present)
    expected[static_cast<std::size_t>(mine.memory_byte(present))] =
        model[static_cast<std::size_t>(mine.file_byte(present))];

  MPI_File file = open_with_view(path, mine);
  MPI_Status status;
  read_with(call, file, mine, buffer.data(), status);
  check_count(status, mine, present);
  check_pointer(call, file, mine, mine.len());  // by the requested count, MPI-4.1 section 14.4.1
  check(MPI_File_close(&file), "close");
  if (buffer != expected)
    give_up("wrong byte in memory",
            std::mismatch(buffer.begin(), buffer.end(), expected.begin()).first - buffer.begin());
  release(mine);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_here);
  MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
  const std::uint64_t first_seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000;
  const std::string path = "random_access.bin";
  if (rank_here == 0)
    std::printf(
        "seeds %llu to %llu\n", static_cast<unsigned long long>(first_seed),
        static_cast<unsigned long long>(first_seed) + static_cast<unsigned long long>(rounds) - 1);
  std::vector<Byte> model;
  for (int round = 0; round < rounds; ++round) {
    seed_here = first_seed + static_cast<std::uint64_t>(round);
    Random random(seed_here);
    if (round % 25 == 0) {
      model.clear();
      if (rank_here == 0) unlink(path.c_str());
      MPI_Barrier(MPI_COMM_WORLD);
    }
    write_and_compare(random, path, model);
    read_and_compare(random, path, model);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank_here == 0) unlink(path.c_str());
  MPI_Finalize();
  return 0;
}
