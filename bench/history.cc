// swell_history DIRECTORY SERIES: how much a year of the pages' curves takes, as one JSON line.
//
// The year is fed as it is kept: an hour, five minutes or 15 s apart, so that every slot of every
// ring is filled. What changed is written to the file as a server does, some hours at a time.
#include "ui/history/history.h"

#include <cstdio>
#include <filesystem>
#include <string>

#include "base/strings.h"
#include "ui/history/history_file.h"

namespace swell::ui {
namespace {

constexpr int64_t kDay = 86'400;
constexpr int64_t kStart = 1'767'225'600;  // 2026-01-01
constexpr int64_t kWriteEvery = 6 * 3600;

int64_t StepAt(int64_t time, int64_t end) {
  if (end - time <= kDay) return kRings[0].step_s;
  return end - time <= 30 * kDay ? kRings[1].step_s : kRings[2].step_s;
}

int64_t BytesIn(const std::string& directory) {
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    bytes += static_cast<int64_t>(entry.file_size());
  }
  return bytes;
}

int Run(const std::string& directory, int64_t count) {
  auto file = HistoryFile::Open(directory + "/history.db");
  if (!file.ok()) {
    std::fprintf(stderr, "%s\n", file.status().ToString().c_str());
    return 1;
  }
  History history;
  std::vector<Sample> samples;
  for (int64_t i = 0; i < count; ++i) {
    samples.push_back({{"series", {{"number", std::to_string(i)}}}, 0.0});
  }
  const int64_t end = kStart + 365 * kDay;
  int64_t written = kStart, points = 0;
  for (int64_t time = kStart; time < end; time += StepAt(time, end)) {
    for (Sample& sample : samples) sample.value = static_cast<double>(++points % 997) / 7;
    history.Add(time, samples);
    if (time - written < kWriteEvery && time + StepAt(time, end) < end) continue;
    written = time;
    const Status status = (*file)->Write(history.TakeChanges(), time);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 1;
    }
  }
  std::printf("{\"series\":%zu,\"bytes\":%lld}\n", history.ladders(),
              static_cast<long long>(BytesIn(directory)));
  return 0;
}

}  // namespace
}  // namespace swell::ui

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "Usage: swell_history DIRECTORY SERIES\n");
    return 2;
  }
  const auto count = swell::ParseInt(argv[2]);
  return swell::ui::Run(argv[1], count.value_or(0));
}
