#include "kube/api/meta/meta.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/strings.h"

namespace swell::api {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

// A number that is not negative, in `width` digits.
void AppendPadded(std::string& text, int64_t number, size_t width) {
  text.append(width, '0');
  for (auto digit = text.rbegin(); number > 0 && width > 0; number /= 10, --width) {
    *digit++ = static_cast<char>('0' + number % 10);
  }
}

// "2026-01-01T00:00:00" and the rest of the second in nanoseconds.
std::pair<std::string, int64_t> SecondsText(WallTime time) {
  int64_t seconds = time.unix_ns / kSecondNs;
  int64_t rest = time.unix_ns % kSecondNs;
  if (rest < 0) {
    rest += kSecondNs;
    --seconds;
  }
  int64_t days = seconds / 86400;
  int64_t of_day = seconds % 86400;
  if (of_day < 0) {
    of_day += 86400;
    --days;
  }
  std::chrono::year_month_day date(
      std::chrono::sys_days(std::chrono::days(static_cast<int>(days))));
  std::string text;
  text.reserve(sizeof "2026-01-01T00:00:00.000000Z");
  AppendPadded(text, static_cast<int>(date.year()), 4);
  text += '-';
  AppendPadded(text, static_cast<unsigned>(date.month()), 2);
  text += '-';
  AppendPadded(text, static_cast<unsigned>(date.day()), 2);
  text += 'T';
  AppendPadded(text, of_day / 3600, 2);
  text += ':';
  AppendPadded(text, of_day / 60 % 60, 2);
  text += ':';
  AppendPadded(text, of_day % 60, 2);
  return {std::move(text), rest};
}

// Reads fixed-width fields off the front of a text.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : rest_(text) {}

  int Digits(size_t width) {
    int value = 0;
    if (rest_.size() < width) return Fail();
    for (char c : rest_.substr(0, width)) {
      if (c < '0' || c > '9') return Fail();
      value = value * 10 + (c - '0');
    }
    rest_.remove_prefix(width);
    return value;
  }
  bool Take(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_[0]) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void Expect(std::string_view any_of) {
    if (!Take(any_of)) ok_ = false;
  }
  // Digits of a fraction, as nanoseconds; further digits are cut off.
  int64_t Fraction() {
    int64_t ns = 0;
    int64_t unit = kSecondNs / 10;
    size_t digits = 0;
    while (!rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9') {
      ns += unit * (rest_[0] - '0');
      unit /= 10;
      ++digits;
      rest_.remove_prefix(1);
    }
    if (digits == 0) ok_ = false;
    return ns;
  }
  char front() const { return rest_.empty() ? '\0' : rest_[0]; }
  bool done() const { return ok_ && rest_.empty(); }

 private:
  int Fail() {
    ok_ = false;
    return 0;
  }
  std::string_view rest_;
  bool ok_ = true;
};

std::optional<OwnerReference> ReadOwner(const json::Value& value) {
  if (!value.is_object()) return std::nullopt;
  OwnerReference owner;
  owner.api_version = json::GetString(value, {"apiVersion"});
  owner.kind = json::GetString(value, {"kind"});
  owner.name = json::GetString(value, {"name"});
  owner.uid = json::GetString(value, {"uid"});
  owner.controller = json::GetBool(value, {"controller"});
  owner.block_owner_deletion = json::GetBool(value, {"blockOwnerDeletion"});
  return owner;
}

json::Value Text(std::string_view text) {
  return json::Value(boost::json::string_view(text.data(), text.size()));
}

bool IsLowerAlnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsAlnum(char c) { return IsLowerAlnum(c) || (c >= 'A' && c <= 'Z'); }

bool IsDnsLabel(std::string_view text) {
  if (text.empty() || !IsLowerAlnum(text.front()) || !IsLowerAlnum(text.back())) return false;
  for (char c : text) {
    if (!IsLowerAlnum(c) && c != '-') return false;
  }
  return true;
}

bool IsNamePart(std::string_view text) {
  if (text.empty() || !IsAlnum(text.front()) || !IsAlnum(text.back())) return false;
  for (char c : text) {
    if (!IsAlnum(c) && c != '-' && c != '_' && c != '.') return false;
  }
  return true;
}

constexpr std::string_view kNamePartRule =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

}  // namespace

std::string FormatTime(WallTime time) { return SecondsText(time).first + 'Z'; }

std::string FormatMicroTime(WallTime time) {
  auto [text, ns] = SecondsText(time);
  text += '.';
  AppendPadded(text, ns / 1000, 6);
  text += 'Z';
  return std::move(text);
}

