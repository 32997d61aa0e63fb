#include "train/csv.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "autograd/error.h"
#include "train/mapped_file.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

// Where in the text something stands, by bytes.
struct Place {
  size_t at;
  size_t line_begin;
  int64_t line;
};

struct Field {
  absl::string_view text;  // between its quotes, where they are still doubled
  bool quoted;
  Place place;
};

// Cuts the text into records of fields.
class Reader {
 public:
  Reader(absl::string_view text, const std::string& path)
      : text_(absl::StripPrefix(text, kByteOrderMark)), path_(path) {}

  // Whether nothing but blank lines is left.
  bool Done() const {
    return text_.find_first_not_of("\r\n", here_.at) == npos;
  }

  // Takes the next record; an error if it is a blank line.
  absl::Status Next(std::vector<Field>& fields) {
    fields.clear();
    if (EndOfLine() > 0) return Error(here_, "the line is blank");
    while (true) {
      absl::Status status = TakeField(fields.emplace_back());
      if (!status.ok()) return status;
      end_ = here_;
      if (here_.at == text_.size()) return absl::OkStatus();
      if (const size_t n = EndOfLine()) {
        here_.at += n;
        NextLine();
        return absl::OkStatus();
      }
      ++here_.at;  // a comma
    }
  }

  // Where the last record ended.
  const Place& end() const { return end_; }

  absl::Status Error(const Place& place, absl::string_view what) const {
    const auto before =
        text_.substr(place.line_begin, place.at - place.line_begin);
    return ErrorAt(path_, place.line, CountCharacters(before) + 1, what);
  }

 private:
  static constexpr size_t npos = absl::string_view::npos;

  char At(size_t i) const { return i < text_.size() ? text_[i] : '\n'; }

  // The bytes of the line end that stands here, 0 if none does.
  size_t EndOfLine() const {
    const size_t at = here_.at;
    if (At(at) == '\n') return at < text_.size() ? 1 : 0;
    if (text_[at] != '\r' || At(at + 1) != '\n') return 0;
    return at + 1 < text_.size() ? 2 : 1;
  }

  void NextLine() {
    here_.line_begin = here_.at;
    ++here_.line;
  }

  absl::Status TakeField(Field& field) {
    field = {{}, At(here_.at) == '"', here_};
    if (field.quoted) return TakeQuoted(field);
    size_t end = std::min(text_.find_first_of(",\n\"", here_.at), text_.size());
    here_.at = end;
    if (end < text_.size() && text_[end] == '"') {
      return Error(here_, "quotes inside a field that does not begin with any");
    }
    const size_t begin = field.place.at;
    const bool line_ends = At(end) == '\n';
    if (line_ends && end > begin && text_[end - 1] == '\r') here_.at = --end;
    field.text = text_.substr(begin, end - begin);
    return absl::OkStatus();
  }

  absl::Status TakeQuoted(Field& field) {
    const size_t begin = ++here_.at;
    while (true) {
      here_.at = text_.find_first_of("\"\n", here_.at);
      if (here_.at == npos) {
        return Error(field.place, "quotes that do not end");
      }
      if (text_[here_.at++] == '\n') {
        NextLine();
      } else if (At(here_.at) == '"') {
        ++here_.at;
      } else {
        break;
      }
    }
    field.text = text_.substr(begin, here_.at - 1 - begin);
    const bool ends =
        here_.at == text_.size() || EndOfLine() > 0 || text_[here_.at] == ',';
    if (!ends) return Error(here_, "text behind the quotes of a field");
    return absl::OkStatus();
  }

  const absl::string_view text_;
  const std::string& path_;
  Place here_ = {0, 0, 1};
  Place end_ = here_;
};

std::string NameOf(const Field& field) {
  if (!field.quoted) {
    return std::string(absl::StripAsciiWhitespace(field.text));
  }
  return absl::StrReplaceAll(field.text, {{"\"\"", "\""}});
}

