// ValidatingAdmissionPolicies: what they refuse, warn of, and where they hold.
#include "kube/apiserver/admission/admission_policies.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr char kGroupPath[] = "/apis/admissionregistration.k8s.io/v1/";

class PoliciesTest : public ::testing::Test {
 protected:
  explicit PoliciesTest(Options options = {}) : server(std::move(options)) { server.Boot(); }

  // A policy about pods, with what else its spec has.
  void AddPolicy(const std::string& name,
                 const std::string& more,
                 const std::string& resources = R"(["pods"])",
                 const std::string& operations = R"(["CREATE","UPDATE"])",
                 const std::string& groups = R"([""])") {
    const Answer made = server.Post(
        StrCat(kGroupPath, "validatingadmissionpolicies"),
        StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"matchConstraints":{)",
               R"("resourceRules":[{"operations":)", operations, R"(,"apiGroups":)", groups,
               R"(,"apiVersions":["*"],"resources":)", resources, "}]},", more, "}}"));
    ASSERT_EQ(made.status, 201) << made.text;
  }

  void Bind(const std::string& policy,
            const std::string& actions = R"(["Deny"])",
            const std::string& more = {}) {
    const Answer made = server.Post(
        StrCat(kGroupPath, "validatingadmissionpolicybindings"),
        StrCat(R"({"metadata":{"name":"bind-)", policy, R"("},"spec":{"policyName":")", policy,
               R"(","validationActions":)", actions, more.empty() ? "" : ",", more, "}}"));
    ASSERT_EQ(made.status, 201) << made.text;
  }

  TestServer server;
};

TEST_F(PoliciesTest, RefusesWhatItsExpressionSaysOnceItIsBound) {
  AddPolicy("labels", R"("validations":[
      {"expression":"has(object.metadata.labels) && has(object.metadata.labels.team) ",
      "message":"every pod has a team"}])");
  EXPECT_EQ(server.Post(kPods, PodJson("early")).status, 201);
  Bind("labels");
  const Answer refused = server.Post(kPods, PodJson("p"));
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(refused.Reason(), "Invalid");
  EXPECT_EQ(refused.Message(),
            "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'labels' with binding "
            "'bind-labels' denied request: every pod has a team");
  EXPECT_EQ(server.Get(StrCat(kPods, "/p")).status, 404);
  EXPECT_EQ(server.Post(kPods, PodJson("p", {}, R"({"team":"a"})")).status, 201);
  // An update is looked at as well; another resource is not.
  EXPECT_EQ(server.Merge(StrCat(kPods, "/p"), R"({"metadata":{"labels":{"team":null}}})").status,
            422);
  EXPECT_EQ(server.Post(kMaps, R"({"metadata":{"name":"m"}})").status, 201);
  // The binding's end is the policy's.
  EXPECT_EQ(
      server.Delete(StrCat(kGroupPath, "validatingadmissionpolicybindings/bind-labels")).status,
      200);
  EXPECT_EQ(server.Post(kPods, PodJson("q")).status, 201);
}

TEST_F(PoliciesTest, ReasonsAndMessagesAreThePolicys) {
  AddPolicy("few", R"("variables":[{"name":"n","expression":"size(object.spec.containers) "},
      {"name":"most","expression":"variables.n - 1"}],
      "validations":[{"expression":"variables.n <= variables.most","reason":"Forbidden",
        "messageExpression":"'at most ' + string(variables.most) + ', not ' + string(variables.n) "},
        {"expression":"false"}])");
  Bind("few");
  const Answer refused = server.Post(kPods, PodJson("p"));
  EXPECT_EQ(refused.status, 403) << refused.text;
  EXPECT_EQ(refused.Reason(), "Forbidden");
  EXPECT_NE(refused.Message().find("denied request: at most 0, not 1"), std::string::npos)
      << refused.text;
}

TEST_F(PoliciesTest, AnExpressionThatFailsRefusesUnlessFailuresAreIgnored) {
  const std::string broken =
      R"("variables":[{"name":"v","expression":"object.spec.none"}],
         "validations":[{"expression":"variables.v == 1"}])";
  AddPolicy("strict", broken);
  Bind("strict");
  const Answer refused = server.Post(kPods, PodJson("p"));
  EXPECT_EQ(refused.status, 422);
  EXPECT_NE(refused.Message().find("expression 'variables.v == 1' resulted in error: composited "
                                   "variable \"v\" fails to evaluate"),
            std::string::npos)
      << refused.text;
  ASSERT_EQ(server.Delete(StrCat(kGroupPath, "validatingadmissionpolicies/strict")).status, 200);
  AddPolicy("lenient", StrCat(broken, R"(,"failurePolicy":"Ignore")"));
  Bind("lenient");
  EXPECT_EQ(server.Post(kPods, PodJson("p")).status, 201);
}

