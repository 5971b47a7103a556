// Random nested datatypes with the list of their bytes.
//
// Each type carries the addresses of its data bytes in data order, found by walking the definition
// of its constructor. (MPI_Pack would be a shorter model, but with an empty block inside, Open
// MPI's packing contradicts its own extent and MPICH's divides by zero; elsewhere it confirms the
// list, see confirm_by_packing.)
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace random_types {

inline constexpr long max_span = 16384;  // of one element of a random type
inline constexpr long max_size = 4096;   // data bytes of one element

struct Type {
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  std::string text;
  std::vector<long> bytes;
  bool named = false;
  bool has_nothing = false;  // contains an empty block
};

using Ints = std::vector<int>;

inline std::mt19937_64& engine() {
  static std::mt19937_64 instance;
  return instance;
}
inline int pick(int lowest, int highest) {
  return std::uniform_int_distribution<int>(lowest, highest)(engine());
}
inline bool chance(int percent) { return pick(1, 100) <= percent; }

inline long extent_of(const Type& type) {
  MPI_Aint lb = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(type.handle, &lb, &extent);
  return extent;
}

inline void free_type(Type& type) {
  if (!type.named) MPI_Type_free(&type.handle);
}

inline std::string join(const Ints& values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return "[" + text + "]";
}

// Appends `count` elements of a type, the first at `displacement`.
inline void append(Type& whole, const Type& part, long displacement, long count) {
  if (count == 0 || part.has_nothing || part.bytes.empty()) whole.has_nothing = true;
  const long extent = extent_of(part);
  for (long i = 0; i < count; ++i) {
    for (const long byte : part.bytes) whole.bytes.push_back(displacement + i * extent + byte);
  }
}

inline bool is_small(const Type& type) {
  if (type.bytes.size() > max_size || std::labs(extent_of(type)) > max_span) return false;
  return std::ranges::all_of(type.bytes, [](long byte) { return std::labs(byte) <= max_span; });
}

inline Type random_named() {
  // Not long double: MPICH packs its value without its padding bytes.
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
  Type type{.handle = one.first, .text = one.second, .named = true};
  int size = 0;
  MPI_Type_size(type.handle, &size);
  for (long i = 0; i < size; ++i)
    type.bytes.push_back(one.first == MPI_SHORT_INT && i >= 2 ? i + 2 : i);
  return type;
}

inline Ints random_lens(int count) {
  Ints lens(static_cast<std::size_t>(count));
  const int least = chance(70) ? 1 : 0;
  for (int& len : lens) len = pick(least, 3);
  return lens;
}

inline Type make_vector(const Type& child, bool in_bytes, bool ascending) {
  const int count = pick(chance(90) ? 1 : 0, 4);
  const int len = pick(chance(90) ? 1 : 0, 3);
  const int extent = static_cast<int>(extent_of(child));
  int stride = ascending ? len + pick(0, 3) : pick(-4, 5);
  Type made{.text = (in_bytes ? "hvector" : "vector")};
  if (in_bytes) {
    stride = stride * extent + (ascending ? pick(0, 5) : 0);
    MPI_Type_create_hvector(count, len, stride, child.handle, &made.handle);
  } else {
    MPI_Type_vector(count, len, stride, child.handle, &made.handle);
  }
  made.text += join({count, len, stride}) + "(" + child.text + ")";
  made.has_nothing = count == 0;
  for (long i = 0; i < count; ++i) append(made, child, i * stride * (in_bytes ? 1L : extent), len);
  return made;
}

// kind: 0 indexed, 1 hindexed, 2 indexed_block, 3 hindexed_block.
inline Type make_indexed(const Type& child, int kind, bool ascending) {
  const int count = pick(chance(90) ? 1 : 0, 4);
  const bool in_bytes = kind % 2 == 1;
  const int extent = static_cast<int>(extent_of(child));
  const Ints lens =
      kind >= 2 ? Ints(static_cast<std::size_t>(count), pick(1, 3)) : random_lens(count);
  Ints places;
  int next = pick(0, 3);
  for (const int len : lens) {
    places.push_back(ascending ? next : pick(-20, 60));
    next += (in_bytes ? len * extent : len) + pick(0, 4);
  }
  const std::vector<MPI_Aint> wide(places.begin(), places.end());
  const int len = count > 0 ? lens[0] : 0;
  Type made;
  auto* handle = &made.handle;
  switch (kind) {
    case 0:
      MPI_Type_indexed(count, lens.data(), places.data(), child.handle, handle);
      break;
    case 1:
      MPI_Type_create_hindexed(count, lens.data(), wide.data(), child.handle, handle);
      break;
    case 2:
      MPI_Type_create_indexed_block(count, len, places.data(), child.handle, handle);
      break;
    default:
      MPI_Type_create_hindexed_block(count, len, wide.data(), child.handle, handle);
  }
  static const char* names[] = {"indexed", "hindexed", "indexed_block", "hindexed_block"};
  made.text = names[kind] + join(lens) + join(places) + "(" + child.text + ")";
  made.has_nothing = count == 0;
  for (std::size_t i = 0; i < lens.size(); ++i)
    append(made, child, places[i] * (in_bytes ? 1L : extent), lens[i]);
  return made;
}

// The selected elements of an array in each dimension, slowest dimension outermost.
inline void append_grid(Type& made, const Type& child, const Ints& sizes,
                        const std::vector<Ints>& chosen, int order) {
  const std::size_t dimensions = sizes.size();
  const long extent = extent_of(child);
  std::function<void(std::size_t, long)> walk = [&](std::size_t level, long index) {
    if (level == dimensions) return append(made, child, index * extent, 1);
    const std::size_t dimension = order == MPI_ORDER_C ? level : dimensions - 1 - level;
    if (chosen[dimension].empty()) made.has_nothing = true;
    for (const int i : chosen[dimension]) walk(level + 1, index * sizes[dimension] + i);
  };
  walk(0, 0);
}

inline Type make_subarray(const Type& child) {
  const int dimensions = pick(1, 3);
  Ints sizes, subsizes, starts;
  std::vector<Ints> chosen;
  for (int i = 0; i < dimensions; ++i) {
    sizes.push_back(pick(1, 5));
    subsizes.push_back(pick(1, sizes.back()));
    starts.push_back(pick(0, sizes.back() - subsizes.back()));
    chosen.emplace_back();
    for (int k = 0; k < subsizes.back(); ++k) chosen.back().push_back(starts.back() + k);
  }
  const int order = chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  Type made;
  MPI_Type_create_subarray(dimensions, sizes.data(), subsizes.data(), starts.data(), order,
                           child.handle, &made.handle);
  made.text = std::string(order == MPI_ORDER_C ? "subarrayC" : "subarrayF") + join(sizes) +
              join(subsizes) + join(starts) + "(" + child.text + ")";
  append_grid(made, child, sizes, chosen, order);
  return made;
}

inline Type make_darray(const Type& child) {
  const int dimensions = pick(1, 3);
  Ints sizes, kinds, arguments, grid;
  int ranks = 1;
  for (int i = 0; i < dimensions; ++i) {
    const int kind = pick(0, 2);
    static const int distributions[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK,
                                        MPI_DISTRIBUTE_CYCLIC};
    grid.push_back(kind == 0 ? 1 : pick(1, 3));
    sizes.push_back(pick(1, 7));
    kinds.push_back(distributions[kind]);
    const int least = kind == 1 ? (sizes.back() + grid.back() - 1) / grid.back() : 1;
    arguments.push_back(kind == 0 || chance(50) ? MPI_DISTRIBUTE_DFLT_DARG : least + pick(0, 2));
    ranks *= grid.back();
  }
  const int rank = pick(0, ranks - 1);
  const int order = chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  Type made;
  // Open MPI refuses types of no bytes here.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int error =
      MPI_Type_create_darray(ranks, rank, dimensions, sizes.data(), kinds.data(), arguments.data(),
                             grid.data(), order, child.handle, &made.handle);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  if (error != MPI_SUCCESS) return make_subarray(child);
  std::vector<Ints> chosen(sizes.size());
  int rest = rank;
  for (std::size_t i = sizes.size(); i-- > 0; rest /= grid[i]) {
    const int mine = rest % grid[i];
    const int fallback = kinds[i] == MPI_DISTRIBUTE_BLOCK ? (sizes[i] + grid[i] - 1) / grid[i] : 1;
    const int block = arguments[i] == MPI_DISTRIBUTE_DFLT_DARG ? fallback : arguments[i];
    for (int k = 0; k < sizes[i]; ++k) {
      const int owner = kinds[i] == MPI_DISTRIBUTE_NONE ? 0 : k / block % grid[i];
      if (owner == mine) chosen[i].push_back(k);
    }
  }
  made.text = std::string(order == MPI_ORDER_C ? "darrayC" : "darrayF") + std::to_string(rank) +
              "of" + join(grid) + join(sizes) + join(kinds) + join(arguments) + "(" + child.text +
              ")";
  append_grid(made, child, sizes, chosen, order);
  return made;
}

inline Type make_resized(const Type& child, bool ascending) {
  long lb = pick(-30, 30);
  // Not negative: then MPICH's packing of a contiguous run contradicts its own extent.
  long extent = std::max(0L, extent_of(child) + pick(-10, 30));
  if (ascending) {
    lb = 0;
    extent =
        (child.bytes.empty() ? 1 : std::max(1L, std::ranges::max(child.bytes) + 1)) + pick(0, 20);
  }
  Type made = child;
  made.named = false;
  MPI_Type_create_resized(child.handle, lb, extent, &made.handle);
  made.text =
      "resized[" + std::to_string(lb) + "," + std::to_string(extent) + "](" + child.text + ")";
  return made;
}

#if MPI_VERSION >= 4
// Constructors with large counts store their arguments in another array.
inline Type make_large(const Type& child) {
  const MPI_Count count = pick(1, 3);
  const MPI_Count len = pick(1, 3);
  const MPI_Count gap = pick(0, 9);
  const MPI_Count lens[] = {1, len};
  const MPI_Count places[] = {gap, gap + 1};
  const long extent = extent_of(child);
  Type made{.text = "large(" + child.text + ")"};
  auto* handle = &made.handle;
  switch (pick(0, 5)) {
    case 0:
      MPI_Type_contiguous_c(count, child.handle, handle);
      append(made, child, 0, count);
      break;
    case 1:
      MPI_Type_vector_c(count, len, len + gap, child.handle, handle);
      for (long i = 0; i < count; ++i) append(made, child, i * (len + gap) * extent, len);
      break;
    case 2:
      MPI_Type_create_hvector_c(count, len, len * extent + gap, child.handle, handle);
      for (long i = 0; i < count; ++i) append(made, child, i * (len * extent + gap), len);
      break;
    case 3:
      MPI_Type_indexed_c(2, lens, places, child.handle, handle);
      for (int i = 0; i < 2; ++i) append(made, child, places[i] * extent, lens[i]);
      break;
    case 4:
      MPI_Type_create_hindexed_block_c(2, len, places, child.handle, handle);
      for (int i = 0; i < 2; ++i) append(made, child, places[i], len);
      break;
    default: {
      const MPI_Count sizes[] = {4, 3};
      const MPI_Count subsizes[] = {2, count};
      const MPI_Count starts[] = {1, 3 - count};
      MPI_Type_create_subarray_c(2, sizes, subsizes, starts, MPI_ORDER_C, child.handle, handle);
      for (long i = 1; i < 3; ++i) append(made, child, (i * 3 + starts[1]) * extent, count);
    }
  }
  return made;
}
#endif

inline Type construct(const Type& child, bool ascending) {
  switch (const int kind = pick(0, 12)) {
    case 0: {
      Type made = child;
      made.named = false;
      made.text = "dup(" + child.text + ")";
      MPI_Type_dup(child.handle, &made.handle);
      return made;
    }
    case 1: {
      const int count = pick(chance(90) ? 1 : 0, 4);
      Type made{.text = "contiguous[" + std::to_string(count) + "](" + child.text + ")"};
      MPI_Type_contiguous(count, child.handle, &made.handle);
      append(made, child, 0, count);
      return made;
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
      return make_large(child);
#endif
    default:
      return make_subarray(child);
  }
}

Type random_type(int depth, bool ascending);

inline Type make_struct(int depth, bool ascending) {
  const Ints lens = random_lens(pick(1, 3));
  std::vector<Type> children;
  std::vector<MPI_Datatype> handles;
  std::vector<MPI_Aint> places;
  Type made{.text = "struct("};
  long next = 0;
  for (const int len : lens) {
    Type child = random_type(depth - 1, ascending);
    const long first = child.bytes.empty() ? 0 : std::ranges::min(child.bytes);
    const long end = child.bytes.empty() ? 0 : std::ranges::max(child.bytes) + 1;
    places.push_back(ascending ? next - first + pick(0, 5) : pick(-100, 200));
    next = places.back() + end + std::max(0, len - 1) * std::max(0L, extent_of(child));
    append(made, child, places.back(), len);
    made.text +=
        std::to_string(len) + "@" + std::to_string(places.back()) + " " + child.text + "; ";
    handles.push_back(child.handle);
    children.push_back(std::move(child));
  }
  MPI_Type_create_struct(static_cast<int>(lens.size()), lens.data(), places.data(), handles.data(),
                         &made.handle);
  made.text += ")";
  for (Type& child : children) free_type(child);
  return made;
}

// A type of at most `depth` levels; an `ascending` one is more often a legal file type.
inline Type random_type(int depth, bool ascending) {
  if (depth == 0 || chance(10)) return random_named();
  if (chance(20)) {
    Type made = make_struct(depth, ascending);
    if (is_small(made)) return made;
    free_type(made);
    return random_named();
  }
  Type child = random_type(depth - 1, ascending);
  Type made = construct(child, ascending);
  const bool small = is_small(made);
  free_type(small ? child : made);
  return small ? made : child;
}

// Whether MPI_Pack reads the bytes that the type lists; true if MPI_Pack is no reference. Open
// MPI's is none: its packing disagrees with its own extents if bytes overlap or are out of order.
inline bool confirm_by_packing(const Type& type) {
#ifdef OPEN_MPI
  return true;
#endif
  if (type.has_nothing || type.bytes.empty()) return true;
  static const auto address_bytes = [](int shift) {
    std::vector<unsigned char> bytes(4 * max_span);
    for (long i = 0; i < 4 * max_span; ++i)
      bytes[static_cast<std::size_t>(i)] = static_cast<unsigned char>(i >> shift);
    return bytes;
  };
  static const std::vector<unsigned char> low = address_bytes(0);
  static const std::vector<unsigned char> high = address_bytes(8);
  int room = 0;
  MPI_Pack_size(1, type.handle, MPI_COMM_SELF, &room);
  std::vector<unsigned char> packed_low(static_cast<std::size_t>(room)),
      packed_high(static_cast<std::size_t>(room));
  int position = 0;
  MPI_Pack(low.data() + 2 * max_span, 1, type.handle, packed_low.data(), room, &position,
           MPI_COMM_SELF);
  position = 0;
  MPI_Pack(high.data() + 2 * max_span, 1, type.handle, packed_high.data(), room, &position,
           MPI_COMM_SELF);
  if (static_cast<std::size_t>(position) != type.bytes.size()) return false;
  for (std::size_t i = 0; i < type.bytes.size(); ++i) {
    if ((packed_low[i] | packed_high[i] << 8) != type.bytes[i] + 2 * max_span) return false;
  }
  return true;
}

}  // namespace random_types
