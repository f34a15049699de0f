#include "kube/node/runtime/security.h"

#include <gtest/gtest.h>

#include "json/yaml.h"

namespace swell::node {
namespace {

json::Value Pod(const std::string& yaml) { return json::ParseYaml(yaml)->front(); }

Result<ContainerSecurity> ReadFirst(const json::Value& pod) {
  return ReadContainerSecurity(pod, json::GetArray(pod, {"spec", "containers"})[0]);
}

// Names of a set, in their order.
std::string Names(CapabilitySet set) {
  std::string names;
  for (int i = 0; i < kCapabilities; ++i) {
    if ((set >> i & 1) != 0) names += (names.empty() ? "" : " ") + std::string(CapabilityName(i));
  }
  return names;
}

std::string CapabilitiesOf(const std::string& capabilities) {
  auto read = ReadFirst(Pod(
      "{spec: {containers: [{name: a, securityContext: {capabilities: " + capabilities + "}}]}}"));
  return read.ok() ? Names(read->capabilities) : read.status().message();
}

TEST(Security, WhoAsksForNothingHasTheDefaults) {
  auto read = ReadFirst(Pod("{spec: {containers: [{name: a}]}}"));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(Names(read->capabilities),
            "CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP NET_BIND_SERVICE NET_RAW "
            "SYS_CHROOT AUDIT_WRITE SETFCAP");
  EXPECT_FALSE(read->privileged);
  EXPECT_FALSE(read->no_new_privileges);
  EXPECT_EQ(read->seccomp.kind, SecurityProfile::Kind::kRuntimeDefault);
  EXPECT_FALSE(read->seccomp.asked_for);
}

TEST(Security, CapabilitiesAreAddedAndDropped) {
  EXPECT_EQ(CapabilitiesOf("{drop: [ALL]}"), "");
  EXPECT_EQ(CapabilitiesOf("{drop: [all], add: [net_admin, CAP_SYS_TIME]}"), "NET_ADMIN SYS_TIME");
  EXPECT_EQ(CapabilitiesOf("{add: [ALL], drop: [ALL]}"), "");
  EXPECT_EQ(CapabilitiesOf("{drop: [CHOWN, KILL, NET_RAW, SETFCAP, AUDIT_WRITE, SYS_CHROOT]}"),
            "DAC_OVERRIDE FOWNER FSETID SETGID SETUID SETPCAP NET_BIND_SERVICE");
  EXPECT_EQ(CapabilitiesOf("{add: [SYS_ADMIN, FLY]}"),
            "container \"a\": securityContext.capabilities.add[1]: \"FLY\" is not a capability of "
            "Linux; names are like NET_ADMIN");
}

TEST(Security, TheContainersProfileCountsBeforeThePods) {
  const json::Value pod = Pod(R"(
spec:
  securityContext: {seccompProfile: {type: Unconfined}}
  containers:
  - name: a
    securityContext:
      allowPrivilegeEscalation: false
      procMount: Unmasked
      seccompProfile: {type: Localhost, localhostProfile: team/strict.json}
  - name: b
)");
  auto own = ReadFirst(pod);
  ASSERT_TRUE(own.ok());
  EXPECT_TRUE(own->no_new_privileges);
  EXPECT_TRUE(own->unmasked_proc);
  EXPECT_EQ(own->seccomp.kind, SecurityProfile::Kind::kLocalhost);
  EXPECT_EQ(own->seccomp.name, "team/strict.json");
  auto inherited = ReadContainerSecurity(pod, json::GetArray(pod, {"spec", "containers"})[1]);
  ASSERT_TRUE(inherited.ok());
  EXPECT_EQ(inherited->seccomp.kind, SecurityProfile::Kind::kUnconfined);
}

TEST(Security, WhatNobodyCouldHonourIsRefusedByName) {
  const struct {
    const char* spec;
    const char* why;
  } kCases[] = {
      {"{containers: [{name: a, securityContext: {seccompProfile: {type: Strict}}}]}",
       "container \"a\": securityContext.seccompProfile.type: \"Strict\" must be RuntimeDefault, "
       "Localhost or Unconfined"},
      {"{containers: [{name: a, securityContext: {procMount: None}}]}",
       "container \"a\": securityContext.procMount: \"None\" must be Default or Unmasked"},
      {"{containers: [{name: a, securityContext: {privileged: true, allowPrivilegeEscalation: "
       "false}}]}",
       "container \"a\": securityContext.allowPrivilegeEscalation: false and privileged: true "
       "exclude each other"},
      {"{securityContext: {seLinuxOptions: {level: s0:c1}}, containers: [{name: a}]}",
       "container \"a\": securityContext.seLinuxOptions: this node has none; leave the field out"},
      {"{shareProcessNamespace: true, containers: [{name: a}]}",
       "shareProcessNamespace: true: each container has processes of its own here; leave the field "
       "out, and look into a container with kubectl debug --target"},
  };
  for (const auto& test : kCases) {
    const json::Value pod = Pod(std::string("{spec: ") + test.spec + "}");
    EXPECT_EQ(CheckPodSecurity(pod).message(), test.why);
  }
}

TEST(Security, OnlySafeSettingsOfTheKernelMayChange) {
  auto read = ReadPodSecurity(
      Pod("{spec: {securityContext: {sysctls: [{name: net/ipv4/tcp_syncookies, value: '0'}]}}}"));
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->sysctls.size(), 1u);
  EXPECT_EQ(read->sysctls[0].first, "net.ipv4.tcp_syncookies");
  auto unsafe = ReadPodSecurity(
      Pod("{spec: {securityContext: {sysctls: [{name: kernel.core_pattern, value: '|/x'}]}}}"));
  EXPECT_EQ(unsafe.status().code(), Code::kForbidden);
  auto shared =
      ReadPodSecurity(Pod("{spec: {hostNetwork: true, securityContext: {sysctls: [{name: "
                          "net.ipv4.tcp_rmem, value: '1 2 3'}]}}}"));
  EXPECT_EQ(shared.status().code(), Code::kForbidden);
}

TEST(Security, APodsIdsAndUser) {
  const json::Value pod = Pod(R"(
spec:
  securityContext: {runAsUser: 1500, fsGroup: 70000, supplementalGroups: [5]}
  containers: [{name: a}, {name: b, securityContext: {privileged: true}}]
)");
  auto read = ReadPodSecurity(pod);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->highest_id, 70000);
  EXPECT_TRUE(read->privileged);
  EXPECT_EQ(OnlyUser(pod), 1500);
  EXPECT_EQ(OnlyUser(Pod("{spec: {containers: [{name: a}]}}")), std::nullopt);
  EXPECT_TRUE(NamesUsers(pod));
  EXPECT_FALSE(read->ids_chosen);
  auto chosen = ReadPodSecurity(
      Pod("{metadata: {annotations: {swell.dev/ids-chosen: 'true'}}, spec: {containers: []}}"));
  ASSERT_TRUE(chosen.ok());
  EXPECT_TRUE(chosen->ids_chosen);
}

}  // namespace
}  // namespace swell::node
