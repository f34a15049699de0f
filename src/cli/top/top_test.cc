#include <gmock/gmock.h>

#include "cli/cli_test_util.h"
#include "cli/print/text_table.h"
#include "cli/top/frame.h"
#include "cli/top/keys.h"
#include "cli/top/top_screen.h"

namespace swell::cli {
namespace {

using KeyKind = Key::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Key Letter(std::string text) { return {KeyKind::kText, std::move(text)}; }

TEST(Frame, CutsOffWhatLeavesIt) {
  Frame frame(6, 2);
  EXPECT_EQ(frame.Put(0, 4, "abc"), 7);
  frame.Put(5, 0, "beyond");
  frame.Put(1, -1, "xy");
  EXPECT_EQ(frame.Text(), "    ab\ny\n");
}

TEST(Frame, ShowsNoControlCharacterOfNames) {
  Frame frame(12, 1);
  frame.Put(0, 0, "a\x1b[2J\xc2\x9b\xff z");
  EXPECT_EQ(frame.Text(), "a?[2J?? z\n");
}

TEST(Frame, SendsOnlyTheRowsThatChanged) {
  Frame before(10, 3), after(10, 3);
  before.Put(0, 0, "same");
  after.Put(0, 0, "same");
  after.Put(2, 0, "new", Ink::kGood);
  EXPECT_EQ(after.Bytes(&before, true), "\x1b[3;1H\x1b[0;32mnew\x1b[0m\x1b[K");
  EXPECT_EQ(after.Bytes(&after, true), "");
  EXPECT_THAT(after.Bytes(nullptr, true), HasSubstr("\x1b[2J"));
  const Frame larger(11, 3);
  EXPECT_THAT(larger.Bytes(&before, true), HasSubstr("\x1b[2J"));
}

TEST(Frame, WithoutColoursTheSelectionIsStillSeen) {
  Frame frame(8, 1);
  frame.Put(0, 0, "red", Ink::kWarn);
  EXPECT_EQ(frame.Line(0, false), "red");
  frame.Paint(0, 0, 8, Ink::kSelected);
  EXPECT_THAT(frame.Line(0, false), HasSubstr("\x1b[0;7m"));
}

TEST(Frame, BarsAndCurves) {
  EXPECT_EQ(BarText(4, 8, 4), "██··");
  EXPECT_EQ(BarText(9, 8, 2), "██");
  EXPECT_EQ(BarText(1, 0, 2), "··");
  EXPECT_EQ(CurveText({0, 4}, 4, 2), " ⢸");
  EXPECT_EQ(CurveText({4, 4, 4, 4, 4}, 4, 1), "⣿");
}

TEST(KeyReader, KnowsTheKeysOfATerminal) {
  KeyReader reader;
  EXPECT_THAT(reader.Feed("j\x1b[A\x1bOB\x1b[5~\r\x7f\x04"),
              ElementsAre(Letter("j"), Key{KeyKind::kUp, ""}, Key{KeyKind::kDown, ""},
                          Key{KeyKind::kPageUp, ""}, Key{KeyKind::kEnter, ""},
                          Key{KeyKind::kBackspace, ""}, Key{KeyKind::kControl, "d"}));
  EXPECT_THAT(reader.Feed("\x1b"), ElementsAre(Key{KeyKind::kEscape, ""}));
  EXPECT_THAT(reader.Feed("\x1b[1;5Cx"), ElementsAre(Letter("x")));
}

TEST(KeyReader, KeepsTheBeginningOfACharacter) {
  KeyReader reader;
  EXPECT_THAT(reader.Feed("\xc3"), ElementsAre());
  EXPECT_THAT(reader.Feed("\xa4"), ElementsAre(Letter("ä")));
  EXPECT_THAT(reader.Feed("\xff\xfe"), ElementsAre());
}

class TopTest : public CliTest {
 protected:
  TopTest() {
    Create(R"(
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {nvidia.com/gpu: 4, cpu: 8, memory: 16Gi, pods: 10},
         conditions: [{type: Ready, status: "True"}]}
)");
    Status(
        "/api/v1/nodes/node-1",
        R"({"status":{"allocatable":{"nvidia.com/gpu":"4","cpu":"8","memory":"16Gi"},)"
        R"("capacity":{"nvidia.com/gpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}})");
    MediumClass();
    EXPECT_EQ(SubmitMedium(), 0) << err_;
    JobIs("Running");
    Pod("master", 0, "Running");
  }
};

