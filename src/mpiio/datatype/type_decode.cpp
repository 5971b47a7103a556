#include "mpiio/datatype/type_decode.h"

#include <fmt/format.h>

#include <algorithm>

#include "mpiio/datatype/type_contents.h"

namespace shima {
namespace {

// Null: elements have the sizes of memory.
using InFile = const Representation*;

Result<TypeMap> decode(MPI_Datatype type, InFile in_file);

// Predefined types are contiguous, except pairs of a value and an index with a gap between them.
Result<TypeMap> decode_predefined(MPI_Datatype type, InFile in_file) {
  if (in_file != nullptr) {
    SHIMA_TRY_ASSIGN(const Signature signature, in_file->element(type));
    return typemap::element(signature.file_bytes());
  }
  int size = 0;
  if (PMPI_Type_size(type, &size) != MPI_SUCCESS)
    return fail(Code::bad_type, "querying the size of a datatype");
  if (type != MPI_SHORT_INT) return typemap::element(static_cast<std::uint64_t>(size));
  return typemap::sequence({typemap::element(sizeof(short)),
                            typemap::shift(typemap::element(sizeof(int)), alignof(int))});
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
// A value and an index, laid out like a C struct of the two.
Result<TypeMap> decode_value_index(const TypeContents& contents) {
  SHIMA_TRY_ASSIGN(const TypeMap value, decode(contents.types()[0], nullptr));
  SHIMA_TRY_ASSIGN(const TypeMap index, decode(contents.types()[1], nullptr));
  const std::int64_t alignment = std::max<std::int64_t>(index.extent, 1);
  const std::int64_t place = (value.extent + alignment - 1) / alignment * alignment;
  return typemap::sequence({value, typemap::shift(index, place)});
}
#endif

Result<TypeMap> decode_vector(TypeContents& contents, const TypeMap& child) {
  const std::int64_t count = contents.next_count();
  const std::int64_t block_len = contents.next_count();
  const bool in_bytes = contents.combiner() != MPI_COMBINER_VECTOR;
  const std::int64_t stride =
      in_bytes ? contents.next_displacement() : contents.next_count() * child.extent;
  SHIMA_TRY_ASSIGN(const TypeMap block, typemap::repeat(child, block_len, child.extent));
  return typemap::repeat(block, count, stride);
}

// indexed, hindexed, and their forms with one block length.
Result<TypeMap> decode_indexed(TypeContents& contents, const TypeMap& child) {
  const int combiner = contents.combiner();
  const bool one_len =
      combiner == MPI_COMBINER_INDEXED_BLOCK || combiner == MPI_COMBINER_HINDEXED_BLOCK;
  const bool in_bytes = combiner != MPI_COMBINER_INDEXED && combiner != MPI_COMBINER_INDEXED_BLOCK;
  const std::int64_t count = contents.next_count();
  std::vector<std::int64_t> lens;
  if (one_len) {
    lens.assign(static_cast<std::size_t>(count), contents.next_count());
  } else {
    lens = contents.next_counts(count);
  }
  std::vector<std::int64_t> displacements(static_cast<std::size_t>(count));
  for (std::int64_t& displacement : displacements)
    displacement = in_bytes ? contents.next_displacement() : contents.next_count() * child.extent;
  return typemap::blocks(child, lens, displacements);
}

bool is_c_order(std::int64_t order) { return order == MPI_ORDER_C; }

Result<TypeMap> decode_subarray(TypeContents& contents, const TypeMap& child) {
  const std::int64_t dimensions = contents.next_int();
  typemap::Subarray shape;
  shape.sizes = contents.next_counts(dimensions);
  shape.subsizes = contents.next_counts(dimensions);
  shape.starts = contents.next_counts(dimensions);
  shape.c_order = is_c_order(contents.next_int());
  return typemap::subarray(child, shape);
}

typemap::Distribution distribution_of(std::int64_t value) {
  if (value == MPI_DISTRIBUTE_BLOCK) return typemap::Distribution::block;
  if (value == MPI_DISTRIBUTE_CYCLIC) return typemap::Distribution::cyclic;
  return typemap::Distribution::none;
}

Result<TypeMap> decode_darray(TypeContents& contents, const TypeMap& child) {
  typemap::Darray shape;
  static_cast<void>(contents.next_int());  // the number of processes follows from the grid
  shape.rank = contents.next_int();
  const std::int64_t dimensions = contents.next_int();
  shape.sizes = contents.next_counts(dimensions);
  for (const std::int64_t value : contents.next_ints(dimensions))
    shape.distributions.push_back(distribution_of(value));
  for (const std::int64_t value : contents.next_ints(dimensions)) {
    shape.arguments.push_back(value == MPI_DISTRIBUTE_DFLT_DARG ? typemap::Darray::default_argument
                                                                : value);
  }
  shape.processes = contents.next_ints(dimensions);
  shape.c_order = is_c_order(contents.next_int());
  return typemap::darray(child, shape);
}

Result<TypeMap> decode_struct(TypeContents& contents, InFile in_file) {
  const std::int64_t count = contents.next_count();
  const std::vector<std::int64_t> lens = contents.next_counts(count);
  std::vector<TypeMap> parts;
  parts.reserve(lens.size());
  TypeMap child;
  for (std::size_t i = 0; i < lens.size(); ++i) {
    // While the handles are held, equal handles are the same type.
    if (i == 0 || contents.types()[i] != contents.types()[i - 1]) {
      SHIMA_TRY_ASSIGN(child, decode(contents.types()[i], in_file));
    }
    SHIMA_TRY_ASSIGN(TypeMap block, typemap::repeat(child, lens[i], child.extent));
    parts.push_back(typemap::shift(std::move(block), contents.next_displacement()));
  }
  return typemap::sequence(std::move(parts));
}

// Types that are made of one other type.
Result<TypeMap> decode_with_child(TypeContents& contents, InFile in_file) {
  SHIMA_TRY_ASSIGN(TypeMap child, decode(contents.types().front(), in_file));
  switch (contents.combiner()) {
    case MPI_COMBINER_DUP:
      return child;
    case MPI_COMBINER_RESIZED:
      child.lb = contents.next_displacement();
      child.extent = contents.next_displacement();
      return child;
    case MPI_COMBINER_CONTIGUOUS:
      return typemap::repeat(child, contents.next_count(), child.extent);
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
    case hvector_integer:
      return decode_vector(contents, child);
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
    case hindexed_integer:
      return decode_indexed(contents, child);
    case MPI_COMBINER_SUBARRAY:
      return decode_subarray(contents, child);
    case MPI_COMBINER_DARRAY:
      return decode_darray(contents, child);
    default:
      break;
  }
  return fail(Code::bad_type,
              fmt::format("decoding a datatype: its constructor, number {}, is not known",
                          contents.combiner()));
}

Result<TypeMap> decode_constructor(MPI_Datatype type, InFile in_file) {
  SHIMA_TRY_ASSIGN(TypeContents contents, TypeContents::of(type));
  if (contents.is_struct()) return decode_struct(contents, in_file);
  switch (contents.combiner()) {
    case MPI_COMBINER_NAMED:
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER:
      return decode_predefined(type, in_file);
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    case MPI_COMBINER_VALUE_INDEX:
      return in_file != nullptr ? decode_predefined(type, in_file) : decode_value_index(contents);
#endif
    default:
      return decode_with_child(contents, in_file);
  }
}

Result<TypeMap> decode(MPI_Datatype type, InFile in_file) {
  SHIMA_TRY_ASSIGN(TypeMap map, decode_constructor(type, in_file));
  if (in_file != nullptr) return map;
  MPI_Aint lb = 0;
  MPI_Aint extent = 0;
  if (PMPI_Type_get_extent(type, &lb, &extent) != MPI_SUCCESS)
    return fail(Code::bad_type, "querying the extent of a datatype");
  map.lb = lb;
  map.extent = extent;
  return map;
}

}  // namespace

Result<TypeMap> decode_type(MPI_Datatype type) { return decode(type, nullptr); }

Result<TypeMap> decode_type_in_file(MPI_Datatype type, const Representation& representation) {
  return decode(type, &representation);
}

}  // namespace shima
