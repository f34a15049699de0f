#include "kube/client/kubeconfig.h"

#include <filesystem>

#include "base/file.h"
#include "base/host_port.h"
#include "base/strings.h"
#include "json/yaml.h"

namespace swell::client {
namespace {

// One of the files; what it says of other files is meant from where it lies.
struct File {
  std::string path;
  json::Value config;
};

struct Named {
  const json::Value* value = nullptr;
  std::string path;  // of its file
};

Named FindNamed(const std::vector<File>& files,
                std::string_view list,
                std::string_view name,
                std::string_view inner) {
  for (const File& file : files) {
    for (const json::Value& item : json::GetArray(file.config, {list})) {
      if (json::GetString(item, {"name"}) != name) continue;
      return {json::Find(item, {inner}), file.path};
    }
  }
  return {};
}

Result<std::vector<File>> ReadFiles(const std::string& paths) {
  std::vector<File> files;
  Status missing;
  for (std::string_view listed : Split(paths, ':')) {
    if (listed.empty()) continue;
    std::string path(listed);
    auto text = ReadFile(path, 4 << 20);
    if (!text.ok() && text.status().code() == Code::kNotFound) {
      missing = text.status();
      continue;
    }
    if (!text.ok()) return text.status();
    auto documents = json::ParseYaml(*text);
    if (!documents.ok()) return documents.status().WithContext(path);
    if (documents->empty()) continue;
    files.push_back({std::move(path), std::move(documents->front())});
  }
  if (!files.empty()) return files;
  if (!missing.ok()) return missing;
  return Status(Code::kBadRequest, StrCat(paths, ": empty kubeconfig"));
}

std::string CurrentContext(const std::vector<File>& files) {
  for (const File& file : files) {
    const std::string_view name = json::GetString(file.config, {"current-context"});
    if (!name.empty()) return std::string(name);
  }
  return {};
}

// KEY-data is base64 in the file itself; KEY names a file, relative to the kubeconfig.
Result<std::string> PemOf(const json::Value& object,
                          const std::string& path,
                          std::string_view key) {
  std::string data_key = StrCat(key, "-data");
  std::string_view data = json::GetString(object, {data_key});
  if (!data.empty()) {
    auto decoded = Base64Decode(data);
    if (!decoded) {
      return Status(Code::kBadRequest, StrCat(path, ": ", data_key, ": not valid base64"));
    }
    return *decoded;
  }
  std::string_view file = json::GetString(object, {key});
  if (file.empty()) return std::string();
  auto full = std::filesystem::path(path).parent_path() / std::string(file);
  auto bytes = ReadFile(full.string(), 1 << 20);
  if (!bytes.ok()) return bytes.status().WithContext(StrCat(path, ": ", key));
  return bytes;
}

Status Missing(const std::string& path, std::string_view what, std::string_view name) {
  return Status(Code::kNotFound, StrCat(path, ": no ", what, " named ", Quote(name)));
}

Status Refused(const std::string& path,
               std::string_view what,
               std::string_view name,
               std::string_view why) {
  return Status(Code::kBadRequest, StrCat(path, ": ", what, " ", Quote(name), ": ", why));
}

Result<ExecPlugin> ReadExec(const json::Value& exec,
                            const std::string& path,
                            std::string_view user) {
  ExecPlugin plugin;
  plugin.api_version = json::GetString(exec, {"apiVersion"});
  plugin.command = json::GetString(exec, {"command"});
  plugin.install_hint = json::GetString(exec, {"installHint"});
  plugin.provide_cluster_info = json::GetBool(exec, {"provideClusterInfo"});
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return Refused(path, "user", user,
                   StrCat("exec.apiVersion: ", Quote(plugin.api_version),
                          " is not supported; use client.authentication.k8s.io/v1 or v1beta1"));
  }
  if (plugin.command.empty()) return Refused(path, "user", user, "exec.command is not set");
  std::filesystem::path command(plugin.command);
  if (command.is_relative() && command.has_parent_path()) {
    plugin.command = (std::filesystem::path(path).parent_path() / command).string();
  }
  for (const json::Value& arg : json::GetArray(exec, {"args"})) {
    if (arg.is_string()) plugin.args.emplace_back(json::View(arg.get_string()));
  }
  for (const json::Value& variable : json::GetArray(exec, {"env"})) {
    plugin.env.emplace_back(json::GetString(variable, {"name"}),
                            json::GetString(variable, {"value"}));
  }
  return plugin;
}

Status ReadUser(const json::Value& user, const std::string& path, ClusterAccess& access) {
  SWELL_ASSIGN_OR_RETURN(access.client_cert_pem, PemOf(user, path, "client-certificate"));
  SWELL_ASSIGN_OR_RETURN(access.client_key_pem, PemOf(user, path, "client-key"));
  if (access.client_cert_pem.empty() != access.client_key_pem.empty()) {
    return Refused(path, "user", access.user, "a client certificate and its key belong together");
  }
  access.token = json::GetString(user, {"token"});
  std::string token_file(json::GetString(user, {"tokenFile"}));
  // As kubectl has it: a token in the file itself counts for more than a file of its own.
  if (access.token.empty() && !token_file.empty()) {
    access.token_file = (std::filesystem::path(path).parent_path() / token_file).string();
    auto token = ReadFile(access.token_file, 1 << 20);
    if (!token.ok()) return token.status().WithContext(StrCat(path, ": tokenFile"));
    access.token = Trim(*token);
  }
  if (!json::GetString(user, {"username"}).empty()) {
    return Refused(path, "user", access.user,
                   "API servers take no username and password any more; use a token, a client "
                   "certificate or an exec plugin");
  }
  if (json::Find(user, {"auth-provider"}) != nullptr) {
    return Refused(path, "user", access.user,
                   "auth-provider is gone from Kubernetes; use an exec plugin");
  }
  const json::Value* exec = json::Find(user, {"exec"});
  if (exec != nullptr && access.token.empty()) {
    SWELL_ASSIGN_OR_RETURN(access.exec, ReadExec(*exec, path, access.user));
  }
  return Status::Ok();
}

}  // namespace

