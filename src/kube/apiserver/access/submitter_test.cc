// The submitter of pods, jobs and workloads, and the uid with which they run.
#include "kube/apiserver/access/submitter.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/user_test_util.h"

namespace swell::apiserver {
namespace {

constexpr char kDeployments[] = "/apis/apps/v1/namespaces/default/deployments";
constexpr char kUserSecrets[] = "/api/v1/namespaces/kube-system/secrets";
const api::UserInfo kBob{"bob", "", {"system:authenticated"}};

class SubmitterTest : public UserTest {
 protected:
  explicit SubmitterTest(std::shared_ptr<const TokenKey> token_key = nullptr)
      : UserTest(std::move(token_key)) {
    for (const char* name : {"alice", "bob"}) {
      Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
           StrCat(R"({"metadata":{"name":")", name,
                  R"("},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",)",
                  R"("name":"cluster-admin"},"subjects":[{"kind":"User","name":")", name,
                  R"(","apiGroup":"rbac.authorization.k8s.io"}]})"));
    }
  }

  void RunAliceAs(const std::string& text) {
    Must(kMaster, "POST", kUserSecrets,
         StrCat(R"({"metadata":{"name":"swell-user-a","labels":{"swell.dev/user-secret":"x"}},)",
                R"("type":"swell.dev/user","stringData":{"username":"alice","runAs":")", text,
                R"("}})"));
  }
  static std::string Pod(const std::string& name,
                         const std::string& pod_context,
                         const std::string& container_context = "{}") {
    return StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"securityContext":)", pod_context,
                  R"(,"containers":[{"name":"c","image":"i","securityContext":)", container_context,
                  "}]}}");
  }
  static std::string Context(const json::Value& pod) {
    const json::Value* context = json::Find(pod, {"spec", "securityContext"});
    return context != nullptr ? json::Print(*context) : "";
  }
};

TEST_F(SubmitterTest, PodsRunAsTheirUsersNumbers) {
  RunAliceAs("1500:100,44");
  EXPECT_EQ(Context(Must(kAlice, "POST", kPods, Pod("a", "{}"))),
            R"({"runAsUser":1500,"runAsGroup":100,"supplementalGroups":[44]})");
  EXPECT_EQ(Context(Must(kAlice, "POST", kPods, Pod("b", R"({"fsGroup":44,"runAsGroup":44})"))),
            R"({"fsGroup":44,"runAsGroup":44,"runAsUser":1500,"supplementalGroups":[44]})");
  EXPECT_EQ(Context(Must(kAlice, "POST", kPods, Pod("d", R"({"supplementalGroups":[100]})"))),
            R"({"supplementalGroups":[100],"runAsUser":1500,"runAsGroup":100})");
  EXPECT_EQ(Context(Must(kBob, "POST", kPods, Pod("c", R"({"runAsUser":7})"))),
            R"({"runAsUser":7})");
}

TEST_F(SubmitterTest, OtherNumbersAreRefused) {
  RunAliceAs("1500:100,44");
  const Answer root = As(kAlice, "POST", kPods, Pod("a", R"({"runAsUser":0})"));
  EXPECT_EQ(root.status, 403);
  EXPECT_EQ(
      root.Message(),
      "pods \"a\" is forbidden: spec.securityContext.runAsUser: 0: pods of user \"alice\" run "
      "as user 1500, group 100");
  for (const char* context :
       {R"({"runAsGroup":0})", R"({"fsGroup":0})", R"({"supplementalGroups":[44,7]})"}) {
    EXPECT_EQ(As(kAlice, "POST", kPods, Pod("a", context)).status, 403) << context;
  }
  const Answer inner = As(kAlice, "POST", kPods, Pod("a", "{}", R"({"runAsUser":0})"));
  EXPECT_EQ(inner.status, 403);
  EXPECT_NE(inner.Message().find("spec.containers[0].securityContext.runAsUser: 0"),
            std::string::npos);
  // Nor later.
  Must(kAlice, "POST", kPods, Pod("a", "{}"));
  const Answer debug = As(
      kAlice, "PATCH", StrCat(kPods, "/a/ephemeralcontainers"),
      R"({"spec":{"ephemeralContainers":[{"name":"d","image":"i","securityContext":{"runAsUser":0}}]}})");
  EXPECT_EQ(debug.status, 403) << debug.text;
}

