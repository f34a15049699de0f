// Pod Security at the door: who may exceed a namespace's level, and what becomes of their work.
#include "kube/apiserver/admission/pod_security.h"

#include <tuple>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/user_test_util.h"

namespace swell::apiserver {
namespace {

constexpr char kLabPods[] = "/api/v1/namespaces/lab/pods";
constexpr char kDeployments[] = "/apis/apps/v1/namespaces/lab/deployments";
constexpr char kCronJobs[] = "/apis/batch/v1/namespaces/lab/cronjobs";
constexpr char kPyTorchJobs[] = "/apis/kubeflow.org/v1/namespaces/lab/pytorchjobs";

constexpr char kHost[] = R"("hostNetwork":true)";
constexpr char kRefused[] =
    R"(is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true))";

class PodSecurityTest : public UserTest {
 protected:
  PodSecurityTest() {
    Label(R"({"pod-security.kubernetes.io/enforce":"baseline"})");
    Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
         R"({"metadata":{"name":"work"},"rules":[{"apiGroups":["*"],"verbs":["*"],"resources":)"
         R"(["pods","pods/ephemeralcontainers","pods/exec","pods/attach","pods/portforward",)"
         R"("pods/proxy","deployments","cronjobs","crons","podgroups",)"
         R"("pytorchjobs","trainjobs","trainingworkloads","distributedworkloads"]}]})");
    Bind("alice", "work");
  }

  void Label(const std::string& labels) {
    const std::string ns = StrCat(R"({"metadata":{"name":"lab","labels":)", labels, "}}");
    if (As(kMaster, "GET", "/api/v1/namespaces/lab", "").status == 404) {
      Must(kMaster, "POST", "/api/v1/namespaces", ns);
    } else {
      Must(kMaster, "PUT", "/api/v1/namespaces/lab", ns);
    }
  }
  void Bind(const std::string& user, const std::string& role) {
    Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/lab/rolebindings",
         StrCat(R"({"metadata":{"name":")", user, "-", role,
                R"("},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",)",
                R"("name":")", role, R"("},"subjects":[{"kind":"User","name":")", user,
                R"(","apiGroup":"rbac.authorization.k8s.io"}]})"));
  }
  static std::string PodWith(const std::string& name,
                             const std::string& fields,
                             const std::string& metadata = "") {
    return StrCat(R"({"metadata":{"name":")", name, R"(")", metadata, R"(},"spec":{)", fields,
                  R"(,"containers":[{"name":"c","image":"i"}]}})");
  }
  static std::string Template(const std::string& fields) {
    return StrCat(R"({"metadata":{"labels":{"a":"b"}},"spec":{)", fields,
                  R"(,"containers":[{"name":"c","image":"i"}]}})");
  }
  static std::string Deployment(const std::string& fields) {
    return StrCat(R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},)",
                  R"("template":)", Template(fields), "}}");
  }
  static std::string Job(const std::string& fields) {
    return StrCat(R"({"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob",)",
                  R"("metadata":{"name":"j"},"spec":{"pytorchReplicaSpecs":{"Worker":)",
                  R"({"replicas":1,"template":{"metadata":{"annotations":)",
                  R"({"swell.dev/pod-security":"privileged"}},"spec":{)", fields,
                  R"(,"containers":[{"name":"pytorch","image":"i"}]}}}}}})");
  }
  static constexpr char kOwned[] =
      R"(,"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x","uid":"u","controller":true}])";
  static constexpr char kStamped[] = R"(,"annotations":{"swell.dev/pod-security":"privileged"})";
};

// One that changes its runtime's pods so, and calls itself exempt.
std::string TrainJob(const std::string& way, const std::string& volume) {
  const std::string spec =
      StrCat(R"("volumes":[)", volume,
             R"(],"containers":[{"name":"node","volumeMounts":[{"name":"v","mountPath":"/v"}]}])");
  const std::string pod = StrCat(
      R"({"metadata":{"annotations":{"swell.dev/pod-security":"privileged"}},"spec":{)", spec, "}");
  const std::string changes =
      way == "podSpecOverrides"
          ? StrCat(R"("podSpecOverrides":[{)", spec, R"(,"targetJobs":[{"name":"node"}]}])")
      : way == "podTemplateOverrides"
          ? StrCat(R"("podTemplateOverrides":[)", pod, R"(,"targetJobs":[{"name":"node"}]}])")
          : StrCat(R"("runtimePatches":[{"manager":"m","trainingRuntimeSpec":{"template":{"spec":)",
                   R"({"replicatedJobs":[{"name":"node","template":{"spec":{"template":)", pod,
                   "}}}}]}}}}]");
  return StrCat(R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","metadata":)",
                R"({"generateName":"t"},"spec":{"suspend":true,"runtimeRef":{"name":"r"},)",
                changes, "}}");
}

