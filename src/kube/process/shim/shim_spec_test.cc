#include "kube/process/shim/shim_spec.h"

#include <gtest/gtest.h>

namespace swell::process {
namespace {

// No field as it is by default.
constexpr std::string_view kWhole = R"({
  "argv": ["python3", "train.py"], "env": ["A=1", "B="], "cwd": "/work",
  "uid": 1000, "gid": 1001, "groups": [1002, 1003],
  "isolation": "full", "beside": {"pid": 17, "start": 4711},
  "hostname": "w-0", "netns": "/run/netns/w-0", "hidden": ["/root/.swell"],
  "hostTmp": true, "readOnlyRoot": true,
  "image": {"layers": ["/l/1", "/l/2"], "volumes": ["/data"]},
  "stopSignal": 2, "confined": true, "userNamespace": "/run/userns/w-0", "firstId": 100000,
  "capabilities": 1025, "noNewPrivileges": true, "seccompFile": "/f", "appArmor": "profile",
  "privileged": true, "unmaskedProc": true, "hostPID": true, "hostIPC": true,
  "devices": [["/dev/nvidia0", "/dev/nvidia0"]],
  "hooks": [{"path": "/bin/hook", "args": ["hook", "x"], "env": ["C=3"], "timeout": 7}],
  "sysctls": [["net.core.somaxconn", "1024"]],
  "mounts": [
    {"kind": "bind", "source": "/s", "target": "/t", "readOnly": true, "size": 0,
     "subPath": "a/b", "owners": 1, "ofHost": true},
    {"kind": "tmpfs", "source": "", "target": "/dev/shm", "readOnly": false, "size": 65536,
     "subPath": "", "owners": 2, "ofHost": false},
    {"kind": "bind", "source": "/m", "target": "/u", "readOnly": false, "size": 0,
     "subPath": "", "owners": 3, "ofHost": false}],
  "cgroups": [{"path": "/sys/fs/cgroup/x", "values": [["cpu.max", "max"]], "devices": ["c 1:3"]}],
  "podCgroups": [{"path": "/sys/fs/cgroup/p", "values": [], "devices": []}],
  "oomFile": "/sys/fs/cgroup/x/memory.events", "logPath": "/p/0.log", "oomScore": 999,
  "logBytesMax": 1024, "logFilesMax": 3, "stdin": true, "stdinOnce": true, "tty": true
})";

TEST(ShimSpecTest, TheShimReadsWhatTheRuntimeWrote) {
  const json::Value whole = json::Parse(kWhole).value();
  const Result<ShimSpec> spec = ShimSpec::FromJson(whole);
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_EQ(spec->ToJson(), whole);
}

TEST(ShimSpecTest, TheTextAboveHasEveryField) {
  ShimSpec usual;
  usual.argv = {"true"};
  const json::Value whole = json::Parse(kWhole).value();
  const json::Value by_default = usual.ToJson();
  for (const auto& field : by_default.get_object()) {
    const std::string key(field.key());
    const json::Value* other = json::Find(whole, {key});
    ASSERT_NE(other, nullptr) << key;
    EXPECT_NE(*other, field.value()) << key;
  }
}

TEST(ShimSpecTest, ACommandIsNeeded) {
  EXPECT_EQ(ShimSpec::FromJson(json::Object{}).status().message(), "argv: must not be empty");
}

}  // namespace
}  // namespace swell::process
