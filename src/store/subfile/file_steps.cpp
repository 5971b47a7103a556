#include "store/subfile/file_steps.h"

#include <cerrno>
#include <unordered_map>
#include <utility>

namespace shima {
namespace {

using Step = TargetFiles::Step;
using StepResult = TargetFiles::StepResult;

StepResult take_step(TargetFiles& files, const Step& step) {
  StepResult result;
  switch (step.kind) {
    case Step::Kind::attach:
      break;
    case Step::Kind::examine: {
      const auto facts = files.examine(step.name);
      result.done = status_of(facts);
      if (facts) result.facts = *facts;
      break;
    }
    case Step::Kind::read_text: {
      auto text = files.read_text(step.name, step.bytes);
      result.done = status_of(text);
      if (text) result.text = *std::move(text);
      break;
    }
    case Step::Kind::write_text:
      result.done = files.write_text(step.name, step.text, step.mode);
      break;
    case Step::Kind::make:
      result.done = files.make(step.name, step.mode);
      break;
    case Step::Kind::set_size:
      result.done = files.truncate(step.name, step.bytes);
      break;
    case Step::Kind::remove:
      result.done = remove_if_there(files, step.name);
      break;
  }
  return result;
}

std::vector<StepResult> take_here(TargetFiles& files, std::span<const Step> steps) {
  std::vector<StepResult> results;
  bool stops = false;
  for (const Step& step : steps) {
    if (stops)
      results.push_back({fail(Code::cancelled, "a step before it has failed", ECANCELED), {}, {}});
    else
      results.push_back(take_step(files, step));
    stops = stops || (!results.back().done && !step.only_looks());
  }
  return results;
}

}  // namespace

std::vector<StepResult> take_steps(std::span<const StepOn> steps) {
  struct OnTarget {
    TargetFiles* files;
    std::vector<Step> steps;
    std::vector<std::size_t> places;  // of the results
  };
  std::vector<OnTarget> all;
  std::unordered_map<const TargetFiles*, std::size_t> index;
  for (std::size_t place = 0; place < steps.size(); ++place) {
    const auto [found, is_new] = index.emplace(steps[place].files, all.size());
    if (is_new) all.push_back({steps[place].files, {}, {}});
    all[found->second].steps.push_back(steps[place].step);
    all[found->second].places.push_back(place);
  }
  const auto far =
      ask_together(all.size(), [&](std::size_t i) { return all[i].files->begin(all[i].steps); });
  std::vector<StepResult> results(steps.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    // A far answer is no error: each step has its own outcome.
    auto own = far[i] ? far[i]->result().value() : take_here(*all[i].files, all[i].steps);
    for (std::size_t k = 0; k < own.size(); ++k) results[all[i].places[k]] = std::move(own[k]);
  }
  return results;
}

std::vector<StepResult> take_steps(TargetFiles& files, std::span<const Step> steps) {
  std::vector<StepOn> all;
  for (const Step& step : steps) all.push_back({&files, step});
  return take_steps(all);
}

Status remove_if_there(TargetFiles& files, const std::string& name) {
  const Status removed = files.remove(name);
  return removed || removed.error().sys_errno == ENOENT ? Status{} : removed;
}

}  // namespace shima
