// Access control: roles and bindings, escalation, impersonation, tokens.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/access/rbac_rules.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr char kRbac[] = "/apis/rbac.authorization.k8s.io/v1";
constexpr char kDefaultRoles[] = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
constexpr char kDefaultBindings[] =
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";

PolicyRule Rule(std::string verbs,
                std::string groups,
                std::string resources,
                std::string names = "") {
  auto list = [](const std::string& text) {
    std::vector<std::string> out;
    for (std::string_view one : Split(text, ',')) out.emplace_back(one);
    if (text.empty()) out.emplace_back();
    return out;
  };
  return {list(verbs),
          list(groups),
          list(resources),
          names.empty() ? std::vector<std::string>{} : list(names),
          {}};
}

AccessAttributes Ask(std::string verb,
                     std::string group,
                     std::string resource,
                     std::string sub = "",
                     std::string name = "") {
  AccessAttributes attributes;
  attributes.verb = std::move(verb);
  attributes.group = std::move(group);
  attributes.resource = std::move(resource);
  attributes.subresource = std::move(sub);
  attributes.name = std::move(name);
  return attributes;
}

TEST(RbacRules, MatchWhatTheySay) {
  const PolicyRule pods = Rule("get,list", "core", "pods");
  EXPECT_TRUE(Allows(pods, Ask("get", "core", "pods")));
  EXPECT_FALSE(Allows(pods, Ask("watch", "core", "pods")));
  EXPECT_FALSE(Allows(pods, Ask("get", "apps", "pods")));
  EXPECT_FALSE(Allows(pods, Ask("get", "core", "pods", "log")));
  EXPECT_TRUE(Allows(Rule("*", "*", "pods/log"), Ask("get", "core", "pods", "log")));
  EXPECT_TRUE(Allows(Rule("*", "*", "*/scale"), Ask("update", "apps", "deployments", "scale")));
  EXPECT_FALSE(Allows(Rule("*", "*", "*/scale"), Ask("update", "apps", "deployments")));
  EXPECT_TRUE(Allows(Rule("*", "*", "*"), Ask("x", "y", "z", "w")));
  EXPECT_TRUE(Allows(Rule("get", "a", "b", "one"), Ask("get", "a", "b", "", "one")));
  EXPECT_FALSE(Allows(Rule("get", "a", "b", "one"), Ask("get", "a", "b", "", "two")));
  EXPECT_FALSE(Allows(Rule("get", "a", "b", "one"), Ask("get", "a", "b")));
  PolicyRule paths{{"get"}, {}, {}, {}, {"/api/*", "/version"}};
  AccessAttributes path;
  path.verb = "get";
  path.path = "/api/v1";
  EXPECT_TRUE(Allows(paths, path));
  path.path = "/version/x";
  EXPECT_FALSE(Allows(paths, path));
}

TEST(RbacRules, CoverOnlyWhatTheyGive) {
  EXPECT_TRUE(Uncovered({Rule("*", "*", "*")}, {Rule("get,list", "a,b", "c,d/e")}).empty());
  EXPECT_TRUE(
      Uncovered({Rule("get", "a", "b"), Rule("list", "a", "b")}, {Rule("get,list", "a", "b")})
          .empty());
  EXPECT_TRUE(Uncovered({Rule("get", "a", "*/status")}, {Rule("get", "a", "b/status")}).empty());
  // One name is less than all of them.
  EXPECT_EQ(Uncovered({Rule("get", "a", "b", "x")}, {Rule("get", "a", "b")}).size(), 1U);
  EXPECT_TRUE(Uncovered({Rule("get", "a", "b")}, {Rule("get", "a", "b", "x")}).empty());
  EXPECT_EQ(
      Describe(Uncovered({Rule("get", "", "pods")}, {Rule("get,list,watch", "", "pods,nodes")})),
      "{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\" \"list\" \"watch\"]}\n"
      "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}");
}

