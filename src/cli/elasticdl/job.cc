// What `elasticdl train` makes of its flags: an ElasticDLJob and the ConfigMap of its model.
#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/nearest_word.h"
#include "base/strings.h"
#include "base/words.h"
#include "cli/elasticdl/elasticdl.h"
#include "cli/flags.h"
#include "cli/jobs/pytorch_spec.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"

namespace swell::cli::elasticdl {
namespace {

constexpr size_t kModelBytesMax = 900 << 10;  // a ConfigMap holds 1 MiB
constexpr size_t kModelFilesMax = 500;
constexpr int kModelDepthMax = 8;

std::string KeyOf(std::string path) {
  std::replace(path.begin(), path.end(), '/', '_');
  return path;
}

Status CollectZoo(const std::string& root,
                  const std::string& below,
                  int depth,
                  std::vector<ModelPart>& parts) {
  if (depth > kModelDepthMax) return Status::Ok();
  SWELL_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir(StrCat(root, "/", below)));
  for (const std::string& name : names) {
    if (name.starts_with('.') || name == "__pycache__") continue;
    const std::string path = below.empty() ? name : StrCat(below, "/", name);
    const std::string full = StrCat(root, "/", path);
    if (ListDir(full).ok()) {
      SWELL_RETURN_IF_ERROR(CollectZoo(root, path, depth + 1, parts));
      continue;
    }
    if (!name.ends_with(".py")) continue;
    SWELL_ASSIGN_OR_RETURN(std::string text, ReadFile(full, kModelBytesMax));
    parts.push_back({path, std::move(text)});
    if (parts.size() > kModelFilesMax) {
      return Misuse(StrCat("--model_zoo ", root, ": more than ", kModelFilesMax, " Python files"));
    }
  }
  return Status::Ok();
}

std::string ModuleOf(const ModelPart& part) {
  std::string module = part.path.substr(0, part.path.size() - std::string_view(".py").size());
  std::replace(module.begin(), module.end(), '/', '.');
  return module;
}

// Whether the part is the file that --model_file or --model_def names: MODULE.NAME, or a module
// whose model has the usual name.
bool IsModel(const JobFlags& flags, const ModelPart& part) {
  const std::string& said = flags.model_def;
  const std::string module = ModuleOf(part);
  return !flags.model_file.empty() || module == said || module == said.substr(0, said.rfind('.'));
}

// "import NAME", "from NAME.x import y", "import NAME as n", at any depth.
bool Imports(std::string_view text, std::string_view name) {
  for (std::string_view line : Split(text, '\n')) {
    const std::vector<std::string_view> words = SplitWords(line);
    if (words.size() < 2 || (words[0] != "import" && words[0] != "from")) continue;
    const std::string_view module = words[1].substr(0, words[1].find_first_of(".,;\r"));
    if (module == name) return true;
  }
  return false;
}

// "cpu=1,memory=4096Mi,gpu=1,disk=10Gi".
Result<json::Object> ParseAmounts(std::string_view flag, std::string_view text) {
  json::Object amounts;
  for (std::string_view part : Split(text, ',')) {
    part = Trim(part);
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      return Misuse(StrCat(flag, " ", Quote(text), ": expected cpu=1,memory=4096Mi"));
    }
    std::string name(Trim(part.substr(0, equals)));
    const std::string amount(Trim(part.substr(equals + 1)));
    if (!api::Quantity::Parse(amount).ok()) {
      return Misuse(StrCat(flag, ": ", name, "=", Quote(amount),
                           ": expected an amount like 1000m or 4096Mi"));
    }
    if (name == "gpu") name = "nvidia.com/gpu";
    if (name == "disk") name = "ephemeral-storage";
    amounts[name] = amount;
  }
  return amounts;
}

Status SetAmount(json::Object& amounts,
                 std::string_view name,
                 std::string_view flag,
                 const std::string& amount) {
  if (amount.empty()) return Status::Ok();
  if (!api::Quantity::Parse(amount).ok()) {
    return Misuse(StrCat(flag, " ", Quote(amount), ": expected an amount like ",
                         name == "cpu" ? "1000m" : "4096Mi"));
  }
  amounts[name] = amount;
  return Status::Ok();
}

