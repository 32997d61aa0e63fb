// The numbers of the fields are those of event.proto, summary.proto and
// histogram.proto in tensorboard/compat/proto of TensorBoard's sources.
#include "train/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autograd/error.h"

namespace wengert::train {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "events.out.tfevents.";
// Length and its checksum before a record's bytes, and theirs after them.
constexpr int64_t kHeaderBytes = 12, kFooterBytes = 4;

// CRC-32C (Castagnoli), reflected, a byte at a time.
constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0u);
    }
    table[i] = crc;
  }
  return table;
}();

// As TFRecord stores it: rotated and shifted, so that a checksum of bytes that
// hold checksums is a good one.
uint32_t MaskedCrc(absl::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  }
  return std::rotr(~crc, 15) + 0xA282EAD8u;
}

template <typename UInt>
void AppendLittleEndian(std::string* out, UInt value) {
  for (size_t i = 0; i < sizeof(UInt); ++i) {
    out->push_back(static_cast<char>(value >> (8 * i)));
  }
}

std::string Record(absl::string_view bytes) {
  std::string record;
  AppendLittleEndian<uint64_t>(&record, bytes.size());
  AppendLittleEndian(&record, MaskedCrc(record));
  absl::StrAppend(&record, bytes);
  AppendLittleEndian(&record, MaskedCrc(bytes));
  return record;
}

// A protocol buffer's fields, to be added in the order of their numbers. As in
// proto3, a number that is 0 is left out.
class Message {
 public:
  Message& Int(int field, int64_t value) {
    if (value == 0) return *this;
    Varint(field << 3);
    Varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& Double(int field, double value) {
    if (std::bit_cast<uint64_t>(value) == 0) return *this;
    Varint(field << 3 | 1);
    AppendLittleEndian(&bytes_, std::bit_cast<uint64_t>(value));
    return *this;
  }
  Message& Bytes(int field, absl::string_view value) {
    Varint(field << 3 | 2);
    Varint(value.size());
    absl::StrAppend(&bytes_, value);
    return *this;
  }
  Message& Doubles(int field, const std::vector<double>& values) {
    if (values.empty()) return *this;
    std::string packed;
    for (const double value : values) {
      AppendLittleEndian(&packed, std::bit_cast<uint64_t>(value));
    }
    return Bytes(field, packed);
  }
  // A member of a oneof: there also where it is 0.
  Message& Float(int field, float value) {
    Varint(field << 3 | 5);
    AppendLittleEndian(&bytes_, std::bit_cast<uint32_t>(value));
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
      bytes_.push_back(static_cast<char>(value | 0x80));
    }
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

enum EventField { kFileVersion = 3, kSummary = 5 };
enum ValueField { kImage = 4, kHistogram = 5 };

// A Summary with one value of this tag.
std::string Summary(absl::string_view tag, ValueField field,
                    const Message& value) {
  return Message()
      .Bytes(1, Message().Bytes(1, tag).Bytes(field, value.bytes()).bytes())
      .bytes();
}

template <typename T>
Message HistogramOf(absl::Span<const T> values) {
  constexpr int kBuckets = 30;
  double min = std::numeric_limits<double>::infinity(), max = -min;
  double n = 0, sum = 0, sum_squares = 0;
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    min = std::min(min, x);
    max = std::max(max, x);
    n += 1;
    sum += x;
    sum_squares += x * x;
  }
  std::vector<double> limits, counts;
  if (n == 0) {
    min = max = 0;
  }
  // Halves, as max - min may be too large for a double.
  const double half_width = (max / 2 - min / 2) / kBuckets;
  if (n > 0 && half_width == 0) {
    limits = {max};
    counts = {n};
  } else if (n > 0) {
    for (int i = 1; i < kBuckets; ++i) {
      limits.push_back(std::min(min + i * half_width + i * half_width, max));
    }
    limits.push_back(max);
    counts.resize(kBuckets);
    for (const double x : values) {
      if (!std::isfinite(x)) continue;
      const double bucket = (x / 2 - min / 2) / half_width;
      ++counts[std::min(static_cast<int>(bucket), kBuckets - 1)];
    }
  }
  return Message()
      .Double(1, min)
      .Double(2, max)
      .Double(3, n)
      .Double(4, sum)
      .Double(5, sum_squares)
      .Doubles(6, limits)
      .Doubles(7, counts);
}

// Height, width and colour space from the file's first chunk.
Message PngImage(absl::string_view png) {
  constexpr char kStart[] = "\x89PNG\r\n\x1A\n\0\0\0\rIHDR";
  if (png.size() < 33 ||
      !absl::StartsWith(png, absl::string_view(kStart, sizeof(kStart) - 1))) {
    throw Error("EventWriter::Image: wants the bytes of a PNG file");
  }
  const auto big_endian = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) {
      value = value << 8 | static_cast<uint8_t>(png[at + i]);
    }
    return value;
  };
  // By PNG's colour type: grey, RGB, palette, grey and alpha, RGB and alpha.
  constexpr int kColorSpace[] = {1, 0, 3, 3, 2, 0, 4};
  const int type = png[25];
  return Message()
      .Int(1, big_endian(20))
      .Int(2, big_endian(16))
      .Int(3, type >= 0 && type <= 6 ? kColorSpace[type] : 0)
      .Bytes(4, png);
}