class RbacTest : public ::testing::Test {
 protected:
  RbacTest() : server(MakeOptions()) {}
  static Options MakeOptions() {
    Options options;
    options.rbac = true;
    options.anonymous = true;
    options.token_key = std::make_shared<TestTokenKey>();
    options.ca_pem = "CA";
    return options;
  }
  void SetUp() override {
    server.Boot();
    ASSERT_TRUE(server.boot.ok()) << server.boot.ToString();
  }
  // As somebody; an empty name is nobody at all.
  Answer As(const std::string& user,
            const std::string& method,
            const std::string& target,
            const std::string& body = {},
            std::vector<std::string> groups = {}) {
    api::RestRequest request = server.Request(
        method, target, body, method == "PATCH" ? "application/merge-patch+json" : "");
    request.user = {user, "", std::move(groups)};
    return server.Send(std::move(request));
  }
  Answer Admin(const std::string& method, const std::string& target, const std::string& body = {}) {
    return As("root", method, target, body, {"system:masters"});
  }
  void Bind(const std::string& role_kind,
            const std::string& role,
            const std::string& user,
            bool everywhere = false) {
    const Answer made = Admin(
        "POST", everywhere ? StrCat(kRbac, "/clusterrolebindings") : std::string(kDefaultBindings),
        StrCat(R"({"metadata":{"name":")", user, "-", role, R"("},"roleRef":{"apiGroup":)",
               R"("rbac.authorization.k8s.io","kind":")", role_kind, R"(","name":")", role,
               R"("},"subjects":[{"kind":"User","name":")", user, R"("}]})"));
    ASSERT_EQ(made.status, 201) << made.text;
  }
  TestServer server;
};

TEST_F(RbacTest, RefusesInKubernetesWords) {
  const Answer list = As("jane", "GET", kPods);
  EXPECT_EQ(list.status, 403);
  EXPECT_EQ(list.Reason(), "Forbidden");
  EXPECT_EQ(list.Message(),
            "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in "
            "the namespace \"default\"");
  EXPECT_EQ(list.Str({"details", "kind"}), "pods");
  EXPECT_EQ(As("jane", "GET", "/api/v1/nodes").Message(),
            "nodes is forbidden: User \"jane\" cannot list resource \"nodes\" in API group \"\" "
            "at the cluster scope");
  EXPECT_EQ(As("jane", "DELETE", "/apis/apps/v1/namespaces/x/deployments/web").Message(),
            "deployments.apps \"web\" is forbidden: User \"jane\" cannot delete resource "
            "\"deployments\" in API group \"apps\" in the namespace \"x\"");
  EXPECT_EQ(As("jane", "GET", StrCat(kPods, "/p/log")).Message(),
            "pods \"p\" is forbidden: User \"jane\" cannot get resource \"pods/log\" in API group "
            "\"\" in the namespace \"default\"");
  EXPECT_EQ(As("jane", "GET", "/metrics").Message(),
            "forbidden: User \"jane\" cannot get path \"/metrics\"");
  EXPECT_EQ(As("", "GET", "/").Message(),
            "forbidden: User \"system:anonymous\" cannot get path \"/\"");
  EXPECT_EQ(As("jane", "GET", "/api/v1/namespaces/default").Message(),
            "namespaces \"default\" is forbidden: User \"jane\" cannot get resource "
            "\"namespaces\" in API group \"\" in the namespace \"default\"");
}

TEST_F(RbacTest, EverybodySeesWhatIsPublic) {
  for (const char* path : {"/healthz", "/readyz", "/livez", "/version"}) {
    EXPECT_EQ(As("", "GET", path).status, 200) << path;
  }
  EXPECT_EQ(As("", "GET", "/api").status, 403);
  EXPECT_EQ(As("", "GET", kPods).status, 403);
  EXPECT_EQ(As("jane", "GET", "/apis/apps/v1").status, 200);
  EXPECT_EQ(As("jane", "GET", "/openapi/v2").status, 200);
}