TEST_F(SubmitterTest, WorkWhoseTemplatesNameOtherNumbersIsRefusedWithTheField) {
  RunAliceAs("1500:100,44");
  const auto template_of = [](const std::string& context, const std::string& inner,
                              const std::string& restart = "Never") {
    return StrCat(R"({"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":")", restart, R"(",)",
                  R"("securityContext":)", context, R"(,"containers":[{"name":"pytorch",)",
                  R"("image":"i","securityContext":)", inner, "}]}}");
  };
  const std::string root = template_of(R"({"runAsUser":0})", "{}");
  const std::string always = template_of(R"({"runAsUser":0})", "{}", "Always");
  const std::string inner = template_of("{}", R"({"runAsGroup":7})");
  const auto job = [](const std::string& pods) {
    return StrCat(R"({"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":)",
                  R"({"name":"j"},"spec":{"pytorchReplicaSpecs":{"Master":{"template":)",
                  R"({"spec":{"containers":[{"name":"pytorch","image":"i"}]}}},"Worker":)",
                  R"({"template":)", pods, "}}}}");
  };
  struct Case {
    std::string path, body, where;
  };
  const std::string jobs = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs";
  const std::string worker = "spec.pytorchReplicaSpecs.Worker.template.spec.";
  const std::vector<Case> cases = {
      {jobs, job(root), worker + "securityContext.runAsUser: 0"},
      {jobs, job(inner), worker + "containers[0].securityContext.runAsGroup: 7"},
      {"/apis/batch/v1/namespaces/default/jobs",
       StrCat(R"({"metadata":{"name":"j"},"spec":{"template":)", root, "}}"),
       "spec.template.spec.securityContext.runAsUser: 0"},
      {"/apis/batch/v1/namespaces/default/cronjobs",
       StrCat(R"({"metadata":{"name":"j"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":)",
              R"({"template":)", root, "}}}}"),
       "spec.jobTemplate.spec.template.spec.securityContext.runAsUser: 0"},
      {"/apis/apps.kubedl.io/v1alpha1/namespaces/default/crons",
       StrCat(R"({"apiVersion":"apps.kubedl.io/v1alpha1","kind":"Cron","metadata":)",
              R"({"name":"j"},"spec":{"schedule":"* * * * *","template":)",
              R"({"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","workload":)", job(root),
              "}}}"),
       "spec.template.workload." + worker + "securityContext.runAsUser: 0"},
      {kDeployments,
       StrCat(R"({"metadata":{"name":"j"},"spec":{"selector":{"matchLabels":{"a":"b"}},)",
              R"("template":)", always, "}}"),
       "spec.template.spec.securityContext.runAsUser: 0"},
      {"/apis/run.ai/v2alpha1/namespaces/default/trainingworkloads",
       R"({"apiVersion":"run.ai/v2alpha1","kind":"TrainingWorkload","metadata":{"name":"j"},)"
       R"("spec":{"image":{"value":"i"},"runAsUid":{"value":0}}})",
       "spec.runAsUid.value: 0"},
      {"/apis/run.ai/v2alpha1/namespaces/default/distributedworkloads",
       R"({"apiVersion":"run.ai/v2alpha1","kind":"DistributedWorkload","metadata":{"name":"j"},)"
       R"("spec":{"jobType":"PyTorchJob","image":{"value":"i"}},)"
       R"("masterSpec":{"supplementalGroups":{"value":"100;7"}}})",
       "masterSpec.supplementalGroups.value: 7"},
  };
  for (const Case& one : cases) {
    const Answer refused = As(kAlice, "POST", one.path, one.body);
    EXPECT_EQ(refused.status, 403) << one.path;
    EXPECT_NE(refused.Message().find(
                  StrCat("is forbidden: ", one.where, ": pods of user \"alice\" run as user 1500")),
              std::string::npos)
        << refused.Message();
    EXPECT_EQ(As(kBob, "POST", one.path + "?dryRun=All", one.body).status, 201) << one.path;
  }
  // Numbers that are hers pass, and an edit is judged as a new job is.
  Must(kAlice, "POST", jobs.c_str(), job(template_of(R"({"runAsUser":1500})", "{}")));
  const std::string edit =
      R"({"spec":{"pytorchReplicaSpecs":{"Worker":{"template":{"spec":{"securityContext":)"
      R"({"fsGroup":0}}}}}}})";
  EXPECT_EQ(As(kAlice, "PATCH", jobs + "/j", edit).status, 403);
  // So it is for whom a namespace's numbers hold.
  Must(kMaster, "PATCH", "/api/v1/namespaces/default",
       R"({"metadata":{"annotations":{"swell.dev/run-as-user":"70"}}})");
  EXPECT_EQ(As(kBob, "POST", cases[2].path, cases[2].body).status, 403);
}