TEST_F(PoliciesTest, WarnsInsteadWhereTheBindingSaysSo) {
  AddPolicy("w", R"("validations":[{"expression":"object.metadata.name != 'p'"}])");
  Bind("w", R"(["Warn","Audit"])");
  const Answer made = server.Post(kPods, PodJson("p"));
  EXPECT_EQ(made.status, 201) << made.text;
  ASSERT_EQ(made.warnings.size(), 1u);
  EXPECT_EQ(made.warnings[0],
            "299 - \"Validation failed for ValidatingAdmissionPolicy 'w' with binding 'bind-w': "
            "failed expression: object.metadata.name != 'p'\"");
  EXPECT_TRUE(server.Post(kPods, PodJson("q")).warnings.empty());
}

TEST_F(PoliciesTest, LooksOnlyWhereRulesSelectorsAndConditionsLetIt) {
  AddPolicy("c", R"("validations":[{"expression":"false"}],
      "matchConditions":[{"name":"not-nodes","expression":"request.userInfo.username != 'robot'"}])",
            R"(["configmaps"])");
  Bind("c", R"(["Deny"])", R"("matchResources":{
      "namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"default"}},
      "excludeResourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],
        "resources":["configmaps"],"resourceNames":["free"]}]})");
  EXPECT_EQ(server.Post(kMaps, R"({"metadata":{"name":"m"}})").status, 422);
  EXPECT_EQ(server.Post(kMaps, R"({"metadata":{"name":"free"}})").status, 201);
  EXPECT_EQ(server.Post("/api/v1/namespaces/kube-public/configmaps", R"({"metadata":{"name":"m"}})")
                .status,
            201);
  server.user = "robot";
  EXPECT_EQ(server.Post(kMaps, R"({"metadata":{"name":"m"}})").status, 201);
}

TEST_F(PoliciesTest, ComparesWithParametersAndTheNamespace) {
  AddPolicy("p", R"("paramKind":{"apiVersion":"v1","kind":"ConfigMap"},
      "validations":[{"expression":"size(object.spec.containers) <= int(params.data.most) "},
        {"expression":"namespaceObject.metadata.name == 'default'"}])");
  Bind("p", R"(["Deny"])", R"("paramRef":{"name":"limits","namespace":"kube-system",
      "parameterNotFoundAction":"Deny"})");
  const Answer none = server.Post(kPods, PodJson("p"));
  EXPECT_EQ(none.status, 422);
  EXPECT_NE(none.Message().find("failed to configure binding: no params found for policy binding "
                                "with `Deny` parameterNotFoundAction"),
            std::string::npos)
      << none.text;
  const std::string maps = "/api/v1/namespaces/kube-system/configmaps";
  ASSERT_EQ(server.Post(maps, R"({"metadata":{"name":"limits"},"data":{"most":"0"}})").status, 201);
  EXPECT_EQ(server.Post(kPods, PodJson("p")).status, 422);
  ASSERT_EQ(server.Merge(StrCat(maps, "/limits"), R"({"data":{"most":"1"}})").status, 200);
  EXPECT_EQ(server.Post(kPods, PodJson("p")).status, 201);
}

TEST_F(PoliciesTest, SeesWhatIsDeletedAndDryRuns) {
  AddPolicy("keep", R"("validations":[{"expression":"oldObject.metadata.name != 'kept'",
      "message":"it stays"}])",
            R"(["configmaps"])", R"(["DELETE"])");
  Bind("keep");
  ASSERT_EQ(server.Post(kMaps, R"({"metadata":{"name":"kept"}})").status, 201);
  ASSERT_EQ(server.Post(kMaps, R"({"metadata":{"name":"gone"}})").status, 201);
  EXPECT_EQ(server.Delete(StrCat(kMaps, "/kept")).status, 422);
  EXPECT_EQ(server.Delete(StrCat(kMaps, "/kept?dryRun=All")).status, 422);
  EXPECT_EQ(server.Delete(StrCat(kMaps, "/gone")).status, 200);
}

// Rights are those of RBAC's roles, by which requests are judged.
class PoliciesAndRights : public PoliciesTest {
 protected:
  PoliciesAndRights() : PoliciesTest(WithRbac()) {
    server.groups = {"system:masters"};
    Grant("maker", "ann", R"("apiGroups":[""],"resources":["configmaps"],"verbs":["create"])");
    Grant("maker", "bob", R"("apiGroups":[""],"resources":["configmaps"],"verbs":["create"])");
    Grant("boss", "ann", R"("apiGroups":["example.com"],"resources":["limits/break"],
        "resourceNames":["big"],"verbs":["use"])");
  }
  static Options WithRbac() {
    Options options;
    options.rbac = true;
    return options;
  }

