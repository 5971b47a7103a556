#include "tool/top/recording.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tool/top/sample_json.h"

namespace shima::tool {

std::string recording_head() {
  return fmt::format(R"({{"shima_top_recording":{},"shima":"{}"}})", recording_version,
                     SHIMA_VERSION);
}

bool is_recording_head(const std::string& line) {
  const auto head = nlohmann::json::parse(line, nullptr, false);
  if (!head.is_object() || !head.contains("shima_top_recording")) return false;
  const auto& version = head["shima_top_recording"];
  return version.is_number_integer() && version == recording_version;
}

Outcome<std::vector<Sample>> read_recording(std::istream& from, const std::string& name) {
  std::string line;
  if (!std::getline(from, line) || !is_recording_head(line))
    return refuse(name, fmt::format("not a recording of version {}", recording_version),
                  "make one with `shima top JOB --record FILE`");
  std::vector<Sample> samples;
  while (std::getline(from, line))
    if (auto sample = sample_from_json(line)) samples.push_back(*std::move(sample));
  if (samples.empty()) return refuse(name, "a recording without a sample", "record for longer");
  return samples;
}

}  // namespace shima::tool
