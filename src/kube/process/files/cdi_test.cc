#include "kube/process/files/cdi.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"

namespace swell::process {
namespace {

constexpr std::string_view kKind = "nvidia.com/gpu";

constexpr std::string_view kSpec = R"(
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: GPU-aaaa
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
- name: GPU-bbbb
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia1
      hostPath: /dev/host/nvidia1
containerEdits:
  env: [NVIDIA_VISIBLE_DEVICES=void, A=b=c]
  deviceNodes:
  - path: /dev/nvidiactl
  hooks:
  - hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
    args: [nvidia-cdi-hook, update-ldcache, --folder, /usr/lib]
  mounts:
  - hostPath: /usr/lib/libcuda.so.1
    containerPath: /usr/lib/libcuda.so.1
    options: [ro, nosuid, nodev, bind]
)";

class Cdi : public ::testing::Test {
 protected:
  void Write(const std::string& name, std::string_view text) {
    ASSERT_TRUE(WriteFileAtomically(dir_.File(name), text).ok());
  }
  Result<std::optional<CdiEdits>> Read(const std::vector<std::string>& devices) {
    return ReadCdiEdits({dir_.path() + "/none", dir_.path()}, kKind, devices);
  }
  std::string Why(std::string_view text) {
    Write("nvidia.yaml", text);
    return Read({"GPU-aaaa"}).status().message();
  }

  TempDir dir_;
};

TEST_F(Cdi, WithoutFilesAboutTheKindThereAreNoEdits) {
  auto none = Read({"GPU-aaaa"});
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
  Write("other.json", R"({"cdiVersion": "0.5.0", "kind": "vendor.com/nic", "devices": []})");
  none = Read({"GPU-aaaa"});
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
}

TEST_F(Cdi, ADevicesEditsComeWithThoseOfItsFile) {
  Write("nvidia.yaml", kSpec);
  auto read = Read({"GPU-bbbb"});
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  ASSERT_TRUE(read->has_value());
  const CdiEdits& edits = **read;
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(edits.nodes,
            (Pairs{{"/dev/host/nvidia1", "/dev/nvidia1"}, {"/dev/nvidiactl", "/dev/nvidiactl"}}));
  EXPECT_EQ(edits.env, (Pairs{{"NVIDIA_VISIBLE_DEVICES", "void"}, {"A", "b=c"}}));
  ASSERT_EQ(edits.mounts.size(), 1u);
  EXPECT_TRUE(edits.mounts[0].read_only);
  ASSERT_EQ(edits.hooks.size(), 1u);
  EXPECT_EQ(edits.hooks[0].args[1], "update-ldcache");
  // What all devices share is applied once.
  read = Read({"GPU-aaaa", "GPU-bbbb"});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ((*read)->hooks.size(), 1u);
  EXPECT_EQ((*read)->nodes.size(), 3u);
}

TEST_F(Cdi, TheLaterFileCounts) {
  Write("a.yaml", kSpec);
  Write("b.json", R"({"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [
    {"name": "GPU-aaaa", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia7"}]}}]})");
  auto read = Read({"GPU-aaaa"});
  ASSERT_TRUE(read.ok());
  ASSERT_EQ((*read)->nodes.size(), 1u);
  EXPECT_EQ((*read)->nodes[0].second, "/dev/nvidia7");
}

TEST_F(Cdi, WhatIsMissingOrNotUnderstoodIsRefused) {
  Write("nvidia.yaml", kSpec);
  Write("broken.yaml", "{");
  const std::string missing = Read({"GPU-cccc"}).status().message();
  EXPECT_NE(missing.find("device nvidia.com/gpu=GPU-cccc is in no CDI file"), std::string::npos);
  EXPECT_NE(missing.find("broken.yaml cannot be read"), std::string::npos);
  const std::string head = "kind: nvidia.com/gpu\ndevices:\n- name: GPU-aaaa\n  containerEdits: ";
  EXPECT_NE(Why(head + "{intelRdt: {}}").find("field \"intelRdt\" is not supported"),
            std::string::npos);
  EXPECT_NE(Why(head + "{env: [FOO]}").find("\"FOO\" must be NAME=VALUE"), std::string::npos);
  EXPECT_NE(Why(head + "{deviceNodes: [{path: /etc/passwd}]}").find("must be below /dev"),
            std::string::npos);
  EXPECT_NE(Why(head + "{hooks: [{hookName: poststop, path: /x}]}")
                .find("hookName \"poststop\" is not supported"),
            std::string::npos);
  EXPECT_NE(Why(head + "{mounts: [{hostPath: a, containerPath: /b}]}").find("must be absolute"),
            std::string::npos);
}

}  // namespace
}  // namespace swell::process