Result<ClusterAccess> LoadKubeconfig(const std::string& paths, const std::string& context) {
  SWELL_ASSIGN_OR_RETURN(const std::vector<File> files, ReadFiles(paths));
  const std::string name = context.empty() ? CurrentContext(files) : context;
  if (name.empty()) {
    return Status(Code::kBadRequest, StrCat(paths, ": current-context is not set"));
  }
  const Named chosen = FindNamed(files, "contexts", name, "context");
  if (chosen.value == nullptr) return Missing(paths, "context", name);

  ClusterAccess access;
  std::string_view cluster_name = json::GetString(*chosen.value, {"cluster"});
  const Named cluster = FindNamed(files, "clusters", cluster_name, "cluster");
  if (cluster.value == nullptr) return Missing(paths, "cluster", cluster_name);
  access.server = json::GetString(*cluster.value, {"server"});
  if (access.server.empty()) {
    return Status(Code::kBadRequest,
                  StrCat(cluster.path, ": cluster ", Quote(cluster_name), ": server is not set"));
  }
  if (!json::GetString(*cluster.value, {"proxy-url"}).empty()) {
    return Refused(cluster.path, "cluster", cluster_name, "proxy-url: proxies are not supported");
  }
  access.tls_server_name = json::GetString(*cluster.value, {"tls-server-name"});
  access.insecure_skip_tls_verify = json::GetBool(*cluster.value, {"insecure-skip-tls-verify"});
  access.ns = json::GetString(*chosen.value, {"namespace"}, "default");
  SWELL_ASSIGN_OR_RETURN(access.ca_pem,
                         PemOf(*cluster.value, cluster.path, "certificate-authority"));
  if (access.insecure_skip_tls_verify && !access.ca_pem.empty()) {
    return Refused(cluster.path, "cluster", cluster_name,
                   "certificate-authority and insecure-skip-tls-verify exclude each other");
  }

  access.user = json::GetString(*chosen.value, {"user"});
  if (access.user.empty()) return access;
  const Named user = FindNamed(files, "users", access.user, "user");
  if (user.value == nullptr) return Missing(paths, "user", access.user);
  SWELL_RETURN_IF_ERROR(ReadUser(*user.value, user.path, access));
  return access;
}

