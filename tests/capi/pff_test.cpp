// pff.h in one process: random requests against a byte array, over plain and striped files;
// pending requests on several files; invalid arguments.
#include "shima/pff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "capi/requests.h"

namespace shima::test {
namespace {

constexpr std::size_t model_bytes = 1'300'000;  // more than any request reaches

void fails(std::int64_t code, pff_error expected, const char* words) {
  EXPECT_EQ(code, expected) << pff_error_message();
  EXPECT_NE(std::string(pff_error_message()).find(words), std::string::npos) << pff_error_message();
}

struct Closing {
  void operator()(pff_file* file) const { EXPECT_EQ(pff_close(file), 0) << pff_error_message(); }
};
using Opened = std::unique_ptr<pff_file, Closing>;

class PffTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::temp_directory_path() / ("shima_pff_" + std::to_string(::getpid()));
    std::filesystem::create_directory(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) { return (directory_ / name).string(); }

  Opened create(const std::string& name, const std::vector<pff_region>& regions = {},
                const char* hints = nullptr) {
    const pff_striping striping{regions.size(), regions.data()};
    pff_file* file = nullptr;
    EXPECT_EQ(pff_open(path(name).c_str(), PFF_READ | PFF_WRITE | PFF_CREATE,
                       regions.empty() ? nullptr : &striping, hints, &file),
              0)
        << pff_error_message();
    return Opened(file);
  }

