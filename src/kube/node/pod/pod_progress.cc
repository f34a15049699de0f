#include "kube/node/pod/pod_progress.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::node {
namespace {

constexpr Duration kCheckInterval = std::chrono::seconds(1);
constexpr Duration kShortInterval = std::chrono::seconds(10);
constexpr Duration kLongInterval = std::chrono::minutes(1);
constexpr Duration kStacksTimeout = std::chrono::seconds(5);
constexpr size_t kStackBytesMax = 1500;

std::optional<Duration> BoundOf(const json::Value& pod) {
  constexpr int64_t kSecondsMax = int64_t{7} * 24 * 3600;
  const auto seconds = ParseInt(api::Annotation(pod, api::keys::kHangSeconds));
  if (!seconds || *seconds < 1 || *seconds > kSecondsMax) return std::nullopt;
  return std::chrono::seconds(*seconds);
}

std::vector<int64_t> NumbersOf(const std::vector<api::RankProgress>& ranks) {
  std::vector<int64_t> numbers;
  for (const api::RankProgress& rank : ranks) numbers.push_back(rank.rank);
  return numbers;
}

// What a container wrote may be anything; an annotation is text.
std::string PlainText(std::string text) {
  if (text.size() > kStackBytesMax) {
    // The main thread stands first.
    text.resize(kStackBytesMax);
  }
  for (char& c : text) {
    if (c != '\n' && (c < ' ' || c > '~')) c = '?';
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

PodProgress::PodProgress(PodHost& host,
                         const PodRecord& record,
                         std::function<void(std::string text)> publish)
    : host_(host),
      record_(record),
      publish_(std::move(publish)),
      watch_(BoundOf(*record.pod)),
      check_timer_(host.executor()),
      publish_timer_(host.executor()) {}

void PodProgress::OnRecords(const ProgressRecords& records) {
  const bool was_empty = watch_.empty();
  const bool first_step = watch_.Read(records, host_.clock().Steady(), host_.clock().Now());
  if (watch_.empty()) return;
  const bool stall_ended = watch_.Check(host_.clock().Steady());
  PublishSoon(was_empty || first_step || stall_ended ||
              NumbersOf(watch_.Ranks()) != published_numbers_);
  if (!check_timer_.pending()) CheckLater();
}

void PodProgress::OnContainerExit() {
  if (watch_.empty()) return;
  Publish();
  watch_.Forget();
  published_speed_ = false;
  check_timer_.Cancel();
  publish_timer_.Cancel();
}

void PodProgress::Close() {
  scope_.Close();
  check_timer_.Cancel();
  publish_timer_.Cancel();
}

void PodProgress::CheckLater() {
  check_timer_.Start(kCheckInterval, [this] {
    Check();
    if (!watch_.empty()) CheckLater();
  });
}

void PodProgress::Check() {
  if (!watch_.Check(host_.clock().Steady())) return;
  PublishSoon(true);
  ReadStacks();
}

// The stacks come a moment after the stall is told: they may take seconds.
void PodProgress::ReadStacks() {
  const auto container = std::find_if(
      record_.containers.begin(), record_.containers.end(), [](const ContainerState& one) {
        return one.main() && one.phase == ContainerState::Phase::kRunning;
      });
  if (container == record_.containers.end()) return;
  const ContainerRef ref{record_.uid, container->name, container->attempt};
  for (const api::RankProgress& rank : watch_.Ranks()) {
    if (!rank.stalled || !rank.stack.empty()) continue;
    ExecSpec spec{.argv = {"/bin/sh", "-c", api::StacksScript(rank)}, .timeout = kStacksTimeout};
    host_.runtime().Exec(ref, spec,
                         scope_.Wrap([this, file = rank.file](const Result<ExecResult>& result) {
                           // What is done about a stall waits for the stacks: there is always one.
                           std::string stack = "its stack cannot be read";
                           if (!result.ok()) stack += StrCat(": ", result.status().message());
                           if (result.ok() && !result->output.empty()) {
                             stack = PlainText(result->output);
                           }
                           watch_.SetStack(file, stack);
                           PublishSoon(true);
                         }));
  }
}

void PodProgress::PublishSoon(bool now) {
  const std::vector<api::RankProgress> ranks = watch_.Ranks();
  const bool finished = std::all_of(ranks.begin(), ranks.end(),
                                    [](const api::RankProgress& rank) { return rank.done(); });
  if (now || finished) return Publish();
  if (publish_timer_.pending()) return;
  const bool first = !ranks.empty() && ranks.front().rank == 0;
  const Duration interval = first || !published_speed_ ? kShortInterval : kLongInterval;
  publish_timer_.Start(interval, [this] { Publish(); });
}

void PodProgress::Publish() {
  publish_timer_.Cancel();
  const std::vector<api::RankProgress> ranks = watch_.Ranks();
  published_numbers_ = NumbersOf(ranks);
  published_speed_ = std::any_of(ranks.begin(), ranks.end(), [](const api::RankProgress& rank) {
    return rank.steps_per_second > 0;
  });
  publish_(json::Print(api::RanksToJson(ranks)));
}

}  // namespace swell::node
