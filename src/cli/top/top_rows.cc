#include "cli/top/top_rows.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/strings.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/views/job_table.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

using TargetKind = TopTarget::Kind;

Ink StatusInk(std::string_view status) {
  switch (StatusColour(status)) {
    case Colour::kGreen:
    case Colour::kBlue:
      return Ink::kGood;
    case Colour::kRed:
      return Ink::kBad;
    default:
      return Ink::kWarn;
  }
}

std::string Span(Duration span) { return api::HumanDuration(std::max(span, Duration(0))); }

std::string RanFor(const JobView& job, WallTime now) {
  const std::optional<Duration> run = job.RunTime(now);
  return run ? Span(*run) : "-";
}

// "42%, 4m left".
std::string Progress(const JobView& job) {
  const std::string done = ProgressText(job), left = EtaText(job);
  if (done == "-") return job.progress ? StrCat("step ", job.progress->step) : "";
  return left == "-" ? done : StrCat(done, ", ", left, " left");
}

TopRow PodRow(const JobView& job, const json::Value& pod, const std::string& indent) {
  const std::string status = PodStatusWord(pod);
  const std::string name(api::Name(pod));
  return {.key = StrCat("pod/", job.ns, "/", name),
          .target = {TargetKind::kPod, "pod", job.ns, name},
          .cells = {{StrCat(indent, name), Ink::kDim},
                    {status, StatusInk(status)},
                    {GpuText(MilliGpus(pod)), Ink::kDim},
                    {PodReady(pod), Ink::kDim},
                    {"", Ink::kDim},
                    {"", Ink::kDim},
                    {OrDash(std::string(api::NodeName(pod))), Ink::kDim}}};
}

// The cause first: there is room for some words only.
std::string WhyText(const JobView& job) {
  if (!job.hung.empty()) return job.hung;
  const std::string hindrance = job.Hindrance();
  return hindrance.empty() ? job.message : hindrance;
}

TopRow JobRow(const JobView& job, WallTime now, const std::string& indent, bool open) {
  const std::string resource = job.ResourceName();
  return {.key = StrCat("job/", job.ns, "/", resource),
          .target = {TargetKind::kJob, resource.substr(0, resource.find('/')), job.ns, job.name,
                     job.status == "Suspended"},
          .cells = {
              {StrCat(indent, open ? "▾ " : "▸ ", job.name)},
              {job.StatusText(), StatusInk(job.StatusText())},
              {StrCat(GpuText(job.HeldMilliGpus()), "/", GpuText(job.milli_gpus))},
              {PodsText(job)},
              {OrDash(job.priority)},
              {RanFor(job, now)},
              {job.StatusText() == "Running" ? Progress(job) : OneLine(WhyText(job)), Ink::kDim}}};
}

TopRow ProjectHead(const std::string& name, const ProjectView* project, bool shut) {
  std::string held = "-";
  if (project != nullptr) held = HeldText(project->gpu(), ShareOf::kGpu);
  return {.key = "project/" + name,
          .target = {project == nullptr ? TargetKind::kNothing : TargetKind::kProject, "project",
                     "", name},
          .cells = {
              {StrCat(shut ? "▸ " : "▾ ", name.empty() ? "(no project)" : name), Ink::kBold},
              {""},
              {held, project != nullptr && project->gpu().over_quota() ? Ink::kWarn : Ink::kBold}}};
}

// The order of jobs: as asked, then by name.
bool Precedes(const JobView& a, const JobView& b, TopOrder order) {
  switch (order) {
    case TopOrder::kGpus:
      if (a.HeldMilliGpus() != b.HeldMilliGpus()) return a.HeldMilliGpus() > b.HeldMilliGpus();
      break;
    case TopOrder::kAge:
      if (a.created != b.created) return a.created > b.created;
      break;
    case TopOrder::kStatus:
      if (a.status != b.status) return a.status < b.status;
      break;
    case TopOrder::kName:
      break;
  }
  return std::tie(a.ns, a.name) < std::tie(b.ns, b.name);
}

TopTable JobRows(const TopData& data, const TopForm& form) {
  TopTable table{{"NAME", "STATUS", "GPUS", "PODS", "PRIORITY", "RAN", "NODE, REASON"}, {}};
  std::map<std::string, std::vector<const JobView*>> by_project;
  for (const ProjectView& project : data.tree.projects) {
    if (!project.department) by_project[project.name];
  }
  for (const JobView& job : data.jobs) by_project[data.tree.ChargedProject(job)].push_back(&job);
  const bool grouped = !data.tree.projects.empty();
  for (auto& [name, jobs] : by_project) {
    std::sort(jobs.begin(), jobs.end(),
              [&form](const JobView* a, const JobView* b) { return Precedes(*a, *b, form.order); });
    const std::string indent = grouped ? "  " : "";
    if (grouped) {
      const bool shut = form.shut.contains("project/" + name);
      table.rows.push_back(ProjectHead(name, data.tree.Find(name), shut));
      if (shut) continue;
    }
    for (const JobView* job : jobs) {
      TopRow row = JobRow(*job, data.now, indent, false);
      const bool open = form.all_open || form.open.contains(row.key);
      table.rows.push_back(open ? JobRow(*job, data.now, indent, true) : std::move(row));
      if (!open) continue;
      for (const json::SharedValue& pod : job->pods) {
        table.rows.push_back(PodRow(*job, *pod, indent + "    "));
      }
    }
  }
  return table;
}