  std::filesystem::path directory_;
};

const std::vector<std::vector<pff_region>> stripings{
    {},
    {{0, 512, 3, "beside"}},
    {{0, 100, 1, "beside"}, {3'000, 64, 4, "beside"}, {9'000, 4'096, 2, "beside"}},
};

std::vector<unsigned char> contents(pff_file* file) {
  std::vector<unsigned char> bytes(model_bytes);
  const auto n = pff_read(file, pff_span(0, bytes.size()), bytes.data());
  EXPECT_GE(n, 0) << pff_error_message();
  bytes.resize(static_cast<std::size_t>(std::max<std::int64_t>(n, 0)));
  return bytes;
}

std::int64_t write_some(pff_file* file, const Request& request, const Request& memory,
                        bool packed) {
  const auto buffer = filled(request, memory);
  if (packed) return pff_write(file, request.where, buffer.data());
  return pff_write_from(file, request.where, buffer.data(), memory.where);
}

// The number of bytes of a request, in its order, before the end of the file.
std::size_t bytes_before(const Request& request, std::size_t end) {
  const auto first = std::ranges::find_if(
      request.bytes, [=](std::int64_t at) { return at >= static_cast<std::int64_t>(end); });
  return static_cast<std::size_t>(first - request.bytes.begin());
}

void check_read(pff_file* file, const Request& request, const Request& memory,
                const std::vector<unsigned char>& model) {
  std::vector<unsigned char> buffer(reach_of(memory) + 1, 0xEE);
  const auto n = pff_read_into(file, request.where, buffer.data(), memory.where);
  ASSERT_EQ(n, static_cast<std::int64_t>(bytes_before(request, model.size())))
      << pff_error_message();
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
    ASSERT_EQ(buffer[static_cast<std::size_t>(memory.bytes[i])],
              model[static_cast<std::size_t>(request.bytes[i])])
        << "data byte " << i;
  std::vector<bool> named(buffer.size());
  for (const std::int64_t at : memory.bytes) named[static_cast<std::size_t>(at)] = true;
  for (std::size_t i = 0; i < buffer.size(); ++i)
    if (!named[i]) {
      ASSERT_EQ(buffer[i], 0xEE) << "memory between the pieces";
    }
}

TEST_F(PffTest, RandomRequestsMoveTheBytesTheyName) {
  const char* seed_text = std::getenv("SHIMA_SEED");
  const std::uint64_t first = seed_text == nullptr ? 1 : std::strtoull(seed_text, nullptr, 10);
  for (std::uint64_t seed = first; seed < first + 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE("SHIMA_SEED=" + std::to_string(seed));
    Dice dice(seed);
    const Opened file = create("random" + std::to_string(seed), stripings[seed % 3]);
    std::vector<unsigned char> model;
    for (int round = 0; round < 12; ++round) {
      const Request request = a_request(dice);
      const bool packed = dice.one_in(3);
      const Request memory = packed ? Request{} : some_memory(dice, request.bytes.size());
      Request plain;
      append_run(plain.bytes, 0, request.bytes.size());
      ASSERT_EQ(write_some(file.get(), request, packed ? plain : memory, packed),
                static_cast<std::int64_t>(request.bytes.size()))
          << pff_error_message();
      model.resize(std::max(model.size(), reach_of(request)));
      for (const std::int64_t at : request.bytes)
        model[static_cast<std::size_t>(at)] = value_at(at);
      ASSERT_EQ(contents(file.get()), model);
      ASSERT_EQ(pff_size(file.get()), static_cast<std::int64_t>(model.size()));
      const Request wanted = a_request(dice);
      check_read(file.get(), wanted, some_memory(dice, wanted.bytes.size()), model);
    }
  }
}

// A list of `count` pieces in random order, data for it, and the resulting contents of the file.
struct LongList {
  std::vector<pff_piece> pieces;
  std::vector<unsigned char> data;
  std::vector<unsigned char> model;

  [[nodiscard]] pff_where where() const { return pff_list(pieces.data(), pieces.size()); }
};

// Pieces of a write may overlap: the later ones win.
LongList draw_long_list(Dice& dice, std::size_t count, std::vector<unsigned char> before) {
  LongList list{{}, {}, std::move(before)};
  const auto file_bytes = static_cast<std::int64_t>(list.model.size());
  const bool overlap = dice.one_in(2);
  const std::int64_t pitch = overlap ? 7 : file_bytes / static_cast<std::int64_t>(count);
  for (std::size_t i = 0; i < count; ++i)
    list.pieces.push_back({static_cast<std::int64_t>(i) * pitch % file_bytes,
                           static_cast<std::uint64_t>(dice.between(1, overlap ? 9 : pitch))});
  for (pff_piece& piece : list.pieces) std::swap(piece, list.pieces[dice.upto(count - 1)]);
  for (const pff_piece& piece : list.pieces) {
    for (std::uint64_t i = 0; i < piece.size; ++i) {
      list.data.push_back(static_cast<unsigned char>(dice.between(0, 255)));
      const auto at = static_cast<std::size_t>(piece.offset) + i;
      if (at >= list.model.size()) list.model.resize(at + 1);
      list.model[at] = list.data.back();
    }
  }
  return list;
}

void check_long_list(pff_file* file, LongList list) {
  const auto len = static_cast<std::int64_t>(list.data.size());
  ASSERT_EQ(pff_write(file, list.where(), list.data.data()), len) << pff_error_message();
  ASSERT_EQ(contents(file), list.model);
  std::vector<unsigned char> found(list.data.size());
  ASSERT_EQ(pff_read(file, list.where(), found.data()), len) << pff_error_message();
  std::size_t byte = 0;
  for (const pff_piece& piece : list.pieces)
    for (std::uint64_t i = 0; i < piece.size; ++i)
      ASSERT_EQ(found[byte++], list.model[static_cast<std::size_t>(piece.offset) + i]);
  // A read stops at the first piece beyond the end.
  const std::size_t middle = list.pieces.size() / 2;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < middle; ++i) before += static_cast<std::int64_t>(list.pieces[i].size);
  list.pieces[middle].offset = 1LL << 30;
  EXPECT_EQ(pff_read(file, list.where(), found.data()), before) << pff_error_message();
}

// Enough pieces for the code paths of list I/O that small requests do not use.
TEST_F(PffTest, LongListsMoveTheBytesTheyName) {
  std::vector<unsigned char> before(1U << 20);
  for (std::size_t i = 0; i < before.size(); ++i) before[i] = static_cast<unsigned char>(i);
  std::uint64_t seed = 0;
  for (const char* hints : {"", "shima_ring=enable", "shima_ring=disable",
                            "shima_ring=enable;direct_read=true;direct_write=true"}) {
    for (const auto& regions : stripings) {
      for (const std::size_t count : {300U, 5'000U, 70'000U}) {
        SCOPED_TRACE(std::string(hints) + ", pieces " + std::to_string(count));
        Dice dice(++seed);
        const Opened file = create("long" + std::to_string(seed), regions, hints);
        ASSERT_EQ(pff_write(file.get(), pff_span(0, before.size()), before.data()),
                  static_cast<std::int64_t>(before.size()));
        check_long_list(file.get(), draw_long_list(dice, count, before));
      }
    }
  }
}

TEST_F(PffTest, CollectiveCallsServeFilesOpenedAlone) {
  const Opened file = create("alone");
  const char text[] = "one member";
  EXPECT_EQ(pff_write_all(file.get(), pff_stride(1, 1, 2, 10), text), 10) << pff_error_message();
  char back[11] = "";
  EXPECT_EQ(pff_read_all(file.get(), pff_stride(1, 1, 2, 10), back), 10);
  EXPECT_STREQ(back, text);
}

TEST_F(PffTest, RequestsInSeveralFilesAreUnderWayAtOnce) {
  constexpr int files = 4;
  constexpr int rounds = 30;
  std::vector<Opened> opened;
  std::vector<std::vector<unsigned char>> buffers;
  std::vector<pff_request*> requests;
  for (int i = 0; i < files; ++i) opened.push_back(create("f" + std::to_string(i), stripings[1]));
  buffers.reserve(files * rounds);
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < files; ++i) {
      buffers.emplace_back(1'000, static_cast<unsigned char>(round * files + i));
      pff_request* request = nullptr;
      ASSERT_EQ(pff_start_write(opened[static_cast<std::size_t>(i)].get(),
                                pff_stride(round * 10, 10, rounds * 10, 1'000),
                                buffers.back().data(), &request),
                0);
      requests.push_back(request);
    }
  }
  for (pff_request* request : requests) EXPECT_EQ(pff_wait(request), 1'000);
  for (int i = 0; i < files; ++i) {
    std::vector<unsigned char> found(1'000 * rounds + 5);
    pff_request* request = nullptr;
    ASSERT_EQ(pff_start_read(opened[static_cast<std::size_t>(i)].get(), pff_span(0, found.size()),
                             found.data(), &request),
              0)
        << pff_error_message();
    EXPECT_EQ(pff_wait(request), 1'000 * rounds);
    for (std::size_t at = 0; at < 1'000U * rounds; ++at)
      ASSERT_EQ(found[at],
                static_cast<unsigned char>(at / 10 % rounds * files + static_cast<std::size_t>(i)));
  }
}

TEST_F(PffTest, ARequestIsTakenBackOrTooLate) {
  const Opened file = create("cancel");
  std::vector<unsigned char> big(64U << 20, 7);
  const char small[] = "x";
  pff_request* first = nullptr;
  ASSERT_EQ(pff_start_write(file.get(), pff_span(0, big.size()), big.data(), &first), 0);
  std::vector<pff_request*> others(50);
  for (pff_request*& other : others)
    ASSERT_EQ(pff_start_write(file.get(), pff_span(1LL << 30, 1), small, &other), 0);
  int taken_back = 0;
  for (auto other = others.rbegin(); other != others.rend(); ++other) {
    const int cancelled = pff_cancel(*other);
    ASSERT_GE(cancelled, 0);
    EXPECT_EQ(pff_test(*other) == 1 || cancelled == 0, true);
    taken_back += cancelled;
    if (cancelled == 1) {
      EXPECT_EQ(pff_cancel(*other), 0);
      fails(pff_wait(*other), PFF_ERR_CANCELLED, "cancelled");
    } else {
      EXPECT_EQ(pff_wait(*other), 1);
    }
  }
  EXPECT_EQ(pff_wait(first), static_cast<std::int64_t>(big.size()));
  EXPECT_GT(taken_back, 0);
  EXPECT_EQ(pff_size(file.get()) == static_cast<std::int64_t>(big.size()), taken_back == 50);
}

TEST_F(PffTest, ClosingFinishesWhatIsUnderWay) {
  std::vector<unsigned char> bytes(1U << 20, 3);
  std::vector<pff_request*> requests(8);
  {
    const Opened file = create("closing");
    for (std::size_t i = 0; i < requests.size(); ++i)
      ASSERT_EQ(pff_start_write_all(file.get(),
                                    pff_span(static_cast<std::int64_t>(i) << 20, bytes.size()),
                                    bytes.data(), &requests[i]),
                0);
  }
  for (pff_request* request : requests) {
    EXPECT_EQ(pff_test(request), 1);
    EXPECT_EQ(pff_wait(request), 1 << 20);
  }
  EXPECT_EQ(std::filesystem::file_size(path("closing")), 8U << 20);
}

// A full disk, for each form of a request.
TEST_F(PffTest, WhatTheDiskSaysComesBack) {
  ASSERT_EQ(::setenv("SHIMA_FAULT", "write:ENOSPC:after=0", 1), 0);
  std::vector<pff_piece> pieces;
  for (std::int64_t i = 0; i < 2'000; ++i) pieces.push_back({i * 7919 % 2'000 * 1'000, 100});
  const std::vector<unsigned char> data(200'000, 1);
  int name = 0;
  for (const pff_where where : {pff_span(0, data.size()), pff_stride(0, 100, 200, data.size()),
                                pff_list(pieces.data(), pieces.size())}) {
    const Opened file = create("full" + std::to_string(++name));
    fails(pff_write(file.get(), where, data.data()), PFF_ERR_NO_SPACE, "ENOSPC");
    pff_request* request = nullptr;
    ASSERT_EQ(pff_start_write_all(file.get(), where, data.data(), &request), 0);
    fails(pff_wait(request), PFF_ERR_NO_SPACE, "ENOSPC");
  }
  ::unsetenv("SHIMA_FAULT");
}

TEST_F(PffTest, StripingIsDefinedAndTold) {
  const Opened file = create("striped", stripings[2]);
  pff_striping* told = nullptr;
  ASSERT_EQ(pff_striping_of(file.get(), &told), 0) << pff_error_message();
  ASSERT_EQ(told->region_count, 3U);
  EXPECT_EQ(told->regions[1].begin, 3'000);
  EXPECT_EQ(told->regions[1].unit, 64U);
  EXPECT_EQ(told->regions[1].subfiles, 4);
  EXPECT_STREQ(told->regions[2].targets, "beside,beside");
  // The reported striping can be passed back.
  pff_file* second = nullptr;
  ASSERT_EQ(pff_open(path("again").c_str(), PFF_WRITE | PFF_CREATE, told, nullptr, &second), 0);
  pff_striping_free(told);
  ASSERT_EQ(pff_striping_of(second, &told), 0);
  EXPECT_EQ(told->region_count, 3U);
  pff_striping_free(told);
  EXPECT_EQ(pff_close(second), 0);

  ASSERT_EQ(pff_striping_parse("0:64K:beside,64K:1M:beside+beside", &told), 0);
  EXPECT_EQ(told->regions[1].begin, 65'536);
  EXPECT_EQ(told->regions[1].unit, 1U << 20);
  pff_striping_free(told);
  const Opened plain = create("plain");
  ASSERT_EQ(pff_striping_of(plain.get(), &told), 0);
  EXPECT_EQ(told->region_count, 0U);
  pff_striping_free(told);

  EXPECT_EQ(pff_remove(path("again").c_str()), 0);
  fails(pff_remove(path("again").c_str()), PFF_ERR_NO_SUCH_FILE, "again");
}

TEST_F(PffTest, SizesAreSet) {
  const Opened file = create("size", stripings[1]);
  EXPECT_EQ(pff_resize(file.get(), 100'000), 0);
  EXPECT_EQ(pff_size(file.get()), 100'000);
  EXPECT_EQ(pff_reserve(file.get(), 1'000), 0);
  EXPECT_EQ(pff_size(file.get()), 100'000);
  EXPECT_EQ(pff_sync(file.get()), 0);
  fails(pff_resize(file.get(), -1), PFF_ERR_ARGUMENT, "negative");
}

TEST_F(PffTest, AStripingWithoutRegionsIsPlainWhateverTheDirectorySays) {
  std::ofstream(path(".shima-default")) << "shima_targets=beside\nstriping_factor=2\n";
  const pff_striping none{0, nullptr};
  for (const pff_striping* striping : {&none, static_cast<const pff_striping*>(nullptr)}) {
    const std::string name = path(striping == nullptr ? "default" : "plain");
    pff_file* file = nullptr;
    ASSERT_EQ(pff_open(name.c_str(), PFF_WRITE | PFF_CREATE, striping, nullptr, &file), 0);
    pff_striping* told = nullptr;
    ASSERT_EQ(pff_striping_of(file, &told), 0);
    EXPECT_EQ(told->region_count, striping == nullptr ? 1U : 0U);
    pff_striping_free(told);
    EXPECT_EQ(pff_close(file), 0);
  }
}

TEST_F(PffTest, FilesLongerThanATebibyte) {
  constexpr std::int64_t tebi = std::int64_t{1} << 40;
  const std::vector<std::vector<pff_region>> layouts{
      {},
      {{0, 1U << 20, 3, "beside"}},
      {{0, tebi, 1, "beside"}, {2 * tebi + 5, 4'096, 2, "beside"}, {5 * tebi, tebi, 2, "beside"}}};
  for (const auto& layout : layouts) {
    const Opened file = create("far" + std::to_string(layout.size()), layout);
    // Around the ends of regions, units and 32-bit numbers of blocks.
    for (const std::int64_t at : {tebi, 2 * tebi, 5 * tebi, 7 * tebi, 12 * tebi}) {
      std::vector<unsigned char> bytes(20'000);
      for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<unsigned char>(i * 7 + static_cast<std::uint64_t>(at >> 40) + 1);
      const pff_where where = pff_stride(at - 9'000, 1'000, 1'500, bytes.size());
      ASSERT_EQ(pff_write(file.get(), where, bytes.data()), 20'000) << pff_error_message();
      EXPECT_EQ(pff_size(file.get()), at - 9'000 + 19 * 1'500 + 1'000);
      std::vector<unsigned char> found(bytes.size());
      ASSERT_EQ(pff_read(file.get(), where, found.data()), 20'000);
      EXPECT_EQ(found, bytes);
      unsigned char gap[500];
      ASSERT_EQ(pff_read(file.get(), pff_span(at - 8'000, 500), gap), 500);
      EXPECT_TRUE(std::ranges::all_of(gap, [](unsigned char byte) { return byte == 0; }));
    }
    EXPECT_EQ(pff_resize(file.get(), 3 * tebi + 1), 0);
    EXPECT_EQ(pff_size(file.get()), 3 * tebi + 1);
    char last = 'x';
    EXPECT_EQ(pff_read(file.get(), pff_span(3 * tebi, 10), &last), 1);
    EXPECT_EQ(last, 0);
  }
}

TEST_F(PffTest, AnyOfTheRequestsThatAreOver) {
  const Opened slow = create("slow");
  const Opened quick = create("quick");
  std::vector<unsigned char> big(64U << 20, 7);
  std::array<pff_request*, 4> requests{};
  fails(pff_wait_any(requests.data(), 4), PFF_ERR_ARGUMENT, "no request");
  fails(pff_wait_any(nullptr, 1), PFF_ERR_ARGUMENT, "no request");
  ASSERT_EQ(pff_start_write(slow.get(), pff_span(0, big.size()), big.data(), &requests[0]), 0);
  ASSERT_EQ(pff_start_write(slow.get(), pff_span(0, 1), "x", &requests[3]), 0);
  ASSERT_EQ(pff_start_write(quick.get(), pff_span(0, 1), "x", &requests[2]), 0);
  std::vector<int> order;
  for (int left = 3; left > 0; --left) {
    const int over = pff_wait_any(requests.data(), 4);
    ASSERT_GE(over, 0) << pff_error_message();
    pff_request*& request = requests[static_cast<std::size_t>(over)];
    ASSERT_NE(request, nullptr);
    EXPECT_EQ(pff_test(request), 1);
    EXPECT_GT(pff_wait(std::exchange(request, nullptr)), 0);
    order.push_back(over);
  }
  std::ranges::sort(order);
  EXPECT_EQ(order, (std::vector{0, 2, 3}));
}

TEST_F(PffTest, WrongArgumentsAreErrors) {
  pff_file* none = nullptr;
  fails(pff_open(path("absent").c_str(), PFF_READ, nullptr, nullptr, &none), PFF_ERR_NO_SUCH_FILE,
        "absent");
  fails(pff_open(path("x").c_str(), PFF_CREATE, nullptr, nullptr, &none), PFF_ERR_MODE, "neither");
  fails(pff_open("", PFF_READ, nullptr, nullptr, &none), PFF_ERR_NAME, "name is NULL or empty");
  fails(pff_open(path("x").c_str(), 512 | PFF_READ, nullptr, nullptr, &none), PFF_ERR_MODE,
        "flags");
  const pff_region bad{0, 0, 2, "beside"};
  const pff_striping striping{1, &bad};
  EXPECT_LT(pff_open(path("x").c_str(), PFF_WRITE | PFF_CREATE, &striping, nullptr, &none), 0);
  EXPECT_FALSE(std::filesystem::exists(path("x")));
  EXPECT_EQ(none, nullptr);
  pff_striping* told = nullptr;
  fails(pff_striping_parse("0:64K", &told), PFF_ERR_ARGUMENT, "BEGIN:UNIT:TARGETS");

  const Opened file = create("file");
  char buffer[8] = "";
  pff_file* const f = file.get();
  fails(pff_read(nullptr, pff_span(0, 1), buffer), PFF_ERR_ARGUMENT, "no file");
  fails(pff_write(f, pff_span(-1, 4), buffer), PFF_ERR_ARGUMENT, "is negative");
  fails(pff_write(f, pff_stride(0, 0, 8, 8), buffer), PFF_ERR_ARGUMENT, "element size");
  fails(pff_write(f, pff_stride(0, 4, -8, 8), buffer), PFF_ERR_ARGUMENT, "is negative");
  fails(pff_write(f, pff_stride(0, 1, INT64_MAX, 8), buffer), PFF_ERR_ARGUMENT, "2^62");
  fails(pff_write(f, pff_span(INT64_MAX, 8), buffer), PFF_ERR_ARGUMENT, "2^62");
  fails(pff_write(f, pff_span(0, UINT64_MAX), buffer), PFF_ERR_ARGUMENT, "2^62");
  fails(pff_write(f, pff_list(nullptr, 3), buffer), PFF_ERR_ARGUMENT, "pieces are NULL");
  fails(pff_write(f, pff_span(0, 8), nullptr), PFF_ERR_ARGUMENT, "buffer is NULL");
  fails(pff_write_from(f, pff_span(0, 8), buffer, pff_span(0, 7)), PFF_ERR_ARGUMENT, "7 bytes");
  const pff_level levels[] = {{1ULL << 40, 1LL << 40}, {1ULL << 40, 1}};
  fails(pff_write(f, pff_nested(0, 1, levels, 2), buffer), PFF_ERR_ARGUMENT, "2^62");
  pff_where odd = pff_span(0, 1);
  odd.kind = 9;
  fails(pff_write(f, odd, buffer), PFF_ERR_ARGUMENT, "pff_where");
  pff_request* request = nullptr;
  fails(pff_start_write(f, pff_span(-1, 4), buffer, &request), PFF_ERR_ARGUMENT, "is negative");
  EXPECT_EQ(request, nullptr);
  EXPECT_EQ(pff_size(f), 0);

  pff_file* readable = nullptr;
  ASSERT_EQ(pff_open(path("file").c_str(), PFF_READ, nullptr, nullptr, &readable), 0);
  fails(pff_write(readable, pff_span(0, 1), buffer), PFF_ERR_MODE, "PFF_WRITE");
  fails(pff_resize(readable, 0), PFF_ERR_MODE, "PFF_WRITE");
  fails(pff_reserve(readable, 1), PFF_ERR_MODE, "PFF_WRITE");
  EXPECT_EQ(pff_close(readable), 0);
}

TEST_F(PffTest, MessagesAreOfTheThread) {
  fails(pff_close(nullptr), PFF_ERR_ARGUMENT, "no file");
  std::thread([] { EXPECT_STREQ(pff_error_message(), ""); }).join();
  fails(pff_close(nullptr), PFF_ERR_ARGUMENT, "no file");
}

}  // namespace
}  // namespace shima::test