Result<json::Object> Resources(std::string_view role,
                               const JobFlags::Role& flags,
                               std::string_view usual) {
  const std::string prefix = StrCat("--", role);
  SWELL_ASSIGN_OR_RETURN(json::Object requests, ParseAmounts(prefix + "_resource_request", usual));
  if (!flags.request.empty()) {
    SWELL_ASSIGN_OR_RETURN(requests, ParseAmounts(prefix + "_resource_request", flags.request));
  }
  SWELL_RETURN_IF_ERROR(SetAmount(requests, "cpu", prefix + "_cpu_request", flags.cpu_request));
  SWELL_RETURN_IF_ERROR(
      SetAmount(requests, "memory", prefix + "_memory_request", flags.memory_request));
  // Without limits of their own they are what is requested.
  json::Object limits = requests;
  if (!flags.limit.empty()) {
    SWELL_ASSIGN_OR_RETURN(json::Object given,
                           ParseAmounts(prefix + "_resource_limit", flags.limit));
    for (const auto& one : given) limits[one.key()] = one.value();
  }
  SWELL_RETURN_IF_ERROR(SetAmount(limits, "cpu", prefix + "_cpu_limit", flags.cpu_limit));
  SWELL_RETURN_IF_ERROR(SetAmount(limits, "memory", prefix + "_memory_limit", flags.memory_limit));
  for (const char* name : {"cpu", "memory"}) {
    SWELL_RETURN_IF_ERROR(
        CheckRequest(StrCat(prefix, "_", name, "_request"), json::GetString(requests, {name}),
                     StrCat(prefix, "_", name, "_limit"), json::GetString(limits, {name})));
  }
  return json::Object{{"requests", std::move(requests)}, {"limits", std::move(limits)}};
}

// "claim_name=c1,mount_path=/data;host_path=/srv,mount_path=/srv", several by semicolons.
Status AddVolumes(const JobFlags& flags, json::Array& volumes, json::Array& mounts) {
  std::string text = flags.volume;
  if (!flags.volume_name.empty() || !flags.mount_path.empty()) {
    if (flags.volume_name.empty() || flags.mount_path.empty()) {
      return Misuse("--volume_name and --mount_path belong together");
    }
    text = StrCat("claim_name=", flags.volume_name, ",mount_path=", flags.mount_path,
                  text.empty() ? "" : ";", text);
  }
  int number = 0;
  for (std::string_view one : Split(text, ';')) {
    if (Trim(one).empty()) continue;
    json::Value volume = json::Object{{"name", StrCat("volume-", number)}};
    json::Value mount = json::Object{{"name", StrCat("volume-", number)}};
    for (std::string_view part : Split(one, ',')) {
      part = Trim(part);
      const size_t equals = part.find('=');
      const std::string_view key = part.substr(0, equals);
      const std::string_view value =
          equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
      if (key == "claim_name") {
        json::Set(volume, {"persistentVolumeClaim", "claimName"}, value);
      } else if (key == "host_path") {
        json::Set(volume, {"hostPath", "path"}, value);
      } else if (key == "type") {
        json::Set(volume, {"hostPath", "type"}, value);
      } else if (key == "mount_path") {
        json::Set(mount, {"mountPath"}, value);
      } else if (key == "sub_path") {
        json::Set(mount, {"subPath"}, value);
      } else if (key == "read_only") {
        json::Set(mount, {"readOnly"}, ToLower(value) == "true");
      } else {
        return Misuse(StrCat("--volume: ", Quote(key),
                             " is not claim_name, host_path, type, mount_path, sub_path or "
                             "read_only"));
      }
    }
    if (json::Find(mount, {"mountPath"}) == nullptr || volume.get_object().size() != 2) {
      return Misuse(StrCat("--volume ", Quote(one),
                           ": expected mount_path, and either claim_name or host_path"));
    }
    volumes.push_back(std::move(volume));
    mounts.push_back(std::move(mount));
    ++number;
  }
  return Status::Ok();
}

