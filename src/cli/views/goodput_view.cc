#include "cli/views/goodput_view.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/decimal.h"
#include "base/strings.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "json/texts.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

constexpr size_t kOthersNamed = 6;
constexpr size_t kSizesNamed = 8;

std::string PercentText(int64_t percent) { return StrCat(percent > 0 ? "+" : "", percent, " %"); }

const GoodputView::Size* SizeAt(const GoodputView& view, int64_t members) {
  for (const GoodputView::Size& size : view.sizes) {
    if (size.members == members) return &size;
  }
  return nullptr;
}

std::string SpeedText(const GoodputView::Size& size) {
  return Decimal(size.per_second, size.per_second < 10 ? 2 : 0);
}

// What the job does about its size.
std::string AskText(const GoodputView& view, const GoodputView::Size& now) {
  if (view.wanted > view.members) {
    const GoodputView::Size* wanted = SizeAt(view, view.wanted);
    const bool assumed = wanted != nullptr && wanted->source == "optimistic";
    return assumed ? StrCat("it tries ", view.wanted, ": not measured yet")
                   : StrCat("it asks for ", view.wanted);
  }
  if (view.wanted < view.members) return StrCat("it goes back to ", view.wanted);
  if (view.measured_at != view.members) return "this size is being measured";
  if (view.most > 0 && view.members >= view.most) return "that is its maximum";
  for (const GoodputView::Size& next : view.sizes) {
    if (next.members <= view.members || now.relative <= 0) continue;
    const auto percent =
        static_cast<int64_t>(std::llround((next.relative / now.relative - 1) * 100));
    return StrCat("it asks for no more: ", next.members,
                  next.source == "measured" ? " make " : " would make ", std::abs(percent), " % ",
                  percent < 0 ? "less" : "more", next.efficiency < 0 ? "" : " goodput");
  }
  return "it asks for no more";
}

}  // namespace

std::optional<GoodputView> GoodputOf(const json::Value& job) {
  const json::Value* status = json::Find(job, {"status", "goodput"});
  if (status == nullptr || !status->is_object()) return std::nullopt;
  GoodputView view;
  const std::string_view mode = json::GetString(job, {"spec", "autoscaling", "mode"});
  if (mode.empty()) view.default_of = json::GetString(*status, {"defaultOf"});
  if (mode != "Goodput" && view.default_of.empty()) return std::nullopt;
  view.name = api::Name(job);
  for (const char* end : {"Succeeded", "Failed"}) {
    const auto condition = api::FindCondition(job, end);
    view.over = view.over || (condition && condition->IsTrue());
  }
  view.unit = json::GetString(*status, {"unit"}, "steps");
  view.members = json::GetInt(*status, {"members"});
  view.measured_at = json::GetInt(*status, {"measuredAt"});
  view.wanted = json::GetInt(*status, {"wanted"});
  const std::string_view role = json::GetString(*status, {"role"});
  view.most = json::GetInt(job, {"spec", "roles", role, "elastic", "maxReplicas"});
  if (json::Find(*status, {"nextPercent"}) != nullptr) {
    view.next_percent = json::GetInt(*status, {"nextPercent"});
  }
  for (const json::Value& at : json::GetArray(*status, {"curve"})) {
    view.sizes.push_back({json::GetInt(at, {"members"}), json::GetDouble(at, {"perSecond"}),
                          json::GetDouble(at, {"relative"}),
                          ToLower(json::GetString(at, {"source"})),
                          json::GetInt(at, {"efficiencyPercent"}, -1)});
  }
  view.noise = json::GetDouble(*status, {"noiseRecords"});
  view.fit = json::GetString(*status, {"fit", "message"});
  view.decision = json::GetString(*status, {"decision"});
  view.type_decision = json::GetString(*status, {"typeDecision"});
  return view;
}

std::string GoodputModeText(const GoodputView& view) {
  if (view.default_of.empty()) return "Goodput";
  return StrCat("Goodput (default of ", OneLine(view.default_of), ")");
}

std::string SourceText(std::string_view source) {
  if (source == "othertype") return "in the ratio of other GPUs";
  if (source == "between") return "between measured sizes";
  if (source == "fitted") return "model";
  if (source == "optimistic") return "assumed, not tried";
  if (source == "proportional") return "assumed, in proportion";
  return std::string(source);
}

std::string GoodputTable(const GoodputView& view) {
  std::string text;
  if (!view.sizes.empty()) {
    const bool counted = view.sizes.front().efficiency >= 0;
    std::vector<std::string> head{"MEMBERS", StrCat(ToUpper(view.unit), "/S")};
    if (counted) head.emplace_back("EFFICIENCY");
    head.insert(head.end(), {counted ? "GOODPUT" : "SPEEDUP", "SOURCE"});
    TextTable table(head, 2);
    for (const GoodputView::Size& size : view.sizes) {
      std::vector<std::string> row{
          StrCat(size.members, size.members == view.members ? " (now)" : ""), SpeedText(size)};
      if (counted) row.push_back(StrCat(size.efficiency, " %"));
      row.insert(row.end(), {Decimal(size.relative, 2), SourceText(size.source)});
      table.Add(row);
    }
    text = table.ToString("  ");
  }
  auto add = [&text](std::string_view title, const std::string& what) {
    if (!what.empty()) text += StrCat("  ", title, OneLine(what), "\n");
  };
  add("Noise:    ", NoiseText(view));
  add("Next GPU: ", NextGpuText(view, {}));
  add("Model:    ", view.fit);
  add("Decided:  ", view.decision);
  add("GPU type: ", view.type_decision);
  return text;
}

