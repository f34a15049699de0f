// The pure parts: jsonpath, tables, durations, merge patches, jobs from flags.

#include <gtest/gtest.h>

#include "base/strings.h"
#include "cli/arena/arena.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/jobs/pytorch_spec.h"
#include "cli/manifests.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/session.h"
#include "cli/views/job_view.h"
#include "json/json_path.h"
#include "json/value.h"
#include "kube/api/meta/meta.h"
#include "kube/api/patch/strategic.h"
#include "kube/api/schema/scheme.h"

namespace swell::cli {
namespace {

using Words = std::vector<std::string>;

TEST(OutputFormTest, CustomColumnsAsKubectlHasThem) {
  json::Value pods =
      json::Parse(R"({"kind":"List","items":[{"metadata":{"name":"a","managedFields":[{}]},)"
                  R"("spec":{"containers":[{"image":"x"},{"image":"y"}]}},)"
                  R"({"metadata":{"name":"bcd"}}]})")
          .value();
  auto form = ParseOutputForm("custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[*].image");
  ASSERT_TRUE(form.ok()) << form.status().ToString();
  EXPECT_EQ(FormatObject(*form, pods, ""), "NAME   IMAGE\na      x,y\nbcd    <none>\n");
  form->headers = false;
  EXPECT_EQ(FormatObject(*form, json::GetArray(pods, {"items"})[0], ""), "a   x,y\n");
  for (const char* bad : {"custom-columns=", "custom-columns=NAME", "custom-columns=:.a"}) {
    EXPECT_TRUE(IsMisuse(ParseOutputForm(bad).status())) << bad;
  }
}

TEST(OutputFormTest, WhoWroteWhatIsLeftOut) {
  json::Value pod = json::Parse(R"({"metadata":{"name":"a","managedFields":[{}]}})").value();
  auto form = ParseOutputForm("yaml");
  ASSERT_TRUE(form.ok());
  EXPECT_EQ(FormatObject(*form, pod, ""), "metadata:\n  name: a\n");
  form->managed_fields = true;
  EXPECT_NE(FormatObject(*form, pod, "").find("managedFields"), std::string::npos);
}

TEST(JsonPathTest, MistakesSayWhere) {
  for (const char* bad :
       {"{", "{.a", "{.a[}", "{.a[?(@.b==)]}", "{range .a}", "{end}", "{\"x}", "{.a[x]}", "{}]["}) {
    auto path = ParseJsonPath(bad);
    if (path.ok()) {
      EXPECT_STREQ(bad, "{}][") << "only text after an empty expression may pass";
      continue;
    }
    EXPECT_TRUE(IsMisuse(path.status())) << bad;
    EXPECT_NE(path.status().message().find("at character"), std::string::npos) << bad;
  }
}

TEST(TextTest, TablesAlignAndStayOnTheirLines) {
  TextTable table({"NAME", "STATUS"});
  table.Add({"a", "\033[32mRunning\033[0m"});
  table.Add({"länger", "x"});
  EXPECT_EQ(table.ToString(), "NAME     STATUS\na        \033[32mRunning\033[0m\nlänger   x\n");
  // What comes later stays below its column.
  TextTable grows({"NAME", "READY"});
  grows.Add({"a-long-name", "1"});
  EXPECT_EQ(grows.TakeText(), "NAME          READY\na-long-name   1\n");
  grows.Add({"b", "2"});
  EXPECT_EQ(grows.TakeText(), "b             2\n");
  TextTable hostile({"NA\033ME", "X"}, 1);
  hostile.Add({"a\033[2J\nb\r", "\033[33mc\033[0m\033[8md\033\033[90me\007"});
  EXPECT_EQ(hostile.ToString(),
            "NA\\x1bME        X\na\\x1b[2J\\nb\\x0d "
            "\033[33mc\033[0m\\x1b[8md\\x1b\\x1b[90me\\x07\n");
  EXPECT_EQ(OneLine("a\nb\033[31mc"), "a\\nb\\x1b[31mc");
  // A colour has an end, and the words can be read on any ground.
  EXPECT_EQ(PaintedLine("\033[30ma\033[0m"), "\\x1b[30ma\\x1b[0m");
  EXPECT_EQ(PaintedLine("\033[31ma\nb\033[0m\033[31mc"), "\033[31ma\\nb\033[0m\\x1b[31mc");
  EXPECT_EQ(OneLine("a\u202eb\u2066c\u2028d\u2014"),
            "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6c\\xe2\\x80\\xa8d\u2014");
  EXPECT_EQ(OneLine("\xc2\x9b\x32Ja\xc2\xa0\xc3\x9b\xc2"), "\\x9b2Ja\xc2\xa0\xc3\x9b\xc2");
}

TEST(TextTest, ColumnsThatSayNothingAreLeftOut) {
  TextTable table({"A", "B", "C", "D"}, 1);
  table.Add({"-", "1", "-", "-"});
  table.Add({"2", "-", "-"});
  table.DropEmptyColumns();
  EXPECT_EQ(table.ToString(), "A B\n- 1\n2 -\n");
  TextTable header({"A"});
  header.DropEmptyColumns();
  EXPECT_EQ(header.ToString(), "A\n") << "without rows nothing is known of them";
}

TEST(TextTest, Durations) {
  EXPECT_EQ(ParseDuration("1h30m", "--since")->count(), 5400LL * 1'000'000'000);
  EXPECT_EQ(ParseDuration("90", "--since")->count(), 90LL * 1'000'000'000);
  EXPECT_EQ(ParseDuration("1s500ms", "--since")->count(), 1'500'000'000);
  EXPECT_TRUE(IsMisuse(ParseDuration("5x", "--since").status()));
  EXPECT_TRUE(IsMisuse(ParseDuration("", "--since").status()));
  struct Case {
    int64_t seconds;
    const char* text;
  };
  for (const Case& one : std::vector<Case>{{-3, "0s"},
                                           {0, "0s"},
                                           {59, "59s"},
                                           {60, "1m"},
                                           {3599, "59m"},
                                           {3600, "1h"},
                                           {86400, "1d"},
                                           {364LL * 86400, "364d"},
                                           {365LL * 86400, "1y"}}) {
    EXPECT_EQ(arena::ShortDuration(std::chrono::seconds(one.seconds)), one.text);
  }
}

TEST(TextTest, LinesOutOfChunks) {
  LineSplitter lines;
  Words seen;
  auto take = [&](std::string_view line) {
    seen.emplace_back(line);
    return true;
  };
  EXPECT_TRUE(lines.Feed("on", take) && lines.Feed("e\ntwo\n\nthr", take));
  EXPECT_EQ(seen, (Words{"one", "two", ""}));
  EXPECT_EQ(lines.Rest(), "thr");
}

TEST(TextTest, GpuAmounts) {
  EXPECT_EQ(GpuText(4000), "4");
  EXPECT_EQ(GpuText(500), "0.5");
  EXPECT_EQ(GpuText(1250), "1.25");
}

json::Value J(std::string_view text) { return json::Parse(text).value(); }

TEST(MergeTest, ThreeWayTakesAwayWhatWasApplied) {
  json::Value patch = ThreeWayPatch(nullptr, J(R"({"a":1,"b":{"c":1,"d":2},"gone":1})"),
                                    J(R"({"a":2,"b":{"d":2},"list":[1]})"),
                                    J(R"({"a":1,"b":{"c":1,"d":2,"server":9},"gone":1})"));
  EXPECT_TRUE(json::Equal(patch, J(R"({"a":2,"b":{"c":null},"gone":null,"list":[1]})")))
      << json::Print(patch);
  EXPECT_TRUE(
      ThreeWayPatch(nullptr, J("{}"), J(R"({"a":1})"), J(R"({"a":1,"b":2})")).get_object().empty());
}

TEST(MergeTest, ListsOfBuiltInKindsMergeByKey) {
  auto scheme = api::Scheme::BuiltIn();
  const api::Schema* pod = scheme->FindKind({"", "v1", "Pod"})->schema.get();
  json::Value last = J(R"({"metadata":{"finalizers":["x/a","x/b"]},"spec":{"containers":[
      {"name":"a","image":"1","env":[{"name":"OLD","value":"1"}]},{"name":"gone","image":"1"}]}})");
  json::Value wanted = J(R"({"metadata":{"finalizers":["x/a"]},"spec":{"containers":[
      {"name":"a","image":"2","env":[{"name":"NEW","value":"1"}]}]}})");
  json::Value live = J(R"({"metadata":{"finalizers":["x/a","x/b"]},"spec":{"containers":[
      {"name":"a","image":"1","env":[{"name":"OLD","value":"1"}],"server":"field"},
      {"name":"gone","image":"1"},{"name":"sidecar","image":"9"}]}})");
  json::Value patch = ThreeWayPatch(pod, last, wanted, live);
  json::Value result = live;
  ASSERT_TRUE(api::ApplyStrategicMerge(*pod, result, patch).ok()) << json::Print(patch);
  EXPECT_EQ(json::Print(result),
            R"({"metadata":{"finalizers":["x/a"]},"spec":{"containers":[)"
            R"({"name":"a","image":"2","env":[{"name":"NEW","value":"1"}],"server":"field"},)"
            R"({"name":"sidecar","image":"9"}]}})");
  EXPECT_EQ(json::Print(ThreeWayPatch(pod, wanted, wanted, result)), "{}");
}