  // A role of the namespace `default`, and a user or an account that has it.
  void Grant(const std::string& role, const std::string& user, const std::string& rule) {
    const std::string path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/";
    const bool account = user.starts_with("sa-");
    server.Post(StrCat(path, "roles"),
                StrCat(R"({"metadata":{"name":")", role, R"("},"rules":[{)", rule, "}]}"));
    const Answer made = server.Post(
        StrCat(path, "rolebindings"),
        StrCat(R"({"metadata":{"name":")", role, "-", user,
               R"("},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":")",
               role, R"("},"subjects":[{"name":")", user,
               account ? R"(","kind":"ServiceAccount","namespace":"default"}]})"
                       : R"(","kind":"User","apiGroup":"rbac.authorization.k8s.io"}]})"));
    ASSERT_EQ(made.status, 201) << made.text;
  }

  static std::string Validations(const std::vector<std::string>& expressions) {
    json::Array validations;
    for (const std::string& one : expressions) {
      validations.push_back(json::Object{{"expression", one}});
    }
    return StrCat(R"("validations":)", json::Print(json::Value(std::move(validations))));
  }

  // What becomes of a config map that the user makes.
  int MakeAs(const std::string& user, const std::string& name) {
    server.user = user;
    server.groups.clear();
    const Answer made = server.Post(kMaps, StrCat(R"({"metadata":{"name":")", name, R"("}})"));
    server.user = "admin";
    server.groups = {"system:masters"};
    return made.status;
  }
};

TEST_F(PoliciesAndRights, AreThoseOfWhoeverAsks) {
  AddPolicy(
      "rights",
      Validations({"!object.metadata.name.startsWith('big') || "
                   "authorizer.group('example.com').resource('limits').subresource('break')"
                   ".namespace('default').name(object.metadata.name).check('use').allowed()"}),
      R"(["configmaps"])");
  Bind("rights");
  EXPECT_EQ(MakeAs("ann", "small"), 201);
  EXPECT_EQ(MakeAs("bob", "big"), 422);
  EXPECT_EQ(MakeAs("ann", "big"), 201);
  // The right is to one name.
  EXPECT_EQ(MakeAs("ann", "bigger"), 422);
}

TEST_F(PoliciesAndRights, AreAskedAboutTheRequestItselfPathsAndAccounts) {
  Grant("runner", "sa-robot", R"("apiGroups":[""],"resources":["pods"],"verbs":["create"])");
  AddPolicy("itself",
            Validations({"object.metadata.name != 'mine' || "
                         "(authorizer.requestResource.check('create').allowed() && "
                         "!authorizer.requestResource.check('delete').allowed())",
                         "object.metadata.name != 'metrics' || "
                         "authorizer.path('/metrics').check('get').allowed()",
                         "object.metadata.name != 'robot' || "
                         "authorizer.serviceAccount('default', 'sa-robot').group('')"
                         ".resource('pods').namespace('default').check('create').reason()"
                         ".startsWith('RBAC: allowed by RoleBinding')"}),
            R"(["configmaps"])");
  Bind("itself");
  EXPECT_EQ(MakeAs("bob", "mine"), 201);
  EXPECT_EQ(MakeAs("bob", "metrics"), 422);
  EXPECT_EQ(MakeAs("bob", "robot"), 201);
}

TEST_F(PoliciesAndRights, AreNotAskedAboutInMessages) {
  const std::string asks = "authorizer.path('/x').check('get')";
  const Answer refused = server.Post(
      StrCat(kGroupPath, "validatingadmissionpolicies"),
      StrCat(R"({"metadata":{"name":"says"},"spec":{"matchConstraints":{"resourceRules":[)",
             R"({"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],)",
             R"("resources":["pods"]}]},"validations":[{"expression":")", asks,
             R"(.allowed() ","messageExpression":")", asks, R"(.reason() "}]}})"));
  EXPECT_EQ(refused.status, 422) << refused.text;
  const auto named = [&refused](std::string_view field) {
    return refused.Message().find(StrCat("spec.validations[0].", field)) != std::string::npos;
  };
  EXPECT_TRUE(named("messageExpression")) << refused.text;
  EXPECT_FALSE(named("expression")) << refused.text;
}

TEST_F(PoliciesTest, APolicyAboutEverythingCanStillBeTakenAway) {
  AddPolicy("all", R"("validations":[{"expression":"false"}])", R"(["*"])", R"(["*"])", R"(["*"])");
  Bind("all");
  EXPECT_EQ(server.Post(kMaps, R"({"metadata":{"name":"m"}})").status, 422);
  EXPECT_EQ(server.Delete(StrCat(kGroupPath, "validatingadmissionpolicies/all")).status, 200);
  EXPECT_EQ(server.Post(kMaps, R"({"metadata":{"name":"m"}})").status, 201);
}

}  // namespace
}  // namespace swell::apiserver