// May do what a researcher may, and so not name the machine's ids.
TEST_F(SubmitterTest, IdsOfTheMachineAreForAdministratorsAndThoseWhoWereGivenThem) {
  const api::UserInfo carol{"carol", "", {"system:authenticated"}};
  Must(
      kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
      R"({"metadata":{"name":"pods"},"rules":[{"apiGroups":["","apps","run.ai"],"resources":["*"],)"
      R"("verbs":["*"]}]})");
  Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
       R"({"metadata":{"name":"carol"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)"
       R"("kind":"ClusterRole","name":"pods"},"subjects":[{"kind":"User","name":"carol",)"
       R"("apiGroup":"rbac.authorization.k8s.io"}]})");
  for (const char* context :
       {R"({"runAsUser":70000})", R"({"runAsUser":1,"supplementalGroups":[42,65536]})",
        R"({"fsGroup":65536})"}) {
    EXPECT_EQ(As(carol, "POST", kPods, Pod("a", context)).status, 403) << context;
    EXPECT_EQ(As(kMaster, "POST", StrCat(kPods, "?dryRun=All"), Pod("a", context)).status, 201);
  }
  const Answer inner =
      As(carol, "POST", kPods, Pod("a", R"({"runAsUser":0})", R"({"runAsUser":70000})"));
  EXPECT_EQ(inner.Message(),
            "pods \"a\" is forbidden: spec.containers[0].securityContext.runAsUser: 70000: a pod "
            "has the ids 0 to 65535 of its own; beyond them are ids of the machine, which an "
            "administrator names, or gives to a user (swell user create --run-as)");
  const Answer later =
      As(carol, "POST", kDeployments,
         R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":)"
         R"({"metadata":{"labels":{"a":"b"}},"spec":{"securityContext":{"fsGroup":70000},)"
         R"("containers":[{"name":"c","image":"i"}]}}}})");
  EXPECT_EQ(later.status, 403) << later.text;
  const Answer workload =
      As(carol, "POST", "/apis/run.ai/v2alpha1/namespaces/default/trainingworkloads",
         R"({"apiVersion":"run.ai/v2alpha1","kind":"TrainingWorkload","metadata":{"name":"w"},)"
         R"("spec":{"image":{"value":"i"},"supplementalGroups":{"value":"7;70000"}}})");
  EXPECT_NE(workload.Message().find("spec.supplementalGroups.value: 70000: a pod has the ids"),
            std::string::npos)
      << workload.text;
  // Within its own ids a pod chooses; what the node must know of that, the server says.
  const json::Value chosen = Must(carol, "POST", kPods, Pod("b", R"({"runAsUser":1500})"));
  EXPECT_EQ(api::Annotation(chosen, "swell.dev/ids-chosen"), "true");
  const json::Value masters = Must(kMaster, "POST", kPods, Pod("c", R"({"runAsUser":1500})"));
  EXPECT_EQ(api::Annotation(masters, "swell.dev/ids-chosen"), "");
  Must(kMaster, "PATCH", "/api/v1/namespaces/default",
       R"({"metadata":{"annotations":{"swell.dev/run-as-user":"70000"}}})");
  const json::Value given = Must(carol, "POST", kPods, Pod("e", R"({"runAsUser":70000})"));
  EXPECT_EQ(api::Annotation(given, "swell.dev/ids-chosen"), "");
}

TEST_F(SubmitterTest, NobodyActsInAPodWithTheNumbersOfAnother) {
  RunAliceAs("1500");
  const api::UserInfo dave{"dave", "", {"system:authenticated"}};
  const api::UserInfo erin{"erin", "", {"system:authenticated"}};
  Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
       R"({"metadata":{"name":"pods"},"rules":[{"apiGroups":[""],"resources":["*"],)"
       R"("verbs":["*"]}]})");
  for (const char* name : {"dave", "erin"}) {
    Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
         StrCat(R"({"metadata":{"name":")", name,
                R"("},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",)",
                R"("name":"pods"},"subjects":[{"kind":"User","name":")", name,
                R"(","apiGroup":"rbac.authorization.k8s.io"}]})"));
  }
  Must(kMaster, "POST", kUserSecrets,
       R"({"metadata":{"name":"swell-user-e","labels":{"swell.dev/user-secret":"x"}},)"
       R"("type":"swell.dev/user","stringData":{"username":"erin","runAs":"1500"}})");
  json::Value pod = Must(kAlice, "POST", kPods, Pod("a", "{}"));
  const std::string debug = R"({"spec":{"ephemeralContainers":[{"name":"d","image":"i"}]}})";
  for (const char* way : {"exec?command=id&stdout=true", "attach?stdout=true", "portforward"}) {
    const Answer other = As(dave, "POST", StrCat(kPods, "/a/", way), "");
    EXPECT_EQ(other.status, 403) << way;
    EXPECT_NE(other.Message().find("it runs as user 1500, a number of user \"alice\""),
              std::string::npos)
        << other.Message();
    // The pod has no node yet, which is what those hear who may.
    for (const api::UserInfo& user : {kAlice, erin, kMaster}) {
      EXPECT_NE(As(user, "POST", StrCat(kPods, "/a/", way), "").status, 403) << way << user.name;
    }
  }
  EXPECT_EQ(As(dave, "PATCH", StrCat(kPods, "/a/ephemeralcontainers"), debug).status, 403);
  json::Set(json::FindMutable(pod, {"spec", "containers"})->get_array()[0], {"image"}, "other");
  EXPECT_EQ(As(dave, "PUT", StrCat(kPods, "/a"), json::Print(pod)).status, 403);
  EXPECT_EQ(As(erin, "PATCH", StrCat(kPods, "/a/ephemeralcontainers"), debug).status, 200);
}