PyTorchSpec Minimal() {
  PyTorchSpec spec;
  spec.name = "mnist";
  spec.image = "img";
  spec.command = {"sh", "-c", "python a.py"};
  return spec;
}

TEST(PyTorchSpecTest, ReplicasResourcesAndSync) {
  PyTorchSpec spec = Minimal();
  spec.gpus = 4;
  spec.workers = 3;
  spec.priority = "medium";
  spec.on_preemption = "Fail";
  spec.working_dir = "/root";
  spec.sync_mode = "git";
  spec.sync_source = "https://code.aliyun.com/1/mnist-pytorch.git";
  auto job = MakePyTorchJob(spec);
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(json::GetString(*job, {"metadata", "annotations", "swell.dev/on-preemption"}), "Fail");
  EXPECT_EQ(json::GetString(*job, {"spec", "runPolicy", "cleanPodPolicy"}), "None");
  const json::Value* worker = json::Find(*job, {"spec", "pytorchReplicaSpecs", "Worker"});
  ASSERT_NE(worker, nullptr);
  EXPECT_EQ(json::GetInt(*worker, {"replicas"}), 2);
  EXPECT_EQ(json::GetString(*worker, {"restartPolicy"}), "Never");
  const json::Value& pod = *json::Find(*worker, {"template", "spec"});
  EXPECT_EQ(json::GetString(pod, {"priorityClassName"}), "medium");
  const json::Value& init = json::GetArray(pod, {"initContainers"})[0];
  EXPECT_EQ(json::GetString(init, {"name"}), "init-code");
  EXPECT_EQ(
      json::Print(json::GetArray(init, {"env"})),
      R"([{"name":"GIT_SYNC_REPO","value":"https://code.aliyun.com/1/mnist-pytorch.git"},)"
      R"({"name":"GIT_SYNC_DEST","value":"mnist-pytorch"},)"
      R"({"name":"GIT_SYNC_ROOT","value":"/code"},{"name":"GIT_SYNC_ONE_TIME","value":"true"}])");
  const json::Value& main = json::GetArray(pod, {"containers"})[0];
  EXPECT_EQ(json::GetString(main, {"resources", "limits", "nvidia.com/gpu"}), "4");
  EXPECT_EQ(json::Print(json::GetArray(main, {"volumeMounts"})),
            R"([{"name":"code-sync","mountPath":"/root/code"}])");
}