// What is wrong with the number, or nothing.
template <class T>
std::string ParseNumber(absl::string_view text, T& x) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty()) return "no number";
  const absl::string_view magnitude = absl::StripPrefix(text, "-");
  const bool word = absl::EqualsIgnoreCase(text, "nan") ||
                    absl::EqualsIgnoreCase(magnitude, "inf") ||
                    absl::EqualsIgnoreCase(magnitude, "infinity");
  const bool digits = text.find_first_not_of("0123456789.eE+-") == text.npos;
  const char* const end = text.data() + text.size();
  const auto result = absl::from_chars(text.data(), end, x);
  if (!(word || digits) || result.ec == std::errc::invalid_argument ||
      result.ptr != end) {
    return absl::StrCat(Quoted(text), " is no number");
  }
  // What is too small for a T has become 0, which is the nearest.
  if (result.ec == std::errc::result_out_of_range && std::abs(x) > 1) {
    return absl::StrCat(Quoted(text), " is too large for ", Name(kDTypeOf<T>));
  }
  return "";
}

std::string List(const std::vector<std::string>& names) {
  constexpr size_t kShown = 16;
  const auto shown = absl::MakeConstSpan(names).subspan(0, kShown);
  const auto quote = [](std::string* out, const std::string& name) {
    absl::StrAppend(out, Quoted(name));
  };
  std::string list = absl::StrJoin(shown, ", ", quote);
  if (shown.size() < names.size()) {
    absl::StrAppend(&list, " and ", names.size() - shown.size(), " more");
  }
  return list;
}

// The names of the header.
absl::StatusOr<std::vector<std::string>> ReadHeader(Reader& reader) {
  std::vector<Field> fields;
  absl::Status status = reader.Next(fields);
  if (!status.ok()) return status;
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const Field& field : fields) {
    names.push_back(NameOf(field));
    if (!known.insert(names.back()).second) {
      return reader.Error(
          field.place, absl::StrCat("a second column ", Quoted(names.back())));
    }
  }
  return names;
}

// Where the columns stand among those of the header.
absl::StatusOr<std::vector<size_t>> FindColumns(
    const std::vector<std::string>& columns,
    const std::vector<std::string>& header, const std::string& path) {
  std::vector<size_t> places;
  std::vector<std::string> missing;
  for (const std::string& column : columns) {
    const auto found = std::find(header.begin(), header.end(), column);
    places.push_back(found - header.begin());
    if (found == header.end()) missing.push_back(column);
  }
  if (missing.empty()) return places;
  return ErrorAt(path, 1, 1,
                 absl::StrCat("no column ", List(missing), "; the columns are ",
                              List(header)));
}

template <class T>
absl::StatusOr<Tensor> ReadRows(Reader& reader,
                                const std::vector<size_t>& columns,
                                size_t n_fields) {
  std::vector<T> values;
  std::vector<Field> fields;
  int64_t rows = 0;
  for (; !reader.Done(); ++rows) {
    absl::Status status = reader.Next(fields);
    if (!status.ok()) return status;
    if (fields.size() != n_fields) {
      const bool more = fields.size() > n_fields;
      return reader.Error(
          more ? fields[n_fields].place : reader.end(),
          absl::StrCat(fields.size(), " fields; the header has ", n_fields));
    }
    for (const size_t column : columns) {
      const std::string fault =
          ParseNumber(fields[column].text, values.emplace_back());
      if (!fault.empty()) return reader.Error(fields[column].place, fault);
    }
  }
  if (rows == 0) return reader.Error(reader.end(), "no rows below the header");
  return Tensor::From({rows, static_cast<int64_t>(columns.size())}, values);
}

}  // namespace

absl::StatusOr<CsvTable> ReadCsv(const std::string& path,
                                 const std::vector<std::string>& columns,
                                 DType dtype) {
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  return ParseCsv(file->text(), path, columns, dtype);
}

absl::StatusOr<CsvTable> ParseCsv(absl::string_view text,
                                  const std::string& path,
                                  const std::vector<std::string>& columns,
                                  DType dtype) {
  if (!IsFloat(dtype)) {
    throw Error(absl::StrCat("ReadCsv: dtype ", Name(dtype),
                             ", wanted float32 or float64"));
  }
  Reader reader(text, path);
  if (reader.Done()) return ErrorAt(path, 1, 1, "the file is empty");
  const auto header = ReadHeader(reader);
  if (!header.ok()) return header.status();
  CsvTable table{columns.empty() ? *header : columns, {}};
  const auto places = FindColumns(table.columns, *header, path);
  if (!places.ok()) return places.status();
  auto values = WithFloat(dtype, [&]<class T>(T) {
    return ReadRows<T>(reader, *places, header->size());
  });
  if (!values.ok()) return values.status();
  table.values = *std::move(values);
  return table;
}

}  // namespace wengert::train