TEST_F(RbacTest, BindingsGiveAndTakeAtOnce) {
  const Answer role = Admin("POST", kDefaultRoles,
                            R"({"metadata":{"name":"reader"},"rules":[
                               {"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]}]})");
  ASSERT_EQ(role.status, 201) << role.text;
  Bind("Role", "reader", "jane");
  EXPECT_EQ(As("jane", "GET", kPods).status, 200);
  EXPECT_EQ(As("jane", "POST", kPods, PodJson("p")).status, 403);
  EXPECT_EQ(As("jane", "GET", "/api/v1/namespaces/kube-system/pods").status, 403);
  EXPECT_EQ(As("jane", "GET", "/api/v1/pods").status, 403);
  EXPECT_EQ(Admin("DELETE", StrCat(kDefaultRoles, "/reader")).status, 200);
  const Answer without = As("jane", "GET", kPods);
  EXPECT_EQ(without.status, 403);
  EXPECT_TRUE(
      without.Message().ends_with(": RBAC: role.rbac.authorization.k8s.io \"reader\" not found"))
      << without.Message();
  EXPECT_EQ(Admin("DELETE", StrCat(kDefaultBindings, "/jane-reader")).status, 200);
  EXPECT_FALSE(As("jane", "GET", kPods).Message().ends_with("found"));
}

TEST_F(RbacTest, ClusterRolesBindInOneNamespaceOrAll) {
  Bind("ClusterRole", "system:aggregate-to-view", "jane");
  EXPECT_EQ(As("jane", "GET", kPods).status, 200);
  EXPECT_EQ(As("jane", "GET", "/api/v1/namespaces/kube-system/pods").status, 403);
  Bind("ClusterRole", "system:aggregate-to-view", "joe", true);
  EXPECT_EQ(As("joe", "GET", "/api/v1/pods").status, 200);
  EXPECT_EQ(As("joe", "GET", "/api/v1/namespaces/default/secrets").status, 403);
}

TEST_F(RbacTest, PeopleWriteJobsAndNotWhatBecameOfThem) {
  Bind("ClusterRole", "system:aggregate-to-edit", "jane");
  for (const char* jobs : {"/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/none",
                           "/apis/elasticdl.org/v1alpha1/namespaces/default/elasticdljobs/none"}) {
    EXPECT_EQ(As("jane", "PATCH", jobs, R"({"spec":{}})").status, 404) << jobs;
    EXPECT_EQ(As("jane", "PATCH", StrCat(jobs, "/scale"), R"({"spec":{"replicas":2}})").status, 404)
        << jobs;
    EXPECT_EQ(As("jane", "PATCH", StrCat(jobs, "/status"), R"({"status":{}})").status, 403) << jobs;
  }
}

TEST_F(RbacTest, NamesNarrowARoleAndFieldSelectorsNameThem) {
  ASSERT_EQ(Admin("POST", kDefaultRoles,
                  R"({"metadata":{"name":"one"},"rules":[{"apiGroups":[""],
                     "resources":["configmaps"],"resourceNames":["mine"],
                     "verbs":["get","list"]}]})")
                .status,
            201);
  Bind("Role", "one", "jane");
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  EXPECT_EQ(As("jane", "GET", maps + "/mine").status, 404);
  EXPECT_EQ(As("jane", "GET", maps + "/other").status, 403);
  EXPECT_EQ(As("jane", "GET", maps).status, 403);
  EXPECT_EQ(As("jane", "GET", maps + "?fieldSelector=metadata.name%3Dmine").status, 200);
}

