// Where the time of training goes: a table of operations, and a trace that
// Perfetto (https://ui.perfetto.dev) and chrome://tracing show.
//
//   Profile profile;
//   for (...) {
//     { Profile::Span span(&profile, "data"); batch = Next(); }
//     Tape tape(generator);
//     tape.set_observer(&profile);
//     tape.Backward(Loss(batch));
//     Profile::Span span(&profile, "optimizer");
//     optimizer.Step();
//   }
//   std::cout << profile.Table();
//   profile.WriteChromeTrace("trace.json");
//
// Each moment counts once. A forward operation's time begins where what was
// seen before it ends, be it an operation, a pass, a span or the giving of the
// observer to a tape, for nothing tells when an operation starts: code between
// two operations counts as the second one's. A rule's time is that of the
// operations it is written with too; what a pass does between its rules is the
// pass's own ("Backward"), what a span does beside operations is the span's,
// and the rest is "(between)". The profile's own time is left out of all that.
#ifndef WENGERT_TRAIN_PROFILE_H_
#define WENGERT_TRAIN_PROFILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "autograd/storage.h"
#include "autograd/tape_observer.h"

namespace wengert::train {

// Watches the tapes of one thread.
class Profile : public TapeObserver {
 public:
  // kAgain: forward, but in a backward pass, which runs a checkpointed function
  // or a composition again. kSpan: a span, a pass's own time, "(between)".
  enum class Kind { kForward, kBackward, kAgain, kSpan };

  // Sums over the calls of an operation in one layer.
  struct Row {
    std::string name;
    std::string layer;  // empty without one
    Kind kind;
    int64_t calls = 0;
    int64_t nanoseconds = 0;
    double flops = 0;         // of products and attention; others have none
    double bytes = 0;         // of operands read and results written, each once
    int64_t allocations = 0;  // from the pool, by any thread
    int64_t system_allocations = 0;  // those that the pool passed on
  };

  struct Options {
    size_t trace_slices = 20'000;  // the trace ends after so many
    std::function<int64_t()> now = SteadyNanoseconds;
  };

  Profile() : Profile(Options{}) {}
  explicit Profile(Options options);
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // A named stretch of time, which may hold others, operations and passes.
  // Nothing for a null profile.
  class Span {
   public:
    Span(Profile* profile, const std::string& name) : profile_(profile) {
      if (profile_) profile_->Begin(name);
    }
    ~Span() {
      if (profile_) profile_->End();
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    Profile* profile_;
  };

  // The rows in falling order of time, which adds up to that of the profile.
  std::vector<Row> Rows(bool by_layer = false);
  // The same in at most 100 columns, for a terminal; by layer without the
  // allocations.
  std::string Table(bool by_layer = false);
  // Writes the file whole or leaves what was there; see FileWriter.
  absl::Status WriteChromeTrace(const std::string& path);

  void OnStart() override;
  void OnOperation(const OperationEvent& e) override;
  void OnPassBegin(const char* name) override;
  void OnPassEnd() noexcept override;
  void OnRuleBegin(const RuleEvent& e) override;
  void OnRuleEnd() noexcept override;

 private:
  // One bar of the trace.
  struct Slice {
    const Row* row;
    int64_t begin, end;  // nanoseconds
    double flops;
    std::string shapes;
  };
  // What is under way.
  struct Frame {
    Row* row;
    bool holds_rows;  // or else counts the operations inside as its own
    bool again;       // operations inside run for the second time
    size_t slice;
  };
  static constexpr size_t kNoSlice = -1;
  class Stopped;

  static int64_t SteadyNanoseconds();
  void Begin(const std::string& name);
  void End() noexcept;
  Row& RowOf(const std::string& name, const std::string* layer, Kind kind);
  // Its place among slices_; `shapes` is called if there is room.
  template <class F>
  size_t AddSlice(const Row& row, int64_t begin, double flops, F shapes);
  // Charges the time and the allocations since the last call.
  void Charge(Row& row) noexcept;
  // To what is under way.
  void ChargeRest() noexcept;
  void Pop() noexcept;
  // Lets the slices of what is under way end now.
  void CloseSlices();

  const Options options_;
  std::map<std::tuple<std::string, std::string, Kind>, Row> rows_;
  Row& between_;
  std::vector<Frame> frames_;
  std::vector<Slice> slices_;
  size_t left_out_ = 0;  // slices beyond the limit
  // The profile's clock begins with the first event and stands still while the
  // profile itself works.
  bool started_ = false;
  int64_t clock_ = 0;
  int64_t resumed_ = 0;  // when it last went on, by options_.now
  int64_t charged_ = 0;  // what of the clock has been charged
  PoolStats pool_;       // what of the pool's counts has been
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_PROFILE_H_