TEST(PyTorchSpecTest, TolerationsAndVolumes) {
  PyTorchSpec spec = Minimal();
  spec.tolerations = {"all", "key", "k=v:NoSchedule,Equal"};
  spec.volumes = {"claim:/data"};
  spec.host_paths = {"/srv", "/a:/b"};
  auto job = MakePyTorchJob(spec);
  ASSERT_TRUE(job.ok()) << job.status().message();
  const json::Value& pod =
      *json::Find(*job, {"spec", "pytorchReplicaSpecs", "Master", "template", "spec"});
  EXPECT_EQ(json::Print(json::GetArray(pod, {"tolerations"})),
            R"([{"operator":"Exists"},{"key":"key","operator":"Exists"},)"
            R"({"key":"k","operator":"Equal","value":"v","effect":"NoSchedule"}])");
  const json::Value& main = json::GetArray(pod, {"containers"})[0];
  EXPECT_EQ(json::GetArray(main, {"volumeMounts"}).size(), 3u);
  EXPECT_EQ(json::Print(json::GetArray(main, {"env"})),
            R"([{"name":"NVIDIA_VISIBLE_DEVICES","value":"void"}])");
}

TEST(PyTorchSpecTest, MistakesNameTheFlag) {
  auto message = [](auto change) {
    PyTorchSpec spec = Minimal();
    change(spec);
    auto job = MakePyTorchJob(spec);
    EXPECT_TRUE(!job.ok() && IsMisuse(job.status()));
    return job.ok() ? "" : job.status().message();
  };
  EXPECT_EQ(message([](PyTorchSpec& s) { s.image = ""; }), "--image is not set");
  EXPECT_EQ(message([](PyTorchSpec& s) { s.workers = 0; }),
            "--workers 0: expected 1 or more; the master is one of them");
  EXPECT_EQ(message([](PyTorchSpec& s) { s.memory = "lots"; }),
            "--memory \"lots\": expected an amount like 2 or 8Gi");
  EXPECT_EQ(message([](PyTorchSpec& s) { s.volumes = {"claim"}; }),
            "--data \"claim\": expected CLAIM:CONTAINER_PATH");
  EXPECT_EQ(message([](PyTorchSpec& s) { s.sync_mode = "hdfs"; }),
            "--sync-mode \"hdfs\" is not supported; git or rsync");
  EXPECT_EQ(message([](PyTorchSpec& s) { s.tolerations = {"a=b:Never"}; }),
            "--toleration \"a=b:Never\": expected all, KEY, or KEY=VALUE:EFFECT,OPERATOR");
}

