// Every check of the Pod Security Standards, with the words that Kubernetes has for it.
#include "kube/apiserver/admission/pod_security_checks.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace swell::apiserver {
namespace {

constexpr PodSecurityPolicy kBaseline{PodSecurityLevel::kBaseline};
constexpr PodSecurityPolicy kRestricted{PodSecurityLevel::kRestricted};

std::string Wrong(const PodSecurityPolicy& policy, const std::string& pod) {
  auto parsed = json::Parse(pod);
  EXPECT_TRUE(parsed.ok()) << pod;
  return parsed.ok() ? Describe(CheckPodSecurity(policy, *parsed)) : "";
}

std::string Spec(const std::string& fields) { return StrCat(R"({"spec":{)", fields, "}}"); }

// Two containers, each with the security context.
std::string Two(const std::string& context, const std::string& pod = "{}") {
  return Spec(StrCat(R"("securityContext":)", pod,
                     R"(,"containers":[{"name":"a","securityContext":)", context,
                     R"(},{"name":"b","securityContext":)", context, "}]"));
}

TEST(PodSecurityChecks, BaselineRefusesWhatReachesTheHost) {
  const std::pair<std::string, std::string> cases[] = {
      {Spec(R"("hostNetwork":true,"hostPID":true,"hostIPC":true)"),
       "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)"},
      {Spec(R"("hostUsers":true)"), "host namespaces (hostUsers=true)"},
      {Spec(R"("containers":[{"name":"a","readinessProbe":{"httpGet":{"host":"127.0.0.1"}}},)"
            R"({"name":"b","lifecycle":{"preStop":{"tcpSocket":{"host":"h"}}}},)"
            R"({"name":"c","livenessProbe":{"httpGet":{"port":80}}}])"),
       R"(probe or lifecycle host (containers "a", "b" must not set a probe's or hook's host))"},
      {Spec(R"("volumes":[{"name":"a","hostPath":{"path":"/"}},{"name":"b","emptyDir":{}}])"),
       R"(hostPath volumes (volume "a"))"},
      {Spec(R"("volumes":[{"name":"a","hostPath":{}},{"name":"b","hostPath":{}}])"),
       R"(hostPath volumes (volumes "a", "b"))"},
      {Spec(R"("containers":[{"name":"a","ports":[{"hostPort":80},{"hostPort":8080}]}])"),
       R"(hostPort (container "a" uses hostPorts 80, 8080))"},
      {Spec(R"("initContainers":[{"name":"i","securityContext":{"privileged":true}}],)"
            R"("ephemeralContainers":[{"name":"e","securityContext":{"privileged":true}}])"),
       R"(privileged (containers "i", "e" must not set securityContext.privileged=true))"},
      {Two(R"({"procMount":"Unmasked"})"),
       R"(procMount (containers "a", "b" must not set securityContext.procMount to "Unmasked"))"},
      {Two(R"({"capabilities":{"add":["NET_RAW","CHOWN","SYS_ADMIN"]}})"),
       R"(non-default capabilities (containers "a", "b" must not include "NET_RAW", "SYS_ADMIN" )"
       R"(in securityContext.capabilities.add))"},
      {Two(R"({"seccompProfile":{"type":"Unconfined"}})", R"({"seccompProfile":{"type":"x"}})"),
       R"(seccompProfile (pod and containers "a", "b" must not set )"
       R"(securityContext.seccompProfile.type to "Unconfined", "x"))"},
      {Two(R"({"windowsOptions":{"hostProcess":true}})"),
       R"(hostProcess (containers "a", "b" must not set )"
       R"(securityContext.windowsOptions.hostProcess=true))"},
      {Two(R"({"seLinuxOptions":{"type":"spc_t","user":"u","role":"r"}})"),
       R"(seLinuxOptions (containers "a", "b" set forbidden securityContext.seLinuxOptions: )"
       R"(type "spc_t"; user may not be set; role may not be set))"},
      {Spec(R"("securityContext":{"sysctls":[{"name":"kernel.msgmax"},)"
            R"({"name":"net.ipv4.tcp_syncookies"},{"name":"x"}]})"),
       "forbidden sysctls (kernel.msgmax, x)"},
      {Two(R"({"appArmorProfile":{"type":"Unconfined"}})"),
       R"(forbidden AppArmor profile (containers "a", "b" must not set AppArmor profile type to )"
       R"("Unconfined"))"},
      {R"({"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/a":)"
       R"("unconfined"}},"spec":{}})",
       "forbidden AppArmor profile (annotation must not set AppArmor profile type to "
       R"("container.apparmor.security.beta.kubernetes.io/a=\"unconfined\""))"},
  };
  for (const auto& [pod, wrong] : cases) {
    EXPECT_EQ(Wrong(kBaseline, pod), wrong) << pod;
    EXPECT_EQ(Wrong({}, pod), "") << pod;
  }
}

