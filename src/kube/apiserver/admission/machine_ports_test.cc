// Which ports of the machine a service may take, and whose.
#include "kube/apiserver/admission/machine_ports.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/user_test_util.h"

namespace swell::apiserver {
namespace {

constexpr char kServices[] = "/api/v1/namespaces/default/services";

class MachinePortsTest : public UserTest {
 protected:
  MachinePortsTest() {
    const std::string roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/";
    const Answer made = As(
        kMaster, "POST", roles + "roles",
        R"({"metadata":{"name":"all"},"rules":[{"apiGroups":["","run.ai","apps.kubedl.io"],)"
        R"("resources":["services","trainingworkloads","distributedworkloads","crons"],"verbs":["*"]}]})");
    EXPECT_EQ(made.status, 201) << made.text;
    const Answer bound =
        As(kMaster, "POST", roles + "rolebindings",
           R"({"metadata":{"name":"alice"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)"
           R"("kind":"Role","name":"all"},"subjects":[{"kind":"User",)"
           R"("name":"alice","apiGroup":"rbac.authorization.k8s.io"}]})");
    EXPECT_EQ(bound.status, 201) << bound.text;
  }

  Answer Post(const api::UserInfo& user, const std::string& name, const std::string& spec) {
    return As(user, "POST", kServices,
              StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{)", spec, "}}"));
  }
  Answer Patch(const api::UserInfo& user, const std::string& name, const std::string& spec) {
    return As(user, "PATCH", StrCat(kServices, "/", name), StrCat(R"({"spec":{)", spec, "}}"));
  }
};

TEST_F(MachinePortsTest, LowPortsOfTheMachineAreForAdministrators) {
  const std::string low = R"("type":"LoadBalancer","ports":[{"port":8080,"name":"a"},)"
                          R"({"port":22,"name":"b"}])";
  const Answer refused = Post(kAlice, "a", low);
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.Message(),
            "services \"a\" is forbidden: spec.ports[1].port: 22: a load balancer takes this port "
            "of the machine, and those below 1024 are for administrators; use a port from 1024 on, "
            "such as 8022 that leads to 22, or type NodePort");
  EXPECT_EQ(Post(kAlice, "b", R"("type":"LoadBalancer","ports":[{"port":1024}])").status, 201);
  EXPECT_EQ(Post(kAlice, "c", R"("type":"NodePort","ports":[{"port":22}])").status, 201);
  EXPECT_EQ(Patch(kAlice, "b", R"("ports":[{"port":443}])").status, 403);
  EXPECT_EQ(Patch(kAlice, "c", R"("type":"LoadBalancer")").status, 403);
  // What an administrator gave stays, also when another edits the rest.
  ASSERT_EQ(Post(kMaster, "d", low).status, 201);
  EXPECT_EQ(Patch(kAlice, "d", R"("selector":{"app":"x"})").status, 200);
  EXPECT_EQ(Patch(kAlice, "d", R"("ports":[{"port":23}])").status, 403);
}

TEST_F(MachinePortsTest, NodePortsAreGivenByTheServerAlone) {
  const Answer refused = Post(kAlice, "a", R"("type":"LoadBalancer","ports":[{"port":30080}])");
  EXPECT_EQ(refused.status, 403);
  EXPECT_NE(refused.Message().find("those from 30000 to 32767 are node ports"), std::string::npos);
  // A type that no node serves does not bring a number with it.
  const std::string by_name = R"("type":"ExternalName","externalName":"a.b",)"
                              R"("ports":[{"port":8080,"nodePort":22}])";
  ASSERT_EQ(Post(kAlice, "b", by_name).status, 201);
  for (const char* type : {"NodePort", "LoadBalancer"}) {
    const Answer taken = Patch(kAlice, "b", StrCat(R"("type":")", type, "\""));
    EXPECT_EQ(taken.status, 422) << taken.text;
    EXPECT_NE(taken.Message().find("provided port is not in the valid range"), std::string::npos);
  }
}

