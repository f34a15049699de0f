#include "jobs/kinds/ssh_keys.h"

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::jobs {
namespace {

constexpr std::string_view kPrivateKey = "ssh-privatekey";
constexpr std::string_view kPublicKey = "ssh-publickey";
constexpr std::string_view kConfig = "ssh-config";

}  // namespace

// With the job's uid, so that nobody else's is found under it: the controller reads no Secrets.
std::string SshSecretName(const json::Value& job) {
  return StrCat(api::Name(job), "-ssh-", api::Uid(job).substr(0, 8));
}

// Kept as it is made: processes of a running job have it.
json::Value SshSecret(const json::Value& job, const SshKeyPair& key, std::string_view config) {
  json::Object data{{kPrivateKey, Base64Encode(key.private_pem)},
                    {kPublicKey, Base64Encode(key.public_line)}};
  if (!config.empty()) data[kConfig] = Base64Encode(config);
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "Secret"},
                      {"metadata", json::Object{{"name", SshSecretName(job)}}},
                      {"type", "kubernetes.io/ssh-auth"},
                      {"immutable", true},
                      {"data", std::move(data)}};
}

json::Value SshVolume(const json::Value& job,
                      std::string_view name,
                      std::string_view folder,
                      std::string_view path,
                      bool with_config) {
  json::Array items{json::Object{{"key", kPrivateKey}, {"path", StrCat(folder, "id_rsa")}},
                    json::Object{{"key", kPublicKey}, {"path", StrCat(folder, "id_rsa.pub")}},
                    json::Object{{"key", kPublicKey}, {"path", StrCat(folder, "authorized_keys")}}};
  if (with_config) {
    items.push_back(json::Object{{"key", kConfig}, {"path", StrCat(folder, "config")}});
  }
  json::Object source{{"secretName", SshSecretName(job)}, {"items", std::move(items)}};
  // Elsewhere the user is another than the files' owner, and could not read them.
  if (path == kRootKeys) source["defaultMode"] = 0600;
  return json::Object{{"name", name}, {"secret", std::move(source)}};
}

}  // namespace swell::jobs