TEST_F(SubmitterTest, NobodyWritesWhatRunsWithTheNumbersOfAnother) {
  RunAliceAs("1500");
  const api::UserInfo dave{"dave", "", {"system:authenticated"}};
  Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
       R"({"metadata":{"name":"train"},"rules":[{"apiGroups":["trainer.kubeflow.org"],)"
       R"("resources":["*"],"verbs":["*"]}]})");
  Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
       R"({"metadata":{"name":"dave"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)"
       R"("kind":"ClusterRole","name":"train"},"subjects":[{"kind":"User","name":"dave",)"
       R"("apiGroup":"rbac.authorization.k8s.io"}]})");
  const std::string trainer = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/";
  const std::string runtimes = trainer + "trainingruntimes", one = runtimes + "/r";
  const std::string runtime =
      R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainingRuntime",)"
      R"("metadata":{"name":"r"},"spec":{"mlPolicy":{"numNodes":1},"template":{"spec":{}}}})";
  const std::string other = R"({"spec":{"mlPolicy":{"numNodes":2}}})";
  const auto job = [](const std::string& name, const std::string& kind) {
    return StrCat(R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob",)",
                  R"("metadata":{"name":")", name, R"("},"spec":{"suspend":true,"runtimeRef":)",
                  R"({"name":"r","kind":")", kind, R"("}}})");
  };
  Must(dave, "POST", runtimes, runtime);
  // Jobs of users without numbers, and of runtimes of the cluster, do not matter.
  Must(kBob, "POST", trainer + "trainjobs", job("bobs", "TrainingRuntime"));
  Must(kAlice, "POST", trainer + "trainjobs", job("of-the-cluster", "ClusterTrainingRuntime"));
  Must(dave, "PATCH", one, other);
  Must(kAlice, "POST", trainer + "trainjobs", job("alices", "TrainingRuntime"));
  const Answer refused = As(dave, "PATCH", one, R"({"spec":{"mlPolicy":{"numNodes":3}}})");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.Message(),
            "trainingruntimes.trainer.kubeflow.org \"r\" is forbidden: TrainJob \"alices\" of user "
            "\"alice\" runs it with that user's ids (swell user create --run-as), and yours are "
            "others; make a runtime with another name");
  Must(dave, "PATCH", one, R"({"metadata":{"labels":{"x":"y"}}})");
  Must(kAlice, "PATCH", one, R"({"spec":{"mlPolicy":{"numNodes":4}}})");
  // Nor by another one of that name.
  Must(dave, "DELETE", one, "");
  EXPECT_EQ(As(dave, "POST", runtimes, runtime).status, 403);
  Must(kController, "PATCH", trainer + "trainjobs/alices/status",
       R"({"status":{"conditions":[{"type":"Complete","status":"True"}]}})");
  Must(dave, "POST", runtimes, runtime);
}

TEST_F(SubmitterTest, ANamespaceSaysItForWhoeverHasNoNumbers) {
  RunAliceAs("1500");
  Must(kMaster, "PATCH", "/api/v1/namespaces/default",
       R"({"metadata":{"annotations":{"swell.dev/run-as-user":"2000"}}})");
  EXPECT_EQ(Context(Must(kAlice, "POST", kPods, Pod("a", "{}"))),
            R"({"runAsUser":1500,"runAsGroup":1500})");
  EXPECT_EQ(Context(Must(kBob, "POST", kPods, Pod("b", "{}"))),
            R"({"runAsUser":2000,"runAsGroup":2000})");
  EXPECT_EQ(As(kBob, "POST", kPods, Pod("c", R"({"runAsUser":0})")).status, 403);
  Must(kMaster, "PATCH", "/api/v1/namespaces/default",
       R"({"metadata":{"annotations":{"swell.dev/run-as-user":"root"}}})");
  const Answer unreadable = As(kBob, "POST", kPods, Pod("d", "{}"));
  EXPECT_EQ(unreadable.status, 403);
  EXPECT_NE(unreadable.Message().find(
                "swell.dev/run-as-user of namespace \"default\": \"root\": expected "
                "UID"),
            std::string::npos)
      << unreadable.Message();
}

TEST_F(SubmitterTest, WorkloadsCarryTheirAuthorToTheirPods) {
  RunAliceAs("1500");
  const std::string forged =
      R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":)"
      R"({"metadata":{"labels":{"a":"b"},"annotations":{"swell.dev/user":"bob"}},)"
      R"("spec":{"containers":[{"name":"c","image":"i"}]}}}})";
  auto author = [](const json::Value& object) {
    return json::GetString(object,
                           {"spec", "template", "metadata", "annotations", "swell.dev/user"});
  };
  const json::Value made = Must(kAlice, "POST", kDeployments, forged);
  EXPECT_EQ(author(made), "alice");
  EXPECT_EQ(api::Annotation(made, "swell.dev/user"), "alice");
  // What a controller makes of the template runs as alice.
  const json::Value* pods = json::Find(made, {"spec", "template"});
  json::Value pod = *pods;
  json::Set(pod, {"metadata", "name"}, "d-1");
  EXPECT_EQ(Context(Must(kController, "POST", kPods, json::Print(pod))),
            R"({"runAsUser":1500,"runAsGroup":1500})");
  // A change that is none of the template's leaves it; who changes the template answers for it.
  const std::string one = StrCat(kDeployments, "/d");
  EXPECT_EQ(author(Must(kBob, "PATCH", one.c_str(), R"({"spec":{"replicas":2}})")), "alice");
  const json::Value changed = Must(
      kBob, "PATCH", one.c_str(),
      R"({"spec":{"template":{"metadata":{"annotations":{"swell.dev/user":"alice","x":"y"}}}}})");
  EXPECT_EQ(author(changed), "bob");
  EXPECT_EQ(api::Annotation(changed, "swell.dev/user"), "alice");
  constexpr const char* kCronJobs = "/apis/batch/v1/namespaces/default/cronjobs";
  const json::Value cron = Must(
      kAlice, "POST", kCronJobs,
      R"({"metadata":{"name":"c"},"spec":{"schedule":"@daily","jobTemplate":{"spec":{"template":)"
      R"({"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}})");
  const json::Value forger = Must(
      kBob, "PATCH", StrCat(kCronJobs, "/c").c_str(),
      R"({"spec":{"jobTemplate":{"metadata":{"annotations":{"swell.dev/user":"bob","mine":"1",)"
      R"("swell.dev/restarts":"-9","swell.dev/pod-security":"privileged"}}}}})");
  for (const json::Value* one : {&cron, &forger}) {
    const json::Value* jobs = json::Find(*one, {"spec", "jobTemplate"});
    EXPECT_EQ(api::Annotation(*jobs, "swell.dev/user"), "alice");
    EXPECT_EQ(api::Annotation(*json::Find(*jobs, {"spec", "template"}), "swell.dev/user"), "alice");
    EXPECT_EQ(api::Annotation(*jobs, "swell.dev/restarts"), "");
    EXPECT_EQ(api::Annotation(*jobs, "swell.dev/pod-security"), "");
  }
  EXPECT_EQ(api::Annotation(*json::Find(forger, {"spec", "jobTemplate"}), "mine"), "1");
}