TEST_F(MachinePortsTest, WorkloadsChooseThePortsOfTheirServices) {
  const std::string version = R"("apiVersion":"run.ai/v2alpha1","kind":"TrainingWorkload")";
  const std::string path = "/apis/run.ai/v2alpha1/namespaces/default/trainingworkloads";
  auto spec = [](const std::string& port, const std::string& type) {
    return StrCat(R"({"image":{"value":"i"},"ports":{"items":{"web":{"value":{)", port,
                  R"(,"serviceType":")", type, "\"}}}}}");
  };
  auto post = [&](const api::UserInfo& user, const std::string& name, const std::string& is) {
    return As(user, "POST", path,
              StrCat("{", version, R"(,"metadata":{"name":")", name, R"("},"spec":)", is, "}"));
  };
  const std::string low = spec(R"("container":8888,"external":80)", "LoadBalancer");
  const Answer refused = post(kAlice, "a", low);
  EXPECT_EQ(refused.status, 403) << refused.text;
  EXPECT_NE(refused.Message().find("spec.ports.items.web.value.external: 80: a load balancer takes "
                                   "this port of the machine"),
            std::string::npos)
      << refused.Message();
  const std::string inner = spec(R"("container":22)", "LoadBalancer");
  EXPECT_NE(post(kAlice, "a", inner).Message().find("web.value.container: 22"), std::string::npos);
  EXPECT_EQ(post(kAlice, "b", spec(R"("container":22)", "NodePort")).status, 201);
  EXPECT_EQ(post(kAlice, "c", spec(R"("container":8888)", "LoadBalancer")).status, 201);
  EXPECT_EQ(As(kAlice, "PATCH", path + "/b", StrCat(R"({"spec":)", inner, "}")).status, 403);
  // What an administrator gave stays.
  ASSERT_EQ(post(kMaster, "d", low).status, 201);
  EXPECT_EQ(As(kAlice, "PATCH", path + "/d", R"({"spec":{"suspend":true}})").status, 200);

  // The Service of distributed training is made of what the spec and masterSpec say together.
  const std::string balanced = R"("serviceType":{"value":"LoadBalancer"})";
  const std::string ssh = R"("ports":{"items":{"web":{"value":{"container":22}}}})";
  const auto distributed = [&](const std::string& said, const std::string& master) {
    return As(kAlice, "POST", "/apis/run.ai/v2alpha1/namespaces/default/distributedworkloads",
              StrCat(R"({"apiVersion":"run.ai/v2alpha1","kind":"DistributedWorkload",)",
                     R"("metadata":{"name":"e"},"spec":{"image":{"value":"i"},)", said,
                     R"("jobType":"PyTorchJob"},"masterSpec":{)", master, "}}"));
  };
  const auto refusal = [&](const std::string& said, const std::string& master) {
    const Answer answer = distributed(said, master);
    return answer.status == 403 ? answer.Message() : answer.text;
  };
  const std::string of_master = "masterSpec.ports.items.web.value.container: 22";
  EXPECT_NE(refusal("", StrCat(balanced, ",", ssh)).find(of_master), std::string::npos);
  EXPECT_NE(refusal(balanced + ",", ssh).find(of_master), std::string::npos);
  EXPECT_NE(refusal(ssh + ",", balanced).find(" spec.ports.items.web.value.container: 22"),
            std::string::npos);
  EXPECT_EQ(distributed(StrCat(balanced, ",", ssh, ","), R"("ports":{"items":{}})").status, 201)
      << "the master has none of these ports";

  const Answer cron =
      As(kAlice, "POST", "/apis/apps.kubedl.io/v1alpha1/namespaces/default/crons",
         StrCat(R"({"apiVersion":"apps.kubedl.io/v1alpha1","kind":"Cron","metadata":{"name":"c"},)",
                R"("spec":{"schedule":"@daily","template":{)", version, R"(,"workload":{"spec":)",
                low, "}}}}"));
  EXPECT_EQ(cron.status, 403) << cron.text;
  EXPECT_NE(cron.Message().find("spec.template.workload.spec.ports.items.web.value.external: 80"),
            std::string::npos)
      << cron.Message();
}

}  // namespace
}  // namespace swell::apiserver
