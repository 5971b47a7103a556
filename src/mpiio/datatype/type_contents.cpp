#include "mpiio/datatype/type_contents.h"

#include "mpiio/mpi/real_mpi.h"

namespace shima {
namespace {

struct Envelope {
  MPI_Count ints = 0;
  MPI_Count addresses = 0;
  MPI_Count counts = 0;
  MPI_Count types = 0;
  int combiner = MPI_COMBINER_NAMED;
};

// The _c calls can describe every type; the others refuse types with large counts. An older library
// with the same soname lacks them.
bool have_large_calls() {
#if MPI_VERSION >= 4
  return SHIMA_REAL(Type_get_envelope_c) != nullptr;
#else
  return false;
#endif
}

Result<Envelope> envelope_of(MPI_Datatype type) {
  Envelope envelope;
  int error = MPI_SUCCESS;
  if (have_large_calls()) {
#if MPI_VERSION >= 4
    error = SHIMA_REAL(Type_get_envelope_c)(type, &envelope.ints, &envelope.addresses,
                                            &envelope.counts, &envelope.types, &envelope.combiner);
#endif
  } else {
    int ints = 0;
    int addresses = 0;
    int types = 0;
    error = PMPI_Type_get_envelope(type, &ints, &addresses, &types, &envelope.combiner);
    envelope.ints = ints;
    envelope.addresses = addresses;
    envelope.types = types;
  }
  if (error != MPI_SUCCESS) return fail(Code::bad_type, "querying the constructor of a datatype");
  return envelope;
}

int read_contents(MPI_Datatype type, const Envelope& envelope, int* ints, MPI_Aint* addresses,
                  MPI_Count* counts, MPI_Datatype* types) {
#if MPI_VERSION >= 4
  if (have_large_calls()) {
    return SHIMA_REAL(Type_get_contents_c)(type, envelope.ints, envelope.addresses, envelope.counts,
                                           envelope.types, ints, addresses, counts, types);
  }
#endif
  static_cast<void>(counts);
  return PMPI_Type_get_contents(type, static_cast<int>(envelope.ints),
                                static_cast<int>(envelope.addresses),
                                static_cast<int>(envelope.types), ints, addresses, types);
}

bool is_predefined_combiner(int combiner) {
  switch (combiner) {
    case MPI_COMBINER_NAMED:
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER:
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    case MPI_COMBINER_VALUE_INDEX:
#endif
      return true;
    default:
      return false;
  }
}

}  // namespace

bool is_predefined(MPI_Datatype type) {
  const Result<Envelope> envelope = envelope_of(type);
  return !envelope || is_predefined_combiner(envelope->combiner);
}

bool TypeContents::is_struct() const {
  return combiner_ == MPI_COMBINER_STRUCT || combiner_ == struct_integer;
}

Result<TypeContents> TypeContents::of(MPI_Datatype type) {
  SHIMA_TRY_ASSIGN(const Envelope envelope, envelope_of(type));
  TypeContents contents;
  contents.combiner_ = envelope.combiner;
  if (envelope.combiner == MPI_COMBINER_NAMED) return contents;
  contents.ints_.resize(static_cast<std::size_t>(envelope.ints));
  contents.addresses_.resize(static_cast<std::size_t>(envelope.addresses));
  contents.counts_.resize(static_cast<std::size_t>(envelope.counts));
  std::vector<MPI_Datatype> types(static_cast<std::size_t>(envelope.types), MPI_DATATYPE_NULL);
  const int error = read_contents(type, envelope, contents.ints_.data(), contents.addresses_.data(),
                                  contents.counts_.data(), types.data());
  if (error != MPI_SUCCESS) return fail(Code::bad_type, "querying the contents of a datatype");
  contents.types_ = std::move(types);
  return contents;
}

TypeContents::~TypeContents() {
  for (MPI_Datatype type : types_) {
    if (!is_predefined(type)) PMPI_Type_free(&type);
  }
}

std::vector<std::int64_t> TypeContents::next_ints(std::int64_t number) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(number));
  for (std::int64_t& value : values) value = next_int();
  return values;
}

std::vector<std::int64_t> TypeContents::next_counts(std::int64_t number) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(number));
  for (std::int64_t& value : values) value = next_count();
  return values;
}

}  // namespace shima
