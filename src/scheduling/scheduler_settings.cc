#include "scheduling/scheduler_settings.h"

#include <cstdlib>

#include "base/duration.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/config_map.h"
#include "kube/controllers/queue.h"

namespace swell::scheduling {
namespace {

constexpr std::string_view kNames = "schedulerNames";
constexpr const char* kPastUseShare = "pastUseShare";

struct DurationSetting {
  const char* key;
  Duration sched::Settings::*field;
};
constexpr DurationSetting kDurations[] = {
    {"staleGracePeriod", &sched::Settings::stale_grace},
    {"reserveAfter", &sched::Settings::reserve_after},
    {"movePause", &sched::Settings::move_pause},
    {"pastUseHalfLife", &sched::Settings::past_half_life},
};

std::vector<std::string> SettingNames() {
  std::vector<std::string> names;
  for (const DurationSetting& one : kDurations) names.emplace_back(one.key);
  names.emplace_back(kPastUseShare);
  return names;
}

Status SetShare(std::string_view value, sched::Settings& settings) {
  const std::string text(value);
  char* end = nullptr;
  const double share = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(share >= 0 && share <= 1000)) {
    return {Code::kBadRequest,
            StrCat(kPastUseShare, " ", Quote(value), " is not a number such as 0.5")};
  }
  settings.past_share = share;
  return {};
}

}  // namespace

Status SetSetting(std::string_view key, std::string_view value, sched::Settings& settings) {
  if (key == kPastUseShare) return SetShare(value, settings);
  for (const DurationSetting& one : kDurations) {
    if (one.key != key) continue;
    const auto parsed = ParseDuration(value);
    if (!parsed) {
      return {Code::kBadRequest, StrCat(key, " ", Quote(value), " is not a duration such as 90s")};
    }
    settings.*one.field = *parsed;
    return {};
  }
  return {Code::kBadRequest, StrCat("no setting is called ", Quote(key), "; the settings are ",
                                    Join(SettingNames(), ", "))};
}

bool IsSettingsMap(const json::Value& object) {
  return api::KindOf(object) == "ConfigMap" && api::Name(object) == api::keys::kSchedulerSettings;
}

json::Value ToConfigMap(const SchedulerSettings& settings, std::string_view ns) {
  json::Object data;
  for (const DurationSetting& one : kDurations) {
    data[one.key] = FormatDuration(settings.cycle.*one.field);
  }
  data[kPastUseShare] = json::Print(json::Value(settings.cycle.past_share));
  data[kNames] = Join({settings.names.begin(), settings.names.end()}, ",");
  json::Object metadata{{"name", api::keys::kSchedulerSettings}, {"namespace", ns}};
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata", std::move(metadata)},
                      {"data", std::move(data)}};
}

void ReadConfigMap(const json::Value& object,
                   SchedulerSettings& settings,
                   std::vector<std::string>& problems) {
  for (const std::string& key : SettingNames()) {
    if (json::Find(object, {"data", key}) == nullptr) continue;
    const Status set = SetSetting(key, json::GetString(object, {"data", key}), settings.cycle);
    if (set.ok()) continue;
    problems.push_back(StrCat("ConfigMap ", api::KeyOf(object), ": data.", set.message()));
  }
  const std::string_view names = json::GetString(object, {"data", kNames});
  if (names.empty()) return;
  settings.names.clear();
  for (std::string_view name : Split(names, ',')) settings.names.emplace(name);
}

SettingsTeller::SettingsTeller(controllers::Context context,
                               const SchedulerSettings& settings,
                               std::string_view ns)
    : context_(std::move(context)),
      map_(ToConfigMap(settings, ns)),
      queue_(
          controllers::MakeQueue(context_, "scheduler-settings", 1, this, &SettingsTeller::Write)),
      client_(context_.executor, context_.server, context_.user, "scheduler-settings") {}

void SettingsTeller::Start() { queue_.Add(std::string(api::keys::kSchedulerSettings)); }

void SettingsTeller::Write(client::WorkQueue::Done done) {
  controllers::PutConfigMap(
      client_, map_, [done = std::move(done)](const Result<json::SharedValue>& written) {
        done(written.ok() ? Result<Duration>(Duration::zero()) : written.status());
      });
}

}  // namespace swell::scheduling
