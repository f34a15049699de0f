#include "kube/api/schema/decode_problem.h"

#include <gtest/gtest.h>

#include "kube/api/schema/schema_text.h"

namespace swell::api {
namespace {

SchemaPtr Find(const std::string& name) {
  static SchemaLibrary library(EmbeddedSchemas());
  return library.Find(name);
}

struct Case {
  const char* kind;
  const char* document;
  const char* json;
  const char* converted;
};

TEST(DecodeProblem, SpeaksAsTypedDecodersDo) {
  const Case cases[] = {
      {"io.k8s.api.apps.v1.Deployment", R"({"spec":{"replicas":3}})", "", ""},
      {"io.k8s.api.apps.v1.Deployment", R"({"spec":{"replicas":"3"}})",
       "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type "
       "int32",
       "unrecognized type: int32"},
      {"io.k8s.api.apps.v1.Deployment", R"({"spec":{"replicas":1.5}})",
       "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of "
       "type int32",
       "cannot convert float64 to int32"},
      {"io.k8s.api.apps.v1.Deployment", R"({"spec":[]})",
       "json: cannot unmarshal array into Go struct field Deployment.spec of type "
       "v1.DeploymentSpec",
       "cannot restore struct from: slice"},
      {"io.k8s.api.core.v1.ConfigMap", R"({"data":{"a":"b","c":1}})",
       "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
       "cannot convert int64 to string"},
      {"io.k8s.api.core.v1.ConfigMap", R"({"metadata":{"labels":{"a":true}}})",
       "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type "
       "string",
       "unrecognized type: string"},
      {"io.k8s.api.core.v1.Pod", R"({"spec":{"containers":{"name":"a"}}})",
       "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type "
       "[]v1.Container",
       "cannot restore slice from map"},
      {"io.k8s.api.core.v1.Pod", R"({"spec":{"containers":[{"env":[{"name":"a","value":1}]}]}})",
       "json: cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of "
       "type string",
       "cannot convert int64 to string"},
      {"io.k8s.api.core.v1.Pod",
       R"({"spec":{"containers":[{"resources":{"limits":{"cpu":"lots"}}}]}})",
       "quantities must match the regular expression "
       "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
       "quantities must match the regular expression "
       "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
      {"io.k8s.api.core.v1.Secret", R"({"data":{"a":"b!"}})", "illegal base64 data at input byte 1",
       "error decoding from json: illegal base64 data at input byte 1"},
  };
  for (const Case& c : cases) {
    const auto document = json::Parse(c.document);
    ASSERT_TRUE(document.ok()) << c.document;
    EXPECT_EQ(FindDecodeProblem(*Find(c.kind), *document), c.json);
    EXPECT_EQ(FindDecodeProblem(*Find(c.kind), *document, DecodeForm::kConverted), c.converted);
  }
}

TEST(DecodeProblem, GoTextSortsKeys) {
  EXPECT_EQ(GoText(*json::Parse(R"({"b":[1,"x",null],"a":{"c":true}})")),
            "map[a:map[c:true] b:[1 x <nil>]]");
}

}  // namespace
}  // namespace swell::api
