#include "cli/views/goodput_view.h"

#include <algorithm>
#include <cstdio>

#include "base/strings.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

constexpr size_t kOthersNamed = 6;

double NumberIn(const json::Value& object, std::string_view field) {
  const json::Value* value = json::Find(object, {field});
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

std::string Decimal(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string PercentText(int64_t percent) { return StrCat(percent > 0 ? "+" : "", percent, " %"); }

const GoodputView::Size* SizeAt(const GoodputView& view, int64_t members) {
  for (const GoodputView::Size& size : view.sizes) {
    if (size.members == members) return &size;
  }
  return nullptr;
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
  view.unit = json::GetString(*status, {"unit"}, "steps");
  view.members = json::GetInt(*status, {"members"});
  view.measured_at = json::GetInt(*status, {"measuredAt"});
  view.wanted = json::GetInt(*status, {"wanted"});
  if (json::Find(*status, {"nextPercent"}) != nullptr) {
    view.next_percent = json::GetInt(*status, {"nextPercent"});
  }
  for (const json::Value& at : json::GetArray(*status, {"curve"})) {
    view.sizes.push_back({json::GetInt(at, {"members"}), NumberIn(at, "perSecond"),
                          NumberIn(at, "relative"), ToLower(json::GetString(at, {"source"}))});
  }
  view.fit = json::GetString(*status, {"fit", "message"});
  view.decision = json::GetString(*status, {"decision"});
  return view;
}

std::string GoodputModeText(const GoodputView& view) {
  if (view.default_of.empty()) return "Goodput";
  return StrCat("Goodput (default of ", OneLine(view.default_of), ")");
}

std::string GoodputTable(const GoodputView& view) {
  std::string text;
  if (!view.sizes.empty()) {
    TextTable table({"MEMBERS", StrCat(ToUpper(view.unit), "/S"), "SPEEDUP", "KNOWN AS"}, 2);
    for (const GoodputView::Size& size : view.sizes) {
      table.Add({StrCat(size.members, size.members == view.members ? " (now)" : ""),
                 Decimal(size.per_second, size.per_second < 10 ? 2 : 0), Decimal(size.relative, 2),
                 size.source});
    }
    text = table.ToString("  ");
  }
  if (!view.fit.empty()) text += StrCat("  Fit:   ", OneLine(view.fit), "\n");
  if (!view.decision.empty()) text += StrCat("  Last:  ", OneLine(view.decision), "\n");
  return text;
}

std::string GoodputSentence(const GoodputView& view) {
  const GoodputView::Size* now = SizeAt(view, view.members);
  if (view.sizes.empty() || now == nullptr) {
    return view.sizes.empty()
               ? "its speed is not measured yet"
               : StrCat("it has ", view.members, " members and asks for ", view.wanted);
  }
  const int64_t least = view.sizes.front().members;
  // A guess is not told as if it had been measured.
  const bool measured = now->source == "measured";
  std::string text =
      StrCat(view.members, view.members == 1 ? " member " : " members ",
             !measured           ? "may make "
             : view.members == 1 ? "makes "
                                 : "make ",
             Decimal(now->per_second, now->per_second < 10 ? 2 : 0), " ", view.unit, " per second");
  if (view.members != least) {
    text += StrCat(", ", Decimal(now->relative, 2), " times what ", least,
                   least == 1 ? " makes" : " make");
  }
  if (!measured) text += " (not measured yet)";
  return StrCat(text, view.wanted == view.members ? "; it asks for no more"
                                                  : StrCat("; it asks for ", view.wanted));
}

std::string NextGpuText(const GoodputView& view, std::vector<GoodputView> others) {
  if (!view.next_percent) return "";
  std::string text = StrCat("worth ", PercentText(*view.next_percent), " here");
  std::erase_if(others, [&view](const GoodputView& other) {
    return other.name == view.name || !other.next_percent || other.members == 0;
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
