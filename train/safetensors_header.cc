#include "train/safetensors_header.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "train/text_file.h"

namespace wengert::train::internal {
namespace {

constexpr char kMetadataName[] = "__metadata__";
constexpr size_t kMaxRank = 64;

// Takes the header apart as it is read. Nothing is built of what does not
// belong there, and nothing nests deeper than the three levels that do.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(absl::string_view json, SafetensorsHeader& header)
      : json_(json), header_(header) {}

  const std::string& fault() const { return fault_; }

  bool start_object(size_t) override {
    if (place_ == Place::kStart) return Go(Place::kRoot);
    if (place_ != Place::kRoot) return Unexpected();
    if (name_ == kMetadataName) return Go(Place::kMetadata);
    entry_ = {};
    entry_.name = name_;
    seen_.clear();
    return Go(Place::kTensor);
  }

  bool key(std::string& text) override {
    switch (place_) {
      case Place::kRoot:
        name_ = std::move(text);
        return names_.insert(name_).second ||
               Fail(absl::StrCat("the name ", Quoted(name_), " stands twice"));
      case Place::kMetadata:
        key_ = std::move(text);
        return header_.metadata.emplace(key_, "").second ||
               Fail(absl::StrCat("metadata: the key ", Quoted(key_),
                                 " stands twice"));
      default:
        key_ = std::move(text);
        if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets") {
          return FailTensor(
              absl::StrCat("there is no ", Quoted(key_), " of a tensor"));
        }
        return seen_.insert(key_).second ||
               FailTensor(absl::StrCat("its ", key_, " stands twice"));
    }
  }

  bool string(std::string& text) override {
    if (place_ == Place::kMetadata) {
      header_.metadata[key_] = std::move(text);
      return true;
    }
    if (place_ != Place::kTensor || key_ != "dtype") return Unexpected();
    const auto type = ElementTypeOf(text);
    if (!type) {
      return FailTensor(absl::StrCat("its dtype ", Quoted(text),
                                     " is none that can be read"));
    }
    entry_.type = *type;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ != Place::kTensor || key_ == "dtype") return Unexpected();
    numbers_.clear();
    return Go(Place::kNumbers);
  }

  bool number_unsigned(uint64_t number) override {
    if (place_ != Place::kNumbers ||
        number > uint64_t{std::numeric_limits<int64_t>::max()}) {
      return Unexpected();
    }
    if (numbers_.size() == kMaxRank) {
      return FailTensor(
          absl::StrCat("its ", key_, " has more than ", kMaxRank, " numbers"));
    }
    numbers_.push_back(static_cast<int64_t>(number));
    return true;
  }

  bool end_array() override {
    if (key_ == "shape") {
      entry_.dims = numbers_;
    } else if (numbers_.size() == 2) {
      entry_.begin = static_cast<uint64_t>(numbers_[0]);
      entry_.end = static_cast<uint64_t>(numbers_[1]);
    } else {
      return Unexpected();
    }
    return Go(Place::kTensor);
  }

  bool end_object() override {
    if (place_ == Place::kTensor) {
      for (const char* wanted : {"dtype", "shape", "data_offsets"}) {
        if (seen_.count(wanted) == 0) {
          return FailTensor(absl::StrCat("it has no ", wanted));
        }
      }
      header_.entries.push_back(std::move(entry_));
    }
    return Go(Place::kRoot);
  }

  bool null() override { return Unexpected(); }
  bool boolean(bool) override { return Unexpected(); }
  bool number_integer(int64_t) override { return Unexpected(); }
  bool number_float(double, const std::string&) override {
    return Unexpected();
  }
  bool binary(binary_t&) override { return Unexpected(); }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    // The position counts from 1 and is that of the last byte read.
    const size_t place =
        std::min(position > 0 ? position - 1 : 0, json_.size());
    const size_t begin = place < 10 ? 0 : place - 10;
    return Fail(absl::StrCat("byte ", place, " is not JSON, in ",
                             Quoted(json_.substr(begin, 20))));
  }

 private:
  enum class Place { kStart, kRoot, kMetadata, kTensor, kNumbers };

  bool Go(Place place) {
    place_ = place;
    return true;
  }
  bool Fail(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }
  bool FailTensor(absl::string_view fault) {
    return Fail(absl::StrCat("tensor ", Quoted(name_), ": ", fault));
  }
  // A value of another kind than belongs at this place.
  bool Unexpected() {
    switch (place_) {
      case Place::kStart:
      case Place::kRoot:
        return Fail(absl::StrCat(Quoted(name_), " is no object"));
      case Place::kMetadata:
        return Fail(absl::StrCat("metadata: ", Quoted(key_), " is no string"));
      default:
        return FailTensor(absl::StrCat(
            "its ", key_, " is no ",
            key_ == "dtype"   ? "string"
            : key_ == "shape" ? "list of whole numbers from 0 to 2^63 - 1"
                              : "pair of whole numbers from 0 to 2^63 - 1"));
    }
  }

  const absl::string_view json_;
  SafetensorsHeader& header_;
  std::string fault_;
  Place place_ = Place::kStart;
  std::string name_;             // of the tensor, or kMetadataName
  std::string key_;              // inside it
  std::set<std::string> names_;  // of all
  std::set<std::string> seen_;   // the tensor's keys
  HeaderEntry entry_;
  std::vector<int64_t> numbers_;
};

