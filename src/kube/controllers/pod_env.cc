#include "kube/controllers/pod_env.h"

namespace swell::controllers {

namespace {

// Init containers get it too.
void AddEnv(json::Value& pod, const json::Object& variable) {
  const std::string_view name = json::View(variable.at("name").get_string());
  for (std::string_view list : {"initContainers", "containers"}) {
    json::Value* containers = json::FindMutable(pod, {"spec", list});
    if (containers == nullptr || !containers->is_array()) continue;
    for (json::Value& container : containers->get_array()) {
      json::Value* env = json::FindMutable(container, {"env"});
      if (env == nullptr || !env->is_array()) env = &json::Set(container, {"env"}, json::Array{});
      bool present = false;
      for (const json::Value& entry : env->get_array()) {
        present = present || json::GetString(entry, {"name"}) == name;
      }
      if (!present) env->get_array().push_back(variable);
    }
  }
}

}  // namespace

void SetEnv(json::Value& pod, std::string_view name, std::string_view value) {
  AddEnv(pod, {{"name", name}, {"value", value}});
}

void SetEnvFromField(json::Value& pod, std::string_view name, std::string_view field) {
  json::Object source{{"fieldRef", json::Object{{"fieldPath", field}}}};
  AddEnv(pod, {{"name", name}, {"valueFrom", std::move(source)}});
}

}  // namespace swell::controllers
