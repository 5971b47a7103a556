// steps: a simulation that writes one new file at every time step, in two ways.
//
// The problem. np ranks hold --count doubles each. At each of --steps steps they write them to one
// new file, in rank order. A user who measured this found that MPI-IO took nearly twice as long as
// the naive program, and did not use it:
//
//     MPI half    open, set_view (etype and filetype MPI_INT), write_at at rank * 2 * count ints,
//                 close; all ranks at once
//     naive half  rank 0 creates the file; then the ranks take turns between barriers to append
//                 with fopen, fwrite, fclose
//
// As in that experiment, new random numbers are drawn at each step, inside the timed part. That
// costs both halves the same; its time alone is measured and printed too. Both halves draw the same
// numbers, so their files must be identical; --verify checks it.
//
// This is an ordinary MPI program: it includes mpi.h and does not refer to Shima.

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <mpi.h>
#include <unistd.h>

namespace {

struct Options {
  int steps = 100;
  int count = 100000;
  std::filesystem::path dir = ".";
  bool mpi = true;
  bool naive = true;
  bool json = false;
  bool clean = false;
  bool verify = false;
  bool sync_first = false;
};

struct Seconds {
  double all = 0;    // the loop as the user timed it, including drawing the numbers
  double files = 0;  // the part in file calls, including waits for ranks that still draw
};

int rank, np;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "steps: %s\n", what.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  fail(std::string(call) + ": " + text);
}

void check(bool good, const char* call) {
  if (!good) fail(std::string(call) + ": " + std::strerror(errno));
}

std::string step_path(const Options& o, int step, const char* half) {
  char name[64];
  std::snprintf(name, sizeof name, "step%03d.%s", step, half);
  return (o.dir / name).string();
}

// --- the two halves ---------------------------------------------------------------------------

void write_mpi(const std::string& path, const std::vector<double>& values) {
  MPI_File file;
  check(MPI_File_open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_WRONLY | MPI_MODE_CREATE,
                      MPI_INFO_NULL, &file),
        "MPI_File_open");
  check(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), "MPI_File_set_view");
  // The view counts in ints, and a double is two of them.
  MPI_Offset offset_ints = MPI_Offset{rank} * 2 * static_cast<MPI_Offset>(values.size());
  check(MPI_File_write_at(file, offset_ints, values.data(), static_cast<int>(values.size()),
                          MPI_DOUBLE, MPI_STATUS_IGNORE),
        "MPI_File_write_at");
  check(MPI_File_close(&file), "MPI_File_close");
}

void append(const std::string& path, const std::vector<double>& values) {
  std::FILE* file = std::fopen(path.c_str(), "ab");
  check(file != nullptr, "fopen");
  std::size_t written = std::fwrite(values.data(), sizeof(double), values.size(), file);
  check(written == values.size(), "fwrite");
  check(std::fclose(file) == 0, "fclose");
}

void write_naive(const std::string& path, const std::vector<double>& values) {
  if (rank == 0) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    check(file != nullptr && std::fclose(file) == 0, "fopen");
  }
  for (int turn = 0; turn < np; turn++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == turn) append(path, values);
  }
}

// --- timing -----------------------------------------------------------------------------------

void remove_files(const Options& o, const char* half) {
  if (rank == 0)
    for (int step = 0; step < o.steps; step++) std::filesystem::remove(step_path(o, step, half));
  MPI_Barrier(MPI_COMM_WORLD);
}

double slowest(double mine) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

template <class Write>
Seconds run_half(const Options& o, const char* half, Write write) {
  std::mt19937 generator(static_cast<unsigned>(rank));
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  std::vector<double> values(static_cast<std::size_t>(o.count));
  remove_files(o, half);
  if (o.sync_first && rank == 0) sync();
  MPI_Barrier(MPI_COMM_WORLD);
  double started = MPI_Wtime(), files = 0;
  for (int step = 0; step < o.steps; step++) {
    for (double& value : values) value = uniform(generator);
    double before = MPI_Wtime();
    write(step_path(o, step, half), values);
    files += MPI_Wtime() - before;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return {slowest(MPI_Wtime() - started), slowest(files)};
}

// --- checking and reporting -------------------------------------------------------------------

std::vector<char> contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  check(static_cast<bool>(file), path.c_str());
  return {std::istreambuf_iterator<char>(file), {}};
}