std::optional<WallTime> ParseTime(std::string_view text) {
  FieldReader in(text);
  int year = in.Digits(4);
  in.Expect("-");
  unsigned month = static_cast<unsigned>(in.Digits(2));
  in.Expect("-");
  unsigned day = static_cast<unsigned>(in.Digits(2));
  in.Expect("Tt");
  int hour = in.Digits(2);
  in.Expect(":");
  int minute = in.Digits(2);
  in.Expect(":");
  int second = in.Digits(2);
  int64_t ns = in.Take(".") ? in.Fraction() : 0;
  int offset_minutes = 0;
  if (!in.Take("Zz")) {
    int sign = in.front() == '-' ? -1 : 1;
    in.Expect("+-");
    int offset_hours = in.Digits(2);
    in.Expect(":");
    int minutes = in.Digits(2);
    if (offset_hours > 23 || minutes > 59) return std::nullopt;
    offset_minutes = sign * (offset_hours * 60 + minutes);
  }
  std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                   std::chrono::day(day)};
  if (!in.done() || !date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const int64_t minutes = (days * 24 + hour) * 60 + minute - offset_minutes;
  const int64_t seconds = minutes * 60 + second;
  const __int128 unix_ns = static_cast<__int128>(seconds) * kSecondNs + ns;
  return WallTime{static_cast<int64_t>(std::clamp<__int128>(unix_ns, INT64_MIN, INT64_MAX))};
}

std::string KeyOf(const json::Value& object) {
  std::string_view ns = Namespace(object);
  return ns.empty() ? std::string(Name(object)) : StrCat(ns, "/", Name(object));
}

uint64_t ResourceVersion(const json::Value& object) {
  return ParseUint(json::GetString(object, {"metadata", "resourceVersion"})).value_or(0);
}

std::string_view Label(const json::Value& object, std::string_view key) {
  return json::GetString(object, {"metadata", "labels", key});
}

std::string_view Annotation(const json::Value& object, std::string_view key) {
  return json::GetString(object, {"metadata", "annotations", key});
}

bool IsDeleting(const json::Value& object) {
  return !json::GetString(object, {"metadata", "deletionTimestamp"}).empty();
}

WallTime CreationTime(const json::Value& object) {
  return ParseTime(json::GetString(object, {"metadata", "creationTimestamp"})).value_or(WallTime{});
}

std::optional<WallTime> DeletionTime(const json::Value& object) {
  return ParseTime(json::GetString(object, {"metadata", "deletionTimestamp"}));
}

std::vector<OwnerReference> Owners(const json::Value& object) {
  std::vector<OwnerReference> owners;
  for (const json::Value& item : json::GetArray(object, {"metadata", "ownerReferences"})) {
    if (auto owner = ReadOwner(item)) owners.push_back(std::move(*owner));
  }
  return owners;
}

std::optional<OwnerReference> ControllerOf(const json::Value& object) {
  for (const json::Value& item : json::GetArray(object, {"metadata", "ownerReferences"})) {
    if (json::GetBool(item, {"controller"})) return ReadOwner(item);
  }
  return std::nullopt;
}

json::Object ObjectReferenceTo(const json::Value& object) {
  json::Object reference;
  auto copy = [&](std::string_view to, std::string_view value) {
    if (!value.empty()) reference[to] = value;
  };
  copy("kind", KindOf(object));
  copy("namespace", Namespace(object));
  copy("name", Name(object));
  copy("uid", Uid(object));
  copy("apiVersion", ApiVersionOf(object));
  copy("resourceVersion", ResourceVersionText(object));
  return reference;
}

json::Value MakeOwnerReference(const json::Value& owner, bool controller) {
  json::Object reference;
  reference["apiVersion"] = Text(json::GetString(owner, {"apiVersion"}));
  reference["kind"] = Text(json::GetString(owner, {"kind"}));
  reference["name"] = Text(Name(owner));
  reference["uid"] = Text(Uid(owner));
  if (controller) {
    reference["controller"] = true;
    reference["blockOwnerDeletion"] = true;
  }
  return reference;
}

Condition::Condition(const json::Value& document)
    : type(json::GetString(document, {"type"})),
      status(json::GetString(document, {"status"})),
      reason(json::GetString(document, {"reason"})),
      message(json::GetString(document, {"message"})),
      last_transition_time(json::GetString(document, {"lastTransitionTime"})),
      document(&document) {}

std::vector<Condition> Conditions(const json::Value& object) {
  std::vector<Condition> conditions;
  for (const json::Value& one : json::GetArray(object, {"status", "conditions"})) {
    conditions.emplace_back(one);
  }
  return conditions;
}

std::optional<Condition> FindCondition(const json::Value& object, std::string_view type) {
  const json::Value* status = FindStatus(object);
  return status != nullptr ? FindConditionIn(*status, type) : std::nullopt;
}

std::optional<Condition> FindConditionIn(const json::Value& status, std::string_view type) {
  for (const json::Value& one : json::GetArray(status, {"conditions"})) {
    if (json::GetString(one, {"type"}) == type) return Condition(one);
  }
  return std::nullopt;
}

