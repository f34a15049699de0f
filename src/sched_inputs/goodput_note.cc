#include "sched_inputs/goodput_note.h"

#include <algorithm>

#include "kube/api/meta/meta.h"

namespace swell::sched_inputs {
namespace {

constexpr int64_t kResizeMsMax = 24 * 3600 * 1000;

int64_t NumberIn(const json::Array& pair, size_t i) {
  return pair[i].is_int64() ? pair[i].get_int64() : 0;
}

}  // namespace

sched::GoodputInfo ToGoodput(const json::Value& pod_group) {
  sched::GoodputInfo goodput;
  const std::string_view text = api::Annotation(pod_group, kGoodputNote);
  if (text.empty()) return goodput;
  const auto note = json::Parse(text, {.depth = 4, .bytes = 8 << 10});
  if (!note.ok() || !note->is_object()) return goodput;
  goodput.pod_set = json::GetString(*note, {"role"});
  for (const json::Value& at : json::GetArray(*note, {"curve"})) {
    if (!at.is_array() || at.get_array().size() != 2) continue;
    const int64_t members = NumberIn(at.get_array(), 0);
    if (members < 1 || members > INT32_MAX) continue;
    goodput.curve.push_back({static_cast<int32_t>(members), NumberIn(at.get_array(), 1)});
  }
  goodput.curve = goodput::Curve(goodput.curve).points();
  goodput.measured_at =
      static_cast<int32_t>(std::clamp<int64_t>(json::GetInt(*note, {"measuredAt"}), 0, INT32_MAX));
  if (json::Find(*note, {"resizeMs"}) != nullptr) {
    goodput.resize_cost = std::chrono::milliseconds(
        std::clamp<int64_t>(json::GetInt(*note, {"resizeMs"}), 0, kResizeMsMax));
  }
  return goodput;
}

std::string GoodputNote(const sched::GoodputInfo& goodput) {
  json::Array curve;
  for (const goodput::CurvePoint& point : goodput.curve) {
    curve.push_back(json::Array{point.members, point.goodput});
  }
  json::Object note{
      {"role", goodput.pod_set}, {"curve", std::move(curve)}, {"measuredAt", goodput.measured_at}};
  if (goodput.resize_cost) {
    note["resizeMs"] =
        std::chrono::duration_cast<std::chrono::milliseconds>(*goodput.resize_cost).count();
  }
  return json::Print(note);
}

}  // namespace swell::sched_inputs