std::optional<Result<ClusterAccess>> InClusterAccess(
    const std::function<std::string(const std::string&)>& getenv, const std::string& root) {
  std::string host = getenv("KUBERNETES_SERVICE_HOST");
  std::string port = getenv("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) return std::nullopt;
  ClusterAccess access;
  access.server = StrCat("https://", Bracketed(host), ":", port);
  access.token_file = root + "/token";
  access.user = "this pod's service account";
  auto token = ReadFile(access.token_file, 1 << 20);
  if (!token.ok()) return Result<ClusterAccess>(token.status().WithContext(access.user));
  access.token = Trim(*token);
  auto ca = ReadFile(root + "/ca.crt", 1 << 20);
  if (!ca.ok()) return Result<ClusterAccess>(ca.status().WithContext(access.user));
  access.ca_pem = std::move(*ca);
  access.ns = InClusterNamespace(root).value_or(access.ns);
  return Result<ClusterAccess>(std::move(access));
}

std::optional<std::string> InClusterNamespace(const std::string& root) {
  const auto text = ReadFile(root + "/namespace", 1 << 10);
  if (!text.ok() || Trim(*text).empty()) return std::nullopt;
  return std::string(Trim(*text));
}

namespace {

// The entry of that name in a list of named things; null: it has none.
json::Value* Named(json::Value& config, std::string_view list, std::string_view name) {
  json::Value* entries = json::FindMutable(config, {list});
  if (entries == nullptr || !entries->is_array()) return nullptr;
  for (json::Value& entry : entries->get_array()) {
    if (json::GetString(entry, {"name"}) == name) return &entry;
  }
  return nullptr;
}

// `config` has one of each; `before` may have more, and people's choices.
json::Value Merged(json::Value config, std::string_view before) {
  auto documents = json::ParseYaml(before);
  if (!documents.ok() || documents->size() != 1 || !(*documents)[0].is_object() ||
      json::GetString((*documents)[0], {"kind"}) != "Config") {
    return config;
  }
  json::Value merged = std::move((*documents)[0]);
  for (const char* list : {"clusters", "users", "contexts"}) {
    json::Value fresh = json::GetArray(config, {list})[0];
    json::Value* old = Named(merged, list, json::GetString(fresh, {"name"}));
    if (old == nullptr) {
      json::Array all = json::GetArray(merged, {list});
      all.push_back(std::move(fresh));
      json::Set(merged, {list}, std::move(all));
      continue;
    }
    const std::string ns(json::GetString(*old, {"context", "namespace"}));
    *old = std::move(fresh);
    if (!ns.empty()) json::Set(*old, {"context", "namespace"}, ns);
  }
  const std::string_view current = json::GetString(merged, {"current-context"});
  if (Named(merged, "contexts", current) == nullptr) {
    json::Set(merged, {"current-context"}, json::GetString(config, {"current-context"}));
  }
  return merged;
}

}  // namespace

std::string MakeKubeconfig(const std::string& context_name,
                           const ClusterAccess& access,
                           std::string_view before) {
  json::Object cluster{{"server", access.server}};
  if (!access.ca_pem.empty()) cluster["certificate-authority-data"] = Base64Encode(access.ca_pem);
  json::Object user;
  if (!access.client_cert_pem.empty()) {
    user["client-certificate-data"] = Base64Encode(access.client_cert_pem);
    user["client-key-data"] = Base64Encode(access.client_key_pem);
  }
  if (!access.token.empty()) user["token"] = access.token;
  std::string user_name = access.user.empty() ? "admin" : access.user;
  auto named = [](std::string_view name, std::string_view key, json::Object inner) {
    return json::Array{json::Object{{"name", name}, {key, std::move(inner)}}};
  };
  json::Object context{{"cluster", context_name}, {"user", user_name}};
  if (access.ns != "default") context["namespace"] = access.ns;
  json::Value config =
      json::Object{{"apiVersion", "v1"},
                   {"kind", "Config"},
                   {"clusters", named(context_name, "cluster", std::move(cluster))},
                   {"contexts", named(context_name, "context", std::move(context))},
                   {"current-context", context_name},
                   {"preferences", json::Object{}},
                   {"users", named(user_name, "user", std::move(user))}};
  return json::PrintYaml(before.empty() ? config : Merged(std::move(config), before));
}

}  // namespace swell::client
