// Lists what a checkpoint or any safetensors file holds, or compares two.
#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "train/checkpoint_metadata.h"
#include "train/command_line.h"
#include "train/element_figures.h"
#include "train/safetensors.h"
#include "train/text_file.h"

ABSL_FLAG(bool, diff, false, "Compare two files.");
ABSL_FLAG(bool, state, false,
          "List the optimizer's state of every parameter, not only its sums.");

namespace wengert::train {
namespace {

constexpr char kAbout[] =
    "inspect FILE        lists the tensors and the metadata of a checkpoint, "
    "or "
    "of any\n"
    "                    safetensors file: parameters first, then the "
    "optimizer's state.\n"
    "inspect --diff A B  compares two.\n\n"
    "norm, mean and max |x| leave out what is not finite. The exit status is "
    "0, or "
    "of --diff\n0 if the files hold the same and 1 if not; 2 after an error.";

using Entry = SafetensorsFile::Entry;
using Fields = std::vector<std::string>;

// Rows whose first field stands at the left, the others at the right.
void PrintTable(const std::vector<Fields>& rows) {
  std::vector<int64_t> widths;
  for (const Fields& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], CountCharacters(row[i]));
    }
  }
  for (const Fields& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - CountCharacters(row[i]), ' ');
      line += i == 0 ? row[i] + space : "  " + space + row[i];
    }
    std::cout << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
  }
}

std::string Number(long double x) { return absl::StrFormat("%.6g", x); }

Fields FieldsOf(const std::string& name, const std::string& shape,
                const std::string& type, const ElementFigures& f) {
  const bool any = f.count > f.not_finite;
  return {name,
          shape,
          type,
          absl::StrCat(f.count),
          any ? Number(f.norm()) : "-",
          any ? Number(f.mean()) : "-",
          any ? Number(f.max) : "-",
          f.not_finite > 0 ? absl::StrCat(f.not_finite) : "-"};
}

Fields Head(const std::string& what, const std::string& shape) {
  return {what,   shape,  "dtype",   "elements",
          "norm", "mean", "max |x|", "not finite"};
}

void List(const std::string& what, const std::vector<const Entry*>& entries) {
  std::vector<Fields> rows = {Head(what, "shape")};
  ElementFigures total;
  for (const Entry* e : entries) {
    const ElementFigures figures = FiguresOf(*e);
    total += figures;
    rows.push_back(FieldsOf(Printable(e->name), e->shape.ToString(),
                            ElementName(e->type), figures));
  }
  rows.push_back(
      FieldsOf(absl::StrCat("total of ", entries.size()), "", "", total));
  PrintTable(rows);
}

// A row for each kind of state, such as "optimizer.m".
void SumUp(const std::vector<const Entry*>& state) {
  struct Sum {
    int64_t tensors = 0;
    ElementFigures figures;
    std::set<std::string> types;
  };
  std::map<std::string, Sum> sums;
  for (const Entry* e : state) {
    const size_t end = e->name.find('.', e->name.find('.') + 1);
    Sum& sum = sums[e->name.substr(0, end)];
    ++sum.tensors;
    sum.figures += FiguresOf(*e);
    sum.types.insert(ElementName(e->type));
  }
  std::vector<Fields> rows = {Head("optimizer state", "tensors")};
  for (const auto& [kind, sum] : sums) {
    rows.push_back(FieldsOf(Printable(kind), absl::StrCat(sum.tensors),
                            absl::StrJoin(sum.types, " "), sum.figures));
  }
  PrintTable(rows);
}

bool IsState(absl::string_view name) {
  return absl::StartsWith(name, "optimizer.");
}

// What stands once for every parameter.
bool IsOfAParameter(absl::string_view key) {
  return absl::StartsWith(key, "optimizer.step.") ||
         absl::StartsWith(key, "optimizer.decay.");
}

void ListMetadata(const SafetensorsFile::Metadata& metadata, bool all) {
  std::vector<Fields> rows = {{"metadata"}};
  for (const auto& [key, value] : metadata) {
    if (!all && IsOfAParameter(key)) continue;
    std::string name = Printable(key);
    for (const auto line : absl::StrSplit(value, '\n')) {
      rows.push_back({name + "  " + Printable(line)});
      name.assign(CountCharacters(name), ' ');
    }
  }
  PrintTable(rows);
}

void ListFile(const SafetensorsFile& file) {
  const auto& metadata = file.metadata();
  const bool checkpoint = internal::IsCheckpoint(metadata);
  std::vector<const Entry*> parameters, state;
  for (const Entry& e : file.entries()) {
    (checkpoint && IsState(e.name) ? state : parameters).push_back(&e);
  }
  std::cout << Printable(file.path());
  if (checkpoint) {
    const auto step = metadata.find("step");
    std::cout << ": checkpoint of step "
              << (step == metadata.end() ? "?" : Printable(step->second));
  }
  std::cout << "\n\n";
  const bool all = !checkpoint || absl::GetFlag(FLAGS_state);
  List(checkpoint ? "parameters" : "tensors", parameters);
  if (!state.empty()) {
    std::cout << "\n";
    all ? List("optimizer state", state) : SumUp(state);
  }
  if (!metadata.empty()) {
    std::cout << "\n";
    ListMetadata(metadata, all);
  }
}