TEST_F(SubmitterTest, ACronsJobsAreOfWhoWroteThem) {
  RunAliceAs("1500");
  constexpr char kCrons[] = "/apis/apps.kubedl.io/v1alpha1/namespaces/default/crons";
  constexpr char kOne[] = "/apis/apps.kubedl.io/v1alpha1/namespaces/default/crons/c";
  auto author = [](const json::Value& cron) {
    return json::GetString(
        cron, {"spec", "template", "workload", "metadata", "annotations", "swell.dev/user"});
  };
  const std::string forged =
      R"({"apiVersion":"apps.kubedl.io/v1alpha1","kind":"Cron","metadata":{"name":"c"},)"
      R"("spec":{"schedule":"@daily","template":{"apiVersion":)"
      R"("kubeflow.org/v1","kind":"PyTorchJob","workload":{"metadata":{"annotations":)"
      R"({"swell.dev/user":"bob","swell.dev/restarts":"-9"}},"spec":{"pytorchReplicaSpecs":)"
      R"({"Worker":{"replicas":1,"template":{"spec":{"containers":[{"name":"pytorch",)"
      R"("image":"i"}]}}}}}}}}})";
  const json::Value made = Must(kAlice, "POST", kCrons, forged);
  EXPECT_EQ(author(made), "alice");
  EXPECT_EQ(api::Annotation(made, "swell.dev/user"), "alice");
  const json::Value* workload = json::Find(made, {"spec", "template", "workload"});
  EXPECT_EQ(api::Annotation(*workload, "swell.dev/restarts"), "");
  // What the controller makes of it is alice's.
  json::Value job = *workload;
  json::Set(job, {"apiVersion"}, "kubeflow.org/v1");
  json::Set(job, {"kind"}, "PyTorchJob");
  json::Set(job, {"metadata", "name"}, "c-1");
  json::Set(job, {"metadata", "ownerReferences"},
            json::Array{json::Object{{"apiVersion", "apps.kubedl.io/v1alpha1"},
                                     {"kind", "Cron"},
                                     {"name", "c"},
                                     {"uid", api::Uid(made)},
                                     {"controller", true}}});
  const json::Value run =
      Must(kController, "POST", "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs",
           json::Print(job));
  EXPECT_EQ(api::Annotation(run, "swell.dev/user"), "alice");
  // Another time, or none, changes nothing of that.
  EXPECT_EQ(author(Must(kBob, "PATCH", kOne, R"({"spec":{"schedule":"@hourly","suspend":true}})")),
            "alice");
  const json::Value changed = Must(kBob, "PATCH", kOne,
                                   R"({"spec":{"template":{"workload":{"metadata":{"annotations":)"
                                   R"({"swell.dev/user":"alice","x":"y"}}}}}})");
  EXPECT_EQ(author(changed), "bob");
  EXPECT_EQ(api::Annotation(changed, "swell.dev/user"), "alice");
  // The same words as another kind are another job.
  for (const char* field : {R"("kind":"TFJob")", R"("apiVersion":"kubeflow.org/v2")"}) {
    Must(kBob, "PATCH", kOne, R"({"spec":{"template":{"workload":{"spec":{"x":1}}}}})");
    const std::string patch = StrCat(R"({"spec":{"template":{)", field, "}}}");
    EXPECT_EQ(author(Must(kAlice, "PATCH", kOne, patch)), "alice") << field;
    Must(kBob, "PATCH", kOne, R"({"spec":{"template":{"workload":{"spec":{"x":2}}}}})");
  }
}

constexpr char kAccounts[] = "/api/v1/namespaces/default/serviceaccounts";
constexpr char kAsAlice[] = R"({"runAsUser":1500,"runAsGroup":1500})";