int count_different(const Options& o) {
  int different = 0;
  if (rank == 0)
    for (int step = 0; step < o.steps; step++)
      different += contents(step_path(o, step, "mpi")) != contents(step_path(o, step, "naive"));
  MPI_Bcast(&different, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return different;
}

void report(const Options& o, Seconds mpi, Seconds naive, Seconds drawing, int different) {
  if (rank != 0) return;
  double ratio = o.mpi && o.naive ? mpi.all / naive.all : 0;
  if (o.json) {
    std::printf(
        "{\"program\":\"steps\",\"np\":%d,\"steps\":%d,\"count\":%d,\"mpi_s\":%.6f,"
        "\"naive_s\":%.6f,\"mpi_files_s\":%.6f,\"naive_files_s\":%.6f,\"drawing_s\":%.6f,"
        "\"ratio\":%.4f,\"different_files\":%d}\n",
        np, o.steps, o.count, mpi.all, naive.all, mpi.files, naive.files, drawing.all, ratio,
        different);
    return;
  }
  if (o.mpi) std::printf("MPI-IO: %9.3f s, of it %9.3f s in file calls\n", mpi.all, mpi.files);
  if (o.naive)
    std::printf("naive:  %9.3f s, of it %9.3f s in file calls\n", naive.all, naive.files);
  std::printf("drawing the numbers takes %.3f s of each\n", drawing.all);
  if (o.mpi && o.naive) std::printf("MPI-IO takes %.2f of the naive time\n", ratio);
  if (o.verify) std::printf("%d of %d files differ\n", different, o.steps);
}

// --- the command line -------------------------------------------------------------------------

const char* const usage =
    "usage: steps [--steps N] [--count DOUBLES] [--dir DIR] [--half mpi|naive|both]\n"
    "             [--sync-first] [--verify] [--clean] [--json]";

void set_option(Options& o, const std::string& name, const char* value) {
  if (name == "--steps")
    o.steps = std::atoi(value);
  else if (name == "--count")
    o.count = std::atoi(value);
  else if (name == "--dir")
    o.dir = value;
  else if (name == "--half") {
    o.mpi = std::strcmp(value, "naive") != 0;
    o.naive = std::strcmp(value, "mpi") != 0;
  } else
    fail(usage);
}

bool set_flag(Options& o, const std::string& name) {
  for (auto [flag, member] : {std::pair{"--json", &Options::json},
                              {"--clean", &Options::clean},
                              {"--verify", &Options::verify},
                              {"--sync-first", &Options::sync_first}})
    if (name == flag) return o.*member = true;
  return false;
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; i++) {
    if (set_flag(o, argv[i])) continue;
    if (i + 1 == argc) fail(usage);
    set_option(o, argv[i], argv[i + 1]);
    i++;
  }
  if (o.steps < 1 || o.count < 1 || (o.verify && !(o.mpi && o.naive))) fail(usage);
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  Options o = parse(argc, argv);
  Seconds mpi = o.mpi ? run_half(o, "mpi", write_mpi) : Seconds{};
  Seconds naive = o.naive ? run_half(o, "naive", write_naive) : Seconds{};
  int different = o.verify ? count_different(o) : 0;
  Seconds drawing = run_half(o, "none", [](const std::string&, const std::vector<double>&) {});
  report(o, mpi, naive, drawing, different);
  if (o.clean) {
    remove_files(o, "mpi");
    remove_files(o, "naive");
  }
  MPI_Finalize();
  return different == 0 ? 0 : 1;
}
