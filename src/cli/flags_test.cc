#include "cli/flags.h"

#include <gtest/gtest.h>

namespace swell::cli {
namespace {

using Words = std::vector<std::string>;

struct Parsed {
  bool watch = false, all = false, wait = true;
  std::string output, dry_run;
  int64_t tail = -1;
  Words env, words;
  Status status;
  bool output_seen = false;
};

Parsed Parse(const Words& arguments) {
  Parsed p;
  Flags flags;
  flags.Switch("-w,--watch", &p.watch, "");
  flags.Switch("-A,--all", &p.all, "");
  flags.Switch("--wait", &p.wait, "");
  flags.Text("-o,--output", &p.output, "FORMAT", "");
  flags.Text("--dry-run", &p.dry_run, "HOW", "").implied = "client";
  flags.Int("-t,--tail", &p.tail, "N", "");
  flags.List("-e,--env", &p.env, "K=V", "");
  p.status = flags.Parse(arguments, &p.words);
  p.output_seen = flags.Seen("output");
  return p;
}

TEST(FlagsTest, EveryWayToWriteAFlag) {
  for (const Words& words :
       {Words{"-o", "json"}, {"-ojson"}, {"-o=json"}, {"--output", "json"}, {"--output=json"}}) {
    Parsed p = Parse(words);
    ASSERT_TRUE(p.status.ok()) << words[0] << ": " << p.status.ToString();
    EXPECT_EQ(p.output, "json") << words[0];
    EXPECT_TRUE(p.output_seen);
  }
  Parsed p = Parse({"pods", "-wA", "--tail", "-1", "x", "-e", "A=1", "y", "-e", "B=[1,2]"});
  ASSERT_TRUE(p.status.ok()) << p.status.ToString();
  EXPECT_TRUE(p.watch && p.all);
  EXPECT_EQ(p.tail, -1);
  EXPECT_EQ(p.words, (Words{"pods", "x", "y"}));
  EXPECT_EQ(p.env, (Words{"A=1", "B=[1,2]"}));
}

TEST(FlagsTest, EmptyImpliedAndSwitchedOff) {
  Parsed p = Parse({"--output=", "word"});
  ASSERT_TRUE(p.status.ok());
  EXPECT_EQ(p.output, "");
  EXPECT_EQ(p.words, Words{"word"});
  EXPECT_EQ(Parse({"--dry-run", "x"}).dry_run, "client");
  EXPECT_EQ(Parse({"--dry-run", "x"}).words, Words{"x"});
  EXPECT_EQ(Parse({"--dry-run=server"}).dry_run, "server");
  EXPECT_FALSE(Parse({"--wait=false"}).wait);
  EXPECT_TRUE(Parse({"--wait"}).wait);
  EXPECT_FALSE(Parse({"--wait=False"}).wait);  // as Python's scripts print it
  EXPECT_TRUE(Parse({"--wait=1"}).wait);
  EXPECT_EQ(Parse({"-o", "jsonpath={}"}).output, "jsonpath={}");
}

TEST(FlagsTest, ChoicesAndSwitchesThatTurnOff) {
  std::string runtime = "process";
  bool scheduler = true;
  Flags flags;
  flags.Choice("--runtime", &runtime, "KIND", {"process", "simulated"}, "");
  flags.SwitchOff("--no-scheduler", &scheduler, "");
  Words words;
  ASSERT_TRUE(flags.Parse({"--runtime", "simulated", "--no-scheduler"}, &words).ok());
  EXPECT_EQ(runtime, "simulated");
  EXPECT_FALSE(scheduler);
  ASSERT_TRUE(flags.Parse({"--no-scheduler=false"}, &words).ok());
  EXPECT_TRUE(scheduler);
  Status wrong = flags.Parse({"--runtime=x"}, &words);
  EXPECT_TRUE(IsMisuse(wrong));
  EXPECT_EQ(wrong.message(), "--runtime \"x\": expected process or simulated");
}

TEST(FlagsTest, AfterTwoDashesEverythingIsAWord) {
  Parsed p = Parse({"job", "-w", "--", "python", "a.py", "--lr", "0.1", "-o", "--", "x"});
  ASSERT_TRUE(p.status.ok()) << p.status.ToString();
  EXPECT_EQ(p.words, (Words{"job", "python", "a.py", "--lr", "0.1", "-o", "--", "x"}));
  EXPECT_EQ(p.output, "");
}

TEST(FlagsTest, OtherVersionsNamesAndWhatIsNotHere) {
  std::string dir;
  bool all = false;
  size_t before = 0;
  Flags flags;
  flags.Text("--working-dir", &dir, "PATH", "").also = {"--workingDir", "--cwd"};
  flags.Switch("-A,--all-namespaces", &all, "");
  flags.AddName("--all-namespaces", "--allNamespaces");
  flags.AddName("--all-namespaces", "--cwd");  // taken
  flags.AddName("--unknown", "--nobody");
  EXPECT_EQ(flags.Find("--nobody"), nullptr);
  flags.Refuse("--template", "nothing keeps them");
  flags.CountWordsBeforeDashes(&before);
  Words words;
  ASSERT_TRUE(flags.Parse({"--workingDir=/a", "--allNamespaces", "--", "x", "y"}, &words).ok());
  EXPECT_EQ(dir, "/a");
  EXPECT_TRUE(all);
  EXPECT_EQ(before, 0U);
  words.clear();
  ASSERT_TRUE(flags.Parse({"job", "--cwd", "/b", "--", "x"}, &words).ok());
  EXPECT_EQ(dir, "/b");
  EXPECT_EQ(before, 1U);
  EXPECT_EQ(words, (Words{"job", "x"}));
  for (const Words& given : {Words{"--template"}, {"--template", "t"}, {"--template=t"}}) {
    Status refused = flags.Parse(given, &words);
    EXPECT_TRUE(IsMisuse(refused));
    EXPECT_EQ(refused.message(), "--template is not supported: nothing keeps them");
  }
}

TEST(FlagsTest, AValueThatIsNearlyRightIsAnsweredWithTheRightOne) {
  Flags flags;
  std::string colour;
  flags.Choice("--colour", &colour, "COLOUR", {"red", "green", "blue"}, "help");
  Words words;
  const Status near = flags.Parse({"--colour", "Gren"}, &words);
  EXPECT_TRUE(IsMisuse(near));
  EXPECT_EQ(near.message(), "--colour \"Gren\": expected red, green or blue; did you mean green?");
  EXPECT_EQ(flags.Parse({"--colour", "yellowish"}, &words).message(),
            "--colour \"yellowish\": expected red, green or blue");
}

TEST(FlagsTest, AnUnknownFlagFindsThoseWithItsWord) {
  std::string text;
  Flags flags;
  for (const char* name : {"--gpu-quota", "--cpu-quota", "--memory-quota", "--gpu-limit"}) {
    flags.Text(name, &text, "N", "help");
  }
  Words words;
  EXPECT_EQ(flags.Parse({"--gpus", "8"}, &words).message(),
            "unknown flag --gpus; did you mean --gpu-quota or --gpu-limit?");
  EXPECT_EQ(flags.Parse({"--quota=8"}, &words).message(),
            "unknown flag --quota; did you mean --gpu-quota, --cpu-quota or --memory-quota?");
  EXPECT_EQ(flags.Parse({"--s"}, &words).message(), "unknown flag --s");
}

TEST(FlagsTest, MistakesAreMisuse) {
  Parsed p = Parse({"--outptu", "json"});
  EXPECT_TRUE(IsMisuse(p.status));
  EXPECT_EQ(p.status.message(), "unknown flag --outptu; did you mean --output?");
  p = Parse({"--tail=many"});
  EXPECT_TRUE(IsMisuse(p.status));
  EXPECT_EQ(p.status.message(), "--tail \"many\": expected a whole number");
  p = Parse({"--output"});
  EXPECT_TRUE(IsMisuse(p.status));
  EXPECT_EQ(p.status.message(), "--output: a value is missing");
}

}  // namespace
}  // namespace swell::cli