// Asked of every pod and node that changes: no other field is read.
bool ConditionIsTrueIn(const json::Value& status, std::string_view type) {
  for (const json::Value& one : json::GetArray(status, {"conditions"})) {
    if (json::GetString(one, {"type"}) == type) return json::GetString(one, {"status"}) == "True";
  }
  return false;
}

bool ConditionIsTrue(const json::Value& object, std::string_view type) {
  const json::Value* status = FindStatus(object);
  return status != nullptr && ConditionIsTrueIn(*status, type);
}

bool SetCondition(json::Array& conditions,
                  std::string_view type,
                  std::string_view status,
                  std::string_view reason,
                  std::string_view message,
                  WallTime now) {
  for (json::Value& condition : conditions) {
    if (json::GetString(condition, {"type"}) != type) continue;
    bool moved = json::GetString(condition, {"status"}) != status;
    bool changed = moved || json::GetString(condition, {"reason"}) != reason ||
                   json::GetString(condition, {"message"}) != message;
    if (!changed) return false;
    json::Set(condition, {"status"}, Text(status));
    if (moved) json::Set(condition, {"lastTransitionTime"}, Text(FormatTime(now)));
    json::Set(condition, {"reason"}, Text(reason));
    json::Set(condition, {"message"}, Text(message));
    return true;
  }
  json::Object condition;
  condition.reserve(5);
  condition["type"] = Text(type);
  condition["status"] = Text(status);
  condition["lastTransitionTime"] = Text(FormatTime(now));
  condition["reason"] = Text(reason);
  condition["message"] = Text(message);
  conditions.emplace_back(std::move(condition));
  return true;
}

std::string HumanDuration(Duration d) {
  int64_t seconds = d.count() / kSecondNs;
  if (seconds < -1) return "<invalid>";
  if (seconds <= 0) return "0s";
  auto two = [](int64_t big, char big_unit, int64_t small, char small_unit) {
    return small == 0 ? StrCat(big, big_unit) : StrCat(big, big_unit, small, small_unit);
  };
  int64_t minutes = seconds / 60;
  int64_t hours = minutes / 60;
  int64_t days = hours / 24;
  int64_t years = days / 365;
  if (seconds < 120) return StrCat(seconds, 's');
  if (minutes < 10) return two(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return StrCat(minutes, 'm');
  if (hours < 8) return two(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return StrCat(hours, 'h');
  if (days < 8) return two(days, 'd', hours % 24, 'h');
  if (years < 2) return StrCat(days, 'd');
  if (years < 8) return two(years, 'y', days % 365, 'd');
  return StrCat(years, 'y');
}

std::string CheckDnsSubdomain(std::string_view name) {
  if (name.size() > 253) return "must be no more than 253 characters";
  std::vector<std::string_view> labels = Split(name, '.');
  if (!labels.empty() && std::all_of(labels.begin(), labels.end(), IsDnsLabel)) return "";
  return "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
         "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
         "regex used for validation is "
         "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
}

std::string CheckDnsLabel(std::string_view name) {
  if (name.size() > 63) return "must be no more than 63 characters";
  if (IsDnsLabel(name)) return "";
  return "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
         "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
         "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
}

std::string CheckQualifiedName(std::string_view name) {
  size_t slash = name.find('/');
  if (slash != name.rfind('/')) {
    return StrCat("a qualified name ", kNamePartRule,
                  " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
  }
  if (slash != std::string_view::npos) {
    if (slash == 0) return "prefix part must be non-empty";
    std::string why = CheckDnsSubdomain(name.substr(0, slash));
    if (!why.empty()) return "prefix part " + why;
    name.remove_prefix(slash + 1);
  }
  if (name.empty()) return "name part must be non-empty";
  if (name.size() > 63) return "name part must be no more than 63 characters";
  return IsNamePart(name) ? "" : StrCat("name part ", kNamePartRule);
}

bool HasFinalizer(const json::Value& object, std::string_view name) {
  const json::Array& finalizers = Finalizers(object);
  return std::find(finalizers.begin(), finalizers.end(), json::Value(name)) != finalizers.end();
}

json::Value WithoutFinalizer(json::Value object, std::string_view name) {
  json::Array left;
  for (const json::Value& finalizer : Finalizers(object)) {
    if (finalizer != json::Value(name)) left.push_back(finalizer);
  }
  json::Set(object, {"metadata", "finalizers"}, std::move(left));
  return object;
}

std::string CheckLabelValue(std::string_view value) {
  if (value.size() > 63) return "must be no more than 63 characters";
  if (value.empty() || IsNamePart(value)) return "";
  return "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "
         "or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
         "'my_value',  or '12345', regex used for validation is "
         "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
}

}  // namespace swell::api