Result<json::Array> Environment(const JobFlags& flags,
                                const std::function<std::string(const std::string&)>& getenv) {
  json::Array env;
  for (std::string_view pair : Split(flags.envs, ',')) {
    pair = Trim(pair);
    const size_t equals = pair.find('=');
    if (pair.empty()) continue;
    if (equals == std::string_view::npos || equals == 0) {
      return Misuse(StrCat("--envs ", Quote(pair), ": expected KEY=VALUE"));
    }
    env.push_back(
        json::Object{{"name", pair.substr(0, equals)}, {"value", pair.substr(equals + 1)}});
  }
  // Alternatives of a pattern in the original; names here.
  std::string names = flags.populate_env_names;
  std::replace(names.begin(), names.end(), '|', ',');
  for (std::string_view name : Split(names, ',')) {
    const std::string value = getenv(std::string(Trim(name)));
    if (!value.empty()) env.push_back(json::Object{{"name", Trim(name)}, {"value", value}});
  }
  return env;
}

// '{"pod_spec": {"labels": {…}, "annotations": {…}, "tolerations": […], …}}'
Status ApplyClusterSpec(const JobFlags& flags, json::Value& pod_template) {
  if (!flags.cluster_spec.empty()) {
    return Misuse(StrCat("--cluster_spec ", flags.cluster_spec,
                         ": Python hooks do not run in this client; say the same with "
                         "--cluster_spec_json"));
  }
  if (flags.cluster_spec_json.empty()) return Status::Ok();
  auto spec = json::Parse(flags.cluster_spec_json);
  if (!spec.ok()) return Misuse(StrCat("--cluster_spec_json: ", spec.status().message()));
  for (const auto& field : json::GetObject(*spec, {"pod_spec"})) {
    const std::string_view key(field.key().data(), field.key().size());
    if (key == "labels" || key == "annotations") {
      for (const auto& one : json::GetObject(*spec, {"pod_spec", key})) {
        json::Set(pod_template, {"metadata", key, std::string_view(one.key())}, one.value());
      }
    } else {
      json::Set(pod_template, {"spec", key}, field.value());
    }
  }
  return Status::Ok();
}

std::string_view ModeWord(Mode mode) {
  if (mode == Mode::kTrain) return "train";
  return mode == Mode::kEvaluate ? "evaluate" : "predict";
}

json::Array Arguments(const JobFlags& flags) {
  json::Array arguments{json::Value(StrCat("--mode=", ModeWord(flags.mode))),
                        json::Value(StrCat("--job_name=", flags.name))};
  auto add = [&arguments](std::string_view name, const std::string& value) {
    if (!value.empty()) arguments.push_back(json::Value(StrCat("--", name, "=", value)));
  };
  add("model_file", flags.model_file);
  add("model_zoo", flags.model_zoo);
  add("model_def", flags.model_def);
  for (const auto& [name, value] : flags.arguments) add(name, value);
  return arguments;
}

// Misuse for what is unknown: an option that does nothing would be a promise broken.
Status ApplyAuxParams(const JobFlags& flags, int64_t& relaunches) {
  for (std::string_view part : Split(flags.aux_params, ';')) {
    part = Trim(part);
    if (part.empty()) continue;
    const std::string_view name = part.substr(0, part.find('='));
    const bool on = ToLower(part.substr(std::min(part.size(), name.size() + 1))) != "false";
    if (name == "disable_relaunch") {
      if (on) relaunches = 0;
    } else if (name != "debug") {
      return Misuse(StrCat("--aux_params: ", Quote(name), " is not disable_relaunch"));
    }
  }
  return Status::Ok();
}

// "0.5".
bool IsPart(std::string_view priority) {
  const std::string text(priority);
  char* end = nullptr;
  const double part = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && part >= 0 && part <= 1;
}

}  // namespace

bool NeedsClass(std::string_view priority, std::string_view word) {
  if (priority == "high" || priority == "low" || IsPart(priority)) return true;
  const size_t equals = priority.find('=');
  if (equals == std::string_view::npos) return false;
  return word == "low" || priority.substr(0, equals) == word;
}