std::string GoodputCurveText(const GoodputView& view) {
  std::vector<const GoodputView::Size*> named;
  for (const GoodputView::Size& size : view.sizes) named.push_back(&size);
  // The sizes in the middle say least.
  const auto matters = [&](size_t at) {
    const int64_t members = named[at]->members;
    return at == 0 || at + 1 == named.size() || members == view.members || members == view.wanted;
  };
  for (size_t at = named.size(); at-- > 0 && named.size() > kSizesNamed;) {
    if (!matters(at)) named.erase(named.begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::string text;
  for (const GoodputView::Size* size : named) {
    const std::string unit = text.empty() ? StrCat(" ", view.unit, " per second") : "";
    text += StrCat(text.empty() ? "" : ", ", SpeedText(*size), unit, " with ", size->members);
    std::string notes;
    if (size->source != "measured") {
      notes = SourceText(size->source);
    } else if (size->members == view.members) {
      notes = "now";
    }
    if (size->efficiency >= 0 && size->members != view.sizes.front().members) {
      notes += StrCat(notes.empty() ? "" : "; ", "efficiency ", size->efficiency, " %");
    }
    if (!notes.empty()) text += StrCat(" (", notes, ")");
  }
  return text;
}

std::string NoiseText(const GoodputView& view) {
  if (view.noise <= 0 || view.sizes.empty() || view.sizes.front().efficiency < 0) return "";
  // At the least size all count in full, so the next one says more.
  const GoodputView::Size& least = view.sizes.front();
  const GoodputView::Size* at = SizeAt(view, view.members);
  if (at == nullptr || at == &least) at = view.sizes.size() > 1 ? &view.sizes[1] : nullptr;
  std::string text = StrCat(Decimal(view.noise, view.noise < 10 ? 1 : 0), " records");
  if (at == nullptr) return text;
  return StrCat(text, ": in the batch of ", at->members, " members a record is worth ",
                at->efficiency, " % of one in that of ", least.members);
}

std::string GoodputSentence(const GoodputView& view) {
  const GoodputView::Size* now = SizeAt(view, view.members);
  if (view.sizes.empty()) return "its speed is not measured yet";
  if (now == nullptr) {
    return StrCat("it has ", view.members, " members and asks for ", view.wanted);
  }
  const int64_t least = view.sizes.front().members;
  // A guess is not told as if it had been measured.
  const bool measured = now->source == "measured";
  std::string text = StrCat(view.members, view.members == 1 ? " member " : " members ",
                            !measured           ? "may make "
                            : view.members == 1 ? "makes "
                                                : "make ",
                            SpeedText(*now), " ", view.unit, " per second");
  if (view.members != least) {
    text += StrCat(", ", Decimal(now->relative, 2),
                   now->efficiency < 0 ? " times what " : " times the goodput of ", least);
    if (now->efficiency < 0) text += least == 1 ? " makes" : " make";
  }
  return StrCat(text, "; ", AskText(view, *now));
}

std::string NextGpuText(const GoodputView& view, std::vector<GoodputView> others) {
  if (view.sizes.empty()) return "";
  std::string text;
  const GoodputView::Size* next = SizeAt(view, view.members + 1);
  if (view.most > 0 && view.members >= view.most) {
    text = "worth nothing here";
  } else if (!view.next_percent) {
    text = "not known before this size is measured";
  } else if (next != nullptr && next->source == "optimistic") {
    text = StrCat("not tried; worth at best ", PercentText(*view.next_percent), " here");
  } else {
    text = StrCat("worth ", PercentText(*view.next_percent), " here");
  }
  std::erase_if(others, [&view](const GoodputView& other) {
    return other.name == view.name || other.over || !other.next_percent || other.members == 0;
  });
  std::stable_sort(others.begin(), others.end(), [](const GoodputView& a, const GoodputView& b) {
    return *a.next_percent > *b.next_percent;
  });
  for (size_t i = 0; i < others.size() && i < kOthersNamed; ++i) {
    const GoodputView& other = others[i];
    text += StrCat(i == 0 ? "; " : ", ", other.name, " with ", other.members, ": ",
                   PercentText(*other.next_percent));
  }
  if (others.size() > kOthersNamed) {
    text += StrCat(", and ", others.size() - kOthersNamed, " more jobs");
  }
  return text;
}

}  // namespace swell::cli