// The text in quotes.
absl::StatusOr<std::string> Json(const std::string& text) {
  for (absl::string_view rest = text; !rest.empty();) {
    const size_t length = Utf8Length(rest);
    if (length == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(text), " is not UTF-8"));
    }
    rest.remove_prefix(length);
  }
  return nlohmann::json(text).dump();
}

}  // namespace

absl::Status ParseHeader(absl::string_view json, SafetensorsHeader& header) {
  if (json.empty() || json[0] != '{') {
    return absl::InvalidArgumentError("the header does not begin with '{'");
  }
  // Where the parser would take the text for ended.
  const size_t nul = json.find('\0');
  if (nul != json.npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header: byte ", nul, " is 0"));
  }
  HeaderReader reader(json, header);
  if (nlohmann::json::sax_parse(json.begin(), json.end(), &reader)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the header: ", reader.fault()));
}

absl::StatusOr<std::string> PrintHeader(const SafetensorsHeader& header) {
  std::set<std::string> names = {kMetadataName};
  std::vector<std::string> parts, pairs;
  for (const auto& [key, value] : header.metadata) {
    const auto key_text = Json(key), value_text = Json(value);
    if (!key_text.ok()) return key_text.status();
    if (!value_text.ok()) return value_text.status();
    pairs.push_back(absl::StrCat(*key_text, ":", *value_text));
  }
  if (!pairs.empty()) {
    parts.push_back(absl::StrCat("\"", kMetadataName, "\":{",
                                 absl::StrJoin(pairs, ","), "}"));
  }
  for (const HeaderEntry& entry : header.entries) {
    const auto name = Json(entry.name);
    if (!name.ok()) return name.status();
    if (!names.insert(entry.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("the name ", *name, " stands twice"));
    }
    parts.push_back(absl::StrCat(
        *name, ":{\"dtype\":\"", ElementName(entry.type), "\",\"shape\":[",
        absl::StrJoin(entry.dims, ","), "],\"data_offsets\":[", entry.begin,
        ",", entry.end, "]}"));
  }
  std::string json = absl::StrCat("{", absl::StrJoin(parts, ","), "}");
  json.resize((json.size() + 7) / 8 * 8, ' ');
  if (json.size() > kMaxHeaderSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header has ", json.size(), " bytes; wanted at most ",
                     kMaxHeaderSize));
  }
  return json;
}

}  // namespace wengert::train::internal