TEST(PyTorchSpecTest, ProjectIsTheLastPartOfTheUrl) {
  EXPECT_EQ(ProjectOf("https://host/a/net.git"), "net");
  EXPECT_EQ(ProjectOf("git@host:net.git"), "net");
  EXPECT_EQ(ProjectOf("rsync://host/net/"), "net");
}

TEST(JobView, APodWithASidecarRuns) {
  auto pod = json::Parse(R"({"spec":{"initContainers":[{"name":"log","restartPolicy":"Always"}],
                                 "containers":[{"name":"main"}]},
      "status":{"phase":"Running",
        "initContainerStatuses":[{"name":"log","started":true,"ready":true,
                                  "state":{"running":{}}}],
        "containerStatuses":[{"name":"main","state":{"running":{}}}]}})");
  ASSERT_TRUE(pod.ok());
  EXPECT_EQ(PodStatusWord(*pod), "Running");
  EXPECT_EQ(PodReady(*pod), "1/2");
  json::Set(*pod, {"status", "phase"}, "Pending");
  json::Set(*pod, {"spec", "initContainers"}, json::Array{json::Object{{"name", "log"}}});
  EXPECT_EQ(PodStatusWord(*pod), "Init:0/1");
}

// A PyTorchJob "mnist" as its object says.
JobView ViewForTest(std::string_view object) {
  static const JobKindInfo kKind{client::resources::kPyTorchJobs, "PyTorchJob", "", ""};
  JobView job;
  job.kind = &kKind;
  job.name = "mnist";
  job.created = api::ParseTime("2026-01-01T00:00:00Z");
  job.object = std::make_shared<const json::Value>(json::Parse(object).value());
  return job;
}

