// Scalars, histograms and images for TensorBoard, in the event files that
// `tensorboard --logdir FOLDER` reads while a run goes on.
//
// An event file is a row of records (TFRecord): length, its checksum, an Event
// of TensorBoard's event.proto, its checksum.
#ifndef WENGERT_TRAIN_TENSORBOARD_H_
#define WENGERT_TRAIN_TENSORBOARD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autograd/tensor.h"
#include "train/append_file.h"
#include "train/metrics_log.h"

namespace wengert::train {

class EventWriter {
 public:
  // Starts a file in the folder, made if need be, that TensorBoard reads after
  // those that are there. Of these, events are cut from the first one of a step
  // after last_step, the checkpoint's (a new run says -1), or that a killed
  // process left unfinished. `now` gives seconds since 1970.
  static absl::StatusOr<EventWriter> Open(
      const std::string& folder, int64_t last_step,
      std::function<double()> now = WallTime);

  // Each writes one event, past this process's end; steps do not go back. An
  // error is returned once:
  // the calls after it try again, and are silent until one has succeeded.
  // A tag with slashes, such as "attention/layer0", is shown in groups.
  absl::Status Scalars(int64_t step, absl::Span<const Metric> scalars);
  // Finite values in 30 equal buckets. Throws Error unless float32 or float64.
  absl::Status Histogram(int64_t step, absl::string_view tag,
                         const Tensor& values);
  // A whole PNG file; throws Error if it does not begin as one.
  absl::Status Image(int64_t step, absl::string_view tag,
                     absl::string_view png);

  const std::string& path() const { return path_; }
  static double WallTime();

 private:
  EventWriter(std::string path, AppendFile file, std::function<double()> now)
      : path_(std::move(path)), file_(std::move(file)), now_(std::move(now)) {}

  // An event whose content is the field with this number.
  absl::Status Write(int64_t step, int field, absl::string_view content);

  std::string path_;
  AppendFile file_;
  std::function<double()> now_;
  FirstFailure failure_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_TENSORBOARD_H_