Result<std::vector<ModelPart>> ReadModel(JobFlags& flags) {
  std::vector<ModelPart> parts;
  if (!flags.model_file.empty()) {
    auto text = ReadFile(flags.model_file, kModelBytesMax);
    if (!text.ok()) return Misuse(StrCat("--model_file: ", text.status().message()));
    const std::string name = flags.model_file.substr(flags.model_file.rfind('/') + 1);
    parts.push_back({name, std::move(*text)});
    flags.model_file = StrCat(kModelFolder, "/", name);
    flags.model_zoo.clear();
    return parts;
  }
  if (flags.model_def.empty()) return Misuse("--model_file or --model_def is not set");
  // A zoo that is not on this machine is one in the image.
  const std::string zoo = flags.model_zoo.empty() ? "." : flags.model_zoo;
  if (!ListDir(zoo).ok()) return parts;
  SWELL_RETURN_IF_ERROR(CollectZoo(zoo, "", 0, parts));
  size_t bytes = 0;
  for (const ModelPart& part : parts) bytes += part.text.size();
  if (bytes > kModelBytesMax) {
    return Misuse(StrCat("--model_zoo ", zoo, ": its Python files are larger than ", kModelBytesMax,
                         " bytes"));
  }
  flags.model_zoo = kModelFolder;
  return parts;
}

Status CheckModelDef(const JobFlags& flags,
                     const std::string& folder,
                     const std::vector<ModelPart>& parts) {
  if (parts.empty() || !flags.model_file.empty()) return Status::Ok();
  const std::string& said = flags.model_def;
  const std::string module = said.substr(0, said.rfind('.'));
  std::vector<std::string> modules;
  for (const ModelPart& part : parts) {
    if (IsModel(flags, part)) return Status::Ok();
    modules.push_back(ModuleOf(part));
  }
  const std::string near = NearestName(module, modules);
  constexpr size_t kModulesShown = 10;
  std::string hint;
  if (!near.empty()) {
    hint = StrCat("; did you mean ", near, said.substr(module.size()), "?");
  } else if (modules.size() <= kModulesShown) {
    hint = StrCat("; it has ", Join(modules, ", "));
  }
  return Misuse(StrCat("--model_def ", Quote(said), ": ", folder, " has no such module", hint));
}

Status CheckFramework(const JobFlags& flags, const std::vector<ModelPart>& parts) {
  for (const ModelPart& part : parts) {
    if (!IsModel(flags, part) || Imports(part.text, "torch")) continue;
    for (const char* other : {"tensorflow", "keras", "elasticdl"}) {
      if (!Imports(part.text, other)) continue;
      return Misuse(StrCat(flags.model_file.empty() ? "--model_def: " : "--model_file: ", part.path,
                           " imports ", other,
                           " and no torch, but model files are PyTorch's here; elasticdl zoo init "
                           "writes an example"));
    }
  }
  return Status::Ok();
}

std::string ModelMapName(const JobFlags& flags) { return StrCat("elasticdl-model-", flags.name); }

json::Value MakeModelMap(const JobFlags& flags, const std::vector<ModelPart>& parts) {
  json::Object data;
  for (const ModelPart& part : parts) data[KeyOf(part.path)] = part.text;
  return json::Object{
      {"apiVersion", "v1"},
      {"kind", "ConfigMap"},
      {"metadata", json::Object{{"name", ModelMapName(flags)},
                                {"namespace", flags.ns},
                                {"labels", json::Object{{"app", "elasticdl"},
                                                        {"elasticdl_job_name", flags.name}}}}},
      {"data", std::move(data)}};
}

