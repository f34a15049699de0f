#include "jobs/kinds/git_sync.h"

#include <string>

#include "base/strings.h"
#include "kube/api/meta/code_keys.h"
#include "kube/api/meta/meta.h"

namespace swell::jobs {
namespace {

constexpr std::string_view kVolume = "git-sync";

Status Wrong(std::string_view field, std::string_view why) {
  return Status(Code::kInvalid, StrCat("metadata.annotations[", api::keys::kGitSync, "]",
                                       field.empty() ? "" : ".", field, ": ", why));
}

// "sample" of "https://host/team/sample.git".
std::string RepositoryName(std::string_view source) {
  while (source.ends_with('/')) source.remove_suffix(1);
  source = source.substr(source.rfind('/') + 1);
  if (source.ends_with(".git")) source.remove_suffix(4);
  return std::string(source);
}

// A place below another one: the path of a volume's part, and of what is mounted.
bool IsBelow(std::string_view path) {
  if (path.empty() || path.starts_with('/')) return false;
  for (std::string_view part : Split(path, '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

void SetText(json::Array& env, std::string_view name, const std::string& value) {
  if (value.empty()) return;
  env.push_back(json::Object{{"name", name}, {"value", value}});
}

// The variables that git-sync reads, after those that the job sets.
json::Array MakeEnv(const json::Value& options, const std::string& root, const std::string& dest) {
  json::Array env = json::GetArray(options, {"envs"});
  const auto text = [&options](std::string_view field) {
    return std::string(json::GetString(options, {field}));
  };
  SetText(env, "GIT_SYNC_REPO", text("source"));
  SetText(env, "GIT_SYNC_ONE_TIME", "true");  // it ends, as init containers must
  const int64_t failures = json::GetInt(options, {"maxFailures"}, 0);
  SetText(env, "GIT_SYNC_MAX_SYNC_FAILURES", std::to_string(failures == 0 ? 3 : failures));
  SetText(env, "GIT_SYNC_BRANCH", text("branch"));
  SetText(env, "GIT_SYNC_REV", text("revision"));
  SetText(env, "GIT_SYNC_DEPTH", text("depth"));
  SetText(env, "GIT_SYNC_ROOT", root);
  SetText(env, "GIT_SYNC_DEST", dest);
  if (json::GetBool(options, {"ssh"})) {
    SetText(env, "GIT_SYNC_SSH", "true");
    SetText(env, "GIT_SSH_KEY_FILE", text("sshFile"));
  }
  SetText(env, "GIT_SYNC_USERNAME", text("user"));
  SetText(env, "GIT_SYNC_PASSWORD", text("password"));
  return env;
}

void Append(json::Value& object, json::Path list, json::Object item) {
  json::Array items = json::GetArray(object, list);
  items.push_back(std::move(item));
  json::Set(object, list, std::move(items));
}

void AddTo(json::Value& pod, const json::Object& init, const std::string& dest) {
  json::Value* containers = json::FindMutable(pod, {"spec", "containers"});
  if (containers == nullptr || !containers->is_array() || containers->get_array().empty()) return;
  json::Object own = init;
  // As much as the first container has, which is not there yet: the pod needs no more for it.
  const json::Value* resources = json::Find(containers->get_array()[0], {"resources"});
  if (resources != nullptr) own["resources"] = *resources;
  for (json::Value& container : containers->get_array()) {
    std::string place(json::GetString(container, {"workingDir"}));
    if (!place.ends_with('/')) place += '/';
    Append(container, {"volumeMounts"},
           {{"name", kVolume}, {"mountPath", place + dest}, {"subPath", dest}});
  }
  Append(pod, {"spec", "initContainers"}, std::move(own));
  Append(pod, {"spec", "volumes"}, {{"name", kVolume}, {"emptyDir", json::Object{}}});
}

}  // namespace

Status AddGitSync(const json::Value& job, JobSpec& spec) {
  const std::string_view text = api::Annotation(job, api::keys::kGitSync);
  if (text.empty()) return Status::Ok();
  const auto options = json::Parse(text);
  if (!options.ok() || !options->is_object()) {
    return Wrong("", "must be a JSON object, like {\"source\": \"https://host/team/code.git\"}");
  }
  const std::string_view source = json::GetString(*options, {"source"});
  if (source.empty()) return Wrong("source", "Required value: the repository to fetch");
  const std::string root(json::GetString(*options, {"rootPath"}, "/code"));
  if (!root.starts_with('/')) return Wrong("rootPath", "must be an absolute path");
  std::string dest(json::GetString(*options, {"destPath"}));
  if (dest.empty()) dest = RepositoryName(source);
  // "code/" is the directory code; "/" stays what it is, and is refused.
  while (dest.size() > 1 && dest.ends_with('/')) dest.pop_back();
  if (!IsBelow(dest)) return Wrong("destPath", "must be a relative path without '..'");
  const json::Object init{
      {"name", "git-sync-code"},
      {"image", json::GetString(*options, {"image"}, "kubedl/git-sync:v1")},
      {"imagePullPolicy", "IfNotPresent"},
      {"env", MakeEnv(*options, root, dest)},
      {"volumeMounts", json::Array{json::Object{{"name", kVolume}, {"mountPath", root}}}}};
  for (ReplicaSpec& replica : spec.replicas) AddTo(replica.pod_template, init, dest);
  return Status::Ok();
}

}  // namespace swell::jobs
