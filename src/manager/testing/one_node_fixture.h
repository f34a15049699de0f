// A cluster of one node with four GPUs, for tests of a controller that needs little more.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::manager {

class OneNodeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 4);
    cluster_.StartManager();
  }
  // Labels and annotations: flow YAML.
  void Pod(const std::string& name,
           const std::string& labels,
           int gpus = 0,
           const std::string& annotations = "") {
    std::string limits =
        gpus > 0 ? StrCat(", resources: {limits: {nvidia.com/gpu: ", gpus, "}}") : "";
    cluster_.Create(StrCat("apiVersion: v1\nkind: Pod\nmetadata: {name: ", name,
                           ", namespace: default, labels: {", labels, "}, annotations: {",
                           annotations,
                           "}}\nspec: {restartPolicy: Never, containers: [{name: c, image: x",
                           limits, ", ports: [{name: web, containerPort: 8080}]}]}\n"));
  }
  bool UntilRunning(const std::string& name) {
    return cluster_.Until([&] { return cluster_.PodPhase("default/" + name) == "Running"; });
  }
  TestCluster cluster_;
};

}  // namespace swell::manager
