// The numbers of a run, row by row: metrics.jsonl, which is the record, and
// metrics.csv, the same rows as a table.
//
//   {"step":20,"loss":2.5,"lr":0.001,"time/seconds":1.5}
//
//   step,loss,lr,eval/loss,time/seconds
//   10,3.25,0.001,,0.75
//   20,2.5,0.001,2.75,1.5
//
// Names that begin with "time/" are times: they stand last, and they are what
// may differ between a run and its repetition. Numbers are the shortest that
// read back as the same double. JSON has no word for some, so there they are
// the strings "NaN", "Infinity" and "-Infinity"; in the table nan, inf, -inf.
// The table's columns are in the order in which they first appeared, a row
// without one has an empty field, and a new column rewrites the table: its
// earlier rows get empty fields.
#ifndef WENGERT_TRAIN_METRICS_LOG_H_
#define WENGERT_TRAIN_METRICS_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "train/append_file.h"

namespace wengert::train {

struct Metric {
  std::string name;
  double value;
};

struct MetricsRow {
  int64_t step = -1;
  std::vector<Metric> metrics;
};

// The rows of a metrics.jsonl; a last line that is not finished is no row.
// Errors: a file that cannot be read, a line that is no row.
absl::StatusOr<std::vector<MetricsRow>> ReadMetrics(
    const std::string& jsonl_path);

class MetricsLog {
 public:
  // Opens the two files, or makes them. Rows of steps after last_step are cut,
  // and so is a line that a killed process left unfinished: a run resumed from
  // its checkpoint of last_step goes on as if it had not stopped, provided that
  // a step's rows are written before its checkpoint. A new run says -1. The csv
  // is made again from the jsonl. Errors: a file that cannot be written, a line
  // in the jsonl that is no row; then both files stay as they are.
  static absl::StatusOr<MetricsLog> Open(const std::string& csv_path,
                                         const std::string& jsonl_path,
                                         int64_t last_step);

  // Writes a row to both files, past this process's end. An error is returned
  // once: the calls after it try again, and are silent until one has succeeded.
  // Rows that failed are in neither file. Throws Error if a name is empty,
  // "step", twice there or not printable UTF-8, or if steps go back.
  absl::Status Write(int64_t step, absl::Span<const Metric> metrics);

 private:
  MetricsLog(std::string csv_path, std::string jsonl_path, AppendFile jsonl)
      : csv_path_(std::move(csv_path)),
        jsonl_path_(std::move(jsonl_path)),
        jsonl_(std::move(jsonl)) {}

  absl::Status WriteRow(int64_t step, const std::vector<Metric>& metrics);
  // Whether a name among them had no column.
  bool AddColumns(const std::vector<Metric>& metrics);
  std::string CsvRow(int64_t step, const std::vector<Metric>& metrics) const;
  absl::Status RewriteCsv();

  std::string csv_path_;
  std::string jsonl_path_;
  AppendFile jsonl_;
  std::optional<AppendFile> csv_;  // none where it lacks a row of the jsonl
  std::vector<std::string> scalar_columns_;
  std::vector<std::string> time_columns_;
  int64_t step_ = -1;  // of the last row
  FirstFailure failure_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_METRICS_LOG_H_
