#include "train/metrics_log.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "autograd/error.h"
#include "nlohmann/json.hpp"
#include "train/text_file.h"

namespace wengert::train {
namespace {

using Json = nlohmann::ordered_json;

bool IsTime(const Metric& metric) {
  return absl::StartsWith(metric.name, "time/");
}

std::string Shortest(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  return std::string(buffer, end);
}

std::string CsvNumber(double value) {
  if (std::isnan(value)) return "nan";  // not "-nan"
  return Shortest(value);
}

std::string JsonNumber(double value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return Shortest(value);
}

std::string CsvName(const std::string& name) {
  if (name.find_first_of(",\"") == std::string::npos) return name;
  return absl::StrCat("\"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
}

std::string JsonRow(int64_t step, const std::vector<Metric>& metrics) {
  std::string line = absl::StrCat("{\"step\":", step);
  for (const auto& [name, value] : metrics) {
    absl::StrAppend(&line, ",", Json(name).dump(), ":", JsonNumber(value));
  }
  absl::StrAppend(&line, "}\n");
  return line;
}

// What is wrong with a row's names, or nothing.
std::string FaultOfNames(absl::Span<const Metric> metrics) {
  std::set<absl::string_view> names = {"step"};
  for (const auto& [name, value] : metrics) {
    if (name.empty() || Printable(name) != name) {
      return absl::StrCat("a name must be printable UTF-8, not ", Quoted(name));
    }
    if (!names.insert(name).second) {
      return absl::StrCat("a row has one value for ", Quoted(name),
                          ", not two");
    }
  }
  return "";
}

// A row that JsonRow wrote; step -1 if it is something else.
MetricsRow ParseRow(const std::string& line) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("step")) return {};
  MetricsRow row;
  for (const auto& [name, value] : object.items()) {
    if (name == "step") {
      if (!value.is_number_unsigned()) return {};
      row.step = value.get<int64_t>();
    } else if (value.is_number()) {
      row.metrics.push_back({name, value.get<double>()});
    } else if (value == "NaN") {
      row.metrics.push_back({name, std::nan("")});
    } else if (value == "Infinity" || value == "-Infinity") {
      row.metrics.push_back(
          {name, value == "Infinity" ? kInfinity : -kInfinity});
    } else {
      return {};
    }
  }
  if (!FaultOfNames(row.metrics).empty()) return {};
  return row;
}

// Calls each(row) for the file's rows with steps up to last_step and returns
// how many bytes they take. A last line without an end is no row.
template <typename F>
absl::StatusOr<int64_t> ReadRows(const std::string& path, int64_t last_step,
                                 F each) {
  std::ifstream file(path, std::ios::binary);
  int64_t size = 0, line_number = 0;
  std::string line;
  while (std::getline(file, line) && !file.eof()) {
    ++line_number;
    const MetricsRow row = ParseRow(line);
    if (row.step < 0) {
      return ErrorAt(path, line_number, 1, "not a row of metrics");
    }
    if (row.step > last_step) break;
    size += static_cast<int64_t>(line.size()) + 1;
    each(row);
  }
  if (!file.is_open() || file.bad()) {
    return absl::UnavailableError(absl::StrCat(path, ": cannot be read"));
  }
  return size;
}

}  // namespace

absl::StatusOr<std::vector<MetricsRow>> ReadMetrics(
    const std::string& jsonl_path) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  std::vector<MetricsRow> rows;
  const auto size = ReadRows(
      jsonl_path, kAll, [&](const MetricsRow& row) { rows.push_back(row); });
  if (!size.ok()) return size.status();
  return rows;
}