namespace {

// The template of one role's pods.
Result<json::Value> MakeTemplate(const JobFlags& flags,
                                 const std::vector<ModelPart>& parts,
                                 const std::function<std::string(const std::string&)>& getenv,
                                 bool master) {
  const JobFlags::Role& role = master ? flags.master : flags.worker;
  SWELL_ASSIGN_OR_RETURN(json::Object resources,
                         Resources(master ? "master" : "worker", role,
                                   master ? "cpu=0.1,memory=1024Mi" : "cpu=1,memory=4096Mi"));
  SWELL_ASSIGN_OR_RETURN(json::Array env, Environment(flags, getenv));
  json::Array volumes, mounts;
  SWELL_RETURN_IF_ERROR(AddVolumes(flags, volumes, mounts));
  if (!parts.empty()) {
    json::Array items;
    for (const ModelPart& part : parts) {
      items.push_back(json::Object{{"key", KeyOf(part.path)}, {"path", part.path}});
    }
    volumes.push_back(json::Object{
        {"name", "model"},
        {"configMap", json::Object{{"name", ModelMapName(flags)}, {"items", std::move(items)}}}});
    mounts.push_back(json::Object{{"name", "model"}, {"mountPath", kModelFolder}});
  }
  json::Object container{
      {"name", master ? "master" : "worker"},
      {"image", master || flags.worker_image.empty() ? flags.image : flags.worker_image},
      {"command",
       json::Array{"python3", "-m", master ? "swell.elasticdl.master" : "swell.elasticdl.worker"}},
      {"args", Arguments(flags)},
      {"resources", std::move(resources)}};
  if (!master && !flags.job_command.empty()) {
    container["command"] = json::Array{"sh", "-c", json::Value(flags.job_command)};
    container.erase("args");
  }
  if (!env.empty()) container["env"] = std::move(env);
  if (!mounts.empty()) container["volumeMounts"] = std::move(mounts);
  if (!flags.image_pull_policy.empty()) container["imagePullPolicy"] = flags.image_pull_policy;
  json::Object spec{{"containers", json::Array{std::move(container)}}};
  if (!volumes.empty()) spec["volumes"] = std::move(volumes);
  json::Value pod_template = json::Object{{"spec", std::move(spec)}};
  SWELL_RETURN_IF_ERROR(ApplyClusterSpec(flags, pod_template));
  return pod_template;
}

Result<json::Object> MakeRole(const JobFlags& flags,
                              const std::vector<ModelPart>& parts,
                              const std::function<std::string(const std::string&)>& getenv,
                              bool master) {
  SWELL_ASSIGN_OR_RETURN(json::Value pod_template, MakeTemplate(flags, parts, getenv, master));
  json::Object role{{"replicas", master ? 1 : flags.workers},
                    {"restartPolicy", flags.restart_policy},
                    {"template", std::move(pod_template)}};
  const std::string& priority = master ? flags.master.priority : flags.worker.priority;
  const size_t equals = priority.find('=');
  if (equals != std::string::npos && (equals == 0 || !IsPart(priority.substr(equals + 1)))) {
    return Misuse(StrCat("--", master ? "master" : "worker", "_pod_priority ", Quote(priority),
                         ": expected CLASS=PART, with a part between 0 and 1, such as high=0.5"));
  }
  if (!priority.empty()) role["priorityClassName"] = priority;
  return role;
}

}  // namespace

Result<json::Value> MakeJob(const JobFlags& flags,
                            const std::vector<ModelPart>& parts,
                            const std::function<std::string(const std::string&)>& getenv) {
  if (flags.name.empty()) return Misuse("--job_name is not set");
  if (std::string wrong = api::CheckDnsLabel(flags.name); !wrong.empty()) {
    return Misuse(StrCat("--job_name ", Quote(flags.name), ": ", wrong));
  }
  if (flags.image.empty()) return Misuse("--image_name (or --image_base) is not set");
  int64_t relaunches = flags.relaunches;
  SWELL_RETURN_IF_ERROR(ApplyAuxParams(flags, relaunches));
  SWELL_ASSIGN_OR_RETURN(json::Object master, MakeRole(flags, parts, getenv, true));
  json::Value job =
      json::Object{{"apiVersion", "elasticdl.org/v1alpha1"},
                   {"kind", "ElasticDLJob"},
                   {"metadata", json::Object{{"name", flags.name}, {"namespace", flags.ns}}}};
  json::Set(job, {"spec", "elasticdlReplicaSpecs", "Master"}, std::move(master));
  if (flags.workers > 0) {
    SWELL_ASSIGN_OR_RETURN(json::Object worker, MakeRole(flags, parts, getenv, false));
    json::Set(job, {"spec", "elasticdlReplicaSpecs", "Worker"}, std::move(worker));
  }
  if (!flags.strategy.empty()) json::Set(job, {"spec", "distributionStrategy"}, flags.strategy);
  if (!flags.model_def.empty()) json::Set(job, {"spec", "modelDef"}, flags.model_def);
  if (relaunches >= 0) json::Set(job, {"spec", "relaunchOnWorkerFailure"}, relaunches);
  return job;
}

}  // namespace swell::cli::elasticdl