std::string Kind(const Entry& e) {
  return absl::StrCat(ElementName(e.type), " ", e.shape.ToString());
}

// All names of both, in the order of a.
std::vector<std::string> NamesOf(const SafetensorsFile& a,
                                 const SafetensorsFile& b) {
  std::vector<std::string> names;
  for (const Entry& e : a.entries()) names.push_back(e.name);
  for (const Entry& e : b.entries()) {
    if (!a.Find(e.name)) names.push_back(e.name);
  }
  return names;
}

// Each returns how many of them differ.
int64_t CompareTensors(const SafetensorsFile& a, const SafetensorsFile& b) {
  int64_t different = 0;
  std::vector<Fields> rows = {
      {"tensor", "differing", "max |a - b|", "|a - b| / |a|", "not finite"}};
  for (const std::string& name : NamesOf(a, b)) {
    const Entry *x = a.Find(name), *y = b.Find(name);
    const std::string shown = Printable(name);
    if (!x || !y) {
      std::cout << (x ? "only in A: " : "only in B: ") << shown << ", "
                << Kind(x ? *x : *y) << "\n";
      ++different;
    } else if (x->type != y->type || x->shape != y->shape) {
      std::cout << shown << ": " << Kind(*x) << " in A, " << Kind(*y)
                << " in B\n";
      ++different;
    } else if (const ElementDifference d = Compare(*x, *y); d.same_bits) {
      rows.push_back({shown, "same bits"});
    } else {
      ++different;
      const ElementFigures& f = d.figures;
      const bool any = f.count > f.not_finite;
      rows.push_back(
          {shown, absl::StrCat(d.differing, "/", f.count),
           any ? Number(f.max) : "-",
           any ? Number(f.norm() == 0 ? 0 : f.norm() / FiguresOf(*x).norm())
               : "-",
           f.not_finite > 0 ? absl::StrCat(f.not_finite) : "-"});
    }
  }
  if (rows.size() > 1) PrintTable(rows);
  return different;
}

// The first line in which two texts differ, of each.
std::pair<std::string, std::string> FirstDifference(const std::string& a,
                                                    const std::string& b) {
  const std::vector<std::string> x = absl::StrSplit(a, '\n');
  const std::vector<std::string> y = absl::StrSplit(b, '\n');
  const auto [p, q] = std::mismatch(x.begin(), x.end(), y.begin(), y.end());
  return {p == x.end() ? "" : *p, q == y.end() ? "" : *q};
}

int64_t CompareMetadata(const SafetensorsFile& a, const SafetensorsFile& b) {
  int64_t different = 0;
  std::set<std::string> keys;
  for (const auto& [key, value] : a.metadata()) keys.insert(key);
  for (const auto& [key, value] : b.metadata()) keys.insert(key);
  for (const std::string& key : keys) {
    const auto x = a.metadata().find(key), y = b.metadata().find(key);
    const bool in_a = x != a.metadata().end(), in_b = y != b.metadata().end();
    if (in_a && in_b && x->second == y->second) continue;
    ++different;
    std::cout << "metadata " << Printable(key) << ": ";
    if (in_a && in_b) {
      const auto [p, q] = FirstDifference(x->second, y->second);
      std::cout << Quoted(p) << " in A, " << Quoted(q) << " in B\n";
    } else {
      std::cout << "only in " << (in_a ? "A" : "B") << "\n";
    }
  }
  return different;
}

bool CompareFiles(const SafetensorsFile& a, const SafetensorsFile& b) {
  std::cout << "A: " << Printable(a.path()) << "\nB: " << Printable(b.path())
            << "\n";
  const int64_t tensors = CompareTensors(a, b);
  const int64_t metadata = CompareMetadata(a, b);
  if (tensors + metadata == 0) {
    std::cout << "the same\n";
  } else {
    std::cout << "different: " << tensors << " of the tensors, " << metadata
              << " of the metadata\n";
  }
  return tensors + metadata == 0;
}

absl::StatusOr<int> Run(const std::vector<std::string>& paths) {
  const bool diff = absl::GetFlag(FLAGS_diff);
  if (paths.size() != (diff ? 2 : 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wanted ", diff ? "--diff A B" : "one FILE", ", got ", paths.size(),
        paths.size() == 1 ? " file" : " files", "; --help says more"));
  }
  std::vector<SafetensorsFile> files;
  for (const std::string& path : paths) {
    auto file = SafetensorsFile::Open(UserPath(path));
    if (!file.ok()) return file.status();
    files.push_back(*std::move(file));
  }
  int status = 0;
  if (diff) {
    status = CompareFiles(files[0], files[1]) ? 0 : 1;
  } else {
    ListFile(files[0]);
  }
  if (!std::cout.flush()) {
    return absl::DataLossError("the output cannot be written");
  }
  return status;
}

}  // namespace
}  // namespace wengert::train

int main(int argc, char** argv) {
  using namespace wengert::train;
  return ExitStatus("inspect", [&]() -> absl::StatusOr<int> {
    std::vector<std::string> paths;
    const absl::Status status =
        ParseCommandLine(argc, argv, kAbout, {__FILE__}, &paths);
    if (!status.ok()) return status;
    return Run(paths);
  });
}
