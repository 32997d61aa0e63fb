// report.html: a run as one page that a browser shows without a network.
//
// Curves of every metric, the parameters, what the model answers, what its
// heads attend to, and the configuration. The page itself is written in
// report_page/, as HTML, CSS and JavaScript, which the build puts into the
// program.
#ifndef WENGERT_TRAIN_REPORT_H_
#define WENGERT_TRAIN_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nn/parameter_store.h"
#include "train/attention_map.h"
#include "train/metrics_log.h"

namespace wengert::train {

struct ParameterRow {
  std::string name;
  std::string shape;  // "[2, 3]"
  std::string dtype;  // "float32"
  int64_t count;
  double norm;  // Euclidean
};

// In the store's order.
std::vector<ParameterRow> ParameterRows(const nn::ParameterStore& store);

struct ReportSample {
  std::string input;
  std::string output;
  // Where it is not the output, the sample is marked as wrong; without, the
  // sample is just shown.
  std::optional<std::string> wanted = {};
};

// What is empty is left out of the page. Text may hold anything; what is not
// UTF-8 is shown as U+FFFD.
struct ReportContents {
  std::string title = {};
  std::string config_json = {};  // an object; other text is shown as it stands
  std::vector<MetricsRow> rows = {};  // ReadMetrics
  std::vector<ParameterRow> parameters = {};
  std::vector<ReportSample> samples = {};
  std::vector<AttentionMap> attention = {};  // of a sentence one after another
};

// Writes the page whole or leaves what was there; see FileWriter. Equal
// contents give equal bytes. Of a curve with more than 4000 points the page
// holds the smallest and the largest of each of 2000 stretches; of an attention
// weight it holds 4 digits. Throws Error as CheckAttentionMap does.
absl::Status WriteReport(const std::string& path,
                         const ReportContents& contents);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_REPORT_H_
