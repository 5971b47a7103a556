/* One collective MPI-IO call for the pieces of all members of a rank. The pieces are sorted by file
   offset; they form a file view, and their addresses form a datatype. Bytes that several pieces of
   a read share are in the view once, and copied afterwards: a file that is open for writing takes
   no view with overlapping blocks. Whatever a rank may fail at happens before the ranks agree. */
#include "delegate_mpi/state.h"

static int delegate_mpi_by_offset(const void* a, const void* b) {
  const delegate_mpi_part *x = (const delegate_mpi_part*)a, *y = (const delegate_mpi_part*)b;
  return (x->piece.offset > y->piece.offset) - (x->piece.offset < y->piece.offset);
}

static int64_t delegate_mpi_end(const delegate_mpi_part* part) {
  return part->piece.offset + (int64_t)part->piece.size;
}

/* 0: the pieces do not fit one call. */
static int delegate_mpi_add_parts(delegate_mpi* net, int member) {
  const delegate_job* job = delegate_mpi_head(net, member);
  const delegate_piece* pieces = (const delegate_piece*)job->data;
  for (size_t i = 0; i < job->size / sizeof *pieces; i++) {
    if (pieces[i].size == 0) continue;
    if (pieces[i].size > INT_MAX || net->part_count == INT_MAX) return 0;
    if (pieces[i].offset < 0 || pieces[i].offset > INT64_MAX - (int64_t)pieces[i].size) return 0;
    net->parts[net->part_count++] = (delegate_mpi_part){.piece = pieces[i], .member = member};
  }
  return 1;
}

/* Sets what each part shares with earlier ones, and returns whether any does. The earlier part that
   reaches furthest covers all of it, because no earlier part begins later. */
static int delegate_mpi_find_shared(delegate_mpi* net) {
  int furthest = 0, some = 0;
  for (int i = 1; i < net->part_count; i++) {
    delegate_mpi_part* part = &net->parts[i];
    const int64_t shared = delegate_mpi_end(&net->parts[furthest]) - part->piece.offset;
    const int64_t size = (int64_t)part->piece.size;
    part->source = furthest;
    part->shared = shared < 0 ? 0 : shared < size ? shared : size;
    if (part->shared > 0) some = 1;
    if (shared < size) furthest = i;
  }
  return some;
}

static void delegate_mpi_make_types(delegate_mpi* net, int* sizes, MPI_Aint* places) {
  int count = 0;
  for (int i = 0; i < net->part_count; i++) {
    const delegate_mpi_part* part = &net->parts[i];
    sizes[count] = (int)((int64_t)part->piece.size - part->shared);
    places[count] = (MPI_Aint)(part->piece.offset + part->shared);
    count += sizes[count] > 0;
  }
  MPI_Type_create_hindexed(count, sizes, places, MPI_BYTE, &net->view);
  MPI_Type_commit(&net->view);
  for (int i = 0, block = 0; i < net->part_count; i++) {
    const delegate_mpi_part* part = &net->parts[i];
    if (part->shared == (int64_t)part->piece.size) continue;
    MPI_Get_address((char*)part->piece.data + part->shared, &places[block++]);
  }
  MPI_Type_create_hindexed(count, sizes, places, MPI_BYTE, &net->memory);
  MPI_Type_commit(&net->memory);
}

/* 0: no memory. */
static int delegate_mpi_describe_parts(delegate_mpi* net) {
  const size_t count = (size_t)net->part_count;
  if (count == 0) return 1;
  int* sizes = (int*)malloc(count * sizeof *sizes);
  MPI_Aint* places = (MPI_Aint*)malloc(count * sizeof *places);
  const int fits = sizes && places;
  if (fits) delegate_mpi_make_types(net, sizes, places);
  free(sizes);
  free(places);
  return fits;
}

void delegate_mpi_free_parts(delegate_mpi* net) {
  if (net->view != MPI_DATATYPE_NULL) MPI_Type_free(&net->view);
  if (net->memory != MPI_DATATYPE_NULL) MPI_Type_free(&net->memory);
  free(net->parts);
  net->parts = NULL;
  net->part_count = 0;
}

/* Runs before the ranks agree: if one rank fails here, none proceeds. */
int delegate_mpi_prepare_file(delegate_mpi* net) {
  const delegate_job* job = delegate_mpi_head(net, 0);
  size_t room = 1;
  if (job->arguments[0] < 0 || job->arguments[0] >= net->file_count) return 0;
  for (int i = 0; i < net->options.members; i++)
    room += delegate_mpi_head(net, i)->size / sizeof(delegate_piece);
  net->parts = (delegate_mpi_part*)malloc(room * sizeof *net->parts);
  int fits = net->parts != NULL;
  for (int i = 0; fits && i < net->options.members; i++) fits = delegate_mpi_add_parts(net, i);
  if (fits) {
    qsort(net->parts, (size_t)net->part_count, sizeof *net->parts, delegate_mpi_by_offset);
    const int overlap = delegate_mpi_find_shared(net);
    fits = (!overlap || job->operation == DELEGATE_READ_ALL) && delegate_mpi_describe_parts(net);
  }
  if (!fits) delegate_mpi_free_parts(net);
  return fits;
}

/* A rank without pieces takes part with none. Without its view the call would go elsewhere in the
   file. */
int delegate_mpi_begin_file(delegate_mpi* net) {
  const delegate_job* job = delegate_mpi_head(net, 0);
  MPI_File file = net->files[job->arguments[0]];
  const int some = net->part_count > 0;
  const MPI_Datatype memory = some ? net->memory : MPI_BYTE;
  const int error = MPI_File_set_view(file, 0, MPI_BYTE, some ? net->view : MPI_BYTE,
                                      (char*)"native", MPI_INFO_NULL);
  if (error != MPI_SUCCESS) return error;
  return job->operation == DELEGATE_WRITE_ALL
             ? MPI_File_iwrite_at_all(file, 0, MPI_BOTTOM, some, memory, &net->round)
             : MPI_File_iread_at_all(file, 0, MPI_BOTTOM, some, memory, &net->round);
}

/* Copies what parts share. A short read has filled the bytes of the view in their order. */
void delegate_mpi_finish_file(delegate_mpi* net, int64_t* bytes) {
  MPI_Count moved = 0;
  if (net->part_count > 0) MPI_Get_elements_x(&net->file_status, MPI_BYTE, &moved);
  for (int i = 0; i < net->part_count; i++) {
    delegate_mpi_part* part = &net->parts[i];
    const delegate_mpi_part* source = &net->parts[part->source];
    const int64_t at = part->piece.offset - source->piece.offset;
    int64_t copied = part->shared < source->moved - at ? part->shared : source->moved - at;
    if (copied < 0) copied = 0;
    memmove(part->piece.data, (char*)source->piece.data + at, (size_t)copied);
    const int64_t own = (int64_t)part->piece.size - part->shared;
    const int64_t now = moved < own ? (int64_t)moved : own;
    part->moved = copied + now;
    bytes[part->member] += part->moved;
    moved -= now;
  }
}
