#include "lab/trace/shockwave.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "base/strings.h"
#include "json/value.h"

namespace swell::lab {
namespace {

constexpr size_t kFields = 12;
constexpr int64_t kEpochsMax = 1'000'000;
constexpr int64_t kGpusMax = 1'000'000;
constexpr double kSecondsMax = 1e10;

struct Application {
  std::string_view name;
  int64_t samples;    // of an epoch
  int64_t batch_max;  // 0: its batch does not grow
};

constexpr std::array<Application, 5> kApplications{{{"LM", 59'675, 80},
                                                    {"Recommendation", 117'907, 8192},
                                                    {"ResNet-18", 50'000, 256},
                                                    {"ResNet-50", 100'000, 128},
                                                    {"Transformer", 10'000, 0}}};

// By the gradient noise scale: from each of these epochs on, the batch is twice as large. Recorded
// by Shockwave's authors (github.com/uw-mad-dash/shockwave, scheduler/utils.py, MIT License).
struct Growth {
  std::string_view application;
  int64_t batch;
  int64_t gpus;
  std::array<int64_t, 4> epochs;  // 0: no more
};

constexpr std::array<Growth, 33> kGrowth{{
    {"LM", 5, 1, {31, 41, 61, 71}},
    {"LM", 5, 2, {31, 51, 61, 71}},
    {"LM", 5, 4, {11, 31, 71, 91}},
    {"LM", 10, 1, {11, 21, 41}},
    {"LM", 10, 2, {11, 31, 41}},
    {"LM", 10, 4, {11, 31, 61}},
    {"LM", 20, 1, {11, 41}},
    {"LM", 20, 2, {31, 41}},
    {"LM", 20, 4, {11, 61}},
    {"LM", 40, 1, {11}},
    {"LM", 40, 2, {11}},
    {"LM", 40, 4, {61}},
    {"Recommendation", 512, 1, {21, 41, 71, 91}},
    {"Recommendation", 1024, 1, {21, 51, 91}},
    {"Recommendation", 2048, 1, {21, 41}},
    {"Recommendation", 4096, 1, {41}},
    {"ResNet-18", 16, 1, {31, 41, 51, 71}},
    {"ResNet-18", 16, 2, {21, 31, 91, 111}},
    {"ResNet-18", 16, 4, {11, 21, 81, 91}},
    {"ResNet-18", 32, 1, {21, 31, 51}},
    {"ResNet-18", 32, 2, {11, 21, 41}},
    {"ResNet-18", 32, 4, {21, 31, 61}},
    {"ResNet-18", 64, 1, {11, 31}},
    {"ResNet-18", 64, 2, {21, 41}},
    {"ResNet-18", 64, 4, {11, 61}},
    {"ResNet-18", 128, 1, {11}},
    {"ResNet-18", 128, 2, {41}},
    {"ResNet-18", 128, 4, {11}},
    {"ResNet-50", 32, 2, {101, 111}},
    {"ResNet-50", 32, 4, {131, 221}},
    {"ResNet-50", 64, 1, {101}},
    {"ResNet-50", 64, 2, {81}},
    {"ResNet-50", 64, 4, {191}},
}};

struct Line {
  const Application* application = nullptr;
  int64_t batch = 0;
  int64_t gpus = 1;
  int64_t epochs = 1;
  std::string_view mode;
};

// Accordion: small batches where gradients change fast, the largest elsewhere.
bool IsCritical(const Line& line, int64_t epoch) {
  const std::string_view name = line.application->name;
  auto within = [epoch](int64_t begin, int64_t end) { return epoch >= begin && epoch < end; };
  if (static_cast<double>(epoch) <= 0.3 * static_cast<double>(line.epochs)) return true;
  if (name == "ResNet-18") {
    return within(0, line.batch >= 256 ? 20 : 10) || within(150, 160) || within(250, 260);
  }
  if (name == "ResNet-50") return epoch < 600 && epoch % 30 < 10;
  if (name == "Recommendation") {
    const int64_t first = line.batch < 2048 ? 30 : line.batch == 2048 ? 40 : 10;
    return within(0, first) || within(60, 70) || within(80, 90);
  }
  return within(0, 10);
}

int64_t ByNoise(const Line& line, int64_t epoch) {
  const auto growth = std::find_if(kGrowth.begin(), kGrowth.end(), [&line](const Growth& one) {
    return one.application == line.application->name && one.batch == line.batch &&
           one.gpus == line.gpus;
  });
  if (growth == kGrowth.end()) return line.batch;
  int64_t batch = line.batch;
  int reached = 0;
  for (int64_t from : growth->epochs) {
    if (from == 0 || epoch < from) break;
    batch *= 2;
    ++reached;
  }
  // The published code leaves the last epoch as it was once the batch has grown twice.
  if (epoch + 1 == line.epochs && reached > 1) return line.batch;
  return std::min(batch, line.application->batch_max);
}

int64_t BatchOf(const Line& line, int64_t epoch) {
  if (line.mode == "gns") return ByNoise(line, epoch);
  const bool grows = line.mode == "accordion" && line.application->batch_max > 0;
  return grows && !IsCritical(line, epoch) ? line.application->batch_max : line.batch;
}

// "LM (batch size 10)" → LM, 10.
std::optional<std::pair<std::string_view, int64_t>> ParseApplication(std::string_view text) {
  constexpr std::string_view kBefore = " (batch size ";
  const size_t at = text.find(kBefore);
  if (at == std::string_view::npos || !text.ends_with(")")) return std::nullopt;
  const size_t begin = at + kBefore.size();
  const auto batch = ParseInt(text.substr(begin, text.size() - 1 - begin));
  if (!batch || *batch < 1) return std::nullopt;
  return std::pair(text.substr(0, at), *batch);
}

class Reader {
 public:
  Reader(const std::string& path, const json::Value& speeds) : path_(path), speeds_(speeds) {}

  Result<TraceJob> Read(std::string_view text, int64_t number) const {
    const std::vector<std::string_view> fields = Split(text, '\t');
    auto wrong = [&](std::string_view what) {
      return Status(Code::kInvalid, StrCat(path_, ":", number, ": ", what));
    };
    if (fields.size() != kFields) return wrong("expected 12 fields between tabs");
    const auto named = ParseApplication(fields[0]);
    const auto steps = ParseInt(fields[5]), gpus = ParseInt(fields[6]);
    const auto arrival = ParseInt(fields[11].substr(0, fields[11].find('.')));
    if (!named) return wrong("expected NAME (batch size N)");
    Line line;
    for (const Application& known : kApplications) {
      if (known.name == named->first) line.application = &known;
    }
    if (line.application == nullptr) {
      return wrong(StrCat("unknown application ", Quote(std::string(named->first))));
    }
    if (!steps || *steps < 1) return wrong("expected steps, at least 1");
    if (!gpus || *gpus < 1 || *gpus > kGpusMax) return wrong(StrCat("expected 1 to ", kGpusMax));
    if (!arrival || *arrival < 0 || static_cast<double>(*arrival) > kSecondsMax) {
      return wrong("expected an arrival in seconds");
    }
    line.batch = named->second;
    line.gpus = *gpus;
    line.mode = fields[7];
    if (line.mode != "static" && line.mode != "accordion" && line.mode != "gns") {
      return wrong("expected static, accordion or gns");
    }
    const int64_t steps_of_epoch = (line.application->samples + line.batch - 1) / line.batch;
    line.epochs = (*steps + steps_of_epoch - 1) / steps_of_epoch;
    if (line.epochs > kEpochsMax) return wrong(StrCat("more than ", kEpochsMax, " epochs"));
    double seconds = 0;
    for (int64_t epoch = 0; epoch < line.epochs; ++epoch) {
      const int64_t batch = BatchOf(line, epoch);
      const double speed = SpeedOf(line, batch);
      if (!(speed > 0)) {
        return wrong(StrCat("no speed of ", line.application->name, " with batch ", batch, " on ",
                            line.gpus, " GPUs in ", kShockwaveSpeeds));
      }
      seconds +=
          static_cast<double>(line.application->samples) / static_cast<double>(batch) / speed;
    }
    if (seconds > kSecondsMax) return wrong("trains for more than three centuries");
    TraceJob job;
    job.name = StrCat("job-", number);
    job.submitted_s = *arrival;
    job.gpus = static_cast<int>(line.gpus);
    job.duration_s = std::max<int64_t>(1, std::llround(seconds));
    return job;
  }

 private:
  // Steps a second; 0: unknown.
  double SpeedOf(const Line& line, int64_t batch) const {
    const std::string key =
        StrCat("('", line.application->name, " (batch size ", batch, ")', ", line.gpus, ")");
    const json::Value* speed = json::Find(speeds_, {"v100", key, "null"});
    if (speed == nullptr || !speed->is_number()) return 0;
    return speed->to_number<double>();
  }

  const std::string& path_;
  const json::Value& speeds_;
};

}  // namespace

bool IsShockwave(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  return std::count(first.begin(), first.end(), '\t') == static_cast<int>(kFields) - 1;
}

Result<Trace> ParseShockwave(const std::string& path,
                             std::string_view text,
                             std::string_view speeds) {
  auto parsed = json::Parse(speeds);
  if (!parsed.ok()) return parsed.status().WithContext(std::string(kShockwaveSpeeds));
  const Reader reader(path, *parsed);
  Trace trace;
  trace.name = path.substr(path.rfind('/') + 1);
  trace.format = "shockwave";
  int64_t number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    SWELL_ASSIGN_OR_RETURN(TraceJob job, reader.Read(line, number));
    trace.jobs.push_back(std::move(job));
  }
  if (trace.jobs.empty()) return Status(Code::kInvalid, StrCat(path, ": has no job"));
  return trace;
}

}  // namespace swell::lab
