#include "kube/cri/answers.h"

#include "base/strings.h"
#include "json/value.h"
#include "kube/cri/wire.h"

namespace swell::cri {
namespace {

Phase PhaseOf(int64_t number) {
  return number >= 0 && number <= 2 ? static_cast<Phase>(number) : Phase::kUnknown;
}

int64_t ReadNumber(std::string_view bytes, uint32_t field) {
  int64_t value = 0;
  for (Fields fields(bytes); fields.Next();) {
    if (fields.number() == field) value = fields.value();
  }
  return value;
}

std::string_view ReadBytes(std::string_view bytes, uint32_t field) {
  std::string_view found;
  for (Fields fields(bytes); fields.Next();) {
    if (fields.number() == field) found = fields.bytes();
  }
  return found;
}

// The map `info` of a verbose answer; its values are JSON.
json::Value ReadInfo(std::string_view bytes, const std::string& key) {
  constexpr uint32_t kInfo = 2;
  Texts info;
  for (Fields fields(bytes); fields.Next();) {
    if (fields.number() == kInfo) ReadEntry(fields.bytes(), info);
  }
  auto value = json::Parse(info[key]);
  return value.ok() ? std::move(*value) : json::Value(json::Object());
}

pid_t ReadPid(const json::Value& info) {
  constexpr int64_t kPidMax = 1 << 22;
  const int64_t pid = json::GetInt(info, {"pid"});
  return pid > 0 && pid <= kPidMax ? static_cast<pid_t>(pid) : 0;
}

void ReadCondition(std::string_view bytes, EngineStatus& to) {
  std::string type, reason, message;
  bool good = false;
  for (Fields fields(bytes); fields.Next();) {
    if (fields.number() == 1) type = fields.text();
    if (fields.number() == 2) good = fields.value() != 0;
    if (fields.number() == 3) reason = fields.text();
    if (fields.number() == 4) message = fields.text();
  }
  if (good || (type != "RuntimeReady" && type != "NetworkReady")) return;
  if (!to.not_ready.empty()) to.not_ready += "; ";
  to.not_ready += StrCat(type, " is false: ", reason, message.empty() ? "" : ": ", message);
}

}  // namespace

EngineVersion ReadVersion(std::string_view bytes) {
  return {std::string(ReadBytes(bytes, 2)), std::string(ReadBytes(bytes, 3))};
}

EngineStatus ReadStatus(std::string_view bytes, const EngineVersion& version) {
  EngineStatus status;
  for (Fields fields(bytes); fields.Next();) {
    if (fields.number() == 1) {
      for (Fields of(fields.bytes()); of.Next();) ReadCondition(of.bytes(), status);
    }
    if (fields.number() == 4) status.strict_groups = ReadNumber(fields.bytes(), 1) != 0;
  }
  // containerd's switch was off by default in 1.7, on in 2.0, and is gone since; before 1.7 there
  // was nothing to switch.
  const json::Value config = ReadInfo(bytes, "config");
  const bool always = version.name != "containerd" || version.version.starts_with("2.") ||
                      version.version.starts_with("v2.");
  status.cdi = json::GetBool(config, {"enableCDI"}, always);
  return status;
}

std::string ReadFirstText(std::string_view bytes) { return std::string(ReadBytes(bytes, 1)); }

std::vector<ListedSandbox> ReadSandboxes(std::string_view bytes) {
  std::vector<ListedSandbox> out;
  for (Fields items(bytes); items.Next();) {
    if (items.number() != 1) continue;
    ListedSandbox& sandbox = out.emplace_back();
    sandbox.ready = true;  // the state's number is 0, which is left out
    for (Fields fields(items.bytes()); fields.Next();) {
      if (fields.number() == 1) sandbox.id = fields.text();
      if (fields.number() == 2) sandbox.attempt = ReadNumber(fields.bytes(), 4);
      if (fields.number() == 3) sandbox.ready = fields.value() == 0;
      if (fields.number() == 5) ReadEntry(fields.bytes(), sandbox.labels);
    }
  }
  return out;
}

SandboxState ReadSandbox(std::string_view bytes) {
  SandboxState state;
  for (Fields fields(ReadBytes(bytes, 1)); fields.Next();) {
    if (fields.number() == 5) state.ip = std::string(ReadBytes(fields.bytes(), 1));
  }
  const json::Value info = ReadInfo(bytes, "info");
  for (const json::Value& space : json::GetArray(info, {"runtimeSpec", "linux", "namespaces"})) {
    if (json::GetString(space, {"type"}) != "network") continue;
    state.netns = json::GetString(space, {"path"});
  }
  if (const pid_t pid = ReadPid(info); state.netns.empty() && pid > 0) {
    state.netns = StrCat("/proc/", pid, "/ns/net");
  }
  return state;
}

std::vector<ListedContainer> ReadContainers(std::string_view bytes) {
  std::vector<ListedContainer> out;
  for (Fields items(bytes); items.Next();) {
    if (items.number() != 1) continue;
    ListedContainer& container = out.emplace_back();
    for (Fields fields(items.bytes()); fields.Next();) {
      if (fields.number() == 1) container.id = fields.text();
      if (fields.number() == 3) container.attempt = ReadNumber(fields.bytes(), 2);
      if (fields.number() == 6) container.phase = PhaseOf(fields.value());
      if (fields.number() == 8) ReadEntry(fields.bytes(), container.labels);
      if (fields.number() == 9) ReadEntry(fields.bytes(), container.annotations);
    }
  }
  return out;
}

ContainerState ReadContainer(std::string_view bytes) {
  ContainerState state;
  state.phase = Phase::kCreated;
  for (Fields fields(ReadBytes(bytes, 1)); fields.Next();) {
    if (fields.number() == 3) state.phase = PhaseOf(fields.value());
    if (fields.number() == 5) state.started_ns = fields.value();
    if (fields.number() == 6) state.finished_ns = fields.value();
    if (fields.number() == 7) state.exit_code = static_cast<int>(fields.value());
    if (fields.number() == 10) state.reason = fields.text();
    if (fields.number() == 11) state.message = fields.text();
  }
  state.pid = ReadPid(ReadInfo(bytes, "info"));
  return state;
}

std::optional<ImageInfo> ReadImage(std::string_view bytes) {
  const std::string_view image = ReadBytes(bytes, 1);
  if (image.empty()) return std::nullopt;
  ImageInfo info;
  for (Fields fields(image); fields.Next();) {
    if (fields.number() == 1) info.id = fields.text();
    if (fields.number() == 3 && info.digest.empty()) info.digest = fields.text();
    if (fields.number() == 4) info.size_bytes = fields.value();
    if (fields.number() == 5) info.uid = ReadNumber(fields.bytes(), 1);
    if (fields.number() == 6) info.user = fields.text();
  }
  return info;
}

CommandOutput ReadOutput(std::string_view bytes) {
  return {std::string(ReadBytes(bytes, 1)), std::string(ReadBytes(bytes, 2)),
          static_cast<int>(ReadNumber(bytes, 3))};
}

int64_t ReadWritableBytes(std::string_view bytes) {
  const std::string_view layer = ReadBytes(ReadBytes(bytes, 1), 4);
  return ReadNumber(ReadBytes(layer, 3), 1);
}

}  // namespace swell::cri