TEST_F(PodSecurityTest, ATrainJobsChangesAreJudgedAndExemptNothing) {
  constexpr char kTrainJobs[] = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/lab/trainjobs";
  for (const char* way : {"podSpecOverrides", "podTemplateOverrides", "runtimePatches"}) {
    // Not for an administrator either: what else is in the pods, the runtime's authors say.
    for (const api::UserInfo& user : {kAlice, kMaster}) {
      const Answer refused =
          As(user, "POST", kTrainJobs, TrainJob(way, R"({"name":"v","hostPath":{"path":"/"}})"));
      EXPECT_EQ(refused.status, 403) << way << refused.text;
      EXPECT_NE(refused.Message().find("violates PodSecurity \"baseline:latest\": hostPath"),
                std::string::npos)
          << refused.Message();
    }
    Label(R"({"pod-security.kubernetes.io/enforce":"restricted"})");
    json::Value taken =
        Must(kAlice, "POST", kTrainJobs, TrainJob(way, R"({"name":"v","emptyDir":{}})"));
    json::Remove(taken, {"metadata", "managedFields"});
    EXPECT_EQ(json::Print(taken).find("swell.dev/pod-security"), std::string::npos)
        << json::Print(taken);
    Label(R"({"pod-security.kubernetes.io/enforce":"baseline"})");
  }
}

TEST_F(PodSecurityTest, AnothersPodBeyondTheLevelIsNoWayOut) {
  Must(kMaster, "POST", kLabPods, PodWith("host", kHost));
  Must(kAlice, "POST", kLabPods, PodWith("mine", R"("hostNetwork":false)"));
  for (const char* way : {"exec?command=ls", "attach?", "portforward?ports=80", "proxy"}) {
    const std::string to = StrCat("/host/", way);
    const Answer refused = As(kAlice, "GET", StrCat(kLabPods, to), "");
    EXPECT_EQ(refused.status, 403) << to << refused.text;
    EXPECT_NE(refused.Message().find("host namespaces (hostNetwork=true)"), std::string::npos);
    EXPECT_NE(As(kMaster, "GET", StrCat(kLabPods, to), "").status, 403) << to;
    EXPECT_NE(As(kAlice, "GET", StrCat(kLabPods, "/mine/", way), "").status, 403) << to;
  }
  constexpr char kImage[] = R"({"spec":{"containers":[{"name":"c","image":"other"}]}})";
  EXPECT_EQ(As(kAlice, "PATCH", StrCat(kLabPods, "/host"), kImage).status, 403);
  Must(kAlice, "PATCH", StrCat(kLabPods, "/mine"), kImage);
  Must(kMaster, "PATCH", StrCat(kLabPods, "/host"), kImage);
}

TEST_F(PodSecurityTest, PodsOfPeopleKeepToTheLevel) {
  const Answer refused = As(kAlice, "POST", kLabPods, PodWith("a", kHost));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.Message(), StrCat("pods \"a\" ", kRefused));
  Must(kAlice, "POST", kLabPods, PodWith("b", R"("hostNetwork":false)"));
  // Neither a false mark nor a false controller helps.
  EXPECT_EQ(As(kAlice, "POST", kLabPods, PodWith("c", kHost, kStamped)).status, 403);
  EXPECT_EQ(As(kAlice, "POST", kLabPods, PodWith("c", kHost, StrCat(kOwned, kStamped))).status,
            403);
  const json::Value marked =
      Must(kAlice, "PATCH", StrCat(kLabPods, "/b"),
           R"({"metadata":{"annotations":{"swell.dev/pod-security":"privileged"}}})");
  EXPECT_EQ(api::Annotation(marked, "swell.dev/pod-security"), "");
}

