// The order in which waiting work is told to stand.
#include "cli/views/queue_places.h"

#include <deque>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/yaml.h"

namespace swell::cli {
namespace {

class QueuePlacesTest : public ::testing::Test {
 protected:
  static json::Value Parsed(const std::string& yaml) {
    auto parsed = json::ParseYaml(yaml);
    EXPECT_TRUE(parsed.ok()) << yaml;
    return parsed.ok() && parsed->size() == 1 ? parsed->front() : json::Value();
  }
  void Project(const std::string& name, const std::string& spec = "") {
    ProjectView project;
    project.object = std::make_shared<const json::Value>(Parsed(StrCat("{spec: {", spec, "}}")));
    project.name = project.ns = name;
    tree_.projects.push_back(std::move(project));
  }
  // `meta` and `spec` continue the braces that are open.
  const json::Value& Pod(const std::string& name,
                         int minute,
                         const std::string& meta = "",
                         const std::string& spec = "",
                         const std::string& scheduler = "swell") {
    objects_.push_back(Parsed(StrCat("{metadata: {namespace: team, name: ", name, ", uid: u-", name,
                                     ", creationTimestamp: '2026-01-01T00:", 10 + minute, ":00Z'",
                                     meta, "}, spec: {schedulerName: ", scheduler, spec, "}}")));
    pods_.push_back(&objects_.back());
    return objects_.back();
  }
  const json::Value& GroupPod(const std::string& group, int index) {
    return Pod(StrCat(group, "-", index), 9,
               StrCat(", labels: {swell.dev/pod-group: ", group, "}"));
  }
  void Group(const std::string& name, int minute, int least, int placed) {
    objects_.push_back(Parsed(StrCat("{metadata: {namespace: team, name: ", name, ", uid: u-", name,
                                     ", creationTimestamp: '2026-01-01T00:", 10 + minute,
                                     ":00Z'}, spec: {podSets: [{name: w, minMember: ", least,
                                     "}]}, status: {scheduled: ", placed, "}}")));
    groups_.push_back(&objects_.back());
  }
  std::string Told(const json::Value& pod, QueuePlaces::Seen seen = QueuePlaces::Seen::kAll) const {
    const auto place = QueuePlaces(pods_, groups_, tree_, seen).Find(pod);
    return place ? place->Text() : "";
  }

  ProjectTree tree_;
  std::deque<json::Value> objects_;
  QueuePlaces::Objects pods_, groups_;
};

TEST_F(QueuePlacesTest, PriorityThenPromisedRoomThenAgeDecide) {
  Project("team");
  const json::Value& old = Pod("old", 1);
  const json::Value& young = Pod("young", 3);
  const json::Value& urgent = Pod("urgent", 4, "", ", priority: 75");
  EXPECT_EQ(Told(urgent), "1st of 3 that wait in team, by priority and age");
  EXPECT_EQ(Told(old), "2nd of 3 that wait in team, by priority and age");
  EXPECT_EQ(Told(young), "3rd of 3 that wait in team, by priority and age");
  objects_.push_back(young);
  json::Set(objects_.back(), {"status", "nominatedNodeName"}, "node-1");
  pods_[1] = &objects_.back();
  EXPECT_EQ(Told(young), "2nd of 3 that wait in team, by priority and age");
}

TEST_F(QueuePlacesTest, WorkOfOneSecondStandsInTheOrderOfItsNames) {
  Project("team");
  const json::Value& tenth = Pod("job-10", 1);
  const json::Value& ninth = Pod("job-9", 1);
  EXPECT_EQ(Told(ninth), "1st of 2 that wait in team, by priority and age");
  EXPECT_EQ(Told(tenth), "2nd of 2 that wait in team, by priority and age");
}

TEST_F(QueuePlacesTest, AGangStandsOnceAndFromTheTimeOfItsGroup) {
  Project("team");
  const json::Value& single = Pod("single", 2);
  const json::Value& member = GroupPod("gang", 0);
  GroupPod("gang", 1);
  Group("gang", 1, 2, 0);
  EXPECT_EQ(Told(member), "1st of 2 that wait in team, by priority and age");
  EXPECT_EQ(Told(single), "2nd of 2 that wait in team, by priority and age");
}

TEST_F(QueuePlacesTest, WhatWaitsForNoPlaceIsNotCounted) {
  Project("team");
  const json::Value& single = Pod("single", 5);
  const json::Value& surplus = GroupPod("grows", 1);
  Group("grows", 1, 1, 1);
  const json::Value& alone = GroupPod("lacks-pods", 0);
  Group("lacks-pods", 1, 2, 0);
  const json::Value& gated = Pod("gated", 1, "", ", schedulingGates: [{name: g}]");
  const json::Value& elsewhere = Pod("elsewhere", 1, "", "", "volcano");
  Pod("runs", 1, "", ", nodeName: node-1");
  EXPECT_EQ(Told(single), "nothing else waits in team");
  for (const json::Value* pod : {&surplus, &alone, &gated, &elsewhere}) EXPECT_EQ(Told(*pod), "");
}

TEST_F(QueuePlacesTest, PodsOfOneOwnerAreOneThatWaits) {
  Project("team");
  const std::string owner =
      ", ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: j, controller: true}]";
  Pod("j-1", 2, owner);
  const json::Value& second = Pod("j-2", 3, owner);
  Pod("old", 1);
  EXPECT_EQ(Told(second), "2nd of 2 that wait in team, by priority and age");
}

TEST_F(QueuePlacesTest, NoOrderIsToldWhereUsersTakeTurns) {
  Project("team", "users: {fairShare: true}");
  Pod("a", 1);
  const json::Value& b = Pod("b", 2);
  EXPECT_EQ(Told(b),
            "one of 2 that wait in team; the user who holds the fewest GPUs is served first");
  const QueuePlaces places(pods_, groups_, tree_, QueuePlaces::Seen::kAll);
  EXPECT_TRUE(json::Find(places.Find(b)->Json(), {"place"})->is_null());
}

TEST_F(QueuePlacesTest, WhoDoesNotSeeAllIsToldSoWhereOthersMayWait) {
  const auto part = QueuePlaces::Seen::kPart;
  const json::Value& old = Pod("old", 1);
  EXPECT_EQ(Told(old, part), "nothing else waits without a project, as far as you may see");
  const json::Value& young = Pod("young", 2);
  EXPECT_EQ(Told(young, part),
            "2nd of 2 that wait without a project, as far as you may see, by priority and age");
  Project("team");
  EXPECT_EQ(Told(young, part), "2nd of 2 that wait in team, by priority and age")
      << "it is the namespace's own";
}

TEST_F(QueuePlacesTest, OrdinalsAreSpelledAsPeopleDo) {
  const auto first = [](int64_t place) {
    const std::string text = QueuePlace{"team", 200, place}.Text();
    return text.substr(0, text.find(' '));
  };
  EXPECT_EQ(first(11) + first(12) + first(13), "11th12th13th");
  EXPECT_EQ(first(21) + first(112) + first(103), "21st112th103rd");
}

}  // namespace
}  // namespace swell::cli
