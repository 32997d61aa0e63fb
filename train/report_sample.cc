// Writes a report with everything in it, for a test in a browser:
//   report_sample FOLDER
// makes FOLDER/metrics.jsonl and, from its rows, FOLDER/report.html; beside
// them one without contents, FOLDER/empty.html.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "train/metrics_log.h"
#include "train/report.h"

namespace wengert::train {
namespace {

constexpr char kHostile[] = "</script><b id=\"hostile\">bold</b>&amp;'\"";

absl::Status WriteMetrics(const std::string& folder) {
  auto log =
      MetricsLog::Open(folder + "/metrics.csv", folder + "/metrics.jsonl", -1);
  if (!log.ok()) return log.status();
  for (int64_t step = 10; step <= 2000; step += 10) {
    const double s = static_cast<double>(step);
    const double fit = std::exp(-s / 300);
    double loss = 3 * fit + 0.05 + 0.3 * fit * std::sin(s * s);
    if (step == 700) loss = std::nan("");
    if (step == 710) loss = std::numeric_limits<double>::infinity();
    std::vector<Metric> row = {
        {"loss", loss},
        {"lr", 1e-3 * std::min(s / 200, 1.0) * (1 - s / 2500)},
        {"grad_norm", 1.5 * fit + 0.2 + 0.1 * std::sin(7 * s)},
        {"skipped", step >= 700 ? 1.0 : 0.0},
        {kHostile, std::cos(s / 100)},
        {"time/seconds", s / 80}};
    if (step % 100 == 0) {
      row.push_back({"eval/loss", 3 * fit + 0.08 + s * 2e-5});
      row.push_back({"eval/accuracy", 1 - fit});
    }
    if (absl::Status status = log->Write(step, row); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

// Weights that fall off with the distance from the diagonal, the faster the
// later the head.
AttentionMap Attention(const std::string& sentence, const std::string& layer,
                       std::vector<std::string> queries,
                       std::vector<std::string> keys, int n_heads) {
  AttentionMap map = {sentence, layer, std::move(queries), std::move(keys), {}};
  const size_t rows = map.queries.size(), columns = map.keys.size();
  for (int h = 0; h < n_heads; ++h) {
    std::vector<float>& weights = map.heads.emplace_back();
    for (size_t q = 0; q < rows; ++q) {
      std::vector<double> row;
      double sum = 0;
      for (size_t k = 0; k < columns; ++k) {
        const double place = static_cast<double>(q * columns) / rows;
        row.push_back(std::exp(-0.5 * (h + 1) * std::abs(place - k)));
        sum += row.back();
      }
      for (const double x : row) weights.push_back(static_cast<float>(x / sum));
    }
  }
  return map;
}

ReportContents Sample() {
  ReportContents report;
  report.title = absl::StrCat("Sample run ", kHostile);
  report.config_json =
      R"({"command":"word_to_symbol --steps=2000","seed":1,"model":{"d_model":64,)"
      R"("n_heads":4,"encoder":{"layers":6}},"betas":[0.9,0.98],)"
      R"("note":"</script><b id=\"hostile\">"})";
  for (int layer = 0; layer < 4; ++layer) {
    for (const char* name :
         {"self.in_proj_weight", "self.out_proj.weight", "mlp.up.weight"}) {
      report.parameters.push_back({absl::StrCat("encoder.", layer, ".", name),
                                   absl::StrCat("[", 192 - layer, ", 64]"),
                                   "float32", (192 - layer) * 64,
                                   8.25 / (layer + 1)});
    }
  }
  report.parameters.push_back(
      {"embedding.weight", "[5000, 300]", "float32", 1500000, 99.5});
  report.parameters.push_back({kHostile, "[3]", "float32", 3, std::nan("")});
  report.samples = {{"one is one", "1 = 1", "1 = 1"},
                    {"two is two", "2 = 3", "2 = 2"},
                    {kHostile, kHostile, kHostile},
                    {"free text", "goes on\nand on"}};
  const std::vector<std::string> words = {"one", "is", "one"};
  const std::vector<std::string> symbols = {"<s>", "1", "=", "1"};
  report.attention = {
      Attention("one is one", "encoder.0.self", words, words, 2),
      Attention("one is one", "decoder.0.cross", symbols, words, 4)};
  report.attention[0].heads[0][2] = std::nanf("");
  report.attention.push_back(Attention(
      kHostile, "decoder.0.cross", {kHostile, "1", "="}, {kHostile, "is"}, 2));
  const std::vector<std::string> characters =
      absl::StrSplit("a sentence that is long enough to fill", "");
  report.attention.push_back(
      Attention("a long one", "encoder.0.self", characters, characters, 8));
  return report;
}

absl::Status Write(const std::string& folder) {
  if (absl::Status status = WriteMetrics(folder); !status.ok()) return status;
  ReportContents report = Sample();
  auto rows = ReadMetrics(folder + "/metrics.jsonl");
  if (!rows.ok()) return rows.status();
  report.rows = *std::move(rows);
  if (absl::Status status =
          WriteReport(folder + "/empty.html", {.title = "Empty"});
      !status.ok()) {
    return status;
  }
  return WriteReport(folder + "/report.html", report);
}

}  // namespace
}  // namespace wengert::train

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: report_sample FOLDER\n");
    return 2;
  }
  const absl::Status status = wengert::train::Write(argv[1]);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
