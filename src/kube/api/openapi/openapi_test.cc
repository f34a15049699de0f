#include "kube/api/openapi/openapi.h"

#include <functional>

#include <gtest/gtest.h>

#include "base/strings.h"

namespace swell::api {
namespace {

std::unique_ptr<Scheme> WithCrds() {
  std::unique_ptr<Scheme> scheme = Scheme::BuiltIn();
  for (const json::Value& crd : SwellCrds()) {
    Result<std::vector<CrdVersion>> kinds = KindsOfCrd(crd);
    EXPECT_TRUE(kinds.ok()) << kinds.status().ToString();
    if (!kinds.ok()) continue;
    for (CrdVersion& version : *kinds) scheme->Register(version.kind, version.storage);
  }
  return scheme;
}

// Calls `fn` with every "$ref" below the value.
void EachReference(const json::Value& value, const std::function<void(std::string_view)>& fn) {
  if (const json::Array* list = value.if_array()) {
    for (const json::Value& item : *list) EachReference(item, fn);
  } else if (const json::Object* object = value.if_object()) {
    for (const auto& member : *object) {
      if (member.key() == "$ref" && member.value().is_string()) {
        fn(json::View(member.value().get_string()));
      } else {
        EachReference(member.value(), fn);
      }
    }
  }
}

TEST(OpenApiTest, Version2HasEveryKindAndNoDanglingReference) {
  auto scheme = WithCrds();
  json::Value doc = OpenApiV2(*scheme);
  const json::Object& definitions = json::GetObject(doc, {"definitions"});
  size_t references = 0;
  EachReference(doc, [&](std::string_view ref) {
    ++references;
    ASSERT_TRUE(ref.starts_with("#/definitions/")) << ref;
    EXPECT_TRUE(definitions.contains(ref.substr(14))) << ref;
  });
  EXPECT_GT(references, 800u);
  const json::Value& pod = definitions.at("io.k8s.api.core.v1.Pod");
  EXPECT_EQ(json::Print(*json::Find(pod, {"x-kubernetes-group-version-kind"})),
            R"([{"group":"","kind":"Pod","version":"v1"}])");
  const json::Value& spec = definitions.at("io.k8s.api.core.v1.PodSpec");
  const json::Value& volumes = *json::Find(spec, {"properties", "volumes"});
  EXPECT_EQ(json::GetString(volumes, {"x-kubernetes-patch-strategy"}), "merge,retainKeys");
  EXPECT_EQ(json::GetString(volumes, {"x-kubernetes-patch-merge-key"}), "name");
  EXPECT_EQ(json::Print(*json::Find(spec, {"required"})), R"(["containers"])");
  EXPECT_TRUE(definitions.contains("org.kubeflow.v1.PyTorchJob"));
  EXPECT_TRUE(definitions.contains("dev.swell.v1.PodGroup"));
  // Recursive types refer to themselves.
  EXPECT_TRUE(definitions.contains(
      "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"));
}

TEST(OpenApiTest, PatchSaysThatDryRunAndFieldValidationWork) {
  auto scheme = WithCrds();
  json::Value v2 = OpenApiV2(*scheme);
  json::Value v3 = OpenApiV3(*scheme, "swell.dev", "v1");
  const std::pair<const json::Value*, const char*> docs[] = {
      {&v2, "/api/v1/namespaces/{namespace}/pods/{name}"},
      {&v3, "/apis/swell.dev/v1/namespaces/{namespace}/podgroups/{name}"}};
  for (const auto& [doc, path] : docs) {
    const json::Value* patch = json::Find(*doc, {"paths", path, "patch"});
    ASSERT_NE(patch, nullptr) << path;
    EXPECT_NE(json::Find(*patch, {"x-kubernetes-group-version-kind", "kind"}), nullptr);
    std::string names;
    for (const json::Value& p : json::GetArray(*patch, {"parameters"})) {
      names += StrCat(json::GetString(p, {"name"}), " ");
    }
    EXPECT_NE(names.find("dryRun"), std::string::npos) << names;
    EXPECT_NE(names.find("fieldValidation"), std::string::npos) << names;
  }
}

TEST(OpenApiTest, Version3HasOneDocumentForEachGroupVersion) {
  auto scheme = WithCrds();
  json::Value index = OpenApiV3Index(*scheme);
  const json::Object& paths = json::GetObject(index, {"paths"});
  EXPECT_TRUE(paths.contains("api/v1"));
  EXPECT_TRUE(paths.contains("apis/apps/v1"));
  EXPECT_TRUE(paths.contains("apis/kubeflow.org/v1"));
  EXPECT_TRUE(json::GetString(index, {"paths", "api/v1", "serverRelativeURL"})
                  .starts_with("/openapi/v3/api/v1?hash="));
  for (const auto& entry : paths) {
    std::string_view path = entry.key();
    std::vector<std::string_view> parts = Split(path, '/');
    json::Value doc = parts.size() == 2 ? OpenApiV3(*scheme, "", parts[1])
                                        : OpenApiV3(*scheme, parts[1], parts[2]);
    const json::Object& schemas = json::GetObject(doc, {"components", "schemas"});
    EachReference(doc, [&](std::string_view ref) {
      ASSERT_TRUE(ref.starts_with("#/components/schemas/")) << ref;
      EXPECT_TRUE(schemas.contains(ref.substr(21))) << path << " " << ref;
    });
  }
}

// -- gnostic's wire form, read again field by field ---------------------------------------------

struct Wire {
  int number;
  uint64_t integer;
  std::string_view bytes;
};

std::vector<Wire> ReadWire(std::string_view bytes) {
  std::vector<Wire> out;
  size_t at = 0;
  auto varint = [&]() {
    uint64_t value = 0;
    for (int shift = 0; at < bytes.size() && shift < 64; shift += 7) {
      auto byte = static_cast<unsigned char>(bytes[at++]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  while (at < bytes.size()) {
    uint64_t key = varint();
    Wire field{static_cast<int>(key >> 3), 0, {}};
    if ((key & 7) == 0) {
      field.integer = varint();
    } else if ((key & 7) == 1) {
      at += 8;
    } else if ((key & 7) == 2) {
      uint64_t size = varint();
      if (size > bytes.size() - at) {
        ADD_FAILURE() << "a field of " << size << " bytes is cut off";
        return out;
      }
      field.bytes = bytes.substr(at, size);
      at += size;
    } else {
      ADD_FAILURE() << "wire type " << (key & 7);
      return out;
    }
    out.push_back(field);
  }
  return out;
}

std::string_view First(std::string_view bytes, int number) {
  for (const Wire& field : ReadWire(bytes)) {
    if (field.number == number) return field.bytes;
  }
  return {};
}

// The value of the named entry in a list of {1: name, 2: value}.
std::string_view Named(std::string_view bytes, int list, std::string_view name) {
  for (const Wire& field : ReadWire(bytes)) {
    if (field.number == list && First(field.bytes, 1) == name) return First(field.bytes, 2);
  }
  return {};
}

TEST(OpenApiTest, TemplatesOfJobsHaveAllFieldsOfPods) {
  const json::Value doc = OpenApiV3(*WithCrds(), "kubeflow.org", "v1");
  const json::Object& types = json::GetObject(doc, {"components", "schemas"});
  const json::Value& worker =
      *json::Find(types.at("org.kubeflow.v1.PyTorchJob"),
                  {"properties", "spec", "properties", "pytorchReplicaSpecs", "properties",
                   "Worker", "properties", "template"});
  EXPECT_EQ(json::GetString(json::GetArray(worker, {"allOf"})[0], {"$ref"}),
            "#/components/schemas/io.k8s.api.core.v1.PodTemplateSpec");
  EXPECT_FALSE(json::GetString(worker, {"description"}).empty());
  EXPECT_NE(json::Find(types.at("io.k8s.api.core.v1.PodSpec"), {"properties", "tolerations"}),
            nullptr);
  EachReference(doc, [&](std::string_view to) {
    EXPECT_TRUE(types.contains(to.substr(std::string_view("#/components/schemas/").size()))) << to;
  });
}

TEST(OpenApiTest, ProtobufFormReadsBack) {
  auto scheme = Scheme::BuiltIn();
  json::Value doc = OpenApiV2(*scheme);
  std::string bytes = OpenApiV2Protobuf(doc);
  EXPECT_EQ(First(bytes, 1), "2.0");
  EXPECT_EQ(First(First(bytes, 2), 1), "Swell");
  std::string_view definitions = First(bytes, 9);
  EXPECT_EQ(ReadWire(definitions).size(), json::GetObject(doc, {"definitions"}).size());
  std::string_view pod = Named(definitions, 1, "io.k8s.api.core.v1.Pod");
  EXPECT_EQ(First(First(pod, 22), 1), "object");
  EXPECT_EQ(First(Named(pod, 31, "x-kubernetes-group-version-kind"), 2),
            R"([{"group":"","kind":"Pod","version":"v1"}])");
  std::string_view spec = Named(First(pod, 25), 1, "spec");
  EXPECT_EQ(First(spec, 1), "#/definitions/io.k8s.api.core.v1.PodSpec");
  std::string_view pod_spec = Named(definitions, 1, "io.k8s.api.core.v1.PodSpec");
  EXPECT_EQ(First(pod_spec, 19), "containers");
  std::string_view containers = Named(First(pod_spec, 25), 1, "containers");
  EXPECT_EQ(First(First(First(containers, 23), 1), 1),
            "#/definitions/io.k8s.api.core.v1.Container");
  EXPECT_EQ(First(Named(containers, 31, "x-kubernetes-patch-merge-key"), 2), "\"name\"");
  std::string_view paths = First(bytes, 8);
  std::string_view item = Named(paths, 2, "/api/v1/namespaces/{namespace}/pods/{name}");
  std::string_view patch = First(item, 8);
  EXPECT_NE(First(Named(patch, 13, "x-kubernetes-group-version-kind"), 2).find("\"kind\":\"Pod\""),
            std::string_view::npos);
  bool dry_run = false;
  for (const Wire& parameter : ReadWire(patch)) {
    if (parameter.number != 8) continue;
    std::string_view query = First(First(First(parameter.bytes, 1), 2), 3);
    dry_run = dry_run || First(query, 4) == "dryRun";
  }
  EXPECT_TRUE(dry_run);
}

}  // namespace
}  // namespace swell::api
