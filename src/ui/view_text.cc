#include "ui/view_text.h"

#include <optional>
#include <unordered_map>

#include "base/strings.h"

namespace swell::ui {
namespace {

bool IsList(const json::Value& value) {
  if (!value.is_array() || value.get_array().size() < ViewText::kListLeast) return false;
  for (const json::Value& item : value.get_array()) {
    if (!item.is_object()) return false;
  }
  return true;
}

}  // namespace

ViewText::ViewText(const json::Value& data) {
  if (!data.is_object()) {
    text_ = members_ = json::Print(data);
    return;
  }
  json::Object members;
  for (const auto& member : data.get_object()) {
    if (!IsList(member.value())) members[member.key()] = member.value();
  }
  members_ = json::Print(members);
  text_ = members_.substr(0, members_.size() - 1);
  for (const auto& member : data.get_object()) {
    if (!IsList(member.value())) continue;
    List& list = lists_.emplace_back();
    list.name.assign(member.key().data(), member.key().size());
    text_ += StrCat(text_.size() > 1 ? "," : "", json::Print(json::Value(list.name)), ":[");
    for (const json::Value& item : member.value().get_array()) {
      if (!list.items.empty()) text_ += ',';
      const std::string text = json::Print(item);
      list.items.push_back({text_.size(), text.size()});
      text_ += text;
    }
    text_ += ']';
  }
  text_ += '}';
}

std::string ViewText::DifferenceFrom(const ViewText& before) const {
  if (lists_.empty() || lists_.size() != before.lists_.size()) return "";
  std::string out = StrCat("{\"data\":", members_, ",\"lists\":{");
  for (size_t i = 0; i < lists_.size(); ++i) {
    if (lists_[i].name != before.lists_[i].name) return "";
    out += StrCat(i == 0 ? "" : ",", json::Print(json::Value(lists_[i].name)), ":[");
    if (!Compare(lists_[i], before, before.lists_[i], out)) return "";
    out += ']';
  }
  out += "}}";
  return out;
}

// Most items are where they were, or all behind a place moved by one; for the others the old ones
// are looked up. False: it becomes too long to be of use.
bool ViewText::Compare(const List& list,
                       const ViewText& before,
                       const List& old,
                       std::string& out) const {
  const size_t most = text_.size() / 2;
  std::unordered_map<std::string_view, size_t> places;
  const auto place_of = [&](std::string_view text) -> std::optional<size_t> {
    if (places.empty()) {
      for (size_t i = 0; i < old.items.size(); ++i) places.emplace(before.TextOf(old.items[i]), i);
    }
    const auto found = places.find(text);
    return found == places.end() ? std::nullopt : std::optional(found->second);
  };
  size_t next = 0;  // where the next item probably was
  size_t first = 0, count = 0;
  bool any = false;
  const auto add = [&](std::string_view text) {
    if (any) out += ',';
    any = true;
    out += text;
  };
  const auto end_run = [&] {
    if (count > 0) add(StrCat("[", first, ",", count, "]"));
    count = 0;
  };
  for (const Item& item : list.items) {
    const std::string_view text = TextOf(item);
    const bool there = next < old.items.size() && before.TextOf(old.items[next]) == text;
    const auto place = there ? std::optional(next) : place_of(text);
    if (!place) {
      end_run();
      add(text);
      ++next;  // it took the place of the one that was there
    } else {
      if (count > 0 && *place != first + count) end_run();
      if (count == 0) first = *place;
      ++count;
      next = *place + 1;
    }
    if (out.size() > most) return false;
  }
  end_run();
  return true;
}

}  // namespace swell::ui