TEST(PodSecurityChecks, BaselineLetsThroughWhatIsUsual) {
  EXPECT_EQ(Wrong(kBaseline, Spec(R"("containers":[{"name":"a"}])")), "");
  EXPECT_EQ(Wrong(kBaseline, Two(R"({"capabilities":{"add":["CHOWN"]},"runAsUser":0,)"
                                 R"("seccompProfile":{"type":"Localhost"},"procMount":"Default",)"
                                 R"("appArmorProfile":{"type":"RuntimeDefault"},)"
                                 R"("seLinuxOptions":{"type":"container_t"}})")),
            "");
  // A null is a field that is not there.
  EXPECT_EQ(Wrong(kBaseline, Two(R"({"seccompProfile":null,"appArmorProfile":null})")), "");
  // The schema refuses a wrong type.
  EXPECT_EQ(Wrong(kBaseline, R"({"spec":{"containers":"x","volumes":7,"hostNetwork":"yes"}})"), "");
}

TEST(PodSecurityChecks, RestrictedWantsEverythingSaid) {
  EXPECT_EQ(
      Wrong(kRestricted, Spec(R"("containers":[{"name":"c"}])")),
      R"(allowPrivilegeEscalation != false (container "c" must set )"
      R"(securityContext.allowPrivilegeEscalation=false), )"
      R"(unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), )"
      R"(runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), )"
      R"(seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to )"
      R"("RuntimeDefault" or "Localhost"))");
  const std::string good =
      R"({"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"],)"
      R"("add":["NET_BIND_SERVICE"]},"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}})";
  EXPECT_EQ(Wrong(kRestricted, Two(good)), "");
  const std::string less = R"({"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}})";
  const std::string pod = R"({"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}})";
  EXPECT_EQ(Wrong(kRestricted, Two(less, pod)), "");
  const std::pair<std::string, std::string> cases[] = {
      {Two(less, R"({"runAsNonRoot":false,"seccompProfile":{"type":"RuntimeDefault"}})"),
       "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)"},
      {Two(less,
           R"({"runAsUser":0,"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}})"),
       "runAsUser=0 (pod must not set runAsUser=0)"},
      {Two(R"({"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"],"add":["CHOWN"]}})",
           pod),
       R"(unrestricted capabilities (containers "a", "b" must not include "CHOWN" in )"
       R"(securityContext.capabilities.add))"},
  };
  for (const auto& [text, wrong] : cases) EXPECT_EQ(Wrong(kRestricted, text), wrong) << text;
}

TEST(PodSecurityChecks, RestrictedKnowsVolumesByType) {
  auto volumes = [](const std::string& list) {
    return Wrong(kRestricted, Spec(StrCat(R"("volumes":[)", list, "]")));
  };
  EXPECT_EQ(volumes(R"({"name":"a","emptyDir":{}},{"name":"b","secret":{}})"), "");
  EXPECT_EQ(volumes(R"({"name":"a","nfs":{}},{"name":"b","hostPath":{"path":"/"}})"),
            R"(restricted volume types (volumes "a", "b" use restricted volume types "hostPath", )"
            R"("nfs"))");
  // No second type hides the first.
  EXPECT_EQ(volumes(R"({"name":"a","hostPath":{"path":"/"},"emptyDir":{}})"),
            R"(restricted volume types (volume "a" uses restricted volume type "hostPath"))");
  EXPECT_EQ(volumes(R"({"name":"a","hostPath":{"path":"/"},"emptyDir":null})"),
            R"(restricted volume types (volume "a" uses restricted volume type "hostPath"))");
  EXPECT_EQ(volumes(R"({"name":"a"})"),
            R"(restricted volume types (volume "a" uses restricted volume type "unknown"))");
}

TEST(PodSecurityChecks, VersionsDiffer) {
  const std::string plain = Spec(R"("containers":[{"name":"c"}])");
  const PodSecurityPolicy old{PodSecurityLevel::kRestricted, 7};
  EXPECT_EQ(Wrong(old, plain), R"(runAsNonRoot != true (pod or container "c" must set )"
                               R"(securityContext.runAsNonRoot=true))");
  const std::string sysctl =
      Spec(R"("securityContext":{"sysctls":[{"name":"net.ipv4.ip_local_reserved_ports"}]})");
  EXPECT_EQ(Wrong({PodSecurityLevel::kBaseline, 26}, sysctl),
            "forbidden sysctls (net.ipv4.ip_local_reserved_ports)");
  EXPECT_EQ(Wrong({PodSecurityLevel::kBaseline, 27}, sysctl), "");
  const std::string newest =
      Spec(R"("securityContext":{"sysctls":[{"name":"net.ipv4.tcp_notsent_lowat"}]})");
  EXPECT_NE(Wrong({PodSecurityLevel::kBaseline, 36}, newest), "");
  EXPECT_EQ(Wrong({PodSecurityLevel::kBaseline, 37}, newest), "");
  EXPECT_EQ(Wrong(kBaseline, newest), "");
  EXPECT_EQ(old.ToString(), "restricted:v1.7");
  EXPECT_EQ(kBaseline.ToString(), "baseline:latest");
  EXPECT_EQ(ParsePodSecurityVersion("v1.24"), 24);
  for (const char* wrong : {"", "1.24", "v1.", "v1.x", "v2.0", "v1.-1", "v1.99999999999"}) {
    EXPECT_FALSE(ParsePodSecurityVersion(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace swell::apiserver
