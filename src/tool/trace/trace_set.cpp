#include "tool/trace/trace_set.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "base/unique_fd.h"

namespace shima::tool {
namespace {

template <std::size_t N>
std::string text_in(const std::array<char, N>& from) {
  return {from.data(), ::strnlen(from.data(), N)};
}

CallSite site_from(const TraceSite& site) {
  CallSite made{text_in(site.module), site.offset, site.address.load(), {}};
  const auto slash = made.module.rfind('/');
  const std::string name = slash == std::string::npos ? made.module : made.module.substr(slash + 1);
  if (made.address != 0) made.text = fmt::format("{}+{:#x}", name, made.offset);
  return made;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts{};
  if (!file || ::fstat(file.get(), &facts) != 0 || facts.st_size == 0) return;
  const auto len = static_cast<std::size_t>(facts.st_size);
  void* const memory = ::mmap(nullptr, len, PROT_READ, MAP_SHARED, file.get(), 0);
  if (memory != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(memory), len};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void ProcessTrace::for_each(const std::function<void(const TraceEvent&)>& use) const {
  for (const TraceEvent& event : events)
    if (event.is_set != 0) use(event);
}

const std::string& ProcessTrace::file_of(const TraceEvent& event) const {
  static const std::string none;
  return event.file == 0 || event.file > files.size() ? none : files[event.file - 1];
}

const CallSite* ProcessTrace::site_of(const TraceEvent& event) const {
  return event.site == 0 || event.site > sites.size() ? nullptr : &sites[event.site - 1];
}

std::size_t TraceSet::process_count() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < processes.size(); ++i) count += processes[i].owner == i ? 1U : 0U;
  return count;
}

std::uint64_t TraceSet::dropped() const {
  std::uint64_t count = 0;
  for (const ProcessTrace& process : processes) count += process.dropped;
  return count;
}

std::vector<int> TraceSet::missing() const {
  std::set<int> known;
  int tasks = 0;
  for (const ProcessTrace& process : processes) {
    known.insert(process.rank);
    tasks = std::max(tasks, process.tasks);
  }
  std::vector<int> missing;
  for (int rank = 0; rank < tasks; ++rank)
    if (!known.contains(rank)) missing.push_back(rank);
  return missing;
}

int TraceSet::number_of(std::size_t trace) const {
  const std::size_t owner = processes[trace].owner;
  const int rank = processes[owner].rank;
  const bool is_shared = std::ranges::any_of(processes, [&](const ProcessTrace& other) {
    return other.rank == rank && other.owner != owner;
  });
  constexpr int beyond_ranks = 1 << 24;
  return rank >= 0 && !is_shared ? rank : beyond_ranks + static_cast<int>(owner);
}

Outcome<ProcessTrace> read_trace(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() < sizeof(TraceHead)) return refuse(name, "too short for a trace", "remove it");
  const auto& head = *reinterpret_cast<const TraceHead*>(bytes.data());
  if (head.magic.load() != TraceHead::magic_number)
    return refuse(name, "not a trace of Shima", "remove it");
  if (head.version != TraceHead::current_version || head.event_bytes != sizeof(TraceEvent) ||
      head.head_bytes != trace_head_bytes || bytes.size() < trace_head_bytes)
    return refuse(name, "written by another version of Shima", "use the same version");
  ProcessTrace trace{.host = text_in(head.host),
                     .program = text_in(head.program),
                     .boot = text_in(head.boot),
                     .pid = head.pid,
                     .rank = head.rank.load(),
                     .tasks = head.tasks.load()};
  trace.shift_ns =
      static_cast<std::int64_t>(head.realtime_ns) - static_cast<std::int64_t>(head.monotonic_ns);
  trace.dropped = head.dropped.load();
  trace.dropped_bytes = head.dropped_bytes.load();
  const std::size_t files = std::min<std::size_t>(head.files.load(), TraceHead::file_count);
  for (std::size_t i = 0; i < files; ++i) trace.files.push_back(text_in(head.file_names[i]));
  for (const TraceSite& site : head.sites) trace.sites.push_back(site_from(site));
  const std::size_t room = (bytes.size() - trace_head_bytes) / sizeof(TraceEvent);
  trace.events = {reinterpret_cast<const TraceEvent*>(bytes.data() + trace_head_bytes),
                  std::min<std::size_t>(head.events.load(), room)};
  return trace;
}

namespace {

using ProcessName = std::tuple<std::string, std::string, int>;
ProcessName name_of(const ProcessTrace& trace) { return {trace.boot, trace.host, trace.pid}; }

// A library that does not know the rank gets it from another one of the process.
void share_ranks(TraceSet& set) {
  std::map<ProcessName, std::pair<int, int>> known;
  for (const ProcessTrace& trace : set.processes)
    if (trace.rank >= 0) known.try_emplace(name_of(trace), trace.rank, trace.tasks);
  for (ProcessTrace& trace : set.processes)
    if (const auto found = known.find(name_of(trace)); trace.rank < 0 && found != known.end())
      std::tie(trace.rank, trace.tasks) = found->second;
}

void find_owners(TraceSet& set) {
  std::map<ProcessName, std::size_t> owners;
  for (std::size_t i = 0; i < set.processes.size(); ++i)
    set.processes[i].owner = owners.try_emplace(name_of(set.processes[i]), i).first->second;
}

}  // namespace

void align(TraceSet& set) {
  std::map<std::string, std::int64_t> shifts;  // processes of one machine have one clock already
  for (ProcessTrace& process : set.processes)
    process.shift_ns = shifts.emplace(process.boot, process.shift_ns).first->second;
  share_ranks(set);
  std::ranges::stable_sort(set.processes, [](const ProcessTrace& a, const ProcessTrace& b) {
    return std::tuple(a.rank, a.host, a.pid) < std::tuple(b.rank, b.host, b.pid);
  });
  find_owners(set);
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  for (const ProcessTrace& process : set.processes)
    process.for_each([&](const TraceEvent& event) {
      begin = std::min(begin, process.begin_of(event));
      end = std::max(end, process.end_of(event));
    });
  if (begin > end) return;
  set.begin_ns = begin;
  set.end_ns = end;
}

Outcome<TraceSet> read_traces(const std::string& directory) {
  namespace fs = std::filesystem;
  TraceSet set;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() != ".trace") continue;
    MappedFile file(entry.path().string());
    auto trace = read_trace(file.bytes(), entry.path().filename().string());
    if (!trace) {
      set.unreadable.push_back(trace.error().thing + ": " + trace.error().rule);
      continue;
    }
    set.processes.push_back(*std::move(trace));
    set.mappings.push_back(std::move(file));
  }
  if (error) return refuse(directory, error.message(), "name a directory with traces");
  align(set);
  return set;
}

}  // namespace shima::tool