// The step of an event that begins with these bytes: time, then step if not 0.
int64_t StepOf(absl::string_view event) {
  constexpr size_t kTimeBytes = 1 + sizeof(double);
  if (event.size() <= kTimeBytes || event[kTimeBytes] != 2 << 3) return 0;
  uint64_t step = 0;
  int shift = 0;
  for (size_t i = kTimeBytes + 1; i < event.size() && shift < 64; ++i) {
    step |= static_cast<uint64_t>(event[i] & 0x7F) << shift;
    if (!(event[i] & 0x80)) break;
    shift += 7;
  }
  return static_cast<int64_t>(step);
}

// Bytes of the whole records up to the first of a step after last_step.
int64_t BytesUpTo(int64_t last_step, const std::string& path) {
  std::error_code ignored;
  const auto size = static_cast<int64_t>(fs::file_size(path, ignored));
  std::ifstream file(path, std::ios::binary);
  int64_t end = 0;
  while (size - end >= kHeaderBytes + kFooterBytes) {
    char start[kHeaderBytes + 20] = {};  // time and step take 20 at most
    file.clear();
    file.seekg(end);
    file.read(start, sizeof(start));
    uint64_t length = 0;
    for (int i = 7; i >= 0; --i) {
      length = length << 8 | static_cast<uint8_t>(start[i]);
    }
    const int64_t rest = size - end - kHeaderBytes - kFooterBytes;
    if (length > static_cast<uint64_t>(rest)) break;
    const absl::string_view event(start + kHeaderBytes,
                                  std::min<uint64_t>(length, 20));
    // The first event is the file's version, of no step.
    if (end > 0 && StepOf(event) > last_step) break;
    end += kHeaderBytes + static_cast<int64_t>(length) + kFooterBytes;
  }
  return end;
}

}  // namespace

double EventWriter::WallTime() {
  return absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
}

absl::StatusOr<EventWriter> EventWriter::Open(const std::string& folder,
                                              int64_t last_step,
                                              std::function<double()> now) {
  std::error_code error;
  fs::create_directories(folder, error);
  // TensorBoard reads the files in the order of their names, which begin with
  // the second in which they were started: ours must be the last, also where
  // the clock was put back or a run resumes at once.
  int64_t seconds = static_cast<int64_t>(now());
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename();
    int64_t started;
    if (absl::StartsWith(name, kPrefix) &&
        absl::SimpleAtoi(name.substr(sizeof(kPrefix) - 1, 10), &started)) {
      seconds = std::max(seconds, started + 1);
      const std::string path = it->path();
      const auto cut = AppendFile::Open(path, BytesUpTo(last_step, path));
      if (!cut.ok()) return cut.status();
    }
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat(folder, ": cannot be written"));
  }

  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  const std::string path =
      fs::path(folder) /
      absl::StrFormat("%s%010d.%s.%d.0", kPrefix, seconds, host, getpid());
  auto file = AppendFile::Open(path, 0);
  if (!file.ok()) return file.status();
  EventWriter writer(path, *std::move(file), std::move(now));
  absl::Status status = writer.Write(0, kFileVersion, "brain.Event:2");
  if (!status.ok()) return status;
  return writer;
}

absl::Status EventWriter::Write(int64_t step, int field,
                                absl::string_view content) {
  const Message event =
      Message().Double(1, now_()).Int(2, step).Bytes(field, content);
  return failure_.Of(file_.Append(Record(event.bytes())));
}

absl::Status EventWriter::Scalars(int64_t step,
                                  absl::Span<const Metric> scalars) {
  Message summary;
  for (const auto& [tag, value] : scalars) {
    summary.Bytes(
        1, Message().Bytes(1, tag).Float(2, static_cast<float>(value)).bytes());
  }
  return Write(step, kSummary, summary.bytes());
}

absl::Status EventWriter::Histogram(int64_t step, absl::string_view tag,
                                    const Tensor& values) {
  if (!IsFloat(values.dtype())) {
    throw Error(absl::StrCat("EventWriter::Histogram: wants float32 or ",
                             "float64, not ", Describe(values)));
  }
  const Message histogram = values.dtype() == DType::kFloat32
                                ? HistogramOf(values.span<float>())
                                : HistogramOf(values.span<double>());
  return Write(step, kSummary, Summary(tag, kHistogram, histogram));
}

absl::Status EventWriter::Image(int64_t step, absl::string_view tag,
                                absl::string_view png) {
  return Write(step, kSummary, Summary(tag, kImage, PngImage(png)));
}

}  // namespace wengert::train