TEST_F(PodSecurityTest, AdministratorsMayExceedItAndTheRightCanBeGiven) {
  const Answer taken = As(kMaster, "POST", kLabPods, PodWith("a", kHost));
  ASSERT_LT(taken.status, 300) << taken.text;
  const json::Value& pod = taken.body;
  ASSERT_EQ(taken.warnings.size(), 1u);
  EXPECT_NE(taken.warnings[0].find("hostNetwork=true); taken, because user"), std::string::npos)
      << taken.warnings[0];
  // Only what is judged again, when a controller makes pods of it, carries a mark.
  EXPECT_EQ(api::Annotation(pod, "swell.dev/pod-security"), "");
  Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
       R"({"metadata":{"name":"exceed"},"rules":[{"apiGroups":["swell.dev"],)"
       R"("resources":["podsecuritylevels"],"resourceNames":["privileged"],"verbs":["use"]}]})");
  EXPECT_EQ(As(kAlice, "POST", kLabPods, PodWith("c", kHost)).status, 403);
  Bind("alice", "exceed");
  Must(kAlice, "POST", kLabPods, PodWith("c", kHost));
}

TEST_F(PodSecurityTest, AControllersPodPassesByItsAuthorsRight) {
  EXPECT_EQ(As(kController, "POST", kLabPods, PodWith("a", kHost, kOwned)).status, 403);
  Must(kController, "POST", kLabPods, PodWith("a", kHost, StrCat(kOwned, kStamped)));
  // A workload is taken, its pods are not: as on Kubernetes.
  auto stamp = [](const json::Value& object) {
    const json::Value* pods = json::Find(object, {"spec", "template"});
    return pods != nullptr ? api::Annotation(*pods, "swell.dev/pod-security") : "none";
  };
  EXPECT_EQ(stamp(Must(kAlice, "POST", kDeployments, Deployment(kHost))), "");
  Must(kMaster, "DELETE", StrCat(kDeployments, "/d"), "");
  EXPECT_EQ(stamp(Must(kMaster, "POST", kDeployments, Deployment(kHost))), "privileged");
  // Scaling by another leaves it; another who changes the pods answers for them.
  const std::string one = StrCat(kDeployments, "/d");
  EXPECT_EQ(stamp(Must(kAlice, "PATCH", one, R"({"spec":{"replicas":2}})")), "privileged");
  EXPECT_EQ(stamp(Must(kAlice, "PATCH", one,
                       R"({"spec":{"template":{"metadata":{"labels":{"x":"y"}}}}})")),
            "");
  const json::Value cron = Must(
      kMaster, "POST", kCronJobs,
      StrCat(R"({"metadata":{"name":"c"},"spec":{"schedule":"@daily","jobTemplate":{"spec":)",
             R"({"template":)", Template(StrCat(kHost, R"(,"restartPolicy":"Never")")), "}}}}"));
  const json::Value* jobs = json::Find(cron, {"spec", "jobTemplate"});
  EXPECT_EQ(stamp(*jobs), "privileged");
}

TEST_F(PodSecurityTest, JobsAreRefusedAtOnce) {
  const Answer refused = As(kAlice, "POST", kPyTorchJobs, Job(kHost));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.Message(), StrCat("pytorchjobs.kubeflow.org \"j\" ", kRefused));
  const json::Value job = Must(kMaster, "POST", kPyTorchJobs, Job(kHost));
  EXPECT_EQ(api::Annotation(job, "swell.dev/pod-security"), "privileged");
  // The template's own mark says nothing: the job's goes to its pods.
  EXPECT_EQ(
      json::Print(job).find(R"("template":{"metadata":{"annotations":{"swell.dev/pod-security)"),
      std::string::npos);
  // The user who edits the job answers for its pods.
  const Answer edited =
      As(kAlice, "PATCH", StrCat(kPyTorchJobs, "/j"),
         R"({"spec":{"pytorchReplicaSpecs":{"Worker":{"restartPolicy":"Never"}}}})");
  EXPECT_EQ(edited.status, 403) << edited.text;
  const json::Value scaled = Must(kAlice, "PATCH", StrCat(kPyTorchJobs, "/j"),
                                  R"({"spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":2}}}})");
  EXPECT_EQ(api::Annotation(scaled, "swell.dev/pod-security"), "privileged");
}

