// Random nested datatypes, as file types and as memory types, against MPI_Pack as the model.
//
// RANKS: 1 3
// TIMEOUT: 120
//
// MPI_Pack tells which bytes a datatype means: packing buffers whose bytes hold their own address
// (the low half, then the high half) gives the address of every data byte in order. What Shima
// wrote is then read with POSIX calls and compared byte by byte with what the model says, gaps
// included. Usage: datatypes [seed [batches]]
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

namespace {

constexpr int max_span = 16384;        // of one element of a random type
constexpr int max_size = 4096;         // data bytes of one element
constexpr int region_bytes = 1 << 18;  // of the file, for one transfer of one rank
constexpr int batch_transfers = 48;
constexpr unsigned char untouched = 0xA5;

std::mt19937_64 random_engine;
std::string place;  // what is being tested, for failures

int pick(int lowest, int highest) {
  return std::uniform_int_distribution<int>(lowest, highest)(random_engine);
}
bool chance(int percent) { return pick(1, 100) <= percent; }

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "FAILED: %s\n  %s\n", why.c_str(), place.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

// --- random types -----------------------------------------------------------------------------

struct Type {
  MPI_Datatype handle;
  std::string text;
  bool named = false;
};

struct Shape {
  long long size;
  MPI_Aint lb, extent, true_lb, true_extent;
};

Shape shape_of(MPI_Datatype type) {
  Shape shape{};
  int size = 0;
  MPI_Type_size(type, &size);
  shape.size = size;
  MPI_Type_get_extent(type, &shape.lb, &shape.extent);
  MPI_Type_get_true_extent(type, &shape.true_lb, &shape.true_extent);
  return shape;
}

bool is_small(MPI_Datatype type) {
  const Shape s = shape_of(type);
  return s.size <= max_size && std::abs(s.extent) <= max_span && std::abs(s.lb) <= max_span &&
         std::abs(s.true_lb) <= max_span && s.true_lb + s.true_extent <= max_span;
}

Type random_named() {
  // Not long double: MPICH packs its value, without the bytes that pad it.
  static const std::pair<MPI_Datatype, const char*> named[] = {{MPI_BYTE, "byte"},
                                                               {MPI_CHAR, "char"},
                                                               {MPI_SHORT, "short"},
                                                               {MPI_INT, "int"},
                                                               {MPI_DOUBLE, "double"},
                                                               {MPI_C_DOUBLE_COMPLEX, "complex"},
                                                               {MPI_FLOAT_INT, "float_int"},
                                                               {MPI_DOUBLE_INT, "double_int"},
                                                               {MPI_SHORT_INT, "short_int"},
                                                               {MPI_LONG_INT, "long_int"},
                                                               {MPI_2INT, "2int"}};
  const auto& one = named[pick(0, std::size(named) - 1)];
  return {one.first, one.second, true};
}

std::string join(const std::vector<int>& values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return "[" + text + "]";
}

// Displacements of blocks, in file order if `ascending`; `unit` is the child's extent or 1.
std::vector<int> random_displacements(const std::vector<int>& lens, int extent, int unit,
                                      bool ascending) {
  std::vector<int> displacements;
  int next = pick(0, 3);
  for (const int len : lens) {
    displacements.push_back(ascending ? next : pick(-20, 60));
    next += (unit == 1 ? len * extent : len) + pick(0, 4);
  }
  return displacements;
}

std::vector<MPI_Aint> widen(const std::vector<int>& values) {
  return {values.begin(), values.end()};
}

std::vector<int> random_lens(int count) {
  std::vector<int> lens(count);
  for (int& len : lens) len = pick(0, 3);
  return lens;
}

Type make_vector(const Type& child, bool in_bytes, bool ascending) {
  const int extent = static_cast<int>(shape_of(child.handle).extent);
  const int count = pick(0, 4);
  const int len = pick(0, 3);
  int stride = ascending ? len + pick(0, 3) : pick(-4, 5);
  MPI_Datatype made;
  if (in_bytes) {
    stride = stride * extent + (ascending ? pick(0, 5) : 0);
    MPI_Type_create_hvector(count, len, stride, child.handle, &made);
  } else {
    MPI_Type_vector(count, len, stride, child.handle, &made);
  }
  return {made, (in_bytes ? "hvector(" : "vector(") + join({count, len, stride}) + "," +
                    child.text + ")"};
}

Type make_indexed(const Type& child, int kind, bool ascending) {
  const int extent = static_cast<int>(shape_of(child.handle).extent);
  const int count = pick(0, 4);
  const bool one_len = kind >= 2;
  const bool in_bytes = kind % 2 == 1;
  std::vector<int> lens = one_len ? std::vector<int>(count, pick(0, 3)) : random_lens(count);
  const std::vector<int> displacements =
      random_displacements(lens, extent, in_bytes ? 1 : extent, ascending);
  const std::vector<MPI_Aint> wide = widen(displacements);
  const int len = count > 0 ? lens[0] : 0;
  MPI_Datatype made;
  switch (kind) {
    case 0:
      MPI_Type_indexed(count, lens.data(), displacements.data(), child.handle, &made);
      break;
    case 1:
      MPI_Type_create_hindexed(count, lens.data(), wide.data(), child.handle, &made);
      break;
    case 2:
      MPI_Type_create_indexed_block(count, len, displacements.data(), child.handle, &made);
      break;
    default:
      MPI_Type_create_hindexed_block(count, len, wide.data(), child.handle, &made);
      break;
  }
  static const char* names[] = {"indexed(", "hindexed(", "indexed_block(", "hindexed_block("};
  return {made, names[kind] + join(lens) + "," + join(displacements) + "," + child.text + ")"};
}

Type random_type(int depth, bool ascending);

void free_type(const Type& type) {
  MPI_Datatype handle = type.handle;
  if (!type.named) MPI_Type_free(&handle);
}

Type make_struct(int depth, bool ascending) {
  const int count = pick(0, 3);
  const std::vector<int> lens = random_lens(count);
  std::vector<Type> children;
  std::vector<MPI_Datatype> handles;
  std::vector<MPI_Aint> displacements;
  std::string text = "struct(";
  MPI_Aint next = 0;
  for (int i = 0; i < count; ++i) {
    children.push_back(random_type(depth - 1, ascending));
    handles.push_back(children.back().handle);
    const Shape s = shape_of(handles.back());
    displacements.push_back(ascending ? next - s.true_lb + pick(0, 5) : pick(-100, 200));
    next = displacements.back() + s.true_lb + s.true_extent +
           std::max(0, lens[i] - 1) * std::max<MPI_Aint>(s.extent, 0);
    text += std::to_string(lens[i]) + "@" + std::to_string(displacements.back()) + " " +
            children.back().text + ";";
  }
  MPI_Datatype made;
  MPI_Type_create_struct(count, lens.data(), displacements.data(), handles.data(), &made);
  for (const Type& child : children) free_type(child);
  return {made, text + ")"};
}

Type make_subarray(const Type& child) {
  const int dimensions = pick(1, 3);
  std::vector<int> sizes, subsizes, starts;
  for (int i = 0; i < dimensions; ++i) {
    sizes.push_back(pick(1, 5));
    subsizes.push_back(pick(1, sizes.back()));
    starts.push_back(pick(0, sizes.back() - subsizes.back()));
  }
  const int order = chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  MPI_Datatype made;
  MPI_Type_create_subarray(dimensions, sizes.data(), subsizes.data(), starts.data(), order,
                           child.handle, &made);
  return {made, std::string("subarray(") + (order == MPI_ORDER_C ? "C" : "F") + join(sizes) +
                    join(subsizes) + join(starts) + "," + child.text + ")"};
}

Type make_darray(const Type& child) {
  const int dimensions = pick(1, 3);
  std::vector<int> sizes, distributions, arguments, processes;
  int ranks = 1;
  for (int i = 0; i < dimensions; ++i) {
    const int kind = pick(0, 2);
    const int grid = kind == 0 ? 1 : pick(1, 3);
    sizes.push_back(pick(1, 7));
    distributions.push_back(kind == 0   ? MPI_DISTRIBUTE_NONE
                            : kind == 1 ? MPI_DISTRIBUTE_BLOCK
                                        : MPI_DISTRIBUTE_CYCLIC);
    const int least = kind == 1 ? (sizes.back() + grid - 1) / grid : 1;
    arguments.push_back(kind == 0 || chance(50) ? MPI_DISTRIBUTE_DFLT_DARG : least + pick(0, 2));
    processes.push_back(grid);
    ranks *= grid;
  }
  const int rank = pick(0, ranks - 1);
  const int order = chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  MPI_Datatype made;
  // Open MPI's constructor refuses some legal arguments.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int error =
      MPI_Type_create_darray(ranks, rank, dimensions, sizes.data(), distributions.data(),
                             arguments.data(), processes.data(), order, child.handle, &made);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  if (error != MPI_SUCCESS) {
    MPI_Type_dup(child.handle, &made);
    return {made, "dup(" + child.text + ")"};
  }
  return {made, std::string("darray(") + (order == MPI_ORDER_C ? "C" : "F") + std::to_string(rank) +
                    "of" + join(processes) + join(sizes) + join(distributions) + join(arguments) +
                    "," + child.text + ")"};
}

Type make_resized(const Type& child, bool ascending) {
  const Shape s = shape_of(child.handle);
  const MPI_Aint lb = ascending ? 0 : pick(-30, 30);
  const MPI_Aint extent = ascending ? std::max<MPI_Aint>(s.true_lb + s.true_extent, 1) + pick(0, 20)
                                    : s.extent + pick(-10, 30);
  MPI_Datatype made;
  MPI_Type_create_resized(child.handle, lb, extent, &made);
  return {made,
          "resized(" + std::to_string(lb) + "," + std::to_string(extent) + "," + child.text + ")"};
}

#if MPI_VERSION >= 4
// Constructors with large counts record their arguments elsewhere.
Type make_large(const Type& child, bool ascending) {
  const Shape s = shape_of(child.handle);
  MPI_Datatype made;
  const MPI_Count count = pick(1, 3);
  const MPI_Count len = pick(1, 3);
  switch (pick(0, 4)) {
    case 0:
      MPI_Type_contiguous_c(count, child.handle, &made);
      break;
    case 1:
      MPI_Type_vector_c(count, len, len + pick(0, 2), child.handle, &made);
      break;
    case 2:
      MPI_Type_create_hvector_c(count, len, len * s.extent + pick(0, 9), child.handle, &made);
      break;
    case 3: {
      const MPI_Count lens[] = {1, len};
      const MPI_Count displacements[] = {ascending ? 0 : 5, 2};
      MPI_Type_indexed_c(2, lens, displacements, child.handle, &made);
      break;
    }
    default: {
      const MPI_Count sizes[] = {4, 3}, subsizes[] = {2, count}, starts[] = {1, 3 - count};
      MPI_Type_create_subarray_c(2, sizes, subsizes, starts, MPI_ORDER_C, child.handle, &made);
    }
  }
  return {made, "large(" + child.text + ")"};
}
#endif

Type construct(const Type& child, bool ascending) {
  MPI_Datatype made;
  const int kind = pick(0, 12);
  switch (kind) {
    case 0:
      MPI_Type_dup(child.handle, &made);
      return {made, "dup(" + child.text + ")"};
    case 1: {
      const int count = pick(0, 4);
      MPI_Type_contiguous(count, child.handle, &made);
      return {made, "contiguous(" + std::to_string(count) + "," + child.text + ")"};
    }
    case 2:
    case 3:
      return make_vector(child, kind == 3, ascending);
    case 4:
    case 5:
    case 6:
    case 7:
      return make_indexed(child, kind - 4, ascending);
    case 8:
      return make_resized(child, ascending);
    case 9:
      return make_darray(child);
#if MPI_VERSION >= 4
    case 10:
      return make_large(child, ascending);
#endif
    default:
      return make_subarray(child);
  }
}

Type random_type(int depth, bool ascending) {
  if (depth == 0 || chance(10)) return random_named();
  if (chance(20)) {
    const Type made = make_struct(depth, ascending);
    if (is_small(made.handle)) return made;
    free_type(made);
    return random_named();
  }
  const Type child = random_type(depth - 1, ascending);
  const Type made = construct(child, ascending);
  if (!is_small(made.handle)) {
    free_type(made);
    return child;
  }
  free_type(child);
  return made;
}

Type committed_random_type(int depth, bool ascending) {
  Type type = random_type(depth, ascending);
  MPI_Type_commit(&type.handle);
  return type;
}

// --- the model --------------------------------------------------------------------------------

// The address of every data byte of `count` elements, relative to the buffer, in data order.
std::vector<long> addresses_of(MPI_Datatype type, int count) {
  constexpr int origin = 1 << 19;
  static std::vector<unsigned char> low, middle, high;
  if (low.empty()) {
    low.resize(2 * origin);
    middle.resize(2 * origin);
    high.resize(2 * origin);
    for (int i = 0; i < 2 * origin; ++i) {
      low[i] = static_cast<unsigned char>(i);
      middle[i] = static_cast<unsigned char>(i >> 8);
      high[i] = static_cast<unsigned char>(i >> 16);
    }
  }
  int bytes = 0;
  MPI_Pack_size(count, type, MPI_COMM_SELF, &bytes);
  std::vector<unsigned char> packed[3];
  std::vector<unsigned char>* sources[] = {&low, &middle, &high};
  int position = 0;
  for (int i = 0; i < 3; ++i) {
    packed[i].resize(bytes + 1);
    position = 0;
    MPI_Pack(sources[i]->data() + origin, count, type, packed[i].data(), bytes, &position,
             MPI_COMM_SELF);
  }
  std::vector<long> addresses(position);
  for (int i = 0; i < position; ++i)
    addresses[i] = (packed[0][i] | packed[1][i] << 8 | packed[2][i] << 16) - origin;
  return addresses;
}

bool strictly_increasing(const std::vector<long>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end();
}

// --- one transfer -----------------------------------------------------------------------------

struct FileSide {
  Type type;
  std::vector<long> addresses;
  MPI_Aint extent;
};

// A legal file type; every illegal one met on the way must be refused. `probe` is a file of this
// rank alone, because ranks meet different numbers of illegal types and set_view is collective.
FileSide random_file_side(MPI_File probe) {
  for (;;) {
    FileSide side;
    side.type = committed_random_type(pick(1, 4), chance(85));
    place = "file type " + side.type.text;
    side.addresses = addresses_of(side.type.handle, 1);
    side.extent = shape_of(side.type.handle).extent;
    const bool legal =
        strictly_increasing(side.addresses) && (side.addresses.empty() || side.addresses[0] >= 0);
    const int error =
        MPI_File_set_view(probe, 0, MPI_BYTE, side.type.handle, "native", MPI_INFO_NULL);
    int error_class = MPI_SUCCESS;
    if (error != MPI_SUCCESS) MPI_Error_class(error, &error_class);
    if (error_class != (legal ? MPI_SUCCESS : MPI_ERR_TYPE)) {
      die("set_view returned class " + std::to_string(error_class) + " for a" +
          (legal ? " legal" : "n illegal") + " file type");
    }
    if (legal && !side.addresses.empty()) return side;
    free_type(side.type);
  }
}

// Where view bytes first, first + 1, ... are, relative to the displacement; empty if they leave the
// region or meet twice.
std::vector<long> file_bytes(const FileSide& side, long first, std::size_t len) {
  std::vector<long> bytes(len);
  const long size = static_cast<long>(side.addresses.size());
  for (std::size_t i = 0; i < len; ++i) {
    const long at = first + static_cast<long>(i);
    bytes[i] = at / size * side.extent + side.addresses[at % size];
    if (bytes[i] < 0 || bytes[i] >= region_bytes) return {};
  }
  std::vector<long> sorted = bytes;
  std::sort(sorted.begin(), sorted.end());
  if (!strictly_increasing(sorted)) return {};
  return bytes;
}

constexpr int memory_origin = 1 << 18;

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
    die("the status tells of " + std::to_string(bytes) + " bytes, not " + std::to_string(expected));
}

