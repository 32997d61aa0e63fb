// A profile's table and its trace.
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "train/profile.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

using Kind = Profile::Kind;
using Row = Profile::Row;

// Three digits.
std::string Digits(double x) {
  return absl::StrFormat("%.*f", x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2, x);
}

// "950", "1.23 k", "45.6 M"
std::string Human(double x, absl::Span<const char* const> units) {
  size_t unit = 0;
  while (x >= 999.5 && unit + 1 < units.size()) x /= 1000, ++unit;
  return (unit == 0 ? absl::StrFormat("%.0f", x) : Digits(x)) + units[unit];
}

std::string Count(double x) {
  if (x == 0) return "-";
  return Human(x, {"", " k", " M", " G", " T", " P", " E"});
}

std::string Bytes(double x) {
  if (x == 0) return "-";
  return Human(x, {" B", " kB", " MB", " GB", " TB", " PB", " EB"});
}

std::string Time(int64_t nanoseconds) {
  return Human(static_cast<double>(nanoseconds), {" ns", " us", " ms", " s"});
}

const char* PassOf(Kind kind) {
  constexpr std::array<const char*, 4> kNames = {"fwd", "bwd", "again", ""};
  return kNames[static_cast<size_t>(kind)];
}

// The end of a text, which tells more than its beginning.
std::string CutTo(int64_t width, std::string text) {
  int64_t n = CountCharacters(text);
  if (n <= width) return text;
  absl::string_view rest = text;
  for (; n > width - 2; --n) rest.remove_prefix(Utf8Length(rest));
  return absl::StrCat("..", rest);
}

constexpr int64_t kColumns = 100;
constexpr std::array<int, 9> kWidths = {6, 8, 9, 8, 8, 9, 9, 8, 8};
using Fields = std::vector<std::string>;  // as many of them as are shown

std::string TableLine(int64_t name_width, const std::string& name,
                      const Fields& fields) {
  std::string line = name;
  line.append(name_width - CountCharacters(name), ' ');
  for (size_t i = 0; i < fields.size(); ++i) {
    absl::StrAppendFormat(&line, "%*s", kWidths[i], fields[i]);
  }
  return line + "\n";
}

Fields FieldsOf(const Row& row, int64_t total) {
  const auto per = [](double x, int64_t y) {
    return y > 0 ? x / static_cast<double>(y) : 0.;
  };
  const double share = 100 * per(static_cast<double>(row.nanoseconds), total);
  const double rate = per(row.flops, row.nanoseconds);  // 1e9 a second
  return {PassOf(row.kind),
          row.calls > 0 ? Count(static_cast<double>(row.calls)) : "",
          Time(row.nanoseconds),
          absl::StrFormat("%.1f %%", share),
          Count(row.flops),
          rate > 0 ? Digits(rate) : "-",
          Bytes(row.bytes),
          Count(static_cast<double>(row.allocations)),
          Count(static_cast<double>(row.system_allocations))};
}

}  // namespace

std::string Profile::Table(bool by_layer) {
  const std::vector<Row> rows = Rows(by_layer);
  // Layers want room for their names.
  const size_t n_fields = by_layer ? kWidths.size() - 2 : kWidths.size();
  int64_t width = kColumns;
  for (size_t i = 0; i < n_fields; ++i) width -= kWidths[i];
  Row total{.name = "total", .layer = "", .kind = Kind::kSpan};
  std::vector<std::string> names;
  int64_t longest = 9;
  for (const Row& row : rows) {
    const std::string name = Printable(
        row.layer.empty() ? row.name : absl::StrCat(row.layer, " ", row.name));
    names.push_back(CutTo(width, name));
    longest = std::max(longest, CountCharacters(names.back()));
    total.nanoseconds += row.nanoseconds;
    total.flops += row.flops;
    total.bytes += row.bytes;
    total.allocations += row.allocations;
    total.system_allocations += row.system_allocations;
  }
  std::string table;
  const auto add = [&](const std::string& name, Fields fields) {
    fields.resize(n_fields);
    table += TableLine(longest, name, fields);
  };
  add("operation", {"pass", "calls", "time", "share", "FLOP", "GFLOP/s",
                    "bytes", "allocs", "system"});
  for (size_t i = 0; i < rows.size(); ++i) {
    add(names[i], FieldsOf(rows[i], total.nanoseconds));
  }
  add("total", FieldsOf(total, total.nanoseconds));
  table +=
      "FLOP: of products and attention. bytes: operands and results, each "
      "once.\n";
  if (!by_layer) {
    table +=
        "allocs: blocks from the pool; system: those it had to ask the system "
        "for.\n";
  }
  return table;
}

absl::Status Profile::WriteChromeTrace(const std::string& path) {
  constexpr std::array<const char*, 4> kCategories = {"forward", "backward",
                                                      "again", "span"};
  using nlohmann::json;
  const auto microseconds = [](int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / 1000;
  };
  const auto print = [](const json& value) {
    return value.dump(-1, ' ', true, json::error_handler_t::replace);
  };
  CloseSlices();
  std::string text =
      absl::StrCat("{\"displayTimeUnit\":\"ms\",\"otherData\":",
                   print({{"slices_left_out", absl::StrCat(left_out_)}}),
                   ",\"traceEvents\":[\n",
                   print({{"name", "thread_name"},
                          {"ph", "M"},
                          {"pid", 1},
                          {"tid", 1},
                          {"args", {{"name", "training"}}}}));
  for (const Slice& slice : slices_) {
    const Row& row = *slice.row;
    json args = json::object();
    if (!row.layer.empty()) args["layer"] = row.layer;
    if (!slice.shapes.empty()) args["shapes"] = slice.shapes;
    if (slice.flops > 0) args["flop"] = slice.flops;
    absl::StrAppend(&text, ",\n",
                    print({{"name", row.name},
                           {"cat", kCategories[static_cast<size_t>(row.kind)]},
                           {"ph", "X"},
                           {"pid", 1},
                           {"tid", 1},
                           {"ts", microseconds(slice.begin)},
                           {"dur", microseconds(slice.end - slice.begin)},
                           {"args", std::move(args)}}));
  }
  return WriteFile(path, text + "\n]}\n");
}

}  // namespace wengert::train