TEST_F(PodSecurityTest, ACronIsNoWayAroundTheLevel) {
  constexpr char kCrons[] = "/apis/apps.kubedl.io/v1alpha1/namespaces/lab/crons";
  auto cron = [](const std::string& job) {
    return StrCat(R"({"apiVersion":"apps.kubedl.io/v1alpha1","kind":"Cron",)",
                  R"("metadata":{"name":"c"},"spec":{"schedule":"@daily","template":)",
                  R"({"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","workload":)", job, "}}}");
  };
  auto workload = [](const json::Value& object) {
    const json::Value* found = json::Find(object, {"spec", "template", "workload"});
    return found != nullptr ? *found : json::Value();
  };
  constexpr char kMark[] = "swell.dev/pod-security";
  const Answer refused = As(kAlice, "POST", kCrons, cron(Job(kHost)));
  EXPECT_EQ(refused.status, 403) << refused.text;
  EXPECT_EQ(refused.Message(), StrCat("crons.apps.kubedl.io \"c\" ", kRefused));
  // A false mark, of the job or of its template, says nothing.
  json::Value job = *json::Parse(Job(R"("hostNetwork":false)"));
  json::Set(job, {"metadata", "annotations", kMark}, "privileged");
  const json::Value plain = workload(Must(kAlice, "POST", kCrons, cron(json::Print(job))));
  EXPECT_EQ(json::Print(plain).find(kMark), std::string::npos) << json::Print(plain);
  // What the controller makes is judged again, by the mark that the server gave or did not give.
  const std::string jobs = kPyTorchJobs;
  auto run = [&](json::Value made, const std::string& name) {
    json::Set(made, {"metadata", "name"}, name);
    json::Set(made, {"metadata", "ownerReferences"},
              json::Array{json::Object{{"apiVersion", "apps.kubedl.io/v1alpha1"},
                                       {"kind", "Cron"},
                                       {"name", "c"},
                                       {"uid", "u"},
                                       {"controller", true}}});
    return As(kController, "POST", jobs, json::Print(made)).status;
  };
  EXPECT_EQ(run(plain, "c-1"), 201);
  EXPECT_EQ(run(*json::Parse(Job(kHost)), "c-2"), 403);
  Must(kMaster, "DELETE", StrCat(kCrons, "/c"), "");
  const json::Value masters = workload(Must(kMaster, "POST", kCrons, cron(Job(kHost))));
  EXPECT_EQ(api::Annotation(masters, kMark), "privileged");
  EXPECT_EQ(run(masters, "c-3"), 201);
  // Another may suspend it. A user who changes its jobs answers for them.
  const std::string one = StrCat(kCrons, "/c");
  EXPECT_EQ(
      api::Annotation(workload(Must(kAlice, "PATCH", one, R"({"spec":{"suspend":true}})")), kMark),
      "privileged");
  EXPECT_EQ(As(kAlice, "PATCH", one,
               R"({"spec":{"template":{"workload":{"metadata":{"labels":{"x":"y"}}}}}})")
                .status,
            403);
}

TEST_F(PodSecurityTest, WorkloadsWithoutTemplatesAreRefusedAtOnce) {
  const std::string base = "/apis/run.ai/v2alpha1/namespaces/lab/";
  const std::string path = StrCat(base, "trainingworkloads");
  auto workload = [](const std::string& kind, const std::string& fields) {
    return StrCat(R"({"apiVersion":"run.ai/v2alpha1","kind":")", kind,
                  R"(","metadata":{"name":"w"},"spec":{"image":{"value":"i"})", fields, "}");
  };
  auto training = [&](const std::string& fields) {
    return workload("TrainingWorkload", fields + "}");
  };
  constexpr char kNetwork[] = R"(,"hostNetwork":{"value":true})";
  const Answer refused = As(kAlice, "POST", path, training(kNetwork));
  EXPECT_EQ(refused.status, 403) << refused.text;
  EXPECT_EQ(refused.Message(), StrCat("trainingworkloads.run.ai \"w\" ", kRefused));
  const Answer ipc = As(kAlice, "POST", path, training(R"(,"hostIpc":{"value":true})"));
  EXPECT_NE(ipc.Message().find("host namespaces (hostIPC=true)"), std::string::npos) << ipc.text;
  const Answer armor = As(kAlice, "POST", path,
                          training(R"(,"annotations":{"items":{"container.apparmor.security.beta.)"
                                   R"(kubernetes.io/worker":{"value":"unconfined"}}})"));
  EXPECT_NE(armor.Message().find("AppArmor"), std::string::npos) << armor.text;
  const Answer master =
      As(kAlice, "POST", base + "distributedworkloads",
         workload("DistributedWorkload",
                  R"(,"jobType":"PyTorchJob"},"masterSpec":{"hostIpc":{"value":true}})"));
  EXPECT_NE(master.Message().find("host namespaces (hostIPC=true)"), std::string::npos)
      << master.text;
  const Answer cron =
      As(kAlice, "POST", "/apis/apps.kubedl.io/v1alpha1/namespaces/lab/crons",
         StrCat(R"({"apiVersion":"apps.kubedl.io/v1alpha1","kind":"Cron",)",
                R"("metadata":{"name":"c"},"spec":{"schedule":"@daily","template":)",
                R"({"apiVersion":"run.ai/v2alpha1","kind":"TrainingWorkload","workload":)",
                training(kNetwork), "}}}"));
  EXPECT_EQ(cron.status, 403) << cron.text;
  EXPECT_EQ(cron.Message(), StrCat("crons.apps.kubedl.io \"c\" ", kRefused));
  Must(kAlice, "POST", path, training(R"(,"hostNetwork":{"value":false})"));
  EXPECT_EQ(
      As(kAlice, "PATCH", StrCat(path, "/w"), R"({"spec":{"hostIpc":{"value":true}}})").status,
      403);
  Must(kMaster, "DELETE", StrCat(path, "/w"), "");
  // The mark goes to its pods.
  const json::Value masters = Must(kMaster, "POST", path, training(kNetwork));
  EXPECT_EQ(api::Annotation(masters, "swell.dev/pod-security"), "privileged");
}