TEST_F(RbacTest, NobodyMakesMembersOfAProjectWhoHaveMoreThanTheyHold) {
  const char* projects = "/apis/swell.dev/v1/projects";
  ASSERT_EQ(Admin("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
                  R"({"metadata":{"name":"planner"},"rules":[{"apiGroups":["swell.dev"],
                     "resources":["projects"],"verbs":["*"]}]})")
                .status,
            201);
  // What a controller would put together.
  for (const auto& [role, verbs] :
       {std::pair("viewer", R"("get")"), std::pair("researcher", R"("get","create")")}) {
    ASSERT_EQ(Admin("PATCH", StrCat("/apis/rbac.authorization.k8s.io/v1/clusterroles/", role),
                    StrCat(R"({"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":[)", verbs,
                           "]}]}"))
                  .status,
              200);
  }
  Bind("ClusterRole", "planner", "jane", true);
  Bind("ClusterRole", "viewer", "jane");
  auto project = [](std::string_view ns, std::string_view members) {
    return StrCat(R"({"apiVersion":"swell.dev/v1","kind":"Project","metadata":{"name":"team"},)",
                  R"("spec":{"namespace":")", ns, R"(","members":[)", members, "]}}");
  };
  const std::string viewer = R"({"name":"joe","role":"viewer"})";
  const std::string researcher = R"({"name":"jane","role":"researcher"})";
  const Answer more = As("jane", "POST", projects, project("default", researcher));
  EXPECT_EQ(more.status, 403);
  EXPECT_NE(more.Message().find("is attempting to grant RBAC permissions not currently held"),
            std::string::npos)
      << more.Message();
  // What she may do in one namespace she may give there only.
  EXPECT_EQ(As("jane", "POST", projects, project("kube-system", viewer)).status, 403);
  EXPECT_EQ(As("jane", "POST", projects, project("default", viewer)).status, 201);
  auto patch = [&](const std::string& spec) {
    return As("jane", "PATCH", StrCat(projects, "/team"), StrCat(R"({"spec":)", spec, "}")).status;
  };
  EXPECT_EQ(patch(StrCat(R"({"members":[)", viewer, ",", researcher, "]}")), 403);
  EXPECT_EQ(patch(R"({"namespace":"kube-system"})"), 403);
  // A member that somebody else has named stays.
  ASSERT_EQ(Admin("PATCH", StrCat(projects, "/team"),
                  StrCat(R"({"spec":{"members":[)", researcher, "]}}"))
                .status,
            200);
  EXPECT_EQ(patch(StrCat(R"({"members":[)", researcher, ",", viewer, "]}")), 200);
}

TEST_F(RbacTest, NobodyGivesMoreThanTheyHold) {
  Bind("ClusterRole", "system:aggregate-to-admin", "jane");
  const Answer role = As("jane", "POST", kDefaultRoles,
                         R"({"metadata":{"name":"more"},"rules":[
                            {"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]}]})");
  EXPECT_EQ(role.status, 403);
  EXPECT_EQ(role.Message(),
            "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"jane\" "
            "(groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not "
            "currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}");
  auto binding = [](std::string_view kind, std::string_view name) {
    return StrCat(R"({"metadata":{"name":"b"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)",
                  R"("kind":")", kind, R"(","name":")", name,
                  R"("},"subjects":[{"kind":"User","name":"jane"}]})");
  };
  EXPECT_EQ(As("jane", "POST", kDefaultBindings, binding("ClusterRole", "cluster-admin")).status,
            403);
  const Answer unknown = As("jane", "POST", kDefaultBindings, binding("ClusterRole", "nope"));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.Message(), "clusterroles.rbac.authorization.k8s.io \"nope\" not found");
  EXPECT_EQ(
      As("jane", "POST", kDefaultBindings, binding("ClusterRole", "system:aggregate-to-admin"))
          .status,
      201);
  // The verbs bind and escalate say otherwise.
  ASSERT_EQ(Admin("POST", kDefaultRoles,
                  R"({"metadata":{"name":"hr"},"rules":[{"apiGroups":["rbac.authorization.k8s.io"],
                     "resources":["roles","clusterroles"],"verbs":["escalate","bind"]}]})")
                .status,
            201);
  Bind("Role", "hr", "jane");
  EXPECT_EQ(As("jane", "POST", kDefaultRoles,
               R"({"metadata":{"name":"more"},"rules":[
                  {"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]})")
                .status,
            201);
}