// A square for each GPU: full, part, free, unhealthy. Beyond 16 a bar.
std::string GpuSquares(const NodeView& node) {
  const int64_t gpus = node.gpus();
  if (gpus == 0) return "-";
  if (gpus > 16) {
    return BarText(static_cast<double>(node.used.milli_gpus),
                   static_cast<double>(node.total.milli_gpus), 16);
  }
  // Those that are neither held nor free.
  const int64_t lost =
      std::max<int64_t>(0, node.total.milli_gpus - node.used.milli_gpus - node.FreeMilliGpus()) /
      1000;
  std::string out;
  for (int64_t gpu = 0; gpu < gpus; ++gpu) {
    const int64_t held = node.used.milli_gpus - gpu * 1000;
    out += held >= 1000 ? "■" : held > 0 ? "◧" : gpu >= gpus - lost ? "×" : "□";
  }
  return out;
}

TopTable NodeRows(const TopData& data) {
  TopTable table{{"NAME", "STATUS", "GPUS", "HELD", "CPU", "", "MEMORY", "", "PODS"}, {}};
  for (const NodeView& node : data.nodes) {
    const std::string status = node.StatusWord();
    const auto bar = [](int64_t used, int64_t total) {
      return BarText(static_cast<double>(used), static_cast<double>(total), 8);
    };
    table.rows.push_back(
        {.key = "node/" + node.name,
         .target = {TargetKind::kNode, "node", "", node.name},
         .cells = {
             {node.name},
             {status, StatusInk(status)},
             {GpuSquares(node), Ink::kBar, true},
             {StrCat(GpuText(node.used.milli_gpus), "/", GpuText(node.total.milli_gpus),
                     node.unhealthy_gpus > 0 ? StrCat(", ", node.unhealthy_gpus, " bad") : "")},
             {bar(node.used.milli_cpu, node.total.milli_cpu), Ink::kBar, true},
             {StrCat(CpuText(node.used.milli_cpu), "/", CpuText(node.total.milli_cpu))},
             {bar(node.used.memory, node.total.memory), Ink::kBar, true},
             {StrCat(MemoryText(node.used.memory), "/", MemoryText(node.total.memory))},
             {std::to_string(node.pods.size())}}});
  }
  return table;
}

// What is held up to the quota, what is held beyond it, and where the quota ends.
std::string QuotaBar(const Share& share) {
  constexpr int kWidth = 20;
  const double quota = std::max(share.quota, 0.0);
  const double whole = std::max({share.allocated, quota, share.fair_share.value_or(0), 1.0});
  const auto cells = [whole](double amount) {
    return static_cast<int>(std::lround(amount / whole * kWidth));
  };
  const int held = cells(share.allocated), tick = cells(quota);
  std::string out;
  for (int cell = 0; cell < kWidth; ++cell) {
    if (cell < held) {
      out += share.quota >= 0 && cell >= tick ? "▒" : "█";
    } else {
      out += cell < tick ? "·" : " ";
    }
  }
  return out;
}

TopTable ProjectRows(const TopData& data) {
  TopTable table{{"NAME", "", "HELD/QUOTA", "FAIR SHARE", "REQUESTED", "RUNNING", "PENDING"}, {}};
  std::map<std::string, std::pair<int64_t, int64_t>> jobs;  // running, others that are not over
  for (const JobView& job : data.jobs) {
    auto& [running, pending] = jobs[data.tree.ChargedProject(job)];
    if (job.status == "Running") {
      ++running;
    } else if (!job.over()) {
      ++pending;
    }
  }
  for (const ProjectView& project : data.tree.projects) {
    const Share& gpu = project.gpu();
    const std::string indent(static_cast<size_t>(data.tree.Depth(project)) * 2, ' ');
    const auto& [running, pending] = jobs[project.name];
    table.rows.push_back(
        {.key = "project/" + project.name,
         .target = {TargetKind::kProject, "project", "", project.name},
         .cells = {{indent + project.name, project.department ? Ink::kBold : Ink::kPlain},
                   {QuotaBar(gpu), gpu.over_quota() ? Ink::kWarn : Ink::kBar, true},
                   {HeldText(gpu, ShareOf::kGpu)},
                   {gpu.fair_share ? ShareText(*gpu.fair_share, ShareOf::kGpu) : "-"},
                   {ShareText(gpu.requested, ShareOf::kGpu)},
                   {std::to_string(running)},
                   {std::to_string(pending), pending > 0 ? Ink::kWarn : Ink::kPlain}}});
  }
  return table;
}