TEST_F(SubmitterTest, AServiceAccountRunsAsWhoeverMadeIt) {
  RunAliceAs("1500");
  const json::Value account =
      Must(kAlice, "POST", kAccounts,
           R"({"metadata":{"name":"mule","annotations":{"swell.dev/user":"bob"}}})");
  EXPECT_EQ(api::Annotation(account, "swell.dev/user"), "alice");
  const std::string one = StrCat(kAccounts, "/mule");
  const json::Value patched =
      Must(kBob, "PATCH", one.c_str(), R"({"metadata":{"annotations":{"swell.dev/user":"bob"}}})");
  EXPECT_EQ(api::Annotation(patched, "swell.dev/user"), "alice");
  Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
       R"({"metadata":{"name":"mule"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":)"
       R"("ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"Group","name":)"
       R"("system:serviceaccounts","apiGroup":"rbac.authorization.k8s.io"}]})");
  const api::UserInfo mule{
      "system:serviceaccount:default:mule", "", {"system:serviceaccounts", "system:authenticated"}};
  const json::Value pod = Must(mule, "POST", kPods, Pod("a", "{}"));
  EXPECT_EQ(Context(pod), kAsAlice);
  EXPECT_EQ(api::Annotation(pod, "swell.dev/user"), "alice");
  EXPECT_EQ(As(mule, "POST", kPods, Pod("b", R"({"runAsUser":0})")).status, 403);
  // Nobody's account says nothing about people.
  const api::UserInfo nobodys{"system:serviceaccount:default:default",
                              "",
                              {"system:serviceaccounts", "system:authenticated"}};
  const json::Value free =
      Must(nobodys, "POST", kPods,
           R"({"metadata":{"name":"c","annotations":{"swell.dev/user":"alice"}},)"
           R"("spec":{"containers":[{"name":"c","image":"i"}]}})");
  EXPECT_EQ(api::Annotation(free, "swell.dev/user"), "");
  // A user who was given a token of it remains the submitter.
  api::UserInfo given = nobodys;
  given.extra.push_back({"swell.dev/submitter", {"alice"}});
  EXPECT_EQ(Context(Must(given, "POST", kPods, Pod("d", "{}"))), kAsAlice);
}

TEST_F(SubmitterTest, ActingAsAnAccountChangesNothing) {
  RunAliceAs("1500");
  Must(kMaster, "POST", kAccounts, R"({"metadata":{"name":"mule"}})");
  Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
       R"({"metadata":{"name":"mule"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":)"
       R"("ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"ServiceAccount","name":)"
       R"("mule","namespace":"default"}]})");
  auto request = test_.Request("POST", kPods, Pod("a", "{}"));
  request.user = kAlice;
  request.credentials.impersonate.name = "system:serviceaccount:default:mule";
  const Answer made = test_.Send(std::move(request));
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(Context(made.body), kAsAlice);
  EXPECT_EQ(api::Annotation(made.body, "swell.dev/user"), "alice");
}

constexpr char kTokens[] = "/api/v1/namespaces/default/serviceaccounts/default/token";

class SubmitterTokenTest : public SubmitterTest {
 protected:
  SubmitterTokenTest() : SubmitterTest(std::make_shared<const TestTokenKey>()) {
    Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
         R"({"metadata":{"name":"accounts"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)"
         R"("kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"Group",)"
         R"("name":"system:serviceaccounts","apiGroup":"rbac.authorization.k8s.io"}]})");
  }

  // One of the account "default".
  std::string Token(const api::UserInfo& user, const char* spec = "{}") {
    const Answer made = As(user, "POST", kTokens, StrCat(R"({"spec":)", spec, "}"));
    EXPECT_LT(made.status, 300) << made.text;
    return made.Str({"status", "token"});
  }
  // The one that a Secret of the account holds.
  std::string TokenOfSecret(const api::UserInfo& user) {
    const Answer made =
        As(user, "POST", "/api/v1/namespaces/default/secrets",
           R"({"metadata":{"name":"t","annotations":{"kubernetes.io/service-account.name":)"
           R"("default"}},"type":"kubernetes.io/service-account-token"})");
    const auto token = Base64Decode(made.Str({"data", "token"}));
    EXPECT_TRUE(token.has_value()) << made.text;
    return token.value_or("");
  }
  Answer With(const std::string& token,
              const char* method = "GET",
              const std::string& target = kPods,
              std::string body = "") {
    auto request = test_.Request(method, target, std::move(body));
    request.user = {};
    request.credentials.bearer_token = token;
    return test_.Send(std::move(request));
  }
  std::string SubmitterWith(const std::string& token, const std::string& name) {
    const Answer made = With(token, "POST", kPods, Pod(name, "{}"));
    EXPECT_EQ(made.status, 201) << made.text;
    return std::string(api::Annotation(made.body, "swell.dev/user"));
  }
};

TEST_F(SubmitterTokenTest, ATokenRemembersForWhomItWasMade) {
  EXPECT_EQ(SubmitterWith(Token(kAlice), "a"), "alice");
  EXPECT_EQ(SubmitterWith(Token(kMaster), "b"), "");
  const std::string of_pod = Token(kMaster, R"({"boundObjectRef":{"kind":"Pod","name":"a"}})");
  EXPECT_EQ(SubmitterWith(of_pod, "c"), "alice") << "the token in a pod is its user's";
  EXPECT_EQ(SubmitterWith(TokenOfSecret(kAlice), "d"), "alice");
}