// Reads into fresh memory; exactly the bytes of the memory type change.
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

// `how` and whether this rank moves anything are chosen alike on all ranks, as collectives demand.
void one_transfer(MPI_File fh, MPI_File probe, int how, bool busy, long displacement,
                  std::vector<unsigned char>& expected) {
  FileSide side = random_file_side(probe);
  if (MPI_File_set_view(fh, displacement, MPI_BYTE, side.type.handle, "native", MPI_INFO_NULL) !=
      MPI_SUCCESS)
    die("set_view failed");
  const std::string file_text = place;
  const Type type = committed_random_type(pick(0, 4), chance(50));
  int count = pick(0, 5);
  long first = pick(0, 40);
  place = file_text + "\n  memory type " + type.text + " x " + std::to_string(count) +
          " at view byte " + std::to_string(first) + ", way " + std::to_string(how);
  std::vector<long> memory = addresses_of(type.handle, count);
  std::vector<long> file = file_bytes(side, first, memory.size());
  std::vector<long> distinct = memory;
  std::sort(distinct.begin(), distinct.end());
  // Overlapping memory may be written from, but what a read leaves there is undefined.
  if (file.size() != memory.size() || !strictly_increasing(distinct) || !busy) {
    count = 0;
    memory.clear();
    file.clear();
  }
  std::vector<unsigned char> buffer(2 * memory_origin);
  for (unsigned char& byte : buffer) byte = static_cast<unsigned char>(random_engine() % 255 + 1);
  MPI_Status status;
  if (write_somehow(fh, how, first, buffer.data() + memory_origin, count, type.handle, &status) !=
      MPI_SUCCESS)
    die("writing failed");
  check_count(&status, memory.size());
  for (std::size_t i = 0; i < file.size(); ++i)
    expected[file[i]] = buffer[memory_origin + memory[i]];
  check_read_back(fh, how, first, memory, count, type, buffer);
  free_type(type);
  free_type(side.type);
}

// --- batches ----------------------------------------------------------------------------------

void compare_with_file(const char* path, const std::vector<std::vector<unsigned char>>& expected,
                       int rank, int ranks) {
  const int fd = open(path, O_RDONLY);
  std::vector<unsigned char> bytes(region_bytes);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    std::fill(bytes.begin(), bytes.end(), 0);
    const off_t start = (static_cast<off_t>(i) * ranks + rank) * region_bytes;
    if (pread(fd, bytes.data(), region_bytes, start) < 0) die("reading the file back with pread");
    const auto differ = std::mismatch(bytes.begin(), bytes.end(), expected[i].begin());
    if (differ.first == bytes.end()) continue;
    place = "transfer " + std::to_string(i) + " of the batch, byte " +
            std::to_string(differ.first - bytes.begin());
    die("the file differs");
  }
  close(fd);
}

void run_batch(unsigned seed, int batch, int rank, int ranks) {
  const std::string path = "datatypes.out";
  MPI_File fh;
  if (MPI_File_open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                    &fh) != MPI_SUCCESS)
    die("opening failed");
  MPI_File_set_size(fh, 0);
  std::mt19937 common(seed + batch);
  random_engine.seed(seed * 1000003ULL + batch * 131ULL + rank);
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
