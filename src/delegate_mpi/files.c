/* One collective MPI-IO call for the pieces of all members of a rank. The pieces are sorted by file
   offset; they form a file view, and their addresses form a datatype. */
#include "delegate_mpi/state.h"

static int delegate_mpi_by_offset(const void* a, const void* b) {
  const delegate_mpi_part *x = (const delegate_mpi_part*)a, *y = (const delegate_mpi_part*)b;
  return (x->piece.offset > y->piece.offset) - (x->piece.offset < y->piece.offset);
}

/* 0: the pieces do not fit one call. */
static int delegate_mpi_add_parts(delegate_mpi* net, int member, size_t* count) {
  const delegate_job* job = delegate_mpi_head(net, member);
  const delegate_piece* pieces = (const delegate_piece*)job->data;
  for (size_t i = 0; i < job->size / sizeof *pieces; i++) {
    if (pieces[i].size == 0) continue;
    if (pieces[i].size > INT_MAX || *count == INT_MAX) return 0;
    net->parts[*count].piece = pieces[i];
    net->parts[(*count)++].member = member;
  }
  return 1;
}

void delegate_mpi_free_parts(delegate_mpi* net) {
  free(net->parts);
  net->parts = NULL;
  net->part_count = 0;
}

/* Runs before the ranks agree: what one rank cannot do, none does. */
int delegate_mpi_prepare_file(delegate_mpi* net) {
  const int64_t file = delegate_mpi_head(net, 0)->arguments[0];
  size_t room = 1, count = 0;
  if (file < 0 || file >= net->file_count) return 0;
  for (int i = 0; i < net->options.members; i++)
    room += delegate_mpi_head(net, i)->size / sizeof(delegate_piece);
  net->parts = (delegate_mpi_part*)malloc(room * sizeof *net->parts);
  int fits = net->parts != NULL;
  for (int i = 0; fits && i < net->options.members; i++)
    fits = delegate_mpi_add_parts(net, i, &count);
  if (!fits) {
    delegate_mpi_free_parts(net);
    return 0;
  }
  qsort(net->parts, count, sizeof *net->parts, delegate_mpi_by_offset);
  net->part_count = (int)count;
  return 1;
}

static void delegate_mpi_make_type(const delegate_mpi* net, int of_memory, MPI_Datatype* type) {
  const int count = net->part_count;
  int* sizes = (int*)malloc((size_t)(count + 1) * sizeof *sizes);
  MPI_Aint* places = (MPI_Aint*)malloc((size_t)(count + 1) * sizeof *places);
  for (int i = 0; sizes && places && i < count; i++) {
    sizes[i] = (int)net->parts[i].piece.size;
    places[i] = (MPI_Aint)net->parts[i].piece.offset;
    if (of_memory) MPI_Get_address(net->parts[i].piece.data, &places[i]);
  }
  *type = MPI_DATATYPE_NULL;
  if (sizes && places) {
    MPI_Type_create_hindexed(count, sizes, places, MPI_BYTE, type);
    MPI_Type_commit(type);
  }
  free(sizes);
  free(places);
}

/* A rank without pieces, or without memory to describe them, takes part with none. */
int delegate_mpi_begin_file(delegate_mpi* net) {
  const delegate_job* job = delegate_mpi_head(net, 0);
  MPI_File file = net->files[job->arguments[0]];
  MPI_Datatype there = MPI_DATATYPE_NULL, here = MPI_DATATYPE_NULL;
  if (net->part_count > 0) {
    delegate_mpi_make_type(net, 0, &there);
    delegate_mpi_make_type(net, 1, &here);
  }
  const int some = there != MPI_DATATYPE_NULL && here != MPI_DATATYPE_NULL;
  MPI_File_set_view(file, 0, MPI_BYTE, some ? there : MPI_BYTE, (char*)"native", MPI_INFO_NULL);
  const int error =
      job->operation == DELEGATE_WRITE_ALL
          ? MPI_File_iwrite_at_all(file, 0, MPI_BOTTOM, some, some ? here : MPI_BYTE, &net->round)
          : MPI_File_iread_at_all(file, 0, MPI_BOTTOM, some, some ? here : MPI_BYTE, &net->round);
  if (there != MPI_DATATYPE_NULL) MPI_Type_free(&there);
  if (here != MPI_DATATYPE_NULL) MPI_Type_free(&here);
  return some || net->part_count == 0 ? error : MPI_ERR_NO_MEM;
}

/* A short read has filled the pieces in their order. */
void delegate_mpi_count_bytes(const delegate_mpi* net, int64_t* bytes) {
  MPI_Count moved = 0;
  if (net->part_count > 0) MPI_Get_elements_x(&net->file_status, MPI_BYTE, &moved);
  for (int i = 0; i < net->part_count; i++) {
    const int64_t size = (int64_t)net->parts[i].piece.size;
    const int64_t now = moved < size ? (int64_t)moved : size;
    bytes[net->parts[i].member] += now;
    moved -= now;
  }
}