TEST_F(RbacTest, AggregationNeedsEverything) {
  ASSERT_EQ(Admin("POST", StrCat(kRbac, "/clusterroles"),
                  R"({"metadata":{"name":"roles"},"rules":[{"apiGroups":["*"],
                     "resources":["clusterroles"],"verbs":["*"]}]})")
                .status,
            201);
  Bind("ClusterRole", "roles", "jane", true);
  const std::string role =
      R"({"metadata":{"name":"all"},"aggregationRule":{"clusterRoleSelectors":[
         {"matchLabels":{"a":"b"}}]}})";
  // `*` on clusterroles holds escalate, too; so somebody with less.
  EXPECT_EQ(As("jane", "POST", StrCat(kRbac, "/clusterroles"), role).status, 201);
  ASSERT_EQ(Admin("POST", StrCat(kRbac, "/clusterroles"),
                  R"({"metadata":{"name":"maker"},"rules":[{"apiGroups":["*"],
                     "resources":["clusterroles"],"verbs":["create","update"]}]})")
                .status,
            201);
  Bind("ClusterRole", "maker", "joe", true);
  EXPECT_EQ(As("joe", "POST", StrCat(kRbac, "/clusterroles"),
               R"({"metadata":{"name":"all2"},"aggregationRule":{"clusterRoleSelectors":[
                  {"matchLabels":{"a":"b"}}]}})")
                .Message(),
            "clusterroles.rbac.authorization.k8s.io \"all2\" is forbidden: must have "
            "cluster-admin privileges to use the aggregationRule");
}

TEST_F(RbacTest, ImpersonationNeedsTheRightAndChangesWhoAsks) {
  auto who = [&](const std::string& user, std::vector<std::string> groups, api::UserInfo as) {
    api::RestRequest request =
        server.Request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}");
    request.user = {user, "", std::move(groups)};
    request.credentials.impersonate = std::move(as);
    return server.Send(std::move(request));
  };
  const Answer jane = who("root", {"system:masters"}, {"jane", "", {"devs"}});
  EXPECT_EQ(jane.Str({"status", "userInfo", "username"}), "jane") << jane.text;
  EXPECT_NE(jane.text.find(R"(["devs","system:authenticated"])"), std::string::npos) << jane.text;
  const Answer account =
      who("root", {"system:masters"}, {"system:serviceaccount:default:x", "", {}});
  EXPECT_NE(account.text.find("system:serviceaccounts:default"), std::string::npos);
  EXPECT_EQ(who("joe", {}, {"jane", "", {}}).Message(),
            "selfsubjectreviews.authentication.k8s.io is forbidden: User \"joe\" cannot "
            "impersonate-on:user-info:create resource \"selfsubjectreviews\" in API group "
            "\"authentication.k8s.io\" at the cluster scope");
  EXPECT_EQ(who("joe", {}, {"", "", {"devs"}}).status, 400);
  ASSERT_EQ(Admin("POST", StrCat(kRbac, "/clusterroles"),
                  R"({"metadata":{"name":"imp"},"rules":[{"apiGroups":[""],
                     "resources":["users"],"resourceNames":["jane"],"verbs":["impersonate"]}]})")
                .status,
            201);
  Bind("ClusterRole", "imp", "joe", true);
  EXPECT_EQ(who("joe", {}, {"jane", "", {}}).status, 201);
  EXPECT_EQ(who("joe", {}, {"jack", "", {}}).status, 403);
  EXPECT_EQ(who("joe", {}, {"jane", "", {"system:masters"}}).status, 403);
}