// What the token would make could run as anybody.
TEST_F(SubmitterTokenTest, TheTokenOfAPodWithAUsersNumbersEndsWithTheUser) {
  RunAliceAs("1500:100");
  Must(kAlice, "POST", kPods, Pod("a", "{}"));
  // The mark is the server's alone.
  Must(kAlice, "PATCH", StrCat(kPods, "/a").c_str(),
       R"({"metadata":{"annotations":{"swell.dev/run-as-of":null}}})");
  const std::string token = Token(kMaster, R"({"boundObjectRef":{"kind":"Pod","name":"a"}})");
  EXPECT_EQ(With(token).status, 200);
  Must(kMaster, "DELETE", StrCat(kUserSecrets, "/swell-user-a").c_str(), "");
  EXPECT_EQ(With(token).status, 401);
}

TEST_F(SubmitterTokenTest, ATokenEndsWithTheUserWhoAskedForIt) {
  constexpr const char* kUser =
      R"({"metadata":{"name":"swell-user-a","labels":{"swell.dev/user-secret":"x"}},)"
      R"("type":"swell.dev/user","stringData":{"username":"alice"}})";
  Must(kMaster, "POST", kUserSecrets, kUser);
  const std::string first = Token(kAlice);
  const std::string of_secret = TokenOfSecret(kAlice);
  const std::string others = Token(kMaster);
  // Nor does a further token outlive the user, which the first one requested.
  const std::string further =
      With(first, "POST", kTokens, R"({"spec":{}})").Str({"status", "token"});
  for (const std::string& token : {first, of_secret, further, others}) {
    EXPECT_EQ(With(token).status, 200);
  }
  Must(kMaster, "DELETE", StrCat(kUserSecrets, "/swell-user-a").c_str(), "");
  for (const std::string& token : {first, of_secret, further}) {
    EXPECT_EQ(With(token).status, 401);
  }
  Must(kMaster, "POST", kUserSecrets, kUser);
  for (const std::string& token : {first, of_secret, further}) {
    EXPECT_EQ(With(token).status, 401) << "of an earlier user of that name";
  }
  EXPECT_EQ(With(others).status, 200);
}

TEST_F(SubmitterTest, TheEditorOfAJobBecomesItsSubmitter) {
  constexpr const char* kJobs = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs";
  const json::Value made = Must(
      kAlice, "POST", kJobs,
      R"({"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":"j"},"spec":)"
      R"({"runPolicy":{"suspend":true},"pytorchReplicaSpecs":{"Worker":{"replicas":1,"template":)"
      R"({"spec":{"containers":[{"name":"pytorch","image":"i"}]}}}}}})");
  EXPECT_EQ(api::Annotation(made, "swell.dev/user"), "alice");
  const std::string one = StrCat(kJobs, "/j");
  // To let it run, or to scale it, changes nothing of what it is.
  const json::Value resumed =
      Must(kBob, "PATCH", one.c_str(),
           R"({"spec":{"runPolicy":{"suspend":false},"pytorchReplicaSpecs":{"Worker":)"
           R"({"replicas":2}}}})");
  EXPECT_EQ(api::Annotation(resumed, "swell.dev/user"), "alice");
  const json::Value edited =
      Must(kBob, "PATCH", one.c_str(),
           R"({"spec":{"pytorchReplicaSpecs":{"Worker":{"template":{"spec":{"containers":)"
           R"([{"name":"pytorch","image":"other"}]}}}}}})");
  EXPECT_EQ(api::Annotation(edited, "swell.dev/user"), "bob");
  // An annotation that adds a container to its pods says what runs, too; others do not.
  const json::Value noted = Must(kAlice, "PATCH", one.c_str(),
                                 R"({"metadata":{"annotations":{"example.com/note":"x"}}})");
  EXPECT_EQ(api::Annotation(noted, "swell.dev/user"), "bob");
  const json::Value fetching =
      Must(kAlice, "PATCH", one.c_str(),
           R"({"metadata":{"annotations":{"kubedl.io/git-sync-config":"{\"source\":\"s\"}"}}})");
  EXPECT_EQ(api::Annotation(fetching, "swell.dev/user"), "alice");
}

TEST_F(SubmitterTest, WhoEditsAMasterBesideTheSpecBecomesTheSubmitter) {
  const std::string all = "/apis/run.ai/v2alpha1/namespaces/default/distributedworkloads";
  Must(kAlice, "POST", all,
       R"({"apiVersion":"run.ai/v2alpha1","kind":"DistributedWorkload","metadata":{"name":"d"},)"
       R"("spec":{"image":{"value":"i"},"jobType":"PyTorchJob"},)"
       R"("masterSpec":{"command":{"value":"a"}}})");
  const std::string one = all + "/d";
  const json::Value paused = Must(kBob, "PATCH", one, R"({"spec":{"suspend":true}})");
  EXPECT_EQ(api::Annotation(paused, "swell.dev/user"), "alice");
  const json::Value edited =
      Must(kBob, "PATCH", one, R"({"masterSpec":{"command":{"value":"b"}}})");
  EXPECT_EQ(api::Annotation(edited, "swell.dev/user"), "bob");
  const json::Value removed = Must(kAlice, "PATCH", one, R"({"masterSpec":null})");
  EXPECT_EQ(api::Annotation(removed, "swell.dev/user"), "alice");
}