TopTable EventRows(const TopData& data) {
  TopTable table{{"AGE", "REASON", "OBJECT", "MESSAGE"}, {}};
  for (const EventView& event : data.events) {
    const Ink ink = event.type == "Warning" ? Ink::kWarn : Ink::kPlain;
    const std::string object = StrCat(ToLower(event.object_kind), "/", event.object);
    table.rows.push_back({.key = StrCat("event/", event.version),
                          .target = {},
                          .cells = {{event.LastSeen(data.now), Ink::kDim},
                                    {event.reason, ink},
                                    {object},
                                    {OneLine(event.message), Ink::kDim}}});
  }
  return table;
}

void Filter(TopTable& table, std::string_view filter) {
  if (filter.empty() || filter == "!") return;
  const bool inverse = filter.starts_with('!');
  const std::string part = ToLower(inverse ? filter.substr(1) : filter);
  std::erase_if(table.rows, [&](const TopRow& row) {
    const bool has = std::any_of(row.cells.begin(), row.cells.end(), [&part](const TopCell& cell) {
      return ToLower(cell.text).find(part) != std::string::npos;
    });
    return has == inverse;
  });
}

bool IsWhole(const TopTable& table, size_t column) {
  return std::any_of(table.rows.begin(), table.rows.end(), [column](const TopRow& row) {
    return column < row.cells.size() && row.cells[column].whole;
  });
}

// The widest columns give way until the last one, which says most, has a quarter of the frame.
void FitWidths(std::vector<int>& widths, const TopTable& table, int columns) {
  constexpr int kLeast = 12;
  if (widths.size() < 2) return;
  const size_t last = widths.size() - 1;
  int room = columns;
  for (size_t i = 0; i < last; ++i) room -= widths[i] + 2;
  const int wanted = std::min(widths[last], columns / 4);
  while (room < wanted) {
    size_t widest = last;
    for (size_t i = 0; i < last; ++i) {
      if (widths[i] <= kLeast || (widest != last && widths[i] <= widths[widest])) continue;
      if (!IsWhole(table, i)) widest = i;
    }
    if (widest == last) return;
    --widths[widest];
    ++room;
  }
}

int Width(std::string_view text) { return static_cast<int>(DisplayWidth(text)); }

}  // namespace

TopTable TopTableOf(const TopData& data, const TopForm& form) {
  TopTable table;
  switch (form.view) {
    case TopView::kJobs:
      table = JobRows(data, form);
      break;
    case TopView::kNodes:
      table = NodeRows(data);
      break;
    case TopView::kProjects:
      table = ProjectRows(data);
      break;
    case TopView::kEvents:
      table = EventRows(data);
      break;
  }
  Filter(table, form.filter);
  return table;
}

int DrawTable(Frame& frame, int at, int height, const TopTable& table, int first, int selected) {
  std::vector<int> widths;
  for (const std::string& word : table.header) widths.push_back(Width(word));
  for (const TopRow& row : table.rows) {
    for (size_t i = 0; i < row.cells.size() && i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], Width(row.cells[i].text));
    }
  }
  FitWidths(widths, table, frame.columns());

  const auto draw = [&](int y, size_t column, std::string_view text, Ink ink, int x) {
    const bool last = column + 1 == widths.size();
    const int room = last ? frame.columns() - x : widths[column];
    frame.Put(y, x, text, ink, room);
    if (Width(text) > room) frame.Put(y, x + room - 1, "…", ink);
  };
  const auto draw_row = [&](int y, const auto& text_of, size_t count) {
    int x = 0;
    for (size_t i = 0; i < count && i < widths.size(); ++i) {
      const TopCell cell = text_of(i);
      draw(y, i, cell.text, cell.ink, x);
      x += widths[i] + 2;
    }
  };
  draw_row(
      at,
      [&](size_t i) {
        return TopCell{table.header[i], Ink::kDim};
      },
      table.header.size());
  int drawn = 0;
  for (; drawn + 1 < height && first + drawn < static_cast<int>(table.rows.size()); ++drawn) {
    const int shown = first + drawn;
    const TopRow& row = table.rows[static_cast<size_t>(shown)];
    draw_row(
        at + 1 + drawn, [&](size_t i) { return row.cells[i]; }, row.cells.size());
    if (shown == selected) {
      frame.Paint(at + 1 + drawn, 0, frame.columns(), Ink::kSelected);
    }
  }
  return drawn;
}

}  // namespace swell::cli
