#include "train/report.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <map>

#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "autograd/dtype.h"
#include "autograd/parameter.h"
#include "nlohmann/json.hpp"
#include "train/report_page.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLargestCurve = 4000;
constexpr size_t kStretches = 2000;
constexpr float kLeastWeight = 1e-6f;  // smaller ones are written as 0

// JSON has no word for some numbers: then the text that JavaScript's Number()
// reads. The others keep as many digits as a reader may want.
Json Number(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char text[40];
  const char* end = std::to_chars(text, text + sizeof(text), value,
                                  std::chars_format::general, digits)
                        .ptr;
  double rounded;
  std::from_chars(text, end, rounded);
  return rounded;
}

struct Point {
  int64_t step;
  double value;
};

struct Curve {
  std::string name;
  std::vector<Point> points;
};

// Every metric's curve, in the order in which they first appear, each by step.
std::vector<Curve> Curves(absl::Span<const MetricsRow> rows) {
  std::vector<Curve> curves;
  std::map<std::string, size_t> index;
  for (const MetricsRow& row : rows) {
    for (const auto& [name, value] : row.metrics) {
      const auto [found, is_new] = index.try_emplace(name, curves.size());
      if (is_new) curves.push_back({name, {}});
      curves[found->second].points.push_back({row.step, value});
    }
  }
  for (Curve& curve : curves) {
    std::stable_sort(
        curve.points.begin(), curve.points.end(),
        [](const Point& a, const Point& b) { return a.step < b.step; });
  }
  return curves;
}

// The points of a curve that stand out: of each stretch the smallest, the
// largest and the first that is not finite, in their order; of the whole the
// first and the last.
std::vector<Point> Thinned(absl::Span<const Point> points) {
  const size_t n = points.size();
  if (n <= kLargestCurve) return {points.begin(), points.end()};
  std::vector<Point> thinned;
  for (size_t stretch = 0; stretch < kStretches; ++stretch) {
    const size_t begin = stretch * n / kStretches;
    const size_t end = (stretch + 1) * n / kStretches;
    std::optional<size_t> low, high, odd;
    for (size_t i = begin; i < end; ++i) {
      const double value = points[i].value;
      if (!std::isfinite(value)) {
        if (!odd) odd = i;
        continue;
      }
      if (!low || value < points[*low].value) low = i;
      if (!high || value > points[*high].value) high = i;
    }
    std::vector<size_t> kept;
    if (stretch == 0) kept.push_back(0);
    if (stretch == kStretches - 1) kept.push_back(n - 1);
    for (const auto& i : {low, high, odd}) {
      if (i) kept.push_back(*i);
    }
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    for (const size_t i : kept) thinned.push_back(points[i]);
  }
  return thinned;
}

Json CurvesJson(absl::Span<const MetricsRow> rows) {
  Json list = Json::array();
  for (const Curve& curve : Curves(rows)) {
    Json steps = Json::array(), values = Json::array();
    for (const auto& [step, value] : Thinned(curve.points)) {
      steps.push_back(step);
      values.push_back(Number(value, 9));
    }
    list.push_back({{"name", curve.name},
                    {"count", curve.points.size()},
                    {"steps", std::move(steps)},
                    {"values", std::move(values)}});
  }
  return list;
}

Json ParametersJson(absl::Span<const ParameterRow> parameters) {
  Json list = Json::array();
  for (const auto& [name, shape, dtype, count, norm] : parameters) {
    list.push_back({{"name", name},
                    {"shape", shape},
                    {"dtype", dtype},
                    {"count", count},
                    {"norm", Number(norm, 9)}});
  }
  return list;
}

Json SamplesJson(absl::Span<const ReportSample> samples) {
  Json list = Json::array();
  for (const auto& [input, output, wanted] : samples) {
    list.push_back({{"input", input},
                    {"output", output},
                    {"wanted", wanted ? Json(*wanted) : Json(nullptr)},
                    {"wrong", wanted && *wanted != output}});
  }
  return list;
}

Json AttentionJson(absl::Span<const AttentionMap> attention) {
  Json list = Json::array();
  for (const AttentionMap& map : attention) {
    CheckAttentionMap("WriteReport", map);
    Json heads = Json::array();
    for (const std::vector<float>& head : map.heads) {
      Json weights = Json::array();
      for (const float weight : head) {
        weights.push_back(std::abs(weight) < kLeastWeight ? Json(0)
                                                          : Number(weight, 4));
      }
      heads.push_back(std::move(weights));
    }
    list.push_back({{"sentence", map.sentence},
                    {"layer", map.layer},
                    {"queries", map.queries},
                    {"keys", map.keys},
                    {"heads", std::move(heads)}});
  }
  return list;
}

Json ConfigJson(const std::string& text) {
  Json config = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return config.is_discarded() ? Json(text) : config;
}

}  // namespace

std::vector<ParameterRow> ParameterRows(const nn::ParameterStore& store) {
  std::vector<ParameterRow> rows;
  for (const Parameter* parameter : store.parameters()) {
    const Tensor& value = parameter->value;
    const double norm = WithFloat(value.dtype(), [&](auto t) {
      double sum = 0;
      for (const double x : value.span<decltype(t)>()) sum += x * x;
      return std::sqrt(sum);
    });
    rows.push_back({parameter->name, value.shape().ToString(),
                    Name(value.dtype()), value.size(), norm});
  }
  return rows;
}

absl::Status WriteReport(const std::string& path,
                         const ReportContents& contents) {
  const Json data = {{"config", ConfigJson(contents.config_json)},
                     {"curves", CurvesJson(contents.rows)},
                     {"parameters", ParametersJson(contents.parameters)},
                     {"samples", SamplesJson(contents.samples)},
                     {"attention", AttentionJson(contents.attention)}};
  // Inside <script> a "<" might end it; in JSON all of them stand in strings.
  const std::string json = absl::StrReplaceAll(
      data.dump(-1, ' ', false, Json::error_handler_t::replace),
      {{"<", "\\u003c"}});
  const std::string title =
      absl::StrReplaceAll(Printable(contents.title),
                          {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
  return WriteFile(path,
                   absl::StrReplaceAll(internal::kReportPage,
                                       {{"@TITLE@", title}, {"@DATA@", json}}));
}

}  // namespace wengert::train