TEST_F(PodSecurityTest, ADebugContainerIsJudgedWithItsPod) {
  Must(kMaster, "POST", kLabPods, PodWith("a", kHost));
  const std::string debug = R"({"spec":{"ephemeralContainers":[{"name":"d","image":"i"}]}})";
  EXPECT_EQ(As(kAlice, "PATCH", StrCat(kLabPods, "/a/ephemeralcontainers"), debug).status, 403);
  Must(kMaster, "PATCH", StrCat(kLabPods, "/a/ephemeralcontainers"), debug);
  Must(kAlice, "PATCH", StrCat(kLabPods, "/a"), R"({"metadata":{"labels":{"x":"y"}}})");
}

TEST_F(PodSecurityTest, WarnAndAuditTell) {
  Label(R"({"pod-security.kubernetes.io/warn":"restricted",)"
        R"("pod-security.kubernetes.io/warn-version":"v1.7",)"
        R"("pod-security.kubernetes.io/audit":"baseline"})");
  const Answer warned = As(kAlice, "POST", kDeployments, Deployment(kHost));
  ASSERT_EQ(warned.warnings.size(), 1u);
  EXPECT_EQ(warned.warnings[0],
            "299 - \"would violate PodSecurity \\\"restricted:v1.7\\\": host namespaces "
            "(hostNetwork=true), runAsNonRoot != true (pod or container \\\"c\\\" must set "
            "securityContext.runAsNonRoot=true)\"");
  auto request = test_.Request("POST", kLabPods, PodWith("p", kHost));
  request.user = {};
  request.remote = "10.0.0.1:5";
  request.credentials.certificate_common_name = "alice";
  EXPECT_EQ(test_.Send(std::move(request)).status, 201);
  EXPECT_NE(audit_.find("\"pod-security.kubernetes.io/audit-violations\":\"would violate "
                        "PodSecurity \\\"baseline:latest\\\": host namespaces "
                        "(hostNetwork=true)\""),
            std::string::npos)
      << audit_;
}

TEST_F(PodSecurityTest, LabelsAreCheckedAndAStricterOneWarnsOfPods) {
  const Answer wrong = As(kMaster, "PATCH", "/api/v1/namespaces/lab",
                          R"({"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"high",)"
                          R"("pod-security.kubernetes.io/warn-version":"1.2"}}})");
  EXPECT_EQ(wrong.status, 422);
  EXPECT_NE(wrong.Message().find("must be one of privileged, baseline, restricted"),
            std::string::npos);
  EXPECT_NE(wrong.Message().find("metadata.labels[pod-security.kubernetes.io/warn-version]"),
            std::string::npos);
  Must(kAlice, "POST", kLabPods, PodWith("a", R"("hostPID":false)"));
  Must(kAlice, "POST", kLabPods, PodWith("b", R"("hostPID":false)"));
  const Answer stricter =
      As(kMaster, "PATCH", "/api/v1/namespaces/lab",
         R"({"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}})");
  ASSERT_EQ(stricter.warnings.size(), 2u);
  EXPECT_EQ(
      stricter.warnings[0],
      R"(299 - "existing pods in namespace \"lab\" violate the new PodSecurity enforce level )"
      R"(\"restricted:latest\"")");
  EXPECT_EQ(stricter.warnings[1],
            R"(299 - "a (and 1 other pod): allowPrivilegeEscalation != false, unrestricted )"
            R"(capabilities, runAsNonRoot != true, seccompProfile")");
}

