// Muon: the momentum of a matrix made orthogonal, so that all its directions
// step alike; Adam for what is no matrix.
#ifndef WENGERT_TRAIN_MUON_H_
#define WENGERT_TRAIN_MUON_H_

#include <map>
#include <string>

#include "nn/parameter_store.h"
#include "train/optimizer.h"

namespace wengert::train {

struct MuonOptions {
  double lr = 1e-3;  // of matrices and the others
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0.1;  // lr times it is what w loses, apart from g
  int ns_steps = 5;
  double eps = 1e-7;
  // Steps of a matrix [A, B] are 0.2 sqrt(max(A, B)) lr long, like AdamW's, so
  // that one lr fits all (Moonshot); if not, sqrt(max(1, A / B)) lr (Jordan).
  // PyTorch calls them "match_rms_adamw" and "original", its default.
  bool match_adamw = true;
  double beta1 = 0.9;  // and the rest of what AdamW has
  double beta2 = 0.999;
  double adam_eps = 1e-8;
  // Which parameters of two dimensions are taken for matrices: all, without
  // one. Embeddings and the last layer are often left out.
  std::function<bool(const std::string& name, const Tensor& value)>
      matrix_filter = nullptr;
  DecayFilter decay_filter = nullptr;
};

// Of a matrix, with gradient g (Jordan et al. 2024; PyTorch's Muon):
//   m = momentum m + (1 - momentum) g,
//   u = momentum m + (1 - momentum) g with nesterov, else m,
//   w = (1 - lr weight_decay) w - lr scale NS(u),
// where NS divides u by its norm, at least eps, and then ns_steps times, with
// X of no more rows than columns, makes X = a X + (b A + c A^2) X of A = X X^T,
// (a, b, c) = (3.4445, -4.7750, 2.0315). It works in the dtype of the
// parameters, where PyTorch rounds to bfloat16. Any other parameter, of one
// dimension or of three say, is updated as by AdamW with the same lr and
// weight_decay. Throws Error unless 0 <= momentum, beta < 1, weight_decay >= 0,
// both eps > 0 and 1 <= ns_steps < 100.
class Muon : public Optimizer {
 public:
  explicit Muon(nn::ParameterStore& store, MuonOptions options = {});

 private:
  void Update(const Run& run) override;
  std::map<std::string, double> options() const override;
  void set_options(const std::map<std::string, double>& options) override;
  template <class T>
  void UpdateMatrix(const Run& run);
  template <class T>
  void UpdateOther(const Run& run);

  std::map<std::string, double> options_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_MUON_H_
