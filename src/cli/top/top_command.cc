// swell top: a terminal that people leave open, and with --once a frame of it for scripts.
#include "cli/top/top_command.h"

#include <deque>

#include "base/strings.h"
#include "base/timer.h"
#include "cli/top/top_screen.h"

namespace swell::cli {
namespace {

// The alternate screen without a cursor, and back.
constexpr std::string_view kEnterScreen = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeaveScreen = "\x1b[0m\x1b[?25h\x1b[?1049l";
// What is kept of the output of a command that a key runs.
constexpr size_t kOutputBytesMax = 4 << 20;
constexpr Duration kForEver = std::chrono::hours(24 * 365);

Result<TopView> ViewOf(const std::string& word) {
  if (word == "jobs" || word == "job" || word.empty()) return TopView::kJobs;
  if (word == "nodes" || word == "node") return TopView::kNodes;
  if (word == "projects" || word == "project") return TopView::kProjects;
  if (word == "events") return TopView::kEvents;
  return WrongValue("--view", word, {"jobs", "nodes", "projects", "events"});
}

class TopAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("--once", &once_, "print one frame and exit, for scripts");
    flags.Text("--view", &view_, "VIEW", "view to begin with: jobs, nodes, projects or events");
    flags.Switch("--pods", &pods_, "show the pods of all jobs");
    flags.Text("--interval", &interval_, "DURATION", "time between two updates (default 2s)");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) {
      return Misuse(StrCat("unknown command ", Quote(words[0]), ": expected node, job or project"));
    }
    SWELL_ASSIGN_OR_RETURN(const TopView view, ViewOf(view_));
    SWELL_ASSIGN_OR_RETURN(const Duration interval, ParseDuration(interval_, "--interval"));
    if (interval < std::chrono::milliseconds(100)) {
      return Misuse(StrCat("--interval ", interval_, ": expected at least 100ms"));
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    const std::string ns = session.global().ns;
    SWELL_ASSIGN_OR_RETURN(TopData data, ReadTop(session, *api, ns));
    screen_.SetView(view);
    if (pods_) screen_.ShowPods();
    screen_.SetData(std::move(data));
    if (once_) return Once(session);
    std::unique_ptr<Console> console = session.env().console ? session.env().console() : nullptr;
    if (!console || !console->input_is_terminal() || !session.env().out_is_terminal) {
      return Misuse("no terminal to draw on; for one frame: swell top --once");
    }
    return Live(session, *api, ns, interval, *console);
  }

 private:
  Result<int> Once(Session& session) {
    const Frame frame = screen_.DrawOnce(session.env().columns);
    if (!session.colours()) session.Out(frame.Text());
    for (int row = 0; session.colours() && row < frame.rows(); ++row) {
      session.OutLine(frame.Line(row, true));
    }
    return 0;
  }

  Result<int> Live(
      Session& session, Api& api, const std::string& ns, Duration interval, Console& console) {
    SWELL_RETURN_IF_ERROR(console.SetRaw());
    bool resized = true, ended = false;
    console.OnResize([&resized] { resized = true; });
    console.Start({.on_data =
                       [this](api::Chunk bytes) {
                         for (Key& key : reader_.Feed(*bytes)) keys_.push_back(std::move(key));
                       },
                   .on_end = [&ended](const Status&) { ended = true; }});
    session.Out(kEnterScreen);
    EventLoop& loop = *session.env().loop;
    bool due = false, quit = false;
    Timer timer(loop.executor());
    const auto wait = [&] { timer.Start(interval, [&due] { due = true; }); };
    wait();
    while (!quit && !ended) {
      if (!Paint(session, console, std::exchange(resized, false))) break;
      loop.RunUntil([&] { return due || !keys_.empty() || resized || ended; }, kForEver);
      if (loop.interrupted()) break;
      while (!keys_.empty() && !quit) {
        const Key key = std::move(keys_.front());
        keys_.pop_front();
        quit = !Do(session, screen_.Press(key));
      }
      if (!due || quit) continue;
      Refresh(session, api, ns);
      due = false;
      wait();
    }
    console.SetReading(false);
    session.Out(kLeaveScreen);
    return 0;
  }

  void Refresh(Session& session, Api& api, const std::string& ns) {
    auto data = ReadTop(session, api, ns);
    if (data.ok()) {
      screen_.SetData(std::move(*data));
    } else {
      screen_.SetNotice(ErrorText(data.status()));
    }
    if (!screen_.shown().empty() && screen_.shown().front() != "?") {
      screen_.SetText(Output(session, screen_.shown()));
    }
  }

  // False: the screen ends.
  bool Do(Session& session, const TopRequest& request) {
    switch (request.kind) {
      case TopRequest::Kind::kNone:
        return true;
      case TopRequest::Kind::kQuit:
        return false;
      case TopRequest::Kind::kShow:
        screen_.SetText(Output(session, request.words));
        return true;
      case TopRequest::Kind::kChange:
        screen_.SetNotice(Output(session, request.words));
        return true;
    }
    return true;
  }

  // What the `swell` command of these words prints, without colours.
  static std::string Output(Session& session, std::vector<std::string> words) {
    std::string text;
    const auto take = [&text](std::string_view bytes) {
      text += bytes.substr(0, kOutputBytesMax - std::min(text.size(), kOutputBytesMax));
      return true;
    };
    CliEnv env = session.env();
    env.out = env.err = take;
    env.out_is_terminal = env.err_is_terminal = false;
    words.insert(words.begin(), "swell");
    const ClusterFlags& cluster = session.global().cluster;
    if (!cluster.kubeconfig.empty())
      words.insert(words.end(), {"--kubeconfig", cluster.kubeconfig});
    if (!cluster.context.empty()) words.insert(words.end(), {"--context", cluster.context});
    RunCli(words, env);
    return text.empty() ? "It printed nothing.\n" : text;
  }

  // False: nobody sees it any more.
  bool Paint(Session& session, Console& console, bool anew) {
    uint16_t columns = 80, rows = 24;
    console.Size(&columns, &rows);
    Frame frame = screen_.Draw(columns, rows);
    const std::string bytes =
        frame.Bytes(anew || !painted_ ? nullptr : &*painted_, session.colours());
    painted_ = std::move(frame);
    return bytes.empty() || session.Out(bytes);
  }

  bool once_ = false, pods_ = false;
  std::string view_, interval_ = "2s";
  TopScreen screen_;
  KeyReader reader_;
  std::deque<Key> keys_;
  std::optional<Frame> painted_;
};

}  // namespace

std::unique_ptr<Action> MakeTopAction() { return std::make_unique<TopAction>(); }

}  // namespace swell::cli