TEST_F(PodSecurityTest, AProjectMayAllowHostPathsByName) {
  Must(kMaster, "POST", "/apis/swell.dev/v1/projects",
       R"({"apiVersion":"swell.dev/v1","kind":"Project","metadata":{"name":"lab"},)"
       R"("spec":{"allowedHostPaths":[{"path":"/data/sets",)"
       R"("readOnly":true},{"path":"/scratch/"}]}})");
  auto pod = [](const std::string& name, const std::string& source, bool only_read) {
    return StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"volumes":[{"name":"v",)",
                  R"("hostPath":)", source, R"(}],"containers":[{"name":"c","image":"i",)",
                  R"("volumeMounts":[{"name":"v","mountPath":"/v","readOnly":)",
                  only_read ? "true" : "false", "}]}]}}");
  };
  Must(kAlice, "POST", kLabPods, pod("a", R"({"path":"/data/sets/"})", true));
  Must(kAlice, "POST", kLabPods, pod("b", R"({"path":"/scratch","type":"Directory"})", false));
  const std::string refused =
      R"(pods "c" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes (volume )"
      R"("v"); )";
  const std::tuple<const char*, bool, const char*> kAdvice[] = {
      {R"({"path":"/data/sets"})", false,
       "project lab allows /data/sets only to mounts that say readOnly: true"},
      {R"({"path":"/scratch","type":"DirectoryOrCreate"})", true,
       "project lab allows /scratch only with a hostPath.type that creates nothing"},
      {R"({"path":"/scratch/a"})", true, "project lab allows /scratch: mount that, with subPath"},
      {R"({"path":"/home"})", true,
       "an administrator can allow it in spec.allowedHostPaths of the project: swell project edit "
       "lab --allow-host-path /home"},
  };
  for (const auto& [source, only_read, advice] : kAdvice) {
    const Answer answer = As(kAlice, "POST", kLabPods, pod("c", source, only_read));
    EXPECT_EQ(answer.status, 403);
    EXPECT_EQ(answer.Message(), refused + advice);
  }
  for (const char* other :
       {R"({"path":"/data"})", R"({"path":"/data/sets/x"})", R"({"path":"/scratch/.."})",
        R"({"path":"/scratch","type":"DirectoryOrCreate"})", R"({"path":"/"})"}) {
    EXPECT_GE(As(kAlice, "POST", kLabPods, pod("d", other, true)).status, 400) << other;
  }
  // Projects are given such paths by users that could mount them anyway.
  Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
       R"({"metadata":{"name":"projects"},"rules":[{"apiGroups":["swell.dev"],)"
       R"("resources":["projects"],"verbs":["*"]}]})");
  Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
       R"({"metadata":{"name":"p"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":)"
       R"("ClusterRole","name":"projects"},"subjects":[{"kind":"User","name":"alice",)"
       R"("apiGroup":"rbac.authorization.k8s.io"}]})");
  for (const char* spec :
       {R"({"allowedHostPaths":[{"path":"/"}]})", R"({"podSecurity":"privileged"})"}) {
    EXPECT_EQ(As(kAlice, "POST", "/apis/swell.dev/v1/projects",
                 StrCat(R"({"apiVersion":"swell.dev/v1","kind":"Project",)",
                        R"("metadata":{"name":"mine"},"spec":)", spec, "}"))
                  .status,
              403)
        << spec;
  }
  Must(kAlice, "PATCH", "/apis/swell.dev/v1/projects/lab", R"({"spec":{"description":"x"}})");
  // Where two projects claim the namespace, the one that its work is charged to counts.
  Must(kMaster, "POST", "/apis/swell.dev/v1/projects",
       R"({"apiVersion":"swell.dev/v1","kind":"Project","metadata":{"name":"annex"},)"
       R"("spec":{"namespace":"lab"}})");
  const Answer annex =
      As(kAlice, "POST", kLabPods, pod("e", R"({"path":"/scratch","type":"Directory"})", false));
  EXPECT_EQ(annex.status, 403);
  EXPECT_NE(annex.Message().find("project edit annex --allow-host-path /scratch"),
            std::string::npos)
      << annex.Message();
}