TEST_F(RbacTest, ImpersonationMayBeLimitedToWhatIsRequested) {
  auto as = [&](const std::string& method, const std::string& path, api::UserInfo wanted) {
    api::RestRequest request = server.Request(method, path, "");
    request.user = {"joe", "", {}};
    request.credentials.impersonate = std::move(wanted);
    return server.Send(std::move(request));
  };
  auto allow = [&](const std::string& name, const std::string& group, const std::string& resource,
                   const std::string& verb) {
    ASSERT_EQ(
        Admin("POST", StrCat(kRbac, "/clusterroles"),
              StrCat(R"({"metadata":{"name":")", name, R"("},"rules":[{"apiGroups":[")", group,
                     R"("],"resources":[")", resource, R"("],"verbs":[")", verb, "\"]}]}"))
            .status,
        201);
    Bind("ClusterRole", name, "joe", true);
  };
  const std::string nodes = "/api/v1/nodes";
  allow("on-user", "", "nodes", "impersonate-on:user-info:list");
  allow("as-user", "authentication.k8s.io", "users", "impersonate:user-info");
  // He may act as jane to list nodes, and jane may not.
  EXPECT_NE(as("GET", nodes, {"jane", "", {}}).Message().find("User \"jane\" cannot list"),
            std::string::npos);
  EXPECT_NE(
      as("GET", nodes + "/n", {"jane", "", {}}).Message().find("impersonate-on:user-info:get"),
      std::string::npos);
  // Groups, and keys of extra without a domain, are rights of their own; masters are out of
  // reach.
  for (const char* group : {"devs", "system:masters"}) {
    EXPECT_EQ(as("GET", nodes, {"jane", "", {group}}).status, 403);
  }
  EXPECT_EQ(as("GET", nodes, {"jane", "u", {}}).status, 403);
  // Nodes and accounts are not users in this sense.
  EXPECT_NE(as("GET", nodes, {"system:node:n", "", {}}).Message().find("arbitrary-node:list"),
            std::string::npos);
  allow("on-node", "", "nodes", "impersonate-on:arbitrary-node:list");
  allow("as-node", "authentication.k8s.io", "nodes", "impersonate:arbitrary-node");
  EXPECT_EQ(as("GET", nodes, {"system:node:n", "", {}}).status, 200);
  allow("on-account", "", "nodes", "impersonate-on:serviceaccount:list");
  allow("as-account", "authentication.k8s.io", "serviceaccounts", "impersonate:serviceaccount");
  EXPECT_NE(as("GET", nodes, {"system:serviceaccount:default:x", "", {}})
                .Message()
                .find("User \"system:serviceaccount:default:x\" cannot list"),
            std::string::npos);
}

TEST_F(RbacTest, ReviewsSayWhatHoldsAndWhy) {
  Bind("ClusterRole", "system:aggregate-to-view", "jane");
  const Answer allowed =
      Admin("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            R"({"spec":{"user":"jane","resourceAttributes":{"verb":"get","resource":"pods",
               "namespace":"default"}}})");
  EXPECT_TRUE(json::GetBool(allowed.body, {"status", "allowed"}));
  EXPECT_EQ(allowed.Str({"status", "reason"}),
            "RBAC: allowed by RoleBinding \"jane-system:aggregate-to-view/default\" of ClusterRole "
            "\"system:aggregate-to-view\" to User \"jane\"");
  const Answer local =
      Admin("POST", "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
            R"({"spec":{"user":"jane","resourceAttributes":{"verb":"get","resource":"pods",
               "namespace":"kube-system"}}})");
  EXPECT_EQ(local.status, 422) << local.text;
  const Answer rules = As("jane", "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
                          R"({"spec":{"namespace":"default"}})");
  EXPECT_EQ(rules.status, 201) << rules.text;
  EXPECT_NE(rules.text.find("\"pods\""), std::string::npos);
  EXPECT_NE(rules.text.find("\"/version\""), std::string::npos);
  EXPECT_FALSE(json::GetBool(rules.body, {"status", "incomplete"}));
}

class TokenTest : public RbacTest {
 protected:
  std::string Token(const std::string& spec = "{}") {
    const Answer made = Admin("POST", "/api/v1/namespaces/default/serviceaccounts/default/token",
                              StrCat(R"({"spec":)", spec, "}"));
    EXPECT_EQ(made.status, 201) << made.text;
    return made.Str({"status", "token"});
  }
  Answer With(const std::string& token, const std::string& target) {
    api::RestRequest request = server.Request("GET", target);
    request.user = {};
    request.credentials.bearer_token = token;
    return server.Send(std::move(request));
  }
  Answer Review(const std::string& token, const std::string& audiences = "[]") {
    return Admin("POST", "/apis/authentication.k8s.io/v1/tokenreviews",
                 StrCat(R"({"spec":{"token":")", token, R"(","audiences":)", audiences, "}}"));
  }
};

