#include "kube/controllers/config_map.h"

#include "kube/api/meta/meta.h"

namespace swell::controllers {
namespace {

using Written = Result<json::SharedValue>;

void Make(client::Client& client, const json::Value& map, client::ObjectCallback done) {
  client.Create(client::resources::kConfigMaps, api::Namespace(map), map, std::move(done));
}

void MakeWithNamespace(client::Client& client, json::Value map, client::ObjectCallback done) {
  const json::Value ns = json::Object{{"apiVersion", "v1"},
                                      {"kind", "Namespace"},
                                      {"metadata", json::Object{{"name", api::Namespace(map)}}}};
  // Whatever comes of it, the ConfigMap's own answer counts.
  client.Create(client::resources::kNamespaces, "", ns,
                [&client, map = std::move(map), done = std::move(done)](const Written&) {
                  Make(client, map, done);
                });
}

}  // namespace

void PutConfigMap(client::Client& client, json::Value map, client::ObjectCallback done) {
  const std::string ns(api::Namespace(map));
  const std::string name(api::Name(map));
  const json::Value patch = json::Object{{"data", *json::Find(map, {"data"})}};
  auto patched = [&client, map = std::move(map), done = std::move(done)](const Written& result) {
    if (result.status().code() != Code::kNotFound) return done(result);
    Make(client, map, [&client, map, done](const Written& made) {
      if (made.status().code() != Code::kNotFound) return done(made);
      MakeWithNamespace(client, map, done);
    });
  };
  client.Patch(client::resources::kConfigMaps, ns, name, client::PatchType::kMerge, patch,
               std::move(patched));
}

}  // namespace swell::controllers