absl::StatusOr<MetricsLog> MetricsLog::Open(const std::string& csv_path,
                                            const std::string& jsonl_path,
                                            int64_t last_step) {
  int64_t step = -1;
  absl::StatusOr<int64_t> kept = 0;
  std::error_code ignored;
  if (std::filesystem::exists(jsonl_path, ignored)) {
    kept = ReadRows(jsonl_path, last_step,
                    [&](const MetricsRow& row) { step = row.step; });
  }
  if (!kept.ok()) return kept.status();
  auto jsonl = AppendFile::Open(jsonl_path, *kept);
  if (!jsonl.ok()) return jsonl.status();
  MetricsLog log(csv_path, jsonl_path, *std::move(jsonl));
  log.step_ = step;
  if (absl::Status status = log.RewriteCsv(); !status.ok()) return status;
  return log;
}

absl::Status MetricsLog::Write(int64_t step, absl::Span<const Metric> metrics) {
  const std::string fault = FaultOfNames(metrics);
  if (!fault.empty()) throw Error(absl::StrCat("MetricsLog: ", fault));
  if (step < std::max<int64_t>(step_, 0)) {
    throw Error(absl::StrCat("MetricsLog: step ", step, " after step ", step_));
  }
  step_ = step;
  std::vector<Metric> ordered(metrics.begin(), metrics.end());
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](const Metric& metric) { return !IsTime(metric); });
  return failure_.Of(WriteRow(step, ordered));
}

absl::Status MetricsLog::WriteRow(int64_t step,
                                  const std::vector<Metric>& metrics) {
  if (absl::Status status = jsonl_.Append(JsonRow(step, metrics));
      !status.ok()) {
    return status;
  }
  if (AddColumns(metrics)) csv_.reset();
  if (!csv_) return RewriteCsv();
  absl::Status status = csv_->Append(CsvRow(step, metrics));
  if (!status.ok()) csv_.reset();
  return status;
}

bool MetricsLog::AddColumns(const std::vector<Metric>& metrics) {
  bool added = false;
  for (const Metric& metric : metrics) {
    auto& columns = IsTime(metric) ? time_columns_ : scalar_columns_;
    if (std::find(columns.begin(), columns.end(), metric.name) ==
        columns.end()) {
      columns.push_back(metric.name);
      added = true;
    }
  }
  return added;
}

std::string MetricsLog::CsvRow(int64_t step,
                               const std::vector<Metric>& metrics) const {
  std::string line = absl::StrCat(step);
  for (const auto* columns : {&scalar_columns_, &time_columns_}) {
    for (const std::string& column : *columns) {
      const auto metric = std::find_if(
          metrics.begin(), metrics.end(),
          [&](const Metric& metric) { return metric.name == column; });
      absl::StrAppend(&line, ",",
                      metric == metrics.end() ? "" : CsvNumber(metric->value));
    }
  }
  absl::StrAppend(&line, "\n");
  return line;
}

absl::Status MetricsLog::RewriteCsv() {
  const auto rows = ReadMetrics(jsonl_path_);
  if (!rows.ok()) return rows.status();
  for (const MetricsRow& row : *rows) AddColumns(row.metrics);
  std::string text = "step";
  for (const auto* columns : {&scalar_columns_, &time_columns_}) {
    for (const std::string& column : *columns) {
      absl::StrAppend(&text, ",", CsvName(column));
    }
  }
  absl::StrAppend(&text, "\n");
  for (const MetricsRow& row : *rows) {
    absl::StrAppend(&text, CsvRow(row.step, row.metrics));
  }
  // The old table stands until the new one is whole. Not flushed to the disk as
  // WriteFile would: the jsonl has it all, and a training step waits.
  const std::string partial = csv_path_ + ".partial";
  auto file = AppendFile::Open(partial, 0);
  if (!file.ok()) return file.status();
  absl::Status status = file->Append(text);
  if (status.ok() && std::rename(partial.c_str(), csv_path_.c_str()) != 0) {
    status = absl::ErrnoToStatus(
        errno, absl::StrCat(csv_path_, ": cannot be written"));
  }
  if (!status.ok()) {
    std::remove(partial.c_str());
    return status;
  }
  file = AppendFile::Open(csv_path_, static_cast<int64_t>(text.size()));
  if (!file.ok()) return file.status();
  csv_ = *std::move(file);
  return absl::OkStatus();
}

}  // namespace wengert::train