TEST_F(TokenTest, PodsGetTheirAccountsToken) {
  const Answer pod = Admin("POST", kPods, PodJson("p"));
  ASSERT_EQ(pod.status, 201) << pod.text;
  const json::Value& volume = json::GetArray(pod.body, {"spec", "volumes"})[0];
  EXPECT_TRUE(json::GetString(volume, {"name"}).starts_with("kube-api-access-"));
  EXPECT_EQ(json::GetArray(volume, {"projected", "sources"}).size(), 3U);
  EXPECT_EQ(json::GetInt(volume, {"projected", "defaultMode"}), 420);
  const json::Value& container = json::GetArray(pod.body, {"spec", "containers"})[0];
  EXPECT_EQ(json::GetString(json::GetArray(container, {"volumeMounts"})[0], {"mountPath"}),
            "/var/run/secrets/kubernetes.io/serviceaccount");
  const Answer without =
      Admin("POST", kPods, PodJson("q", R"("automountServiceAccountToken":false)"));
  EXPECT_EQ(json::Find(without.body, {"spec", "volumes"}), nullptr);
  EXPECT_EQ(Admin("POST", kPods, PodJson("r", R"("serviceAccountName":"nope")")).Message(),
            "pods \"r\" is forbidden: error looking up service account default/nope: "
            "serviceaccount \"nope\" not found");
}

TEST_F(TokenTest, TheVolumeOfTheTokenHasANameOfItsOwnInThePod) {
  auto volumes = [&](const char* pod, const std::string& spec) {
    const Answer made = Admin("POST", kPods, PodJson(pod, spec));
    EXPECT_EQ(made.status, 201) << made.text;
    std::vector<std::string> names;
    for (const json::Value& volume : json::GetArray(made.body, {"spec", "volumes"})) {
      names.emplace_back(json::GetString(volume, {"name"}));
    }
    return names;
  };
  const std::vector<std::string> first = volumes("p", "");
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(volumes("q", ""), first);
  const std::vector<std::string> both =
      volumes("r", StrCat(R"("volumes":[{"name":")", first[0], R"("}])"));
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0], first[0]);
  EXPECT_NE(both[1], first[0]);
  EXPECT_TRUE(both[1].starts_with("kube-api-access-"));
}

TEST_F(TokenTest, BoundTokensDieWithTheirPod) {
  const Answer pod = Admin("POST", kPods, PodJson("p"));
  const std::string uid = pod.Str({"metadata", "uid"});
  const std::string token = Token(
      R"({"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p","uid":")" + uid + "\"}}");
  const Answer review = Review(token);
  EXPECT_TRUE(json::GetBool(review.body, {"status", "authenticated"})) << review.text;
  EXPECT_EQ(review.Str({"status", "user", "username"}), "system:serviceaccount:default:default");
  EXPECT_NE(review.text.find(R"("authentication.kubernetes.io/pod-name":["p"])"), std::string::npos)
      << review.text;
  EXPECT_EQ(review.text.find("node-name"), std::string::npos) << "it has none yet";
  const std::string node_uid =
      Admin("POST", "/api/v1/nodes", R"({"metadata":{"name":"n"}})").Str({"metadata", "uid"});
  ASSERT_EQ(Admin("POST", StrCat(kPods, "/p/binding"),
                  R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}})")
                .status,
            201);
  const Answer bound = Review(token);
  EXPECT_NE(bound.text.find(R"("authentication.kubernetes.io/node-name":["n"])"), std::string::npos)
      << bound.text;
  EXPECT_NE(bound.text.find(StrCat(R"("authentication.kubernetes.io/node-uid":[")", node_uid)),
            std::string::npos)
      << bound.text;
  EXPECT_EQ(With(token, "/version").status, 200);
  EXPECT_EQ(With(token, kPods).Message(),
            "pods is forbidden: User \"system:serviceaccount:default:default\" cannot list "
            "resource \"pods\" in API group \"\" in the namespace \"default\"");
  ASSERT_EQ(Admin("DELETE", StrCat(kPods, "/p"), R"({"gracePeriodSeconds":0})").status, 200);
  EXPECT_EQ(With(token, "/version").status, 401);
  EXPECT_EQ(Review(token).Str({"status", "error"}),
            "[invalid bearer token, service account token has been invalidated]");
}

