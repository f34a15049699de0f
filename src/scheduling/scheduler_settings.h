// SchedulerSettings: what a scheduler runs with. It is published in a ConfigMap
// (api::keys::kSchedulerSettings, one entry per setting), so that `swell why` and `swell simulate`
// decide as the scheduler does.
// - Threads: values and pure functions; SettingsTeller: core executor only.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"
#include "sched/cycle/cycle.h"

namespace swell::scheduling {

struct SchedulerSettings {
  sched::Settings cycle;
  std::set<std::string, std::less<>> names{"swell"};  // pods that say one are the scheduler's
};

// Sets one from text: staleGracePeriod=60s. kBadRequest names key and value.
Status SetSetting(std::string_view key, std::string_view value, sched::Settings& settings);

bool IsSettingsMap(const json::Value& object);
json::Value ToConfigMap(const SchedulerSettings& settings, std::string_view ns);
// What cannot be read stays as it is, and is told; so do settings that it does not name.
void ReadConfigMap(const json::Value& object,
                   SchedulerSettings& settings,
                   std::vector<std::string>& problems);

// Writes the ConfigMap, and its namespace, when it is started.
class SettingsTeller {
 public:
  SettingsTeller(controllers::Context context,
                 const SchedulerSettings& settings,
                 std::string_view ns);
  void Start();

 private:
  void Write(client::WorkQueue::Done done);

  controllers::Context context_;
  json::Value map_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::scheduling