TEST_F(SubmitterTest, WhoScalesAWorkloadDoesNotBecomeItsSubmitter) {
  const std::string group = "/apis/run.ai/v2alpha1/namespaces/default/";
  const auto author = [&](const api::UserInfo& user, const std::string& one,
                          const std::string& spec) {
    return std::string(api::Annotation(
        Must(user, "PATCH", group + one, StrCat(R"({"spec":)", spec, "}")), "swell.dev/user"));
  };
  Must(kAlice, "POST", group + "distributedworkloads",
       R"({"apiVersion":"run.ai/v2alpha1","kind":"DistributedWorkload","metadata":{"name":"d"},)"
       R"("spec":{"image":{"value":"i"},"jobType":"PyTorchJob"}})");
  EXPECT_EQ(author(kBob, "distributedworkloads/d", R"({"workers":{"value":3}})"), "alice");
  Must(kAlice, "POST", group + "inferenceworkloads",
       R"({"apiVersion":"run.ai/v2alpha1","kind":"InferenceWorkload","metadata":{"name":"s"},)"
       R"("spec":{"image":{"value":"i"}}})");
  const std::string servers = "inferenceworkloads/s";
  EXPECT_EQ(author(kBob, servers, R"({"minScale":{"value":2},"maxScale":{"value":4}})"), "alice");
  EXPECT_EQ(author(kBob, servers, R"({"environment":{"items":{"workers":{"value":"1"}}}})"), "bob");
}

TEST_F(SubmitterTest, IdsOfTheMachineInARunaiWorkloadAreForAdministrators) {
  const std::string all = "/apis/run.ai/v2alpha1/namespaces/default/trainingworkloads";
  const auto workload = [](const std::string& name, const std::string& fields) {
    return StrCat(R"({"apiVersion":"run.ai/v2alpha1","kind":"TrainingWorkload","metadata":)",
                  R"({"name":")", name, R"("},"spec":{"image":{"value":"i"},)", fields, "}}");
  };
  const api::UserInfo carol{"carol", "", {"system:authenticated"}};
  Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
       R"({"metadata":{"name":"train"},"rules":[{"apiGroups":["run.ai"],"resources":["*"],)"
       R"("verbs":["*"]}]})");
  Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
       R"({"metadata":{"name":"carol"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)"
       R"("kind":"ClusterRole","name":"train"},"subjects":[{"kind":"User","name":"carol",)"
       R"("apiGroup":"rbac.authorization.k8s.io"}]})");
  struct Case {
    std::string fields, named;
  };
  const std::vector<Case> cases = {
      {R"("runAsUid":{"value":70000})", "spec.runAsUid.value: 70000"},
      {R"("runAsGid":{"value":65536})", "spec.runAsGid.value: 65536"},
      {R"("supplementalGroups":{"value":"44;70000"})", "spec.supplementalGroups.value: 70000"}};
  for (const Case& one : cases) {
    const Answer refused = As(carol, "POST", all, workload("a", one.fields));
    EXPECT_EQ(refused.status, 403) << refused.text;
    EXPECT_NE(refused.Message().find(one.named + ": a pod has the ids 0 to 65535"),
              std::string::npos)
        << refused.Message();
  }
  // Its pods pass by the author's right.
  const json::Value masters = Must(kMaster, "POST", all, workload("m", cases[0].fields));
  EXPECT_EQ(api::Annotation(masters, "swell.dev/pod-security"), "privileged");
  Must(carol, "POST", all, workload("own", R"("runAsUid":{"value":65535})"));
  Must(carol, "POST", all,
       workload("off", R"("runAsUid":{"value":70000},"runAsUser":{"value":false})"));
  Must(kMaster, "PATCH", "/api/v1/namespaces/default",
       R"({"metadata":{"annotations":{"swell.dev/run-as-user":"70000"}}})");
  Must(carol, "POST", all, workload("given", cases[0].fields));
}

TEST_F(SubmitterTest, WhoAddsAVolumeBecomesTheSubmitterWhateverItIsCalled) {
  const std::string all = "/apis/run.ai/v2alpha1/namespaces/default/trainingworkloads";
  for (const char* name : {"replicas", "suspend"}) {
    Must(kAlice, "POST", all,
         StrCat(R"({"apiVersion":"run.ai/v2alpha1","kind":"TrainingWorkload","metadata":{"name":")",
                name, R"("},"spec":{"image":{"value":"i"},"pvcs":{"items":{"data":)",
                R"({"value":{"claimName":"c","path":"/data"}}}}}})"));
    const std::string one = StrCat(all, "/", name);
    const json::Value paused = Must(kBob, "PATCH", one, R"({"spec":{"suspend":true}})");
    EXPECT_EQ(api::Annotation(paused, "swell.dev/user"), "alice");
    const json::Value mounted =
        Must(kBob, "PATCH", one,
             StrCat(R"({"spec":{"pvcs":{"items":{")", name,
                    R"(":{"value":{"claimName":"mine","path":"/bin"}}}}}})"));
    EXPECT_EQ(api::Annotation(mounted, "swell.dev/user"), "bob") << name;
  }
}

}  // namespace
}  // namespace swell::apiserver
