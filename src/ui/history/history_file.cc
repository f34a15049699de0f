#include "ui/history/history_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <sqlite3.h>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/store/sqlite_db.h"

namespace swell::ui {
namespace {

constexpr char kSchema[] =
    "PRAGMA page_size=8192; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
    "CREATE TABLE IF NOT EXISTS series(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE IF NOT EXISTS pieces(ring INTEGER NOT NULL, chunk INTEGER NOT NULL,"
    " series INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY(ring, chunk, series))"
    " WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS timelines(job TEXT PRIMARY KEY, time INTEGER NOT NULL,"
    " text TEXT NOT NULL) WITHOUT ROWID;";
constexpr int kWalPages = 1000;
constexpr size_t kPieceBytesMax = 64 << 10;
constexpr size_t kTimelineBytesMax = 1 << 20;
constexpr int64_t kLatestSecond = int64_t{1} << 33;  // no clock says so much

std::string Text(const SeriesName& series) {
  json::Array parts{json::Value(series.name)};
  for (const auto& [key, value] : series.labels) {
    parts.push_back(json::Value(key));
    parts.push_back(json::Value(value));
  }
  return json::Print(json::Value(std::move(parts)));
}

std::optional<SeriesName> Parse(std::string_view text) {
  const auto parsed = json::Parse(text, {.depth = 2, .bytes = 4096});
  if (!parsed.ok() || !parsed->is_array()) return std::nullopt;
  std::vector<std::string> parts;
  for (const json::Value& part : parsed->get_array()) {
    if (!part.is_string()) return std::nullopt;
    parts.emplace_back(json::View(part.get_string()));
  }
  if (parts.size() % 2 != 1) return std::nullopt;
  SeriesName series{parts[0]};
  for (size_t i = 1; i < parts.size(); i += 2) series.labels.emplace_back(parts[i], parts[i + 1]);
  return series;
}

}  // namespace

struct HistoryFile::Impl {
  std::unique_ptr<store::SqliteDb> db;
  store::SqliteStatement add_series, put, drop, drop_series, forget_name, drop_old;
  store::SqliteStatement put_timeline, drop_timeline;
  std::map<SeriesName, int64_t> ids;
};

HistoryFile::HistoryFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HistoryFile::~HistoryFile() = default;

Result<std::unique_ptr<HistoryFile>> HistoryFile::Open(const std::string& path) {
  auto impl = std::make_unique<Impl>();
  auto prepare = [&impl, &path]() -> Status {
    SWELL_ASSIGN_OR_RETURN(impl->db, store::SqliteDb::Open(path, store::SqliteDb::Mode::kCreate));
    // Names of everybody's jobs are in it. SQLite gives the mode to the files that it makes beside
    // it.
    if (::chmod(path.c_str(), 0600) != 0) return ErrnoStatus(errno, "chmod " + path);
    SWELL_RETURN_IF_ERROR(impl->db->Execute(kSchema));
    for (const auto& [to, sql] :
         {std::pair(&impl->add_series,
                    "INSERT INTO series(name) VALUES(?) ON CONFLICT(name) DO UPDATE SET name=name "
                    "RETURNING id"),
          std::pair(&impl->put, "INSERT OR REPLACE INTO pieces VALUES(?,?,?,?)"),
          std::pair(&impl->drop, "DELETE FROM pieces WHERE ring=? AND chunk=? AND series=?"),
          std::pair(&impl->drop_series, "DELETE FROM pieces WHERE series=?"),
          std::pair(&impl->forget_name, "DELETE FROM series WHERE id=?"),
          std::pair(&impl->drop_old, "DELETE FROM pieces WHERE ring=? AND chunk<?"),
          std::pair(&impl->put_timeline, "INSERT OR REPLACE INTO timelines VALUES(?,?,?)"),
          std::pair(&impl->drop_timeline, "DELETE FROM timelines WHERE job=?")}) {
      SWELL_ASSIGN_OR_RETURN(*to, impl->db->Prepare(sql));
    }
    return Status::Ok();
  };
  Status ready = prepare();
  if (!ready.ok()) {
    // What is lost is curves of the past; the cluster starts.
    SWELL_LOG_WARNING("pages", "the history cannot be read and begins anew", {"file", path},
                      {"error", ready.ToString()});
    *impl = {};
    static_cast<void>(std::rename(path.c_str(), StrCat(path, ".unreadable").c_str()));
    ready = prepare();
  }
  if (!ready.ok()) return ready;
  return std::unique_ptr<HistoryFile>(new HistoryFile(std::move(impl)));
}

Status HistoryFile::Load(const std::function<void(const HistoryPiece&)>& each) {
  std::map<int64_t, SeriesName> names;
  SWELL_ASSIGN_OR_RETURN(auto series, impl_->db->Prepare("SELECT id, name FROM series"));
  while (series.Step() == SQLITE_ROW) {
    if (auto name = Parse(series.Bytes(1))) {
      impl_->ids[*name] = series.Int(0);
      names[series.Int(0)] = std::move(*name);
    }
  }
  SWELL_ASSIGN_OR_RETURN(
      auto pieces,
      impl_->db->Prepare("SELECT ring, chunk, series, bytes FROM pieces ORDER BY ring, chunk"));
  int result = SQLITE_ROW;
  while ((result = pieces.Step()) == SQLITE_ROW) {
    const auto name = names.find(pieces.Int(2));
    const std::string_view bytes = pieces.Bytes(3);
    if (name == names.end() || bytes.size() > kPieceBytesMax) continue;
    each({name->second, pieces.Int(0), pieces.Int(1), std::string(bytes)});
  }
  return result == SQLITE_DONE ? Status::Ok() : impl_->db->Error("read the history");
}

Result<int64_t> HistoryFile::IdOf(const SeriesName& series) {
  const auto known = impl_->ids.find(series);
  if (known != impl_->ids.end()) return known->second;
  const std::string text = Text(series);
  impl_->add_series.Bind(std::string_view(text));
  if (impl_->add_series.Step() != SQLITE_ROW) return impl_->db->Error("name a series");
  const int64_t id = impl_->add_series.Int(0);
  if (impl_->add_series.Run() != 0) return impl_->db->Error("name a series");
  impl_->ids[series] = id;
  return id;
}

Status HistoryFile::Write(const std::vector<HistoryPiece>& pieces, int64_t now_s) {
  if (pieces.empty()) return Status::Ok();
  return InOneWrite([&] { return WriteAll(pieces, now_s); });
}

Status HistoryFile::InOneWrite(const std::function<Status()>& write) {
  SWELL_RETURN_IF_ERROR(impl_->db->Execute("BEGIN IMMEDIATE"));
  Status written = write();
  if (written.ok()) written = impl_->db->Execute("COMMIT");
  if (!written.ok()) {
    impl_->db->RollBack();
    impl_->ids.clear();  // names that were rolled back have no number any more
    return written;
  }
  return impl_->db->wal_pages() > kWalPages ? impl_->db->Checkpoint() : written;
}

Status HistoryFile::LoadTimelines(const std::function<void(const KeptTimeline&)>& each,
                                  int64_t& written_s) {
  written_s = 0;
  SWELL_ASSIGN_OR_RETURN(
      auto rows, impl_->db->Prepare(StrCat("SELECT job, time, text FROM timelines ORDER BY time "
                                           "DESC LIMIT ",
                                           kTimelinesMax + 1)));
  int result = SQLITE_ROW;
  while ((result = rows.Step()) == SQLITE_ROW) {
    written_s = std::max(written_s, std::min(rows.Int(1), kLatestSecond));
    const std::string_view job = rows.Bytes(0), text = rows.Bytes(2);
    if (!job.empty() && text.size() <= kTimelineBytesMax) {
      each({std::string(job), std::string(text)});
    }
  }
  return result == SQLITE_DONE ? Status::Ok() : impl_->db->Error("read the timelines");
}

Status HistoryFile::WriteTimelines(const std::vector<KeptTimeline>& timelines, int64_t now_s) {
  return InOneWrite([&] { return WriteAllTimelines(timelines, now_s); });
}

Status HistoryFile::WriteAllTimelines(const std::vector<KeptTimeline>& timelines, int64_t now_s) {
  const auto put = [&](const KeptTimeline& one) {
    const int result = one.text.empty() && !one.job.empty()
                           ? impl_->drop_timeline.Bind(std::string_view(one.job)).Run()
                           : impl_->put_timeline.Bind(std::string_view(one.job))
                                 .Bind(now_s)
                                 .Bind(std::string_view(one.text))
                                 .Run();
    return result == 0 ? Status::Ok() : impl_->db->Error("write a timeline");
  };
  for (const KeptTimeline& one : timelines) SWELL_RETURN_IF_ERROR(put(one));
  return put({"", ""});
}

Status HistoryFile::WriteAll(const std::vector<HistoryPiece>& pieces, int64_t now_s) {
  for (const HistoryPiece& piece : pieces) {
    SWELL_ASSIGN_OR_RETURN(const int64_t id, IdOf(piece.series));
    int result = 0;
    if (piece.ring == kWholeSeries) {
      result = impl_->drop_series.Bind(id).Run();
      if (result == 0) result = impl_->forget_name.Bind(id).Run();
      impl_->ids.erase(piece.series);
    } else if (piece.bytes.empty()) {
      result = impl_->drop.Bind(piece.ring).Bind(piece.chunk).Bind(id).Run();
    } else {
      result = impl_->put.Bind(piece.ring).Bind(piece.chunk).Bind(id).BindBlob(piece.bytes).Run();
    }
    if (result != 0) return impl_->db->Error("write the history");
  }
  for (size_t ring = 0; ring < kRings.size(); ++ring) {
    const RingForm& form = kRings[ring];
    const int64_t oldest = now_s / form.step_s - static_cast<int64_t>(form.capacity);
    const int result =
        impl_->drop_old.Bind(static_cast<int64_t>(ring)).Bind(oldest / form.chunk).Run();
    if (result != 0) return impl_->db->Error("shorten the history");
  }
  return Status::Ok();
}

}  // namespace swell::ui