TEST(JobView, EventsOfAnEarlierJobOfTheNameAreNotItsOwn) {
  JobView job = ViewForTest(R"({"metadata":{"uid":"new"},"status":{"attempts":[{"uid":"gone"}]}})");
  job.pods.push_back(std::make_shared<const json::Value>(
      json::Parse(R"({"metadata":{"uid":"there","name":"mnist-worker-0"}})").value()));
  const auto concerns = [&job](std::string kind, std::string name, std::string uid,
                               std::string_view first) {
    EventView event;
    event.object_kind = std::move(kind);
    event.object = std::move(name);
    event.object_uid = std::move(uid);
    event.first = *api::ParseTime(first);
    return ConcernsJob(job, event);
  };
  constexpr std::string_view kBefore = "2025-12-31T23:00:00Z", kAfter = "2026-01-01T00:00:05Z";
  EXPECT_TRUE(concerns("PyTorchJob", "mnist", "new", kAfter));
  EXPECT_FALSE(concerns("PyTorchJob", "mnist", "old", kAfter));
  EXPECT_TRUE(concerns("Pod", "mnist-worker-0", "there", kBefore));
  EXPECT_TRUE(concerns("Pod", "mnist-worker-0", "gone", kBefore));
  EXPECT_FALSE(concerns("Pod", "mnist-worker-0", "of-the-old-one", kBefore));
  EXPECT_TRUE(concerns("Pod", "mnist-worker-1", "unknown", kAfter));
  EXPECT_FALSE(concerns("Pod", "mnist-more-worker-1", "unknown", kAfter));
  EXPECT_FALSE(concerns("PodGroup", "mnist", "", kBefore));
}

TEST(JobView, AMemberThatRunsAgainAfterOneFailureIsInNoLoop) {
  const auto status = [](int restarts, const std::string& state) {
    JobView job = ViewForTest(StrCat(
        R"({"status":{"failure":{"member":"mnist-worker-0","exitCode":1,"container":"c",)",
        R"("role":"container","waitsWith":"CrashLoopBackOff","restarts":)", restarts, "}}}"));
    job.status = "Running";
    job.pods.push_back(std::make_shared<const json::Value>(
        json::Parse(StrCat(R"({"metadata":{"name":"mnist-worker-0"},"status":{"phase":"Running",)",
                           R"("containerStatuses":[{"name":"c","restartCount":)", restarts,
                           R"(,"state":)", state,
                           R"(,"lastState":{"terminated":{"exitCode":1}}}]}})"))
            .value()));
    ReadFailure(job);
    return job.StatusText();
  };
  const std::string runs = R"({"running":{"startedAt":"2026-01-01T00:00:00Z"}})";
  EXPECT_EQ(status(1, runs), "Restarting");
  EXPECT_EQ(status(2, runs), "CrashLoopBackOff");
  EXPECT_EQ(status(1, R"({"waiting":{"reason":"CrashLoopBackOff"}})"), "CrashLoopBackOff");
}

TEST(JobView, TheStatusSaysWhatFailed) {
  JobView job = ViewForTest(R"({"status":{"failure":{"member":"mnist-worker-0","exitCode":137,
      "container":"c","role":"container","reason":"OOMKilled"}}})");
  ReadFailure(job);
  job.status = "Failed";
  EXPECT_EQ(job.StatusText(), "Failed: OOMKilled");
  job.failure->waits = "CrashLoopBackOff";
  job.status = "Running";
  EXPECT_EQ(job.StatusText(), "CrashLoopBackOff");
  job.status = "Suspended";
  EXPECT_EQ(job.StatusText(), "Suspended");
  JobView late = ViewForTest(R"({"status":{"conditions":[{"type":"Failed","status":"True",
      "reason":"DeadlineExceeded"}]}})");
  late.status = "Failed";
  ReadFailure(late);
  EXPECT_EQ(late.StatusText(), "Failed: DeadlineExceeded");
}