TEST_F(TokenTest, WrongBoundObjectsAreRefused) {
  const std::string path = "/api/v1/namespaces/default/serviceaccounts/default/token";
  EXPECT_EQ(
      Admin("POST", path, R"({"spec":{"boundObjectRef":{"kind":"Pod","name":"no"}}})").Message(),
      "pods \"no\" not found");
  ASSERT_EQ(Admin("POST", "/api/v1/namespaces/default/serviceaccounts",
                  R"({"metadata":{"name":"other"}})")
                .status,
            201);
  ASSERT_EQ(Admin("POST", kPods, PodJson("p", R"("serviceAccountName":"other")")).status, 201);
  EXPECT_EQ(
      Admin("POST", path, R"({"spec":{"boundObjectRef":{"kind":"Pod","name":"p"}}})").Message(),
      "cannot bind token for serviceaccount \"default\" to pod running with different "
      "serviceaccount name.");
  EXPECT_EQ(Admin("POST", path, R"({"spec":{"expirationSeconds":5}})").status, 422);
}

TEST_F(TokenTest, AudiencesAreForThoseWhoAreMeant) {
  const std::string token = Token(R"({"audiences":["vault"]})");
  EXPECT_EQ(With(token, "/version").status, 401);
  EXPECT_FALSE(json::GetBool(Review(token).body, {"status", "authenticated"}));
  const Answer vault = Review(token, R"(["vault","x"])");
  EXPECT_TRUE(json::GetBool(vault.body, {"status", "authenticated"})) << vault.text;
  EXPECT_EQ(json::GetArray(vault.body, {"status", "audiences"}).size(), 1U);
}

TEST_F(TokenTest, ForgedTokensAreRefused) {
  const std::string token = Token();
  EXPECT_EQ(With(token, "/version").status, 200);
  // The last characters hold bits that mean nothing.
  for (size_t i = 0; i + 2 < token.size(); i += 11) {
    std::string forged = token;
    forged[i] = forged[i] == 'A' ? 'B' : 'A';
    EXPECT_EQ(With(forged, "/version").status, 401) << i;
  }
  for (const char* broken : {"a", "a.b", "a.b.c", "..", "e30.e30.e30", "a.b.c.d"}) {
    EXPECT_EQ(With(broken, "/version").status, 401) << broken;
  }
  EXPECT_EQ(Review("nonsense").Str({"status", "error"}), "invalid bearer token");
}

TEST_F(TokenTest, SecretsOfAccountsHoldATokenThatLivesAsLong) {
  const Answer made = Admin(
      "POST", "/api/v1/namespaces/default/secrets",
      R"({"metadata":{"name":"s","annotations":{"kubernetes.io/service-account.name":"default"}},
         "type":"kubernetes.io/service-account-token"})");
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(Base64Decode(made.Str({"data", "namespace"})), "default");
  EXPECT_EQ(Base64Decode(made.Str({"data", "ca.crt"})), "CA");
  const std::string token = Base64Decode(made.Str({"data", "token"})).value_or("");
  EXPECT_EQ(With(token, "/version").status, 200);
  ASSERT_EQ(Admin("DELETE", "/api/v1/namespaces/default/secrets/s").status, 200);
  EXPECT_EQ(With(token, "/version").status, 401);
}

TEST_F(TokenTest, TheIssuerSaysHowToCheckTokens) {
  EXPECT_EQ(As("jane", "GET", "/openid/v1/jwks").status, 403);
  const Answer keys = Admin("GET", "/openid/v1/jwks");
  EXPECT_EQ(json::GetString(json::GetArray(keys.body, {"keys"})[0], {"kid"}), "test");
  const Answer about = Admin("GET", "/.well-known/openid-configuration");
  EXPECT_EQ(about.Str({"issuer"}), "https://kubernetes.default.svc.cluster.local");
  EXPECT_NE(about.Str({"jwks_uri"}).find("/openid/v1/jwks"), std::string::npos);
}

TEST_F(TokenTest, TokensOfADeletedAccountAreWorthNothing) {
  const std::string token = Token();
  EXPECT_EQ(With(token, "/version").status, 200);
  ASSERT_EQ(Admin("DELETE", "/api/v1/namespaces/default/serviceaccounts/default").status, 200);
  EXPECT_EQ(With(token, "/version").status, 401);
}

}  // namespace
}  // namespace swell::apiserver