TEST_F(PodSecurityTest, SystemClassesAreForTheSystem) {
  const std::string critical = R"("priorityClassName":"system-node-critical")";
  const Answer refused = As(kAlice, "POST", kLabPods, PodWith("a", critical));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.Message(),
            "pods \"a\" is forbidden: spec.priorityClassName: \"system-node-critical\": "
            "only pods in kube-system and administrators may use it");
  EXPECT_EQ(As(kAlice, "POST", kDeployments, Deployment(critical)).status, 403);
  EXPECT_EQ(As(kAlice, "POST", kPyTorchJobs, Job(critical)).status, 403);
  Must(kMaster, "POST", kLabPods, PodWith("a", critical));
  Must(kMaster, "POST", kDeployments, Deployment(critical));
}

TEST_F(PodSecurityTest, NorDoesAGroupGiveItsPodsASystemClass) {
  const std::string groups = "/apis/swell.dev/v1/namespaces/lab/podgroups";
  const auto group = [](const std::string& name, const std::string& of) {
    return StrCat(R"({"apiVersion":"swell.dev/v1","kind":"PodGroup","metadata":{"name":")", name,
                  R"("},"spec":{"priorityClassName":")", of, R"("}})");
  };
  const Answer refused = As(kAlice, "POST", groups, group("g", "system-node-critical"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.Message(),
            "podgroups.swell.dev \"g\" is forbidden: spec.priorityClassName: "
            "\"system-node-critical\": only pods in kube-system and administrators may use it");
  Must(kAlice, "POST", groups, group("g", "train"));
  const std::string raise = R"({"spec":{"priorityClassName":"system-node-critical"}})";
  EXPECT_EQ(As(kAlice, "PATCH", groups + "/g", raise).status, 403);
  // Pods of an administrator's, of which the group was made.
  Must(kController, "PATCH", groups + "/g", raise);
  Must(kAlice, "PATCH", groups + "/g", R"({"metadata":{"labels":{"x":"y"}}})");
}

TEST_F(PodSecurityTest, TheSchedulerChoosesNodes) {
  const std::string node = R"("nodeName":"n1")";
  const Answer refused = As(kAlice, "POST", kLabPods, PodWith("a", node));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.Message(),
            "pods \"a\" is forbidden: spec.nodeName: \"n1\": the scheduler chooses the node; User "
            "\"alice\" needs the right to create pods/binding; or use spec.nodeSelector");
  EXPECT_EQ(As(kAlice, "POST", kDeployments, Deployment(node)).status, 403);
  EXPECT_EQ(As(kAlice, "POST", kPyTorchJobs, Job(node)).status, 403);
  Must(kMaster, "POST", kLabPods, PodWith("a", node));
  Must(kController, "POST", kLabPods, PodWith("b", node, kOwned));
  // A pod that has its node can still be labelled.
  Must(kAlice, "PATCH", StrCat(kLabPods, "/a"), R"({"metadata":{"labels":{"x":"y"}}})");
}

TEST_F(PodSecurityTest, WhatTheSystemTrustsIsTheSystemsToWrite) {
  const std::string marks =
      R"(,"annotations":{"swell.dev/gpu-devices":"0,1","swell.dev/preempted-by":"x/y","mine":"1"})";
  const Answer made = As(kAlice, "POST", kLabPods, PodWith("a", R"("hostPID":false)", marks));
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made.warnings.size(), 2u);
  EXPECT_EQ(api::Annotation(made.body, "swell.dev/gpu-devices"), "");
  EXPECT_EQ(api::Annotation(made.body, "mine"), "1");
  Must(kController, "PATCH", StrCat(kLabPods, "/a"),
       R"({"metadata":{"annotations":{"swell.dev/gpu-devices":"3"}}})");
  for (const char* value : {R"("0")", "null"}) {
    const Answer changed =
        As(kAlice, "PATCH", StrCat(kLabPods, "/a"),
           StrCat(R"({"metadata":{"annotations":{"swell.dev/gpu-devices":)", value, "}}}"));
    EXPECT_EQ(api::Annotation(changed.body, "swell.dev/gpu-devices"), "3");
  }
}

}  // namespace
}  // namespace swell::apiserver
