#include "cli/views/events_view.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/print/text_table.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {

std::string EventView::LastSeen(WallTime now) const {
  std::string age = api::HumanDuration(std::max(now - last, Duration(0)));
  return count > 1 ? StrCat(age, " (x", count, ")") : age;
}

EventView ViewEvent(const json::Value& event) {
  EventView view;
  view.ns = api::Namespace(event);
  for (std::string_view field : {"lastTimestamp", "eventTime", "firstTimestamp"}) {
    auto time = api::ParseTime(json::GetString(event, {field}));
    if (time && view.last < *time) view.last = *time;
  }
  if (auto time = api::ParseTime(json::GetString(event, {"series", "lastObservedTime"}))) {
    view.last = std::max(view.last, *time);
  }
  if (view.last.unix_ns == 0) view.last = api::CreationTime(event);
  view.first =
      api::ParseTime(json::GetString(event, {"firstTimestamp"})).value_or(api::CreationTime(event));
  view.object_uid = json::GetString(event, {"involvedObject", "uid"});
  view.version = api::ResourceVersion(event);
  view.type = json::GetString(event, {"type"});
  // Events may contain anything, escape sequences for terminals included.
  view.reason = OneLine(json::GetString(event, {"reason"}));
  view.object_kind = OneLine(json::GetString(event, {"involvedObject", "kind"}));
  view.object = OneLine(json::GetString(event, {"involvedObject", "name"}));
  view.message = json::GetString(event, {"message"});
  view.count = std::max<int64_t>(1, json::GetInt(event, {"count"}, 1));
  return view;
}

Result<std::vector<EventView>> ListEvents(Api& api,
                                          std::string_view ns,
                                          std::string_view object_name,
                                          std::string_view object_kind,
                                          std::string_view object_uid) {
  std::vector<std::string> fields;
  if (!object_name.empty()) fields.push_back(StrCat("involvedObject.name=", object_name));
  if (!object_kind.empty()) fields.push_back(StrCat("involvedObject.kind=", object_kind));
  if (!object_uid.empty()) fields.push_back(StrCat("involvedObject.uid=", object_uid));
  SWELL_ASSIGN_OR_RETURN(
      auto events, api.List(client::resources::kEvents, ns, {.field_selector = Join(fields, ",")}));
  std::vector<EventView> views;
  for (const json::SharedValue& event : events) views.push_back(ViewEvent(*event));
  std::stable_sort(views.begin(), views.end(),
                   [](const EventView& a, const EventView& b) { return a.Before(b); });
  return views;
}

}  // namespace swell::cli
