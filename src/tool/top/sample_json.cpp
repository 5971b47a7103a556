#include "tool/top/sample_json.h"

#include <array>
#include <nlohmann/json.hpp>

namespace shima::tool {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t wait_kind = static_cast<std::size_t>(Counted::wait);

ordered_json json_of(const Tally& tally, const char* unit = "bytes") {
  return {{"calls", tally.calls}, {unit, tally.bytes}};
}

ordered_json json_of(const FileSample& file) {
  return {{"name", file.name},
          {"key", file.key},
          {"met", file.met},
          {"written", json_of(file.written)},
          {"read", json_of(file.read)}};
}

ordered_json json_of(const TaskSample& task, const WaitReason& reason) {
  ordered_json counters = ordered_json::object();
  for (std::size_t i = 0; i < counted_kinds; ++i)
    if (task.counted[i] != Tally{})
      counters[std::string(counted_names[i])] =
          json_of(task.counted[i], i == wait_kind ? "ns" : "bytes");
  ordered_json files = ordered_json::array();
  for (const FileSample& file : task.files) files.push_back(json_of(file));
  return {{"rank", task.rank},
          {"host", task.host},
          {"pid", task.pid},
          {"kind", task.kind},
          {"program", task.program},
          {"job", task.job},
          {"tasks", task.tasks},
          {"has_ended", task.has_ended},
          {"up_ms", task.up_ms},
          {"bytes_written", task.bytes_written()},
          {"bytes_read", task.bytes_read()},
          {"counters", counters},
          {"doing", call_name(task.call)},
          {"call", task.call},
          {"serial", task.serial},
          {"file", task.file},
          {"key", task.key},
          {"asleep_ms", task.asleep_ms},
          {"uncounted_ms", task.uncounted_ms},
          {"waits_for", task.waits_for},
          {"reason", reason.text},
          {"reason_ranks", reason.ranks},
          {"met", task.met},
          {"queued", task.queued},
          {"clients", task.clients},
          {"files", files}};
}

template <class Value>
void take(const json& object, const char* name, Value& value) {
  const auto found = object.find(name);
  if (found != object.end()) found->get_to(value);
}

Tally tally_from(const json& object, const char* name, const char* unit = "bytes") {
  Tally tally;
  const auto found = object.find(name);
  if (found == object.end()) return tally;
  take(*found, "calls", tally.calls);
  take(*found, unit, tally.bytes);
  return tally;
}

FileSample file_from(const json& object) {
  FileSample file;
  take(object, "name", file.name);
  take(object, "key", file.key);
  take(object, "met", file.met);
  file.written = tally_from(object, "written");
  file.read = tally_from(object, "read");
  return file;
}

TaskSample task_from(const json& object) {
  TaskSample task;
  take(object, "rank", task.rank);
  take(object, "host", task.host);
  take(object, "pid", task.pid);
  take(object, "kind", task.kind);
  take(object, "program", task.program);
  take(object, "job", task.job);
  take(object, "tasks", task.tasks);
  take(object, "has_ended", task.has_ended);
  take(object, "up_ms", task.up_ms);
  take(object, "call", task.call);
  take(object, "serial", task.serial);
  take(object, "file", task.file);
  take(object, "key", task.key);
  take(object, "asleep_ms", task.asleep_ms);
  take(object, "uncounted_ms", task.uncounted_ms);
  take(object, "waits_for", task.waits_for);
  take(object, "met", task.met);
  take(object, "queued", task.queued);
  take(object, "clients", task.clients);
  if (const auto counters = object.find("counters"); counters != object.end())
    for (std::size_t i = 0; i < counted_kinds; ++i)
      task.counted[i] = tally_from(*counters, std::string(counted_names[i]).c_str(),
                                   i == wait_kind ? "ns" : "bytes");
  if (const auto files = object.find("files"); files != object.end())
    for (const json& file : *files) task.files.push_back(file_from(file));
  return task;
}

constexpr std::array<const char*, 4> words_for_absence{"not asked", "asked", "silent", "no task"};

ordered_json json_of(const AbsentHost& host) {
  return {{"host", host.name}, {"why", words_for_absence[static_cast<std::size_t>(host.why)]}};
}

AbsentHost absent_from(const json& object) {
  AbsentHost host;
  std::string why;
  take(object, "host", host.name);
  take(object, "why", why);
  for (std::size_t i = 0; i < words_for_absence.size(); ++i)
    if (why == words_for_absence[i]) host.why = static_cast<AbsentHost::Why>(i);
  return host;
}

}  // namespace

std::string to_json(const Sample& sample) {
  ordered_json tasks = ordered_json::array();
  for (const TaskSample& task : sample.tasks)
    tasks.push_back(json_of(task, wait_reason(sample, task)));
  ordered_json frame{{"time_ms", sample.time_ms}, {"tasks", tasks}};
  for (const AbsentHost& host : sample.absent) frame["absent_hosts"].push_back(json_of(host));
  return frame.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::optional<Sample> sample_from_json(std::string_view text) {
  const json frame = json::parse(text, nullptr, false);
  if (!frame.is_object() || !frame.contains("tasks") || !frame["tasks"].is_array()) return {};
  try {
    Sample sample;
    take(frame, "time_ms", sample.time_ms);
    for (const json& task : frame["tasks"]) sample.tasks.push_back(task_from(task));
    if (const auto absent = frame.find("absent_hosts"); absent != frame.end())
      for (const json& host : *absent) sample.absent.push_back(absent_from(host));
    return sample;
  } catch (const json::exception&) {
    return {};
  }
}

}  // namespace shima::tool