TEST(JobView, AHindranceIsToldOnceWhileAPullIsTriedAgain) {
  JobView job = ViewForTest(R"({"status":{"failure":{"member":"mnist-worker-0",
      "container":"c","role":"container","reason":"ErrImagePull","waitsWith":"ErrImagePull"}}})");
  ReadFailure(job);
  ASSERT_TRUE(job.failure);
  const std::string first = job.Hindrance();
  const std::string reason = job.HindranceReason();
  EXPECT_NE(first.find("mnist-worker-0 cannot start: container c waits with ErrImagePull"),
            std::string::npos)
      << first;
  job.failure->waits = "ImagePullBackOff";
  EXPECT_EQ(job.HindranceReason(), reason);
  EXPECT_FALSE(job.CanNeverStart());
  job.failure->waits = "InvalidImageName";
  EXPECT_NE(job.HindranceReason(), reason);
  EXPECT_TRUE(job.CanNeverStart());
  job.failure.reset();
  EXPECT_EQ(job.Hindrance(), job.waits);
}

TEST(JobView, ARunTimeBeginsWithItsPodsAndAnewWhenASuspendedJobIsResumed) {
  JobView job = ViewForTest("{}");
  const WallTime start = *api::ParseTime("2026-01-01T00:10:00Z");
  EXPECT_FALSE(job.RunTime(start).has_value());
  job.started = start;
  EXPECT_EQ(job.RunTime(start + std::chrono::seconds(9)), Duration(std::chrono::seconds(9)));
  // A preempted job waits, and would seem to jump when it runs again if its time stood still.
  job.last_pod_ended = start + std::chrono::seconds(5);
  EXPECT_EQ(job.RunTime(start + std::chrono::hours(1)), Duration(std::chrono::hours(1)));
  job.status = "Suspended";
  EXPECT_FALSE(job.RunTime(start + std::chrono::hours(1)).has_value());
}

TEST(JobView, AfterAResumeTheRunTimeIsThatOfThePodsSince) {
  const auto seen = [](std::string_view conditions, std::string_view more) {
    JobObjects objects;
    objects.jobs.resize(JobKinds().size());
    const json::Value job =
        json::Parse(StrCat(R"({"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":)",
                           R"({"name":"a","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z"},)",
                           R"("status":{"attempts":[{"member":"a-worker-0","uid":"p",)",
                           R"("started":"2026-01-01T00:01:00Z","ended":"2026-01-01T00:10:00Z"}],)",
                           more, R"("conditions":[)", conditions, "]}}"))
            .value();
    const auto kind = static_cast<size_t>(KindOfJob(job) - JobKinds().data());
    objects.jobs[kind].push_back(std::make_shared<const json::Value>(job));
    const JobView view = ViewJobs(objects).front();
    const auto run = view.RunTime(*api::ParseTime("2026-01-01T01:00:00Z"));
    return run ? api::HumanDuration(*run) : "-";
  };
  const auto suspended = [](std::string_view status) {
    return StrCat(R"({"type":"Suspended","status":")", status,
                  R"(","lastTransitionTime":"2026-01-01T00:20:00Z"})");
  };
  const std::string runs = R"(,{"type":"Running","status":"True"})";
  const std::string stopped = R"(,{"type":"Running","status":"False"})";
  EXPECT_EQ(seen(R"({"type":"Running","status":"True"})", ""), "59m");
  EXPECT_EQ(seen(suspended("True") + stopped, ""), "-");
  EXPECT_EQ(seen(suspended("False") + stopped, R"("startTime":"2026-01-01T00:20:00Z",)"), "-")
      << "it is resumed, and waits";
  EXPECT_EQ(seen(suspended("False") + runs, R"("startTime":"2026-01-01T00:20:00Z",)"), "40m")
      << "which pods it had then is not known any more";
}

}  // namespace
}  // namespace swell::cli
