#include "ops/lab/lab_revocations.h"

#include <charconv>
#include <chrono>

#include "base/strings.h"

namespace swell::ops {
namespace {

constexpr int kRateMax = 1'000;
constexpr int64_t kSpanMaxSeconds = int64_t{365} * 86'400;

// Whole seconds.
Result<int64_t> ReadSpan(std::string_view flag, std::string_view text, int64_t least_s) {
  SWELL_ASSIGN_OR_RETURN(const Duration span, cli::ParseDuration(text, flag));
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(span).count();
  if (seconds < least_s || seconds > kSpanMaxSeconds) {
    return cli::Misuse(StrCat(flag, " ", Quote(text), ": expected ", least_s, "s to ",
                              kSpanMaxSeconds / 86'400, "d"));
  }
  return seconds;
}

}  // namespace

void LabRevocations::Declare(cli::Flags& flags) {
  flags.Text("--revoke", &rate_, "RATE",
             "revoke each node so many times a day on average, at random times (default: nodes "
             "stay)");
  flags.Text("--notice", &notice_, "SPAN",
             "with --revoke: time from the notice until the node is gone (default 30s)");
  flags.Text("--away", &away_, "SPAN",
             "with --revoke: time from then until the node is back (default 30m)");
  flags.Text("--save-time", &save_time_, "SPAN",
             "with --revoke: time that a job needs to write a checkpoint at a notice (default: as "
             "long as a resize)");
  flags.Text("--save-every", &save_every_, "SPAN",
             "with --revoke: training between two checkpoints of a job (default 10m)");
}

Status LabRevocations::Check() {
  struct Span {
    std::string_view flag;
    const std::string& text;
    int64_t least_s;
    int64_t* to;
  };
  int64_t save_s = 0;
  for (const Span& span :
       {Span{"--notice", notice_, 0, &options_.notice_s},
        Span{"--away", away_, 1, &options_.away_s}, Span{"--save-time", save_time_, 0, &save_s},
        Span{"--save-every", save_every_, 1, &options_.save_every_s}}) {
    if (span.text.empty()) continue;
    if (!given()) return cli::Misuse(StrCat(span.flag, " needs --revoke"));
    SWELL_ASSIGN_OR_RETURN(*span.to, ReadSpan(span.flag, span.text, span.least_s));
  }
  if (!save_time_.empty()) options_.save_s = save_s;
  if (!given()) return {};
  const char* end = rate_.data() + rate_.size();
  const auto read = std::from_chars(rate_.data(), end, options_.per_node_day);
  const bool whole = read.ec == std::errc() && read.ptr == end;
  if (!whole || !(options_.per_node_day >= 0 && options_.per_node_day <= kRateMax)) {
    return cli::Misuse(StrCat("--revoke ", Quote(rate_), ": expected 0 to ", kRateMax,
                              " times a day for each node, 5 or 0.5"));
  }
  return {};
}

std::optional<lab::RevocationOptions> LabRevocations::Options(uint64_t seed) const {
  if (!given()) return std::nullopt;
  lab::RevocationOptions options = options_;
  options.seed = seed;
  return options;
}

std::string LabRevocations::Note() const {
  return StrCat("Each node was revoked ", rate_, " times a day on average, with ",
                options_.notice_s, " s of notice, and was away for ", options_.away_s,
                " s. GOODPUT: the part of GPU time that trained and was not lost, divided by that "
                "of the same run without revocations.");
}

}  // namespace swell::ops