TEST_F(TopTest, OneFrameForScripts) {
  EXPECT_EQ(Run({"swell", "top", "--once", "--pods"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("4/4 held"));
  EXPECT_THAT(out_, HasSubstr("1 running, 0 waiting"));
  EXPECT_THAT(out_, HasSubstr("medium-job  "));
  EXPECT_THAT(out_, HasSubstr("medium-job-master-0"));
  EXPECT_THAT(out_, Not(HasSubstr("\x1b")));
  EXPECT_EQ(Run({"swell", "top", "--once", "--view", "nodes"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("■■■■"));
  EXPECT_EQ(Run({"swell", "top", "--once", "--view", "projects"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("Nothing to show."));
}

TEST_F(TopTest, NodesAreListed) {
  EXPECT_EQ(Run({"swell", "node", "list"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("node-1   Ready    4/4 (100%)"));
  const std::string listed = out_;
  EXPECT_EQ(Run({"swell", "top", "node"}), 0) << err_;
  EXPECT_EQ(out_, listed);
}

TEST_F(TopTest, RefusesWhatItCannotDo) {
  EXPECT_EQ(Run({"swell", "top"}), 2);
  EXPECT_THAT(err_, HasSubstr("swell top --once"));
  EXPECT_EQ(Run({"swell", "top", "--once", "--view", "jbos"}), 2);
  EXPECT_THAT(err_, HasSubstr("--view \"jbos\": expected jobs, nodes, projects or events"));
  EXPECT_EQ(Run({"swell", "top", "gpus"}), 2);
  EXPECT_THAT(err_, HasSubstr("unknown command \"gpus\""));
  EXPECT_EQ(Run({"swell", "top", "--interval", "1ms"}), 2);
}

// A screen with two jobs of two projects, without a server.
class ScreenTest : public ::testing::Test {
 protected:
  ScreenTest() { screen_.SetData(Data({"large", "small"})); }

  static TopData Data(const std::vector<std::string>& names) {
    TopData data;
    for (const std::string& name : names) {
      JobView job;
      job.kind = &JobKinds().front();
      job.name = name;
      job.ns = "team";
      job.status = name == "large" ? "Running" : "Pending";
      job.waits = name == "large" ? "" : "it needs 8 GPUs";
      job.object = std::make_shared<json::Value>(json::Object{});
      job.milli_gpus = 8000;
      job.replicas = 2;
      data.jobs.push_back(std::move(job));
    }
    return data;
  }
  TopRequest Press(const std::string& letters) {
    TopRequest last;
    for (const char letter : letters) last = screen_.Press(Letter(std::string(1, letter)));
    return last;
  }
  std::string Text() { return screen_.Draw(80, 24).Text(); }

  TopScreen screen_;
};

TEST_F(ScreenTest, FitsATerminalOf80Columns) {
  const std::string text = Text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 24);
  for (std::string_view line : Split(text, '\n')) EXPECT_LE(DisplayWidth(line), 80U) << line;
  EXPECT_THAT(text, HasSubstr("1 jobs  2 nodes  3 projects  4 events"));
  EXPECT_THAT(text, HasSubstr("it needs 8 GPUs"));
}

TEST_F(ScreenTest, TheReasonOfAJobThatFailsIsItsFailure) {
  TopData data = Data({"small"});
  data.jobs[0].waits = "waits for terminating pods";  // before it had its places
  data.jobs[0].failure = api::Failure{.member = "m-0", .waits = "ImagePullBackOff"};
  screen_.SetData(std::move(data));
  EXPECT_THAT(Text(), HasSubstr("m-0 cannot"));
}

TEST(TopTableTest, LongTextsStayInTheirColumns) {
  TopTable table;
  table.header = {"NAME", "STATUS", "", "REASON"};
  const std::string bar(20, '#');
  table.rows.push_back({.cells = {{std::string(60, 'n')}, {"-"}, {bar, Ink::kBar, true}, {"why"}}});
  table.rows.push_back(
      {.cells = {{"short"}, {"Running"}, {bar, Ink::kBar, true}, {std::string(90, 'r')}}});
  Frame frame(80, 3);
  DrawTable(frame, 0, 3, table, 0, -1);
  const std::string name(26, 'n');
  EXPECT_EQ(frame.Text(),
            StrCat("NAME", std::string(25, ' '), "STATUS", std::string(25, ' '), "REASON\n", name,
                   "…  -        ", bar, "  why\nshort", std::string(24, ' '), "Running  ", bar,
                   "  ", std::string(19, 'r'), "…\n"));
}

TEST_F(ScreenTest, TheSelectionStaysOnItsJobWhenOthersCome) {
  Press("j");
  screen_.SetData(Data({"alpha", "large", "small"}));
  const TopRequest request = Press("w");
  ASSERT_EQ(request.kind, TopRequest::Kind::kShow);
  EXPECT_THAT(request.words.at(1), HasSubstr("/small"));
  EXPECT_EQ(request.words.at(0), "why");
}

TEST_F(ScreenTest, AFilterHidesRowsUntilEscape) {
  Press("/small");
  EXPECT_THAT(Text(), Not(HasSubstr("large")));
  screen_.Press({KeyKind::kEnter, ""});
  EXPECT_THAT(Text(), Not(HasSubstr("large")));
  screen_.Press({KeyKind::kEscape, ""});
  EXPECT_THAT(Text(), HasSubstr("large"));
  Press("/!small");
  EXPECT_THAT(Text(), HasSubstr("large"));
  EXPECT_THAT(Text(), Not(HasSubstr("small  ")));
}

TEST_F(ScreenTest, NothingIsDeletedWithoutAYes) {
  screen_.Press({KeyKind::kControl, "d"});
  EXPECT_THAT(Text(), HasSubstr("large? y/n"));
  EXPECT_EQ(Press("n").kind, TopRequest::Kind::kNone);
  EXPECT_THAT(Text(), HasSubstr("Nothing was changed."));
  screen_.Press({KeyKind::kControl, "d"});
  const TopRequest request = Press("y");
  ASSERT_EQ(request.kind, TopRequest::Kind::kChange);
  EXPECT_EQ(request.words.at(0), "delete");
  EXPECT_THAT(request.words, ::testing::IsSupersetOf({"-n", "team"}));
}

TEST_F(ScreenTest, APaneScrollsAndGoesBack) {
  EXPECT_EQ(Press("l").words.at(0), "logs");
  std::string log;
  for (int i = 1; i <= 100; ++i) log += StrCat("line ", i, "\n");
  screen_.SetText(log);
  Text();
  screen_.SetText(log);
  EXPECT_THAT(Text(), HasSubstr("line 100"));
  Press("g");
  EXPECT_THAT(Text(), HasSubstr("line 1\n"));
  screen_.Press({KeyKind::kEscape, ""});
  EXPECT_THAT(Text(), HasSubstr("large"));
}

TEST_F(ScreenTest, CommandsChooseViews) {
  Press(":nodes");
  screen_.Press({KeyKind::kEnter, ""});
  EXPECT_THAT(Text(), HasSubstr("MEMORY"));
  Press(":xyz");
  screen_.Press({KeyKind::kEnter, ""});
  EXPECT_THAT(Text(), HasSubstr("No view is called \"xyz\""));
  Press(":q");
  EXPECT_EQ(screen_.Press({KeyKind::kEnter, ""}).kind, TopRequest::Kind::kQuit);
  EXPECT_EQ(screen_.Press({KeyKind::kControl, "c"}).kind, TopRequest::Kind::kQuit);
}

TEST_F(ScreenTest, AnySizeCanBeDrawn) {
  for (const int columns : {1, 7, 20, 80, 300}) {
    for (const int rows : {1, 2, 3, 5, 60}) {
      for (int view = 0; view < 4; ++view) {
        screen_.SetView(static_cast<TopView>(view));
        const std::string text = screen_.Draw(columns, rows).Text();
        EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), rows);
      }
    }
  }
}

}  // namespace
}  // namespace swell::cli
